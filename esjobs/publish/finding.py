"""Lookup of runs and their results; default: the latest run.

See :mod:`esjobs.publish.latest`: the latest run is that of the newest window, not the one made last.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Ints
from esjobs.core.errors import NoResultError
from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window, format_time
from esjobs.publish.latest import latest_first, latest_run
from esjobs.publish.publication import read_table, run_step
from esjobs.publish.stored import StoredRun, stored_runs
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import ACCOUNT
from esjobs.store.base import Hide, JobStore


def retired_results(kind: Kind, run: str, steps: Collection[str]) -> list[Hide]:
    """Return the changes that retire the results of some steps of a run."""
    left = [Hide(table, run) for step in steps for table in kind.made_by(step)]
    return left + [Hide(table, run_step(run, step)) for step in steps for table in ACCOUNT]


def find_run(
    store: JobStore, kind: Kind, steps: Sequence[str], run: str | None = None, window: Window | None = None
) -> StoredRun:
    """Return the latest run, or the one named by an id or its start.

    Without run and window: the published latest run, else the latest one that has all steps. Raises
    :class:`NoResultError` if there is none.
    """
    if run is None and window is None and (latest := latest_run(store, kind)) is not None:
        return latest
    stored = runs = _with_results(store, kind, steps[0])
    if run is not None:
        runs = _named(stored, run)
        if not runs:
            raise NoResultError(
                f"no result of step {steps[0]} for run '{run}': no run of kind '{kind.name}' has this id; "
                "list runs: esjobs show runs"
            )
    # runs that took some of the steps: the message names the next one to take
    begun = [item for item in runs if window in (None, item.window)]
    complete = latest_first(item for item in begun if item.steps.keys() >= set(steps))
    if complete:
        return complete[0]
    reached = set().union(*(item.steps for item in runs))
    # of what no run has reached, the first step is the one to name
    lacking = [step for step in steps if step not in reached]
    which = f"run '{run}'" if run else "a run"
    raise NoResultError(
        f"no result of step {(lacking or steps)[0]} for {which}{_of_window(window)}; list runs: esjobs show "
        f"runs{_remedy(kind, steps, stored, begun, window)}"
    )


def run_of_everything(store: JobStore, kind: Kind, step: str, window: Window | None = None) -> StoredRun:
    """Return the latest unrestricted run with a step. Raises :class:`NoResultError` if there is none."""
    latest = None if window else latest_run(store, kind)
    if latest is not None and not latest.restriction and step in latest.steps:
        return latest
    runs = [
        item
        for item in _with_results(store, kind, step)
        if step in item.steps and not item.restriction and window in (None, item.window)
    ]
    if runs:
        return latest_first(runs)[0]
    raise NoResultError(
        f"no unrestricted run{_of_window(window)} has reached step {step}; list runs: esjobs show "
        f"runs{_remedy(kind, (step,), (), (), window)}"
    )


def _of_window(window: Window | None) -> str:
    return f" of the window {window}" if window else ""


def _remedy(
    kind: Kind,
    steps: Sequence[str],
    stored: Sequence[StoredRun],
    begun: Sequence[StoredRun],
    window: Window | None,
) -> str:
    """Return the command that produces missing steps; empty if there is none.

    For runs that have begun: the next missing step of the one begun last.
    """
    if kind.command is None:
        return ""
    first = kind.steps[0]
    for item in latest_first(item for item in begun if first in item.steps):
        comparable = [other for other in stored if first in other.steps and other.window == item.window]
        lacking = [step for step in steps if step not in item.steps]
        # the command of a step continues the run of its window that was begun last
        if item == max(comparable, key=_began(first)) and lacking:
            return f", or run: esjobs {lacking[-1]} --window {item.window}"
    chosen = window or next((item.window for item in latest_first(begun)), None)
    return f", or run: {kind.command}" + (f" --window {chosen}" if chosen else "")


def _began(step: str) -> Callable[[StoredRun], tuple[datetime, str]]:
    return lambda item: (item.steps[step], item.run)


def made_last(store: JobStore, kind: Kind, step: str, window: Window) -> StoredRun:
    """Return the run of exactly this window that took the step last, restricted or not."""
    runs = [item for item in _with_results(store, kind, step) if step in item.steps and item.window == window]
    if not runs:
        raise NoResultError(
            f"no result of step {step} for a run of the window {window}; list runs: esjobs show "
            f"runs{_remedy(kind, (step,), (), (), window)}"
        )
    return max(runs, key=_began(step))


def runs_before(runs: Iterable[StoredRun], latest: StoredRun) -> list[StoredRun]:
    """Return runs whose data end earlier, under the same restriction."""
    return [item for item in runs if item.restriction == latest.restriction and item.reach < latest.reach]


def run_before(store: JobStore, kind: Kind, latest: StoredRun, since: datetime | None = None) -> StoredRun:
    """Return the latest earlier run of equal window length and restriction; calendar months are equal.

    ``since``: the latest one whose data end then or before.
    """
    earlier = [item for item in runs_before(stored_runs(store, kind), latest) if kind.steps[0] in item.steps]
    comparable = latest_first(item for item in earlier if as_long(item.window, latest.window))
    # data that end by then, and not windows: a window may reach beyond its last jobs
    found = next((item for item in comparable if since is None or item.reach <= since), None)
    if found is not None:
        return found
    if comparable and since:
        raise NoResultError(
            f"no run with a window as long as that of {latest.title} has data that end by "
            f"{format_time(since)}; the oldest is {min(comparable, key=attrgetter('reach')).title}"
        )
    others = f" (other length: {latest_first(earlier)[0].title})" if earlier else ""
    raise NoResultError(
        f"no earlier run has a window as long as that of {latest.title}{others}; specify two runs: esjobs "
        "compare RUN RUN"
    )


def as_long(one: Window, other: Window) -> bool:
    """True if both windows have as many days; calendar months are equal."""
    return one.days == other.days or (_is_month(one) and _is_month(other))


def _is_month(window: Window) -> bool:
    return window == Window.parse(f"{window.start:%Y-%m}")


def _with_results(store: JobStore, kind: Kind, step: str) -> list[StoredRun]:
    runs = stored_runs(store, kind)
    if not runs:
        location = store.capabilities().location
        if kind.command is None:
            raise NoResultError(f"no result of step {step}: {location} has no run of kind '{kind.name}'")
        raise NoResultError(f"no result of step {step}: {location} has no runs yet; run: {kind.command}")
    return runs


def _named(runs: Sequence[StoredRun], run: str) -> list[StoredRun]:
    """Return the run of this id or unique prefix. Raises :class:`NoResultError` if ambiguous."""
    matching = [item for item in runs if item.run.startswith(run)]
    # a complete id is never ambiguous, even if others begin with it
    exact = [item for item in matching if item.run == run]
    if len(matching) > 1 and not exact:
        raise NoResultError(f"run id prefix '{run}' is ambiguous; add characters")
    return exact or matching


def read_results(
    store: JobStore, table: Table, run: StoredRun, filters: Sequence[Filter] = (), columns: Sequence[str] = ()
) -> pa.Table:
    """Return the rows of a run in table order; missing values last.

    ``columns``: those to read; empty: all.
    """
    rows = read_table(store, table, [In("run", (run.run,)), *filters], columns)
    names = table.shown_order
    preferred = run.kind.preferred(run.settings)
    # lexsort takes the least important key first
    ranks = [
        _ranks(rows.column(name.removeprefix("-")), name[0] == "-", preferred.get(name, ()))
        for name in reversed(names)
    ]
    return rows.take(pa.array(np.lexsort(ranks)) if rows.num_rows else pa.array([], pa.int64()))


def _ranks(column: pa.ChunkedArray, descending: bool, first: Sequence[str]) -> Ints:
    # distinct values are few: they are sorted once, and rows look up their ranks
    values = pc.unique(column).to_pylist()
    preferred = {value: rank for rank, value in enumerate(first)}
    others = sorted(
        (value for value in values if value is not None and value not in preferred), reverse=descending
    )
    rank_by_value = {**preferred, **{value: len(preferred) + rank for rank, value in enumerate(others)}}
    rank_of = np.array([rank_by_value.get(value, len(rank_by_value)) for value in values], np.int64)
    ranks: Ints = rank_of[np.asarray(pc.index_in(column, pc.unique(column)))]
    return ranks
