"""Stored runs, as ``runs`` records them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.publish.publication import read_table
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import RUNS
from esjobs.store.base import JobStore

EVERYTHING = "all"
"""The scope of a run that is not restricted."""

COLUMNS = ("run_step", "run", "step", "at", "window_start", "window_end", "settings", "data_end")
"""Columns of ``runs`` that make a :class:`StoredRun`."""


@dataclass(frozen=True)
class StoredRun:
    """Run with its question as plain data and the times of its steps.

    ``data_end``: end of the last day with jobs.
    """

    kind: Kind
    run: str
    window: Window
    settings: Mapping[str, Any]
    steps: Mapping[str, datetime]
    data_end: datetime

    @property
    def newest(self) -> datetime:
        """End of the last step."""
        return max(self.steps.values())

    @property
    def reach(self) -> datetime:
        """End of the last day with data, at most the end of the window."""
        # a record from the future must not make its run the latest for ever
        return min(self.window.end, day_after(self.newest), self.data_end)

    @property
    def end(self) -> datetime:
        """End of the window; if that is in the future, of the data."""
        return self.window.end if self.window.end <= day_after(self.newest) else self.reach

    @property
    def complete(self) -> bool:
        """True if it has all steps of its kind."""
        return self.steps.keys() >= set(self.kind.steps)

    @property
    def restriction(self) -> tuple[str, ...]:
        """Tasks and conditions; empty if unrestricted."""
        return (*self.settings.get("tasks", ()), *self.settings.get("where", ()))

    @property
    def scope(self) -> str:
        """``all``, or the restriction as text."""
        return scope_of(self.settings.get("tasks", ()), self.settings.get("where", ()))

    @property
    def headline(self) -> str | None:
        """Method shown by default; None without methods."""
        return next(iter(self.kind.preferred(self.settings).get("method", ())), None)

    @property
    def title(self) -> str:
        """Run, window and restriction, for headings."""
        restricted = [f"restricted to {condition}" for condition in self.restriction]
        return ", ".join([f"run {self.run} [{self.window}]", *restricted])


def day_after(moment: datetime) -> datetime:
    """Return the midnight that ends a day.

    >>> day_after(datetime(2018, 8, 31, 12, tzinfo=UTC)).isoformat()
    '2018-09-01T00:00:00+00:00'
    """
    return datetime.combine(moment.astimezone(UTC).date() + timedelta(days=1), time(0), UTC)


def scope_of(tasks: Iterable[str], where: Iterable[str]) -> str:
    """Return a restriction as one text, independent of order.

    >>> scope_of(["42"], ["queue=CERN"]), scope_of([], [])
    ('queue=CERN, task_id=42', 'all')
    """
    # sorted: equal restrictions are one scope
    return ", ".join(sorted([*(f"task_id={task}" for task in tasks), *where])) or EVERYTHING


def stored_runs(store: JobStore, kind: Kind, run: str | None = None) -> list[StoredRun]:
    """Return the visible runs of a kind that have results, newest first."""
    return runs_of(entries_of(store, kind, run), kind)


def entries_of(store: JobStore, kind: Kind, run: str | None = None) -> list[dict[str, Any]]:
    """Return the entries of ``runs`` that make the runs of a kind."""
    # steps of other kinds share the table
    where = [In("step", tuple(kind.steps)), *([In("run", (run,))] if run is not None else [])]
    entries: list[dict[str, Any]] = read_table(store, RUNS, where, COLUMNS).to_pylist()
    return entries


def runs_of(entries: Iterable[Mapping[str, Any]], kind: Kind, *, every_step: bool = False) -> list[StoredRun]:
    """Return the runs of a kind from entries of ``runs``, newest first.

    ``every_step``: include steps and runs without results.
    """
    by_run: dict[str, list[Mapping[str, Any]]] = {}
    position = {step: number for number, step in enumerate(kind.steps)}
    for entry in entries:
        if every_step or entry["step"] in position:
            by_run.setdefault(entry["run"], []).append(entry)
    runs = []
    for run, of_run in by_run.items():
        # stores give rows in any order
        steps = sorted(of_run, key=lambda entry: (position.get(entry["step"], len(position)), entry["step"]))
        settings = _settings_of(steps[0]["settings"])
        if not kind.asks(settings):
            continue
        window = Window(steps[0]["window_start"], steps[0]["window_end"])
        # a step that was repeated may have seen more days than the others
        data_end = min(step["data_end"] for step in steps)
        made = {step["step"]: step["at"] for step in steps}
        runs.append(StoredRun(kind, run, window, settings, made, data_end))
    return sorted(runs, key=lambda run: (run.newest, run.run), reverse=True)


@lru_cache(maxsize=256)
def _settings_of(text: str) -> Mapping[str, Any]:
    """Parse settings; the cache serves repeated texts."""
    settings: Mapping[str, Any] = json.loads(text)
    return settings


def of_headline(run: StoredRun, level: str) -> list[Filter]:
    """Return the conditions for the rows of a run's default method over all types."""
    of_run = {"run": run.run, "level": level, "processing_type": ALL_TYPES, "method": run.headline or ""}
    return [In(column, (value,)) for column, value in of_run.items()]
