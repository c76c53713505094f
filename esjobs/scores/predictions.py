"""Predicted scores in rankings, on request, with their share of the hours."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from esjobs.core.query import Count, Filter, In, Present, Query
from esjobs.core.tables import Table
from esjobs.publish.publication import read_table
from esjobs.schema.scores import SCORES, WEIGHTS
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.scores.selection import Selection

PREDICTED_SHARE = "predicted_share"
"""Share of the hours behind a score that is predicted; null without a score."""

_SUMS = ("n_scored", "weights", "weighted", "squares")
_OF_A_JOB = {"coverage": 1.0, "n_jobs": 1, "n_scored": 1}


def predicted_sums(
    chosen: Selection, by: str, measured: Mapping[str | None, Mapping[str, Any]]
) -> tuple[dict[str | None, Mapping[str, Any]], dict[str | None, float]]:
    """Return the sums by name with predictions added, and the predicted share of the hours."""
    sums: dict[str | None, Mapping[str, Any]] = dict(measured)
    # a name that is only measured has a share of 0, one without any score none
    weights = {name: 0.0 for name, row in measured.items() if row["weights"]}
    for row in chosen.sums((by,), "value", _current(chosen), PREDICTED_SCORES).to_pylist():
        both = measured.get(row[by], {}), row
        sums[row[by]] = {name: sum(one.get(name) or 0 for one in both) for name in _SUMS}
        weights[row[by]] = row["weights"] or 0.0
    total = {name: row["weights"] for name, row in sums.items()}
    return sums, {name: part / total[name] for name, part in weights.items() if total[name]}


def with_predicted_jobs(chosen: Selection, rows: pa.Table, top: int | None) -> pa.Table:
    """Return the worst jobs, including those with a predicted score (share 1)."""
    window = chosen.window
    listed = [{**row, PREDICTED_SHARE: 0.0} for row in rows.to_pylist()]
    for row in read_table(chosen.store, PREDICTED_SCORES, [*_current(chosen), *chosen.where]).to_pylist():
        if window is None or window.start <= row["end_time"] < window.end:
            # tables of predictions hold whole days: the hours of the window are checked here
            same = {name: row[name] for name in rows.column_names if name in row}
            own = {"name": row["job_id"], "score": row["value"], PREDICTED_SHARE: 1.0}
            listed.append({**same, **_OF_A_JOB, **own})
    listed.sort(key=lambda row: (-row["score"], -(row["node_h"] or 0.0), row["source"], row["name"]))
    schema = rows.schema.append(pa.field(PREDICTED_SHARE, pa.float64()))
    return pa.Table.from_pylist(listed if top is None else listed[:top], schema)


def predicted_notes(chosen: Selection) -> tuple[str, ...]:
    """Return notes on the predicted share, and on omitted predictions older than the scores."""
    column = chosen.column
    measured = chosen.hours((*chosen.where, Present(column)))
    guessed = chosen.hours((*chosen.where, *_current(chosen)), PREDICTED_SCORES)
    notes = []
    if measured + guessed > 0:
        share = 100 * guessed / (measured + guessed)
        hours = WEIGHTS[chosen.weight]
        notes.append(f"{share:.0f} % of the {hours} with {column} are predicted, not measured")
    stale = set(_fingerprints(chosen, PREDICTED_SCORES)) - set(_fingerprints(chosen, SCORES))
    if stale:
        n_days = len({day for day, _ in stale})
        notes.append(
            f"predictions of {n_days} days are older than the scores and are ignored; run: esjobs similar "
            "predict"
        )
    return tuple(notes)


def _current(chosen: Selection) -> tuple[Filter, ...]:
    """Return filters for predictions of the score that are as new as the scores."""
    stored, predicted = (
        {fingerprint for _, fingerprint in _fingerprints(chosen, each)} for each in (SCORES, PREDICTED_SCORES)
    )
    # a list of no fingerprints would not filter at all
    fingerprints = tuple(sorted(stored & predicted)) or ("none",)
    return (In("score_name", (chosen.column,)), In("fingerprint", fingerprints), *chosen.days)


def _fingerprints(chosen: Selection, table: Table) -> list[tuple[Any, str]]:
    query = Query(("day", "fingerprint"), (Count("n"),), where=chosen.days, over=table)
    return [(row["day"], row["fingerprint"] or "") for row in chosen.store.aggregate(query).table.to_pylist()]
