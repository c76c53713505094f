"""Predicted scores beside measured ones in a ranking: only where they are asked for, and with their share."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.query import Count, Days, Filter, In, Present, Query, Sum, SumProduct
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.scores import SCORES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.store.base import JobStore

PREDICTED_SHARE = "predicted_share"
"""The part of the hours behind a score in which it was predicted; null: no score."""

_SUMS = ("n_scored", "weights", "weighted", "squares")


def predicted_sums(
    store: JobStore,
    by: str,
    column: str,
    window: Window | None,
    where: Sequence[Filter],
    weight: str,
    measured: Mapping[str | None, Mapping[str, Any]],
) -> tuple[dict[str | None, Mapping[str, Any]], dict[str | None, float]]:
    """The sums behind the means of names with predictions added, and the shares of these in the hours."""
    asked = Query(
        (by,),
        (
            Count("n_scored"),
            Sum(weight, "weights"),
            SumProduct("value", weight, "weighted"),
            SumProduct("value_sq", weight, "squares"),
        ),
        window,
        (*where, *_current(store, column, window), Present(weight)),
        over=PREDICTED_SCORES,
    )
    sums: dict[str | None, Mapping[str, Any]] = dict(measured)
    weights = {name: 0.0 for name, row in measured.items() if row["weights"]}
    for row in store.aggregate(asked).table.to_pylist():
        own = measured.get(row[by], {})
        sums[row[by]] = {name: (own.get(name) or 0) + (row[name] or 0) for name in _SUMS}
        weights[row[by]] = row["weights"] or 0.0
    total = {name: row["weights"] for name, row in sums.items()}
    return sums, {name: part / total[name] for name, part in weights.items() if total[name]}


def with_predicted_jobs(
    store: JobStore, rows: pa.Table, column: str, window: Window | None, variant: str | None, top: int | None
) -> pa.Table:
    """The worst jobs, those with a predicted score among them; of a job as the others, with the share 1."""
    where: list[Filter] = [*_current(store, column, window)]
    if variant is not None:
        where.append(In("variant", (variant,)))
    listed = [{**row, PREDICTED_SHARE: 0.0} for row in rows.to_pylist()]
    for row in read_table(store, PREDICTED_SCORES, where).to_pylist():
        if window is None or window.start <= row["end_time"] < window.end:
            same = {name: row[name] for name in rows.column_names if name in row}
            shown = {
                "name": row["job_id"],
                "score": row["value"],
                "coverage": 1.0,
                "n_jobs": 1,
                "n_scored": 1,
            }
            listed.append({**same, **shown, PREDICTED_SHARE: 1.0})
    listed.sort(key=lambda row: (-row["score"], -(row["node_h"] or 0.0), row["source"], row["name"]))
    schema = rows.schema.append(pa.field(PREDICTED_SHARE, pa.float64()))
    return pa.Table.from_pylist(listed if top is None else listed[:top], schema)


def predicted_notes(
    store: JobStore, column: str, window: Window | None, weight: str, variant: str | None
) -> tuple[str, ...]:
    """What part of the hours is predicted, and which predictions are left out as older than the scores."""
    where: tuple[Filter, ...] = () if variant is None else (In("variant", (variant,)),)
    measured = _hours(
        store, Query((), (Sum(weight, "hours"),), window, (*where, Present(column)), over=SCORES)
    )
    current = (*where, *_current(store, column, window))
    guessed = _hours(store, Query((), (Sum(weight, "hours"),), window, current, over=PREDICTED_SCORES))
    notes = []
    if measured + guessed > 0:
        share = 100 * guessed / (measured + guessed)
        notes.append(
            f"{share:.0f} % of the {weight.replace('_', '-')} with {column} are predicted, not measured"
        )
    stale = sorted(set(_marks(store, PREDICTED_SCORES, window)) - set(_marks(store, SCORES, window)))
    if stale:
        n_days = len({day for day, _ in stale})
        notes.append(
            f"predictions of {n_days} days are older than the scores there and are left out; "
            "make them again: esjobs similar predict"
        )
    return tuple(notes)


def _current(store: JobStore, column: str, window: Window | None) -> tuple[Filter, ...]:
    """Predictions of one score, of days whose scores are those among which it was missing."""
    marks = {mark for _, mark in _marks(store, SCORES, window)}
    held = sorted(
        mark for mark in {mark for _, mark in _marks(store, PREDICTED_SCORES, window)} if mark in marks
    )
    days = () if window is None else (Days.of_window(window),)
    return (In("score_name", (column,)), In("mark", tuple(held) or ("none",)), *days)


def _marks(store: JobStore, table: Any, window: Window | None) -> list[tuple[Any, str]]:
    days = () if window is None else (Days.of_window(window),)
    asked = Query(("day", "mark"), (Count("n"),), where=days, over=table)
    return [(row["day"], row["mark"] or "") for row in store.aggregate(asked).table.to_pylist()]


def _hours(store: JobStore, asked: Query) -> float:
    return float(store.aggregate(asked).table.column("hours")[0].as_py() or 0.0)
