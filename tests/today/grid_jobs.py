"""Jobs of a small grid with a planted incident, for the tests of the daily watch."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.store.base import JobStore
from tests.contract.jobs import batch, job

FIRST = date(2026, 3, 2)
DAYS = 14
SITES = ("BEECH", "CEDAR", "ELM-T1", "FIR'; DROP--", "OAK", "PINE")
BAD_SITE, BAD_FROM, BAD_TO = "ELM-T1", 10, 12
JOBS = 60  # Of a site and day

Row = dict[str, Any]
Change = Callable[[Row, int, int], Row | None]


def day(number: int) -> date:
    """Return a day of the grid."""
    return FIRST + timedelta(days=number)


def jobs_of(
    numbers: Iterable[int],
    *,
    bad: bool = True,
    sites: Sequence[str] = SITES,
    seed: int = 5,
    change: Change = lambda row, _number, _index: row,
) -> list[dict[str, Any]]:
    """Return jobs: 8 cores, efficiency 80 %, 3 % failed; on bad days 45 % and 25 % at one site.

    They wait an hour, as a median, with 2 GiB per core. ``change``: by day and number of the job; None: no
    such job.
    """
    rows = []
    for number in numbers:
        for place, site in enumerate(sites):
            rng, others = (
                np.random.default_rng(key) for key in ([seed, number, place], [seed, 1, number, place])
            )
            hit = bad and site == BAD_SITE and BAD_FROM <= number <= BAD_TO
            for index in range(JOBS):
                fails = rng.random() < (0.25 if hit else 0.03)
                efficiency = (0.45 if hit else 0.8) * np.exp(0.1 * rng.standard_normal())
                wall = float(np.rint(rng.uniform(10_000, 20_000)))
                end = datetime.combine(day(number), time(2 + index % 20, index % 60), UTC)
                rows.append(
                    job(
                        f"{number}-{place}-{index}",
                        queue=site,
                        task_id=f"{number // 4}-{index % 3}",
                        processing_type=("simul", "pile")[index % 2],
                        state="failed" if fails else "finished",
                        exit_code="0:15" if fails and hit else None,
                        cores=8,
                        wall_s=wall,
                        cpu_s=float(np.rint(8 * wall * efficiency)),
                        start_time=end - timedelta(seconds=wall),
                        end_time=end,
                        queue_s=float(np.rint(3600 * np.exp(0.8 * others.standard_normal()))),
                        max_rss_b=float(np.rint(8 * 2**31 * np.exp(0.1 * others.standard_normal()))),
                    )
                )
                changed = change(rows.pop(), number, index)
                rows += [] if changed is None else [changed]
    return rows


def put(store: JobStore, rows: list[dict[str, Any]], load: str = "one") -> None:
    """Store jobs."""
    batches: list[pa.RecordBatch] = [batch(rows)]
    store.put_jobs(batches, load)
