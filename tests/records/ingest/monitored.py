"""Reading files of monitoring systems into a store in memory, for their tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esjobs.api.session import Session
from esjobs.core.report import RunReport
from esjobs.records.series.packing import Samples, unpack

Key = tuple[str, str, str]


def read(session: Session, form: str, *files: Path, fill: Sequence[str] = ()) -> RunReport:
    """Read files; the books balance, or the step raises."""
    return session.ingest(form, list(files), fill=fill)


def series(session: Session, job_id: str | None = None) -> dict[Key, Samples]:
    """Metric, scope and unit with the samples, of a job."""
    rows = session.tables.series().rows.to_pylist()
    return {
        (row["metric"], row["scope"], row["unit"]): unpack(row["packed"], row["n_samples"])
        for row in rows
        if job_id in (None, row["job_id"])
    }


def rows(session: Session, table: str = "series") -> list[dict[str, Any]]:
    """The rows of a table."""
    found: list[dict[str, Any]] = session.tables.read(table).rows.to_pylist()
    return found


def jobs(session: Session) -> list[dict[str, Any]]:
    """The stored jobs, what is missing left out."""
    found = session.jobs().batches().read_all().to_pylist()
    return [{name: value for name, value in job.items() if value is not None} for job in found]


def refused(session: Session) -> dict[str, int]:
    """The refused rows by reason."""
    counts: dict[str, int] = {}
    for row in rows(session, "rejects"):
        counts[row["reason"]] = counts.get(row["reason"], 0) + row["n_rows"]
    return counts


def known(samples: Samples) -> list[float]:
    """The samples that are there."""
    return [float(value) for value in samples[np.isfinite(samples)]]
