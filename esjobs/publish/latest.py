"""Which run is the latest: the one place that knows, and that moves it in the step that publishes results.

For every kind, length of windows and restriction there is one latest run, and for every kind one among the
unrestricted ones that people see. Only runs that have all their steps count. They stand in ``latest_runs``;
``latest_factors``, ``latest_factors_30d``, ... show the rows of the unrestricted ones.

People see the run whose data reach furthest. Windows of several lengths that end on one day tie; where a
store prefers a length (:func:`prefer_length`), the longest that is not longer than it wins.
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
from esjobs.store.base import Change, Generation, JobStore, Pointed, Retired


def latest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Unrestricted runs before restricted ones; of these the one whose data reach furthest.

    Of several the one whose window ends last, in the past; then the one made last.
    """

    def rank(item: StoredRun) -> tuple[Any, ...]:
        return not item.restriction, item.reach, item.end, item.newest, item.run

    return sorted(runs, key=rank, reverse=True)


def latest_run(store: JobStore, kind: Kind) -> StoredRun | None:
    """The run of a kind that people see when they name none.

    None where no unrestricted run is complete, and in a store of an earlier version until the next
    publication.
    """
    for row in _latest_rows(store, kind):
        if row["shown"]:
            return next(iter(stored_runs(store, kind, row["run"])), None)
    return None


def prefer_length(store: JobStore, kind: Kind, days: int) -> None:
    """Of runs whose data reach as far, people see from the next publication on that of this length.

    Where there is none of it, the longest of the shorter ones; where all are longer, the shortest.
    """
    key = _length_key(kind)
    while (old := store.value(key)) != str(days):
        store.compare_and_set(key, old, str(days))


def _length_key(kind: Kind) -> str:
    return f"length of windows that people see, {kind.name}"


def _preferred_length(store: JobStore, kind: Kind) -> int | None:
    text = store.value(_length_key(kind))
    return int(text) if text is not None and text.isdigit() else None


def publish(
    store: JobStore,
    kind: Kind,
    changes: Collection[Change],
    entries: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Publish results of runs of a kind; in the same step the latest run becomes the one that it is then.

    ``entries``: the rows of ``runs`` that are among the changes.
    """
    store.publish([*changes], partial(_moved, store, kind, changes, entries))


def _moved(
    store: JobStore, kind: Kind, changes: Iterable[Change], entries: Sequence[Mapping[str, Any]]
) -> list[Change]:
    """What takes the latest runs from what they are to what they will be after a publication."""
    replaced = {
        change.partition
        for change in changes
        if isinstance(change, Generation | Retired) and change.table == RUNS
    }
    left = [row for row in entries_of(store, kind) if row["run_step"] not in replaced]
    after = _rows(runs_of([*left, *entries], kind), _preferred_length(store, kind))
    before = _latest_rows(store, kind)
    if _facts(before) == _facts(after):
        return []
    rows = rows_table(LATEST_RUNS, after)
    return [store.replace(LATEST_RUNS, kind.name, rows.to_batches()), *_pointed(kind, before, after)]


def _rows(runs: Iterable[StoredRun], preferred: int | None) -> list[dict[str, Any]]:
    """The latest of each length and scope; ``shown``: the first unrestricted one.

    ``preferred``: the length of windows that wins where several reach as far.
    """
    latest: dict[tuple[int, str], StoredRun] = {}
    for run in latest_first(run for run in runs if run.complete):
        latest.setdefault((run.window.days, run.scope), run)
    unrestricted = [key for key in latest if key[1] == EVERYTHING]
    shown = next(iter(unrestricted), None)
    if shown is not None and preferred is not None:
        first = latest[shown]
        ties = [key for key in unrestricted if _as_far(latest[key], first)]
        shown = min(ties, key=lambda key: (key[0] > preferred, abs(key[0] - preferred)))
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


def _pointed(
    kind: Kind, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[Change]:
    """The names that show the latest runs of everything: one per length in use, and one for people."""
    runs: dict[str, str | None] = {"": None}
    runs |= {f"{row['window_days']}d": None for row in before if row["scope"] == EVERYTHING}
    for row in after:
        if row["scope"] == EVERYTHING:
            runs[f"{row['window_days']}d"] = row["run"]
        if row["shown"]:
            runs[""] = row["run"]
    return [Pointed(table, run, length) for length, run in runs.items() for table in kind.tables]


def _as_far(run: StoredRun, first: StoredRun) -> bool:
    return (run.reach, run.end) == (first.reach, first.end)


def _latest_rows(store: JobStore, kind: Kind) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(store, LATEST_RUNS, [In("kind", (kind.name,))]).to_pylist()
    return rows


def _facts(rows: Iterable[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in ("run", "window_days", "scope", "shown", "data_end")) for row in rows}
