"""Small made-up grids whose truth is known, as frames of jobs, and ways to get them into a store."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from esjobs.api.session import Session
from esjobs.core.arrow import JOB_SCHEMA

Floats = NDArray[np.float64]
DAY = pd.Timestamp("2018-08-10T12:00:00Z")


def site_names(count: int) -> list[str]:
    return [f"SITE{number:02}" for number in range(count)]


def grid_jobs(
    rng: np.random.Generator,
    speed: Floats,
    declared: Floats | None = None,
    *,
    names: Sequence[str] | None = None,
    tasks: int = 4,
    jobs: int = 25,
    interaction: float = 0.0,
    spread: float = 0.05,
    days: int = 2,
    prefix: str = "",
    models: Sequence[str | None] = (None,),
    processing_type: str | None = "simul",
) -> pd.DataFrame:
    """Jobs of every task at every site: CPU time = level of the task / speed of the site, with scatter.

    ``interaction``: planted width of site x task in ln; ``spread``: relative scatter from job to job;
    ``declared``: value that the records carry, by site. ``prefix`` keeps ids of several frames apart.
    """
    sites = list(names) if names is not None else site_names(len(speed))
    site, task, job = (
        index.ravel() for index in np.meshgrid(np.arange(len(sites)), np.arange(tasks), np.arange(jobs))
    )
    level = np.exp(rng.normal(np.log(2000), 0.5, tasks))
    events = rng.integers(80, 120, len(site))
    shift = np.exp(rng.normal(0, 1, (len(sites), tasks)) * interaction)
    shape = 1 / spread**2
    noise = rng.gamma(shape, 1 / shape, len(site))
    cpu = level[task] * events / speed[site] * shift[site, task] * noise
    wall = cpu * 1.1
    frame = pd.DataFrame(
        {
            "job_id": [f"{prefix}{t}-{s}-{j}" for t, s, j in zip(task, site, job, strict=True)],
            "task_id": [f"{prefix}task{t}" for t in task],
            "queue": np.array(sites, object)[site],
            "cpu_raw": np.array(list(models), object)[(site + job) % len(models)],
            "processing_type": processing_type,
            "state": "finished",
            "end_time": DAY + pd.to_timedelta(job % days, unit="D"),
            "cores": 1,
            "events": events,
            "cpu_s": cpu,
            "wall_s": wall,
        }
    )
    if declared is not None:
        frame["hs06_s"] = wall * np.asarray(declared)[site]
    return frame


def write_jobs(frame: pd.DataFrame, path: Path) -> Path:
    """The frame as canonical Parquet, typed by the catalogue."""
    fields = [JOB_SCHEMA.field(name) for name in frame.columns]
    parquet.write_table(pa.Table.from_pandas(frame, pa.schema(fields), preserve_index=False), path)
    return path


def load(session: Session, frame: pd.DataFrame, folder: Path, name: str = "jobs") -> str:
    """Ingest a frame through a real file; the id of the load."""
    return session.ingest("jobs", write_jobs(frame, folder / f"{name}.parquet")).run


def days_of(frame: pd.DataFrame) -> set[date]:
    return set(frame["end_time"].dt.date)
