"""Retention: removal of old results, never of entered data."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from operator import attrgetter
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.core.window import format_time
from esjobs.publish.latest import latest_first, publish
from esjobs.publish.publication import read_table
from esjobs.publish.stored import COLUMNS, StoredRun, runs_of
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import ACCOUNT, RUNS
from esjobs.store.base import Change, Hide, JobStore


@dataclass(frozen=True)
class Keep:
    """Runs to keep per kind, window length and restriction.

    ``newest``: the last N; ``daily``, ``weekly``, ``monthly``: the latest run of each of the last N periods.
    The latest run always stays.
    """

    newest: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    def __str__(self) -> str:
        words = {"newest": self.newest, "daily": self.daily, "weekly": self.weekly, "monthly": self.monthly}
        return ", ".join(f"{count} {name}" for name, count in words.items() if count) or "only the latest"


def prune(store: JobStore, kinds: Iterable[Kind], keep: Keep | int, *, dry_run: bool = False) -> RunReport:
    """Remove runs that a rule, or a number per kind, does not keep.

    With a number, the latest run counts first, then those made last. Reports of steps without results follow
    the same rule. Jobs, buckets, loads, rejects and declared values stay. ``dry_run`` reports only. Raises
    :class:`UsageError` for a number below one.
    """
    if isinstance(keep, int) and keep < 1:
        raise UsageError(f"prune keeps at least one run; got {keep}")
    began = time.perf_counter()
    n_runs = 0
    gone: list[StoredRun] = []
    idle: list[StoredRun] = []
    together: list[Change] = []
    entries = read_table(store, RUNS, columns=COLUMNS).to_pylist()
    for kind in kinds:
        runs = runs_of(entries, kind)
        # runs with reports but no results, as of a step that failed
        alone = [
            run for run in runs_of(entries, kind, every_step=True) if run.steps.keys().isdisjoint(kind.steps)
        ]
        n_runs += len(runs)
        old, spare = _old(runs, keep), _old(alone, keep)
        gone += old
        idle += spare
        if dry_run or not (old or spare):
            continue
        hidden = _hidden(kind, old, spare, entries)
        if isinstance(keep, int):
            publish(store, kind, hidden)
        else:
            # a rule keeps the latest of every length and scope, so that none moves: one switch for all
            together += hidden
        removed_runs = {run.run for run in (*old, *spare)}
        entries = [entry for entry in entries if entry["run"] not in removed_runs]
    if together:
        store.publish(together)
    # once for all kinds: it looks through every table
    removed = store.sweep() if (gone or idle) and not dry_run else 0
    counts = {"rows removed": removed}
    if idle:
        counts["accounts without results"] = len(idle)
    dropped = Counter({"would be removed" if dry_run else "old": len(gone)})
    return RunReport(
        *("prune", "-", n_runs, n_runs - len(gone), time.perf_counter() - began),
        rows_are="runs",
        rows_become="kept",
        # the unary plus leaves out counts of 0
        dropped=dict(+dropped),
        counts=counts,
        notes=tuple(_reason(run, keep) for run in (*gone, *idle)) if dry_run else (),
    )


def _old(runs: Sequence[StoredRun], keep: Keep | int) -> list[StoredRun]:
    """Return the runs to remove, oldest first."""
    if isinstance(keep, int):
        # what people look at stays, even if many runs of other windows were made since
        latest = latest_first(run for run in runs if run.complete)[:1] or latest_first(runs)[:1]
        kept = [*latest, *(run for run in runs if run not in latest)][:keep]
    else:
        groups: dict[tuple[int, str], list[StoredRun]] = defaultdict(list)
        for run in latest_first(runs):
            groups[run.window.days, run.scope].append(run)
        kept = list(chain.from_iterable(_kept(group, keep) for group in groups.values()))
    ids = {run.run for run in kept}
    return sorted((run for run in runs if run.run not in ids), key=attrgetter("reach", "newest"))


def _kept(runs: Sequence[StoredRun], keep: Keep) -> list[StoredRun]:
    """Return the runs to keep of one kind, length and scope, latest first."""
    complete = [run for run in runs if run.complete]
    # the latest always stays, as readers see it without naming a run
    kept = [*(complete or runs)[:1], *runs[: keep.newest]]
    periods: tuple[tuple[int, Callable[[date], tuple[int, ...]]], ...] = (
        (keep.daily, lambda day: (day.toordinal(),)),
        (keep.weekly, lambda day: day.isocalendar()[:2]),
        (keep.monthly, lambda day: (day.year, day.month)),
    )
    for number, period in periods:
        latest: dict[tuple[int, ...], StoredRun] = {}
        # complete ones first: of a period one that can be shown
        for run in (*complete, *runs):
            latest.setdefault(period((run.reach - timedelta(microseconds=1)).date()), run)
        kept += [latest[each] for each in sorted(latest, reverse=True)[:number]]
    return kept


def _hidden(
    kind: Kind, runs: Iterable[StoredRun], alone: Iterable[StoredRun], entries: Iterable[Mapping[str, Any]]
) -> list[Change]:
    with_results = {run.run for run in runs}
    gone = with_results | {run.run for run in alone}
    changes: list[Change] = [Hide(table, run) for run in sorted(with_results) for table in kind.tables]
    steps = sorted(entry["run_step"] for entry in entries if entry["run"] in gone)
    return changes + [Hide(table, step) for step in steps for table in ACCOUNT]


def _reason(run: StoredRun, keep: Keep | int) -> str:
    scope = "" if run.scope == "all" else f", {run.scope}"
    steps = ", ".join(step for step in run.steps)
    why = (
        f"neither the latest nor one of the {keep} newest"
        if isinstance(keep, int)
        else f"{keep} of {run.window.days} days{scope} are kept, but not this one"
    )
    return f"would be removed: {run.title}, {steps}, created {format_time(run.newest)}: {why}"
