"""Jobs with time series of which is known what is wrong with them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import esjobs
from esjobs.core.arrow import table_schema
from esjobs.records.series.rows import Series, rows_of
from esjobs.schema.series import SERIES

START = datetime(2026, 3, 1, tzinfo=UTC)
STEP_S = 30.0
N = 480


def series(metric: str, scope: str, unit: str, values: npt.ArrayLike, start: datetime = START) -> Series:
    return Series(metric, scope, unit, start, STEP_S, np.asarray(values, np.float64))


def cores(values: Iterable[npt.ArrayLike], node: str = "n1", start: datetime = START) -> list[Series]:
    """The load of the cores of a node."""
    return [series("cpu_load", "core", f"{node}/{core}", load, start) for core, load in enumerate(values)]


def record(job_id: str, **fields: Any) -> dict[str, Any]:
    """A record of four hours on four cores, with other fields on request; None leaves one out."""
    start = fields.pop("start", START)
    usual = {
        "source": "c",
        "job_id": job_id,
        "queue": "batch",
        "start_time": start.isoformat(),
        "end_time": (start + timedelta(hours=4)).isoformat(),
        "wall_s": 14400,
        "cores": 4,
        "nodes": 1,
        "user": "alice",
        "project": "phys",
        "state": "finished",
        "cluster": "emmy",
        "subcluster": "a",
    }
    return {name: value for name, value in {**usual, **fields}.items() if value is not None}


def put_records(session: esjobs.Session, folder: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Store records by the way that any others take."""
    path = folder / "jobs.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in records) + "\n")
    session.ingest("jobs", [path])


def put_series(
    session: esjobs.Session,
    given: Mapping[str, list[Series]],
    *,
    load: str = "load",
    end: datetime = START + timedelta(hours=4),
) -> None:
    """Store the series of some jobs as one load."""
    rows = pa.Table.from_batches([rows_of("c", job_id, listed, end) for job_id, listed in given.items()])
    schema = table_schema(SERIES)
    columns = []
    for field in schema:
        if field.name == "load_id":
            columns.append(pa.array([load] * rows.num_rows))
        elif field.name == "loaded_at":
            columns.append(pa.array([START] * rows.num_rows, field.type))
        else:
            columns.append(rows.column(field.name).combine_chunks())
    full = pa.Table.from_arrays(columns, schema=schema)
    session.store.publish([session.store.replace(SERIES, load, full.to_batches())])


def busy(value: float = 0.95) -> npt.NDArray[np.float64]:
    return np.full(N, value)


def phases() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Load and bytes written, taking turns every ten samples."""
    writes = np.arange(N) % 10 < 3
    return np.where(writes, 0.05, 0.95), np.where(writes, 5e8, 0.0)


def made_series() -> dict[str, list[Series]]:
    """Jobs by what is wrong with them."""
    load, written = phases()
    ramp = np.linspace(2e9, 10e9, N)
    stops = np.where(np.arange(N) < 240, 0.95, 0.0)
    return {
        "good": cores([busy()] * 4),
        "idle": cores([busy(), busy(), busy(0), busy(0)]),
        "leak": [*cores([busy()] * 4), series("mem_used_b", "node", "n1", ramp)],
        "blocking": [*cores([load] * 4), series("write_b_s", "node", "n1", written)],
        "bandwidth": [*cores([busy()] * 4), series("mem_bw_b_s", "socket", "n1/0", busy(9e10))],
        "metadata": [series("metadata_ops_s", "node", "n1", np.where(np.arange(N) == 5, 50.0, 1.0))],
        "stops": cores([stops] * 4),
        "gaps": cores([np.full(N, np.nan)] * 4),
    }
