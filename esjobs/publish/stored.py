"""Runs as ``runs`` tells of them: what was asked, which steps answered, how far their data reach."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import RUNS
from esjobs.store.base import JobStore

EVERYTHING = "all"
"""The scope of a run that is not restricted."""

COLUMNS = ("run_step", "run", "step", "at", "window_start", "window_end", "settings", "data_end")
"""What of ``runs`` makes a :class:`StoredRun`."""


@dataclass(frozen=True)
class StoredRun:
    """A run as its steps left it: the question as plain data, and when each step answered.

    ``data_end``: the end of the last day of the window that had jobs; None where an earlier version did not
    say.
    """

    kind: Kind
    run: str
    window: Window
    settings: Mapping[str, Any]
    steps: Mapping[str, datetime]
    data_end: datetime | None = None

    @property
    def newest(self) -> datetime:
        """When its last step ended."""
        return max(self.steps.values())

    @property
    def reach(self) -> datetime:
        """The end of the last day that it has data of: a window that goes on beyond makes it no newer.

        Where that is not known, the end of the window or of the day on which it was made.
        """
        return min(self.window.end, day_after(self.newest), self.data_end or self.window.end)

    @property
    def end(self) -> datetime:
        """The end of its window; of one that ended in the future, that of its data."""
        return self.window.end if self.window.end <= day_after(self.newest) else self.reach

    @property
    def complete(self) -> bool:
        """Whether it has all steps of its kind."""
        return self.steps.keys() >= set(self.kind.steps)

    @property
    def restriction(self) -> tuple[str, ...]:
        """The tasks and conditions that it was restricted to; empty for a run of everything."""
        return (*self.settings.get("tasks", ()), *self.settings.get("where", ()))

    @property
    def scope(self) -> str:
        """``all``, or the restriction as a text."""
        return scope_of(self.settings.get("tasks", ()), self.settings.get("where", ()))

    @property
    def headline(self) -> str | None:
        """The method that people see unless they ask for another; None where there are no methods."""
        return next(iter(self.kind.preferred(self.settings).get("method", ())), None)

    @property
    def title(self) -> str:
        """Run, window and restriction, as headers name them."""
        restricted = [f"restricted to {condition}" for condition in self.restriction]
        return ", ".join([f"run {self.run} [{self.window}]", *restricted])


def day_after(moment: datetime) -> datetime:
    """The midnight that ends a day.

    >>> day_after(datetime(2018, 8, 31, 12, tzinfo=UTC)).isoformat()
    '2018-09-01T00:00:00+00:00'
    """
    return datetime.combine(moment.astimezone(UTC).date() + timedelta(days=1), time(0), UTC)


def scope_of(tasks: Iterable[str], where: Iterable[str]) -> str:
    """A restriction as one text, the same in whatever order it was written.

    >>> scope_of(["42"], ["queue=CERN"]), scope_of([], [])
    ('queue=CERN, task_id=42', 'all')
    """
    return ", ".join(sorted([*(f"task_id={task}" for task in tasks), *where])) or EVERYTHING


def stored_runs(store: JobStore, kind: Kind, run: str | None = None) -> list[StoredRun]:
    """Every visible run of a kind with at least one step of results, newest first; ``run``: only this one."""
    return runs_of(entries_of(store, kind, run), kind)


def entries_of(store: JobStore, kind: Kind, run: str | None = None) -> list[dict[str, Any]]:
    """The entries of ``runs`` that make the runs of a kind; those of other kinds are not read."""
    where = [In("step", tuple(kind.steps)), *([In("run", (run,))] if run is not None else [])]
    entries: list[dict[str, Any]] = read_table(store, RUNS, where, COLUMNS).to_pylist()
    return entries


def runs_of(entries: Iterable[Mapping[str, Any]], kind: Kind, *, every_step: bool = False) -> list[StoredRun]:
    """The runs of a kind that entries of ``runs`` tell of, newest first.

    ``every_step``: also those of steps that leave no results of the run, and runs that have only such.
    """
    by_run: dict[str, list[Mapping[str, Any]]] = {}
    place = {step: number for number, step in enumerate(kind.steps)}
    for entry in entries:
        if every_step or entry["step"] in place:
            by_run.setdefault(entry["run"], []).append(entry)
    runs = []
    for run, of_run in by_run.items():
        # stores give rows in any order
        steps = sorted(of_run, key=lambda entry: (place.get(entry["step"], len(place)), entry["step"]))
        settings = _settings_of(steps[0]["settings"])
        if not kind.asks(settings):
            continue
        window = Window(steps[0]["window_start"], steps[0]["window_end"])
        ends = [step["data_end"] for step in steps if step["data_end"] is not None]
        made = {step["step"]: step["at"] for step in steps}
        runs.append(StoredRun(kind, run, window, settings, made, min(ends, default=None)))
    return sorted(runs, key=lambda run: (run.newest, run.run), reverse=True)


@lru_cache(maxsize=256)
def _settings_of(text: str) -> Mapping[str, Any]:
    """What a text of settings says: a store has few of them, each beside hundreds of runs."""
    settings: Mapping[str, Any] = json.loads(text)
    return settings
