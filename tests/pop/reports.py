"""Reports of TALP for tests: the real ones under names that reports have, and jobs that they are about."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.store.base import JobStore

END = datetime(2026, 11, 20, 23, tzinfo=UTC)


def real_reports(data: Path) -> list[Path]:
    """Every real report, the invalid one among them."""
    return sorted((data / "talp").glob("*/*.json"))


def as_report(folder: Path, real: Path, job: str = "4711", step: str = "0", pid: int = 1) -> Path:
    """A copy of a real report under the name that the wrapper gives."""
    path = folder / f"talp.{job}.{step}.node01.{pid}.json"
    shutil.copyfile(real, path)
    return path


def minimal(**members: Any) -> dict[str, Any]:
    """A report with as little as can be, of one region; ``members`` of the region."""
    region = {"numCpus": 4, "numMpiRanks": 4, "numNodes": 2, "elapsedTime": 10**9, "usefulTime": 3 * 10**9}
    region |= {"mpiTime": 10**9, "minMpiNormdProc": 10**8, "minMpiNormdNode": 2 * 10**8, "numMpiCalls": 8}
    return {"timestamp": "2026-11-20T22:00:00", "Application": {"Global": region | members}}


def written(folder: Path, document: Any, name: str = "talp.4711.0.node01.1.json") -> Path:
    """A document as a file."""
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def put_job(store: JobStore, job_id: str = "4711", source: str = "slurm", **members: Any) -> None:
    """A record of a job."""
    row = {"source": source, "job_id": job_id, "queue": "batch", "end_time": END, "user": "ada"}
    row |= {"project": "p1", "application": "solver", "wall_s": 3600.0, "cores": 4, **members}
    batch = pa.RecordBatch.from_pylist([row], schema=PUT_SCHEMA)
    store.put_jobs([batch], f"job-{source}-{job_id}")
