"""Reads results back: those of the latest run unless another is named.

The latest run is the one of the newest window, not the one that happened to be made last: recomputing an old
month or looking at one task changes nothing for those who read the results; see :mod:`esjobs.publish.latest`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import NoResultError
from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window, format_time
from esjobs.publish.latest import latest_first, latest_run
from esjobs.publish.publication import read_table, run_step
from esjobs.publish.stored import StoredRun, stored_runs
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import ACCOUNT
from esjobs.store.base import JobStore, Retired


def retired_results(kind: Kind, run: str, steps: Collection[str]) -> list[Retired]:
    """Take what these steps of a run have left out of sight, once it is published."""
    left = [Retired(table, run) for step in steps for table in kind.made_by(step)]
    return left + [Retired(table, run_step(run, step)) for step in steps for table in ACCOUNT]


def find_run(
    store: JobStore,
    kind: Kind,
    steps: Sequence[str],
    run: str | None = None,
    window: Window | None = None,
) -> StoredRun:
    """The latest run, or the one that is named: ``run`` is an id or the start of one.

    Without a run and a window it is the complete one that is published as the latest; where there is none,
    and of a window, the latest of those that have all the steps. Raises :class:`NoResultError` when there is
    none.
    """
    if run is None and window is None and (latest := latest_run(store, kind)) is not None:
        return latest
    stored = runs = _with_results(store, kind, steps[0])
    if run is not None:
        runs = _named(stored, run)
        if not runs:
            raise NoResultError(
                f"no result of step {steps[0]} for run '{run}': no run of kind '{kind.name}' has this id; "
                "see: esjobs show runs"
            )
    complete = [
        item for item in runs if item.steps.keys() >= set(steps) and (window is None or item.window == window)
    ]
    if complete:
        return latest_first(complete)[0]
    lacking = [step for step in steps if not any(step in item.steps for item in runs)]
    which = f"run '{run}'" if run else "a run"
    where = f" of the window {window}" if window else ""
    begun = [item for item in runs if window is None or item.window == window]
    raise NoResultError(
        f"no result of step {(lacking or steps)[0]} for {which}{where}; "
        f"see: esjobs show runs{_remedy(kind, steps, stored, begun, window)}"
    )


def run_of_everything(store: JobStore, kind: Kind, step: str, window: Window | None = None) -> StoredRun:
    """The latest unrestricted run that took the step, of all or of this window; else :class:`NoResultError`.

    For what follows from a run: a restricted one says nothing of the grid.
    """
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
    where = f" of the window {window}" if window else ""
    raise NoResultError(
        f"no unrestricted run{where} has taken step {step}; "
        f"see: esjobs show runs{_remedy(kind, (step,), (), (), window)}"
    )


def _remedy(
    kind: Kind,
    steps: Sequence[str],
    stored: Sequence[StoredRun],
    begun: Sequence[StoredRun],
    window: Window | None,
) -> str:
    """What to type for steps that no run has; empty where nothing can be typed.

    Of runs that have begun, the steps that lack; these go on with the run of a window that was begun last.
    """
    if kind.command is None:
        return ""
    first = kind.steps[0]
    for item in latest_first(item for item in begun if first in item.steps):
        alike = [other for other in stored if first in other.steps and other.window == item.window]
        lacking = [step for step in steps if step not in item.steps]
        if item == max(alike, key=_began(first)) and lacking:
            return f", or make it: esjobs {lacking[-1]} --window {item.window}"
    asked = window or next((item.window for item in latest_first(begun)), None)
    return f", or run it: {kind.command}" + (f" --window {asked}" if asked else "")


def _began(step: str) -> Callable[[StoredRun], tuple[datetime, str]]:
    return lambda item: (item.steps[step], item.run)


def made_last(store: JobStore, kind: Kind, step: str, window: Window) -> StoredRun:
    """The run of exactly this window that took the step last, restricted or not."""
    runs = [item for item in _with_results(store, kind, step) if step in item.steps and item.window == window]
    if not runs:
        raise NoResultError(
            f"no result of step {step} for a run of the window {window}; "
            f"see: esjobs show runs{_remedy(kind, (step,), (), (), window)}"
        )
    return max(runs, key=_began(step))


def runs_before(runs: Iterable[StoredRun], latest: StoredRun) -> list[StoredRun]:
    """Those whose data end before those of another, under the same restriction; windows of any length."""
    return [item for item in runs if item.restriction == latest.restriction and item.reach < latest.reach]


def run_before(store: JobStore, kind: Kind, latest: StoredRun, since: datetime | None = None) -> StoredRun:
    """The latest of the runs whose window is as long and ends earlier, under the same restriction.

    ``since``: of these the latest whose data end then or before.
    """
    earlier = [item for item in runs_before(stored_runs(store, kind), latest) if kind.steps[0] in item.steps]
    alike = latest_first(item for item in earlier if item.window.days == latest.window.days)
    by_then = [item for item in alike if since is None or item.reach <= since]
    if by_then:
        return by_then[0]
    if alike and since is not None:
        raise NoResultError(
            f"no run of a window as long as that of {latest.title} has data that end on or before "
            f"{format_time(since)}; the oldest is {min(alike, key=lambda item: item.reach).title}"
        )
    others = f" (there is {latest_first(earlier)[0].title})" if earlier else ""
    raise NoResultError(
        f"nothing to compare the latest with: no run of a window as long as that of {latest.title} ends "
        f"before it{others}; name two: esjobs compare RUN RUN"
    )


def _with_results(store: JobStore, kind: Kind, step: str) -> list[StoredRun]:
    runs = stored_runs(store, kind)
    if not runs:
        location = store.capabilities().location
        if kind.command is None:
            raise NoResultError(f"no result of step {step}: {location} has no run of kind '{kind.name}'")
        raise NoResultError(
            f"no result of step {step}: nothing has been run yet in {location}; run it: {kind.command}"
        )
    return runs


def _named(runs: Sequence[StoredRun], run: str) -> list[StoredRun]:
    """The run of this id, else the one whose id starts so; :class:`NoResultError` when several do."""
    matching = [item for item in runs if item.run.startswith(run)]
    exact = [item for item in matching if item.run == run]
    if len(matching) > 1 and not exact:
        raise NoResultError(f"'{run}' is the start of several run ids; give more of it")
    return exact or matching


def read_results(
    store: JobStore,
    table: Table,
    run: StoredRun,
    filters: Sequence[Filter] = (),
    columns: Sequence[str] = (),
) -> pa.Table:
    """The rows of one run in the order of their table, what its kind prefers first; missing values last.

    ``columns``: those to read, with the ones that make the order; none: all.
    """
    rows = read_table(store, table, [In("run", (run.run,)), *filters], columns)
    names = table.shown_order
    preferred = run.kind.preferred(run.settings)
    ranks = [
        _ranks(rows.column(name.removeprefix("-")), name[0] == "-", preferred.get(name, ()))
        for name in reversed(names)
    ]
    return rows.take(pa.array(np.lexsort(ranks)) if rows.num_rows else pa.array([], pa.int64()))


def _ranks(column: pa.ChunkedArray, descending: bool, first: Sequence[str]) -> npt.NDArray[np.int64]:
    """What sorts the values of a column, where smaller comes first: what is preferred, others, missing."""
    values = pc.unique(column).to_pylist()
    preferred = {value: rank for rank, value in enumerate(first)}
    others = sorted(
        (value for value in values if value is not None and value not in preferred), reverse=descending
    )
    known = {**preferred, **{value: len(preferred) + rank for rank, value in enumerate(others)}}
    rank_of = np.array([known.get(value, len(known)) for value in values], np.int64)
    ranks: npt.NDArray[np.int64] = rank_of[np.asarray(pc.index_in(column, pc.unique(column)))]
    return ranks
