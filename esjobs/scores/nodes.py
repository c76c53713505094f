"""What is known of the nodes that jobs ran on: how many cores they have, and whether SMT is on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.records.names.cpu_models import CpuModel, resolve
from esjobs.scores.formulas import Floats


class DescribedNode(Protocol):
    """What the description of a cluster says of a kind of node; None where it does not."""

    @property
    def cores_per_node(self) -> int | None:
        """Physical cores of a node."""

    @property
    def smt(self) -> bool | None:
        """Whether two threads of a core run."""

    @property
    def cpu_model(self) -> str | None:
        """Its CPU, as somebody wrote it."""


Described = Callable[[str | None, str | None], DescribedNode | None]
"""The description of a part of a cluster, by the names of both; None without one."""


_KEYS = ("cluster", "subcluster", "cpu_raw")
"""What tells kinds of nodes apart."""


@dataclass(frozen=True)
class Nodes:
    """Of a batch of jobs: CPU models, SMT, cores per node, and where these are from."""

    cpu_models: pa.StringArray
    smt: pa.BooleanArray
    cores: Floats
    origin: pa.StringArray


def nodes_of(batch: pa.RecordBatch, described: Described, assumed: int) -> Nodes:
    """What is known of the nodes of the jobs of a batch.

    SMT is what the record says, else what the description of the cluster does. Cores of a node: as described,
    else as a pilot's CPU string tells, which counts those of all sockets (threads of them, with SMT), else
    ``assumed``. Each kind of node is looked at once.
    """
    kinds, kind = _kinds([batch.column(name) for name in _KEYS])
    facts = [_facts(cluster, part, raw, described) for cluster, part, raw in kinds]
    known = pa.Table.from_pylist(facts, _FACTS).take(pa.array(kind))
    columns = {name: known.column(name).combine_chunks() for name in _FACTS.names}
    return Nodes(
        columns["cpu_model"],
        pc.coalesce(batch.column("smt"), columns["smt"]),
        columns["cores"].fill_null(assumed).to_numpy(zero_copy_only=False).astype(np.float64),
        columns["origin"],
    )


_FACTS = pa.schema(
    [("cpu_model", pa.string()), ("smt", pa.bool_()), ("cores", pa.int64()), ("origin", pa.string())]
)


def _facts(
    cluster: str | None, subcluster: str | None, cpu_raw: str | None, described: Described
) -> dict[str, object]:
    part = None if cluster is None and subcluster is None else described(cluster, subcluster)
    model = resolve(cpu_raw)
    if model is None and part is not None:
        model = resolve(part.cpu_model)
    cores, origin = _cores(model, part)
    return {
        "cpu_model": None if model is None else model.name,
        "smt": None if part is None else part.smt,
        "cores": cores,
        "origin": origin,
    }


def _cores(model: CpuModel | None, part: DescribedNode | None) -> tuple[int | None, str]:
    if part is not None and part.cores_per_node:
        return part.cores_per_node, "cluster"
    if model is not None and model.sockets and model.cores:
        return model.cores * (2 if model.smt else 1), "cpu"
    return None, "assumed"


def _kinds(columns: Sequence[pa.Array]) -> tuple[list[tuple[Any, ...]], npt.NDArray[np.int64]]:
    """The distinct rows of some columns of texts, and which of them each row is."""
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
