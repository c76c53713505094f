"""Cores, SMT and CPU model of the nodes that jobs ran on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Ints
from esjobs.records.clusters.description import Clusters, Subcluster
from esjobs.records.names.cpu_models import CpuModel, resolve

# What tells kinds of nodes apart
_KEYS = ("cluster", "subcluster", "queue", "cpu_raw")


@dataclass(frozen=True)
class Nodes:
    """CPU models, SMT and cores per node of a batch of jobs; ``origin``: source of the cores."""

    cpu_models: pa.StringArray
    smt: pa.BooleanArray
    cores: Floats
    origin: pa.StringArray


def nodes_of(batch: pa.RecordBatch, clusters: Clusters, assumed: int) -> Nodes:
    """Return CPU model, SMT and cores per node of a batch of jobs.

    SMT comes from the record, else from the cluster description. Cores of a node: description, else the
    pilot's CPU string (all sockets; threads with SMT), else ``assumed``.
    """
    # a batch of 100,000 jobs has some dozens of kinds of nodes: each is looked up once
    kinds, kind = _kinds([batch.column(name) for name in _KEYS])
    facts = [_facts(clusters.described(*names), raw) for *names, raw in kinds]
    of_jobs = pa.Table.from_pylist(facts, _FACTS).take(pa.array(kind))
    columns = {name: of_jobs.column(name).combine_chunks() for name in _FACTS.names}
    return Nodes(
        columns["cpu_model"],
        pc.coalesce(batch.column("smt"), columns["smt"]),
        columns["cores"].fill_null(assumed).to_numpy(zero_copy_only=False).astype(np.float64),
        columns["origin"],
    )


_FACTS = pa.schema(
    [("cpu_model", pa.string()), ("smt", pa.bool_()), ("cores", pa.int64()), ("origin", pa.string())]
)


def _facts(part: Subcluster | None, cpu_raw: str | None) -> dict[str, object]:
    model = resolve(cpu_raw)
    if model is None and part is not None:
        # the description of a cluster is by hand: what the job saw counts first
        model = resolve(part.cpu_model)
    cores, origin = _cores(model, part)
    return {
        "cpu_model": None if model is None else model.name,
        "smt": None if part is None else part.smt,
        "cores": cores,
        "origin": origin,
    }


def _cores(model: CpuModel | None, part: Subcluster | None) -> tuple[int | None, str]:
    if part is not None and part.cores:
        return part.cores, "cluster"
    if model is not None and model.sockets and model.cores:
        # the pilot counts threads as cores where SMT is on
        return model.cores * (2 if model.smt else 1), "cpu"
    return None, "assumed"


def _kinds(columns: Sequence[pa.Array]) -> tuple[list[tuple[Any, ...]], Ints]:
    """Return the distinct rows of text columns, and the index of each row among them."""
    rows = len(columns[0])
    combined = np.zeros(rows, np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        # made dense again each time, so that no product of sizes can overflow
        combined = np.unique(combined * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
    _, firsts, kind = np.unique(combined, return_index=True, return_inverse=True)
    chosen = pa.array(firsts)
    return list(zip(*(column.take(chosen).to_pylist() for column in columns), strict=True)), kind
