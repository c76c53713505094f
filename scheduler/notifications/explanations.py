"""Causes and numbers of jobs behind flag events."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core.query import In
from esjobs.core.tables import Table
from esjobs.publish.publication import read_table
from esjobs.schema.decomposition import DECOMPOSITION
from esjobs.schema.drift import DRIFTS
from esjobs.schema.speed import FLAGS, LINES
from esjobs.store.base import JobStore

Flag = tuple[str, str, str, str]  # Run of speed factors, level, processing type, name

_LINE = ("run", "level", "processing_type", "method")
_FLAG = ("speed_run", "level", "processing_type", "name")
_BASIS = ("n_jobs", "n_tasks", "estimate_low", "estimate_high", "checks", "refuted_by")


def reasons_of(store: JobStore, events: Sequence[Mapping[str, Any]]) -> dict[Flag, tuple[str, ...]]:
    """Return, by flag, the causes of its deviation and its change points, of the runs of the events."""
    runs = _runs(events)
    causes: dict[Flag, dict[str, None]] = defaultdict(dict)
    for row in _rows(store, DECOMPOSITION, runs, "largest", "reason"):
        # one row per part of the deviation; the largest has the sentence about all of them
        if row["largest"] and row["reason"]:
            causes[_flag(row)][row["reason"]] = None
    for row in sorted(_rows(store, DRIFTS, runs, "day", "sentence"), key=lambda row: row["day"]):
        if row["sentence"]:
            causes[_flag(row)][row["sentence"]] = None
    return {flag: tuple(sentences) for flag, sentences in causes.items()}


@dataclass(frozen=True)
class Basis:
    """Jobs and tasks behind a deviation, the number of compared sites (CPU models), the interval of the
    measured corepower, the checks, and what would refute it.
    """

    n_jobs: int | None = None
    n_tasks: int | None = None
    n_groups: int | None = None
    estimate_low: float | None = None
    estimate_high: float | None = None
    checks: str | None = None
    refuted_by: str | None = None


def bases_of(store: JobStore, events: Sequence[Mapping[str, Any]]) -> dict[Flag, Basis]:
    """Return, by flag, the jobs behind the verdicts of some events; two requests, none without events."""
    runs = _runs(events)
    if not runs:
        return {}
    names = tuple(sorted({event["name"] for event in events}))
    seen = {(_flag(event, "run"), event["deviation"]) for event in events}
    lines = read_table(store, LINES, [In("run", runs)], [*_LINE, "n_groups"]).to_pylist()
    sites = {_key(row): row["n_groups"] for row in lines}
    columns = ["run", *_FLAG[1:], "method", "deviation", *_BASIS]
    flags = read_table(store, FLAGS, [In("run", runs), In("name", names)], columns).to_pylist()
    # one row per method: the one that the event followed
    followed = [row for row in flags if (_flag(row, "run"), row["deviation"]) in seen]
    return {_flag(row, "run"): _basis(row, sites.get(_key(row))) for row in followed}


def _basis(row: Mapping[str, Any], n_groups: int | None) -> Basis:
    return Basis(n_groups=n_groups, **{name: row[name] for name in _BASIS})


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in _LINE)


def _runs(events: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted({event["run"] for event in events if event["run"] is not None}))


def _rows(store: JobStore, table: Table, runs: Sequence[str], *columns: str) -> list[dict[str, Any]]:
    if not runs:
        return []
    where = [In("speed_run", tuple(runs))]
    rows: list[dict[str, Any]] = read_table(store, table, where, [*_FLAG, *columns]).to_pylist()
    return rows


def _flag(row: Mapping[str, Any], run: str = "speed_run") -> Flag:
    return row[run], row["level"], row["processing_type"], row["name"]
