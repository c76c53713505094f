"""Differences between the days of the synthetic grid: volume, efficiency, one incident at a large site.

CPU times per event stay as they are, so that speed factors do not move: only wall times, waiting and the
number of failed jobs do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from esjobs.records.demo.truth import Incident, QueueTruth, SlowTask

WEEKEND = 0.75
"""Jobs of a Saturday or Sunday over those of a working day."""
WEEKLY_GROWTH = 0.04
"""Growth of the number of jobs per week, in ln."""
DAY_SCATTER = 0.02
"""Scatter of the number of jobs from day to day, in ln."""
POOR_DAYS = 0.2
"""The part of the days on which all queues are a little less efficient than usual."""
POOR_EFFICIENCY = (0.95, 0.98)
"""Efficiency of such a day over that of others, at least and at most."""
INCIDENT_DAYS = 3
# The incident begins so many days before the last: the Tuesday of a week that is complete, in the demo.
_BEFORE_LAST = 13
SLOW_BEFORE_LAST = 6
"""Days before the last on which the slow task begins to waste its cores."""


@dataclass(frozen=True)
class Course:
    """The days from ``first`` to ``last`` with exactly ``jobs`` jobs; equal arguments give equal days."""

    seed: int
    first: date
    last: date
    jobs: int

    def volume(self, day: date) -> int:
        """Number of jobs that end on a day; 0 outside of the course."""
        return self._volumes.get(day, 0)

    @property
    def most(self) -> int:
        """Number of jobs of the busiest day."""
        return max(self._volumes.values())

    def efficiency(self, day: date) -> float:
        """Efficiency of all queues on a day over their usual one."""
        rng = np.random.default_rng([self.seed, 6, day.toordinal()])
        return float(rng.uniform(*POOR_EFFICIENCY)) if rng.random() < POOR_DAYS else 1.0

    def incident(self, queues: Sequence[QueueTruth]) -> Incident:
        """Return the planted incident: at a large site of which nothing else is wrong."""
        # Queues for one core class count nothing: on some days there is no task for them.
        sizes = dict.fromkeys((queue.site for queue in queues), 0.0)
        for queue in queues:
            # a site with planted faults of its own would hide the incident
            sizes[queue.site] += queue.share * (len(queue.core_classes) > 1)
        busy = {queue.site for queue in queues if queue.misdeclared or queue.island}
        begin = self.last - timedelta(days=_BEFORE_LAST)
        return Incident(
            site=max(sizes.keys() - busy, key=lambda name: sizes[name]),
            first=begin,
            last=begin + timedelta(days=INCIDENT_DAYS - 1),
            efficiency_factor=0.55,
            failure_rate=0.15,
            waiting_factor=4.0,
        )

    @cached_property
    def _volumes(self) -> dict[date, int]:
        days = [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]
        noise = np.random.default_rng([self.seed, 7]).standard_normal(len(days))
        growth = np.exp(WEEKLY_GROWTH / 7 * np.arange(len(days)) + DAY_SCATTER * noise)
        weights = growth * [WEEKEND if day.weekday() >= 5 else 1.0 for day in days]
        # edges that are rounded add up to the total, counts that are rounded do not
        edges = np.rint(np.cumsum(weights) * (self.jobs / weights.sum())).astype(int)
        return dict(zip(days, np.diff(edges, prepend=0).tolist(), strict=True))


def lived_through(
    jobs: pa.RecordBatch,
    rng: np.random.Generator,
    *,
    efficiency: float,
    incident: Incident | None,
    slow: SlowTask | None,
    queues: Sequence[QueueTruth],
) -> pa.RecordBatch:
    """Return the jobs of a day as the day treated them; CPU times and ends of finished jobs stay.

    Jobs whose efficiency is above 1 are wrong on purpose and stay so.
    """
    wall, cpu = (jobs.column(name).to_numpy() for name in ("wall_s", "cpu_s"))
    cores = jobs.column("cores").fill_null(1).to_numpy()
    drawn = rng.random(jobs.num_rows)
    # jobs of the incident's site
    hit = np.zeros(jobs.num_rows, bool)
    if incident is not None:
        names = pa.array([queue.name for queue in queues if queue.site == incident.site], pa.string())
        hit = pc.is_in(jobs.column("queue"), value_set=names).to_numpy(zero_copy_only=False)
    finished = pc.equal(jobs.column("state"), "finished").fill_null(False).to_numpy(zero_copy_only=False)
    # jobs that the grid made wrong on purpose stay as wrong as they were
    usual = (cpu > 0) & (cpu <= wall * cores) & (wall > 60)
    fails = hit & finished & usual & (drawn < (incident.failure_rate if incident else 0.0))
    slower = np.where(hit, incident.efficiency_factor if incident else 1.0, 1.0) * efficiency
    if slow is not None:
        of_task = pc.equal(jobs.column("task_id"), slow.task_id).fill_null(False)
        slower = slower * np.where(of_task.to_numpy(zero_copy_only=False), slow.efficiency_factor, 1.0)
    # failed jobs break off; CPU time stays, so lower efficiency is longer wall time
    longer = np.where(usual, np.where(fails, 0.6, 1.0) / slower, 1.0)
    walls = np.ceil(wall * longer)
    waits = np.rint(
        jobs.column("queue_s").to_numpy() * np.where(hit, incident.waiting_factor if incident else 1, 1)
    )
    staged = {
        name: np.minimum(jobs.column(name).to_numpy(), np.floor(walls / 4))
        # staging must fit into the wall time of a job that broke off
        for name in ("stagein_s", "stageout_s")
    }
    end = jobs.column("end_time")
    started = _before(end, walls)
    changed = {
        "wall_s": pa.array(walls),
        "cpu_s": pa.array(np.where(fails, np.rint(cpu * 0.5), cpu)),
        "state": pc.if_else(pa.array(fails), "failed", jobs.column("state")),
        "hs06_s": pc.round(pc.multiply(jobs.column("hs06_s"), pa.array(walls / wall))),
        "queue_s": pa.array(waits),
        "start_time": started,
        "submit_time": _before(started, waits),
        "exe_s": pa.array(walls - staged["stagein_s"] - staged["stageout_s"]),
        **{name: pa.array(values) for name, values in staged.items()},
    }
    columns = [changed.get(item.name, jobs.column(item.name)).cast(item.type) for item in jobs.schema]
    return pa.RecordBatch.from_arrays(columns, schema=jobs.schema)


def _before(times: pa.Array, seconds: NDArray[np.float64]) -> pa.Array:
    return pc.subtract(times, pa.array((seconds * 1e6).astype(np.int64)).cast(pa.duration("us")))
