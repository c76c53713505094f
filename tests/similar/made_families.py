"""Families of jobs with planted scores: jobs of one family behave alike and have nearly one score."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

import esjobs
from esjobs.core.arrow import table_schema
from esjobs.publish.publication import rows_table
from esjobs.records.series.rows import Series
from esjobs.schema.scores import SCORES
from tests.issues.made_jobs import START, N, put_series, series

END = START + timedelta(hours=4)
NOISE = 1.5
"""Standard deviation of the scores of a family."""


@dataclass(frozen=True)
class MadeJob:
    """A job with its true scores; ``measured``: whether the store is told of them."""

    job_id: str
    family: int
    user: str
    score_cpu: float
    score_mem: float
    measured: bool


def jobs_of(
    family: int, count: int, *, users: int = 4, measured: bool = True, seed: int = 0
) -> list[MadeJob]:
    """Jobs of a family, whose score follows from its number."""
    rng = np.random.default_rng([family, seed])
    return [
        MadeJob(
            f"f{family}{'m' if measured else 't'}{number}",
            family,
            f"user{family}-{number % users}",
            float(np.clip(15 + 18 * family + NOISE * rng.normal(), 0, 100)),
            float(np.clip(80 - 17 * family + NOISE * rng.normal(), 0, 100)),
            measured,
        )
        for number in range(count)
    ]


def behaviour(job: MadeJob, n: int = N) -> list[Series]:
    """The series of a job: those of its family, a little moved, and noise."""
    rng = np.random.default_rng([job.family, int(job.measured), int(job.job_id[3:])])
    shape = np.random.default_rng([99, job.family])
    at = (np.arange(n) / n + rng.uniform(-0.01, 0.01)) % 1
    load = (
        2 + shape.uniform(-1, 1) + shape.uniform(0.5, 1) * np.sign(np.sin(2 * np.pi * (job.family + 1) * at))
    )
    read = shape.uniform(12, 20) + 0.5 * np.cos(2 * np.pi * at)
    return [
        series("cpu_load", "node", "n1", load + 0.05 * rng.normal(size=n)),
        series("read_b_s", "node", "n1", np.exp(read + 0.05 * rng.normal(size=n))),
    ]


def put_families(session: esjobs.Session, jobs: Sequence[MadeJob], mark: str = "made") -> None:
    """Store series and rows of ``scores`` of jobs; those that are not measured have no score."""
    put_series(session, {job.job_id: behaviour(job) for job in jobs}, end=END)
    put_scores(session, [row_of(job, mark) for job in jobs])


def row_of(job: MadeJob, mark: str = "made") -> dict[str, Any]:
    """The row of a job in ``scores``."""
    scores: dict[str, Any] = {"score_cpu": job.score_cpu, "score_mem": job.score_mem, "variant": "skx"}
    scores |= {f"{name}_sq": scores[name] ** 2 for name in ("score_cpu", "score_mem")}
    return {
        "source": "c",
        "job_id": job.job_id,
        "queue": "batch",
        "user": job.user,
        "project": "phys",
        "application": f"app{job.family}",
        "end_time": END,
        "day": END.date(),
        "fingerprint": mark,
        "nodes": 1,
        "node_h": 4.0,
        "core_h": 16.0,
        "n_jobs": 1,
        **(scores if job.measured else {}),
    }


def put_scores(session: esjobs.Session, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the scores of the day of the made-up jobs."""
    batches = rows_table(SCORES, rows).cast(table_schema(SCORES)).to_batches()
    session.store.publish([session.store.replace(SCORES, str(END.date()), batches)])
