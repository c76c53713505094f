"""A quarter or a month of a made-up grid, night by night, with events that are planted in it.

Nights are numbered from 1. The service is triggered at the times of its calendar, by a clock that is moved.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.records.demo import Declaration, Grid
from esjobs.records.demo.truth import QueueTruth
from scheduler.calendar import Calendar
from scheduler.condition import condition
from scheduler.metrics import Metrics
from scheduler.nights import Nights
from scheduler.service import Service, TriggerResult

FASTER = 1 / 0.7
"""What new hardware makes of the time of a job, inverted."""
ZONE = "Europe/Zurich"
"""Its clocks go forward on :data:`CLOCKS_CHANGE`."""
CLOCKS_CHANGE = date(2025, 3, 30)
NEW_CPU = "Intel(R) Xeon(R) Platinum 9999 CPU @ 3.00GHz"


@dataclass(frozen=True)
class Plan:
    """What happens when, in numbers of nights.

    A declaration is edited to 1.6 times the honest one on ``wrong``, and back on ``repaired``. No job ends on
    ``silent`` days. Further jobs of ``late_of`` arrive on ``late_on``. A task floods a queue on ``flood``.
    ``window``: days of a fit.
    """

    first: date
    nights: int
    window: int
    wrong: int
    repaired: int
    new_hardware: int
    silent: tuple[int, int]
    late_of: int
    late_on: int
    flood: int
    jobs_per_day: int
    n_queues: int

    @property
    def grid(self) -> Grid:
        """The grid whose jobs arrive."""
        return Grid(jobs_per_day=self.jobs_per_day, n_queues=self.n_queues)

    def day_of(self, night: int) -> date:
        """Return the day of a night."""
        return self.first + timedelta(days=night - 1)

    def night_of(self, day: date) -> int:
        """Return the number of a day's night."""
        return (day - self.first).days + 1


QUARTER = Plan(date(2025, 2, 1), 90, 30, 20, 50, 40, (60, 61), 30, 33, 70, 2_500, 120)
MONTH = Plan(date(2025, 3, 8), 30, 10, 7, 17, 13, (23, 24), 10, 12, 26, 4_000, 60)


@dataclass
class Quarter:
    """What happens to one installation. ``accounts``: what each trigger did, by the night that was due."""

    plan: Plan
    now: datetime
    accounts: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    triggered: list[datetime] = field(default_factory=list)

    @cached_property
    def grid(self) -> Grid:
        """The grid of the plan."""
        return self.plan.grid

    def live(self, session: Session, folder: Path) -> None:
        """All nights, one trigger a day."""
        self._nights = Nights(replace(session._context, clock=lambda: self.now))
        self._session = session
        calendar = Calendar("30 3 * * *", ZONE)
        service = Service(calendar, self._tend, lambda: self.now, Metrics())
        self._declare(folder, "first.csv", self.grid.declarations())
        for night in range(1, self.plan.nights + 1):
            self._arrive(folder, night)
            self.now = datetime.combine(self.plan.day_of(night) + timedelta(days=1), time(0), UTC)
            due = calendar.next_after(self.now)
            assert due is not None
            self.now = due
            self.triggered.append(due)
            assert service.tick()
            assert not service.tick()

    def _tend(self, pending: str | None) -> TriggerResult:
        assert pending is None
        rows = self._nights.tend()
        self.accounts[self.plan.night_of(self._nights.due)] = rows
        told = tuple((str(row["night"]), row["state"], row["reason"]) for row in rows)
        return TriggerResult(told, condition(self._session.store, self.now, 36.0))

    def _arrive(self, folder: Path, night: int) -> None:
        if night not in self.plan.silent:
            self._session.store.put_jobs(self.jobs(night), f"night {night}")
        if night == self.plan.late_on:
            late = Grid(seed=7, jobs_per_day=self.grid.jobs_per_day // 10, n_queues=self.grid.n_queues)
            tables = [
                pa.Table.from_batches([batch]) for batch in late.jobs(self.plan.day_of(self.plan.late_of))
            ]
            batches = [batch for table in tables for batch in _renamed(table, "late-").to_batches()]
            self._session.store.put_jobs(batches, "late")
        edited = {self.plan.wrong: 1.6, self.plan.repaired: 1.0}.get(night)
        if edited is not None:
            (row,) = (each for each in self.grid.declarations() if each.name == self.misdeclared.name)
            assert row.corepower is not None
            valid = datetime.combine(self.plan.day_of(night), time(0), UTC)
            value = replace(row, corepower=edited * row.corepower, valid_from=valid)
            self._declare(folder, f"edit{night}.csv", [value])

    def jobs(self, night: int) -> Iterator[pa.RecordBatch]:
        """The jobs that end on the day of a night, as they arrive in time."""
        for batch in self.grid.jobs(self.plan.day_of(night)):
            table = pa.Table.from_batches([batch])
            if night >= self.plan.new_hardware:
                table = _faster(table, self.renewed.name)
            yield from table.to_batches()
            if night == self.plan.flood:
                yield from self._flood(table)

    def _flood(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Twenty times the jobs of one task, all at one queue."""
        queue = self.flooded.name
        mine = table.filter(pc.equal(table["queue"], queue))
        tasks = mine["task_id"].value_counts().to_pylist()
        task = max(tasks, key=lambda each: (each["counts"], each["values"]))["values"]
        jobs = mine.filter(pc.equal(mine["task_id"], task))
        for copy in range(20):
            yield from _renamed(jobs, f"flood{copy}-").to_batches()

    def _declare(self, folder: Path, name: str, rows: Sequence[Declaration]) -> None:
        path = folder / name
        columns = ("level", "name", "corepower", "benchmark", "valid_from", "site", "parent_corepower")
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*columns, "source"])
            for row in rows:
                values = [getattr(row, column) for column in columns]
                writer.writerow(["" if value is None else value for value in values] + ["made up"])
        self._session.declared.import_values(path)

    @property
    def misdeclared(self) -> QueueTruth:
        """The queue whose declaration is edited."""
        return self._honest[0]

    @property
    def renewed(self) -> QueueTruth:
        """The queue that gets other hardware."""
        return self._honest[1]

    @property
    def flooded(self) -> QueueTruth:
        """The queue that a task floods."""
        return self._honest[2]

    @property
    def _honest(self) -> list[QueueTruth]:
        queues = [
            queue
            for queue in self.grid.truth().queues
            if not (queue.misdeclared or queue.island or queue.short_jobs) and queue.origin == "own"
        ]
        return sorted(queues, key=lambda queue: -queue.share)


def settings_of(plan: Plan, store: Path, notify: Mapping[str, Any]) -> Settings:
    """One window, one method: a night takes most of its time for fits."""
    return Settings.model_validate(
        {
            "store": f"duckdb:{store}",
            "fit": {"methods": ("gamma",)},
            "nights": {"windows": (plan.window,), "headline": plan.window, "late_days": 7},
            "notify": {"sites_from": plan.first, **notify},
        }
    )


def recipients(quarter_grid: Quarter) -> list[dict[str, Any]]:
    """The sites of the planted events, the coordinators, the operator."""

    def mail(name: str, role: str, **given: Any) -> dict[str, Any]:
        return {"name": name, "role": role, "channel": "mail", "address": f"{name}@grid.example", **given}

    return [
        mail("misdeclared", "site", sites=[quarter_grid.misdeclared.name]),
        mail("renewed", "site", sites=[quarter_grid.renewed.name]),
        mail("flooded", "site", sites=[quarter_grid.flooded.name]),
        mail("coordinators", "coordinator"),
        mail("operator", "operator"),
    ]


def _renamed(table: pa.Table, prefix: str) -> pa.Table:
    place = table.schema.get_field_index("job_id")
    names = pa.array([f"{prefix}{name}" for name in table["job_id"].to_pylist()])
    return table.set_column(place, table.schema.field(place), names.cast(table.schema.field(place).type))


def _faster(table: pa.Table, queue: str) -> pa.Table:
    mine = pc.equal(table["queue"], queue)
    for name in ("cpu_s", "wall_s"):
        place = table.schema.get_field_index(name)
        item = table.schema.field(place)
        column = pc.if_else(mine, pc.divide(pc.cast(table[name], pa.float64()), FASTER), table[name])
        table = table.set_column(place, item, column.cast(item.type, safe=False))
    place = table.schema.get_field_index("cpu_raw")
    item = table.schema.field(place)
    return table.set_column(place, item, pc.if_else(mine, NEW_CPU, table["cpu_raw"]).cast(item.type))
