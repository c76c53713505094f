"""Latest runs: selection, and the switch together with published results.

One latest run per kind, window length and restriction, in ``latest_runs``; ``latest_factors``,
``latest_factors_30d``, ... show the unrestricted ones. Only complete runs count. The run whose data reach
furthest is shown; on a tie the preferred length (:func:`prefer_length`) decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from esjobs.core.query import In
from esjobs.core.version import __version__
from esjobs.publish.publication import read_table, rows_table
from esjobs.publish.stored import EVERYTHING, StoredRun, entries_of, runs_of, stored_runs
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import LATEST_RUNS, RUNS
from esjobs.store.base import Change, Generation, Hide, JobStore, PointLatest


def latest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Return unrestricted runs first, then by reach of data, end of window and time of creation."""

    def rank(item: StoredRun) -> tuple[Any, ...]:
        # newest, then id: two runs with equal data must not change places between two questions
        return not item.restriction, item.reach, item.end, item.newest, item.run

    return sorted(runs, key=rank, reverse=True)


def latest_run(store: JobStore, kind: Kind) -> StoredRun | None:
    """Return the run of a kind that is shown by default; None if no unrestricted run is complete."""
    for row in _latest_rows(store, kind):
        if row["shown"]:
            return next(iter(stored_runs(store, kind, row["run"])), None)
    return None


def prefer_length(store: JobStore, kind: Kind, days: int) -> None:
    """Prefer windows of this length among runs whose data reach equally far, from the next publication on.

    Otherwise the longest shorter one, else the shortest.
    """
    key = _length_key(kind)
    # another process may write meanwhile: try again from what it left
    while (old := store.value(key)) != str(days):
        store.compare_and_set(key, old, str(days))


def _length_key(kind: Kind) -> str:
    return f"length of windows that people see, {kind.name}"


def _preferred_length(store: JobStore, kind: Kind) -> int | None:
    text = store.value(_length_key(kind))
    return int(text) if text is not None and text.isdigit() else None


def publish(
    store: JobStore, kind: Kind, changes: Collection[Change], entries: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Publish results of a kind and update the latest runs in the same step.

    ``entries``: the rows of ``runs`` among the changes.
    """
    store.publish([*changes], partial(_latest_changes, store, kind, changes, entries))


def _latest_changes(
    store: JobStore, kind: Kind, changes: Iterable[Change], entries: Sequence[Mapping[str, Any]]
) -> list[Change]:
    replaced = {
        change.partition
        for change in changes
        if isinstance(change, Generation | Hide) and change.table == RUNS
    }
    left = [row for row in entries_of(store, kind) if row["run_step"] not in replaced]
    after = _rows(runs_of([*left, *entries], kind), _preferred_length(store, kind))
    before = _latest_rows(store, kind)
    # all other columns follow from these
    if _facts(before) == _facts(after):
        return []
    # pointers and rows in one change set: readers of both see the same run
    rows = rows_table(LATEST_RUNS, after)
    return [store.replace(LATEST_RUNS, kind.name, rows.to_batches()), *_pointers(kind, before, after)]


def _shown(latest: Mapping[tuple[int, str], StoredRun], preferred: int | None) -> tuple[int, str] | None:
    unrestricted = [key for key in latest if key[1] == EVERYTHING]
    if not unrestricted or preferred is None:
        return next(iter(unrestricted), None)
    first = latest[unrestricted[0]]
    ties = [key for key in unrestricted if (latest[key].reach, latest[key].end) == (first.reach, first.end)]
    # the longest that is not longer than preferred, else the shortest
    return min(ties, key=lambda key: (key[0] > preferred, abs(key[0] - preferred)))


def _rows(runs: Iterable[StoredRun], preferred: int | None) -> list[dict[str, Any]]:
    """Return the latest run of each length and scope; ``shown``: the first unrestricted one.

    ``preferred``: window length that wins a tie.
    """
    latest: dict[tuple[int, str], StoredRun] = {}
    for run in latest_first(run for run in runs if run.complete):
        # the first of each length and scope is its latest
        latest.setdefault((run.window.days, run.scope), run)
    shown = _shown(latest, preferred)
    return [
        {
            "kind": run.kind.name,
            "run": run.run,
            "window_start": run.window.start,
            "window_end": run.window.end,
            "program_version": __version__,
            "data_end": run.reach,
            "shown": key == shown,
            "window_days": run.window.days,
            "scope": run.scope,
        }
        for key, run in latest.items()
    ]


def _pointers(
    kind: Kind, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[Change]:
    """Return the pointers to the latest unrestricted runs: one per length in use, and the default."""
    # None takes a pointer away: of a length whose last run went, or of all
    runs: dict[str, str | None] = {"": None}
    runs |= {f"{row['window_days']}d": None for row in before if row["scope"] == EVERYTHING}
    for row in after:
        if row["scope"] == EVERYTHING:
            runs[f"{row['window_days']}d"] = row["run"]
        if row["shown"]:
            runs[""] = row["run"]
    return [PointLatest(table, run, length) for length, run in runs.items() for table in kind.tables]


def _latest_rows(store: JobStore, kind: Kind) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(store, LATEST_RUNS, [In("kind", (kind.name,))]).to_pylist()
    return rows


def _facts(rows: Iterable[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in ("run", "window_days", "scope", "shown", "data_end")) for row in rows}
