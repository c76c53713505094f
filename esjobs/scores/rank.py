"""Rankings of names by mean score, weighted by hours."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.numbers import many, percent
from esjobs.core.query import Filter, In, Missing, Present, Query, Sum, SumWhere
from esjobs.core.rates import FEW_JOBS, said
from esjobs.core.window import Window
from esjobs.publish.publication import finite
from esjobs.records.answer import Answer
from esjobs.schema.scores import (
    BEST_IS_HIGH,
    BY,
    OWN_ROW,
    RANKED,
    SCORE_CHOICES,
    SCORE_COLUMNS,
    SCORES,
    USUAL_WEIGHTS,
    WEIGHTS,
)
from esjobs.schema.similar import PREDICTED_NAMES, PREDICTED_SCORES
from esjobs.scores.intervals import LEAST_CLUSTERS, cluster_columns, means
from esjobs.scores.own_rows import USUAL_REASONS
from esjobs.scores.predictions import PREDICTED_SHARE, predicted_notes, predicted_sums, with_predicted_jobs
from esjobs.scores.scoring import OUTSIDE
from esjobs.scores.selection import Selection
from esjobs.store.base import JobStore
from esjobs.store.merge import floats

RANK_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("score", pa.float64()), ("coverage", pa.float64())),
        *(("node_h", pa.float64()), ("n_jobs", pa.int64()), ("spread", pa.float64())),
        *(("core_h", pa.float64()), ("n_scored", pa.int64()), ("idle_core_h", pa.float64())),
        *(("score_low", pa.float64()), ("score_high", pa.float64()), ("differs", pa.bool_())),
        ("gpu_h", pa.float64()),
    ]
)
JOB_SCHEMA = pa.schema(
    [
        *RANK_SCHEMA,
        *((name, pa.string()) for name in ("source", "user", "project", "queue", "application", "variant")),
        pa.field("end_time", pa.timestamp("us", tz="UTC")),
        *((name, pa.float64()) for name in RANKED),
    ]
)
# Reasons that a note has, those of most hours
_REASONS = 3
# A variance below this, against the square of the mean, is rounding
_NEGLIGIBLE = 1e-12


def rank(
    store: JobStore,
    by: str,
    score: str,
    *,
    window: Window | None = None,
    top: int | None = 25,
    weight: str | None = None,
    variant: str | None = None,
    predicted: bool = False,
) -> Answer:
    """Rank names by the mean of a score, weighted by hours; significantly worst first.

    Per name: ``score`` is sum(score x hours) / sum(hours) over jobs that have both; ``coverage`` their share
    of the name's hours; ``spread`` the weighted standard deviation over jobs. ``node_h``, ``core_h``,
    ``gpu_h``, ``n_jobs`` and ``idle_core_h`` are of all jobs, ``n_scored`` of scored ones. ``score_low``,
    ``score_high``: 95 % interval (:mod:`esjobs.scores.intervals`), null below five jobs or clusters;
    ``differs``: more than three standard errors from the rest.

    Order: the better end of the interval, else the score; then names with fewer than five scored jobs; then
    names without a score. ``weight`` None: the usual one of the score. ``variant``: only jobs with this score
    definition. ``predicted``: include predicted scores, with their share in ``predicted_share``. Raises
    :class:`UsageError` for invalid arguments, :class:`NoResultError` if no job of the window is scored.

    Cost: two grouped queries and two small ones; by ``job`` the rows shown.
    """
    chosen = _selection(store, by, score, window, weight, variant, predicted=predicted)
    rows = _jobs(chosen, top, predicted) if by == "job" else _names(chosen, by, predicted)
    if not rows.num_rows:
        raise NoResultError(_nothing_scored(window, variant))
    notes = [*_missing(chosen), *_mixed(chosen), *_sharing(chosen, by)]
    if predicted:
        notes += predicted_notes(chosen)
    elif by != "job":
        notes = [*_differing(rows, by), *notes]
    return Answer(rows if top is None else rows.slice(0, top), tuple(notes))


def rankings(
    store: JobStore, by: str, where: Filter, *, window: Window | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each score that some matching job has, with the ranking of all names, without notes.

    Cost: a query, and three grouped ones a score.
    """
    scored = tuple(SumWhere("n_jobs", (column,), score) for score, column in SCORE_COLUMNS.items())
    (found,) = store.aggregate(Query((), scored, window, (where,), over=SCORES)).table.to_pylist()
    for score in SCORE_COLUMNS:
        if found[score]:
            chosen = _selection(store, by, score, window)
            yield score, _names(chosen, by, predicted=False)


def _selection(
    store: JobStore,
    by: str,
    score: str,
    window: Window | None,
    weight: str | None = None,
    variant: str | None = None,
    *,
    predicted: bool = False,
) -> Selection:
    _require("by", by, BY)
    _require("score", score, SCORE_CHOICES)
    weight = weight or USUAL_WEIGHTS[score]
    _require("weight", weight, tuple(WEIGHTS))
    if predicted and score not in PREDICTED_NAMES:
        raise UsageError(f"{score} is never predicted; only {' and '.join(PREDICTED_NAMES)} are")
    if predicted and weight not in PREDICTED_SCORES.column_names:
        raise UsageError(f"predicted scores have no {WEIGHTS[weight]}; use another weight")
    chosen = Selection(store, score, weight, window, variant)
    if variant is not None and not chosen.definition:
        raise UsageError(f"{score} has only one definition; omit the variant")
    return chosen


def _names(chosen: Selection, by: str, predicted: bool) -> pa.Table:
    column = chosen.column
    hours = tuple(Sum(name, name) for name in WEIGHTS)
    metrics = (Sum("n_jobs", "n_jobs"), *hours, Sum("idle_core_h", "wasted"))
    totals = chosen.store.aggregate(Query((by,), metrics, chosen.window, over=SCORES)).table.to_pylist()
    sums: dict[str | None, Mapping[str, Any]] = {
        row[by]: row for row in chosen.sums((by,), column, (Present(column),), SCORES).to_pylist()
    }
    schema = RANK_SCHEMA
    if predicted:
        sums, shares = predicted_sums(chosen, by, sums)
        beside = {row[by]: {PREDICTED_SHARE: shares.get(row[by])} for row in totals}
        schema = schema.append(pa.field(PREDICTED_SHARE, pa.float64()))
    else:
        beside = _intervals(chosen, by)
    rows = [
        _row(row[by], row, sums.get(row[by], {}), chosen.weight) | beside.get(row[by], {}) for row in totals
    ]
    rows.sort(key=partial(_order, chosen=chosen))
    return pa.Table.from_pylist(rows, schema)


def _order(row: Mapping[str, Any], chosen: Selection) -> tuple[Any, ...]:
    sign, better = (1, "score_high") if chosen.score in BEST_IS_HIGH else (-1, "score_low")
    score = row["score"] or 0.0
    # by the better end: first is who is certainly bad, not who may be
    end = score if row.get(better) is None else row[better]
    # a name of one bad job is not the worst of the grid
    few = (row["n_scored"] or 0) < FEW_JOBS
    return (
        row["score"] is None,
        few,
        sign * end,
        sign * score,
        -(row[chosen.weight] or 0.0),
        row["name"] or "",
    )


def _intervals(chosen: Selection, by: str) -> dict[str | None, dict[str, Any]]:
    """Return interval and significance of the mean by name."""
    column = chosen.column
    keys = (by, *cluster_columns(by))
    clusters = chosen.sums(keys, column, (Present(column),), SCORES, squares=False)
    if not clusters.num_rows:
        return {}
    of_clusters = pc.dictionary_encode(clusters[by].cast(pa.string()), "encode").combine_chunks()
    index = {name: number for number, name in enumerate(of_clusters.dictionary.to_pylist())}
    weighted, weights, n_jobs = (
        np.nan_to_num(floats(clusters[name])) for name in ("weighted", "weights", "n_scored")
    )
    found = means(of_clusters.indices.to_numpy().astype(np.int64), weighted, weights, n_jobs, len(index))
    return {
        name: {
            "differs": found.differs[number],
            "score_low": finite(found.low[number]),
            "score_high": finite(found.high[number]),
        }
        for name, number in index.items()
    }


def _row(
    name: str | None, everything: Mapping[str, Any], scored: Mapping[str, Any], weight: str
) -> dict[str, Any]:
    weights = scored.get("weights") or 0.0
    total = everything[weight] or 0.0
    mean = scored["weighted"] / weights if weights > 0 else None
    return {
        "name": name,
        "score": mean,
        # rounding of equal sums may exceed 1
        "coverage": min(1.0, weights / total) if total > 0 else None,
        "node_h": everything["node_h"],
        "n_jobs": int(everything["n_jobs"] or 0),
        "spread": None if mean is None else _deviation(mean, scored["squares"] / weights),
        "core_h": everything["core_h"],
        "n_scored": int(scored.get("n_scored") or 0),
        "idle_core_h": everything["wasted"],
        "gpu_h": everything["gpu_h"],
    }


def _deviation(mean: float, square: float) -> float:
    variance = square - mean * mean
    # what is left of equal scores is rounding
    return math.sqrt(variance) if variance > _NEGLIGIBLE * max(square, mean * mean) else 0.0


def _jobs(chosen: Selection, top: int | None, predicted: bool) -> pa.Table:
    rows: list[dict[str, Any]] = []
    # cut here, too: of a window that ends within a day the store gives whole days, without a limit
    for row in _worst_jobs(chosen, top):
        if top is not None and len(rows) == top:
            break
        rows.append(row)
    table = pa.Table.from_pylist(rows, JOB_SCHEMA)
    return with_predicted_jobs(chosen, table, top) if predicted else table


def _worst_jobs(chosen: Selection, top: int | None) -> Iterator[dict[str, Any]]:
    """Yield the worst jobs; among equals those with more node-hours first."""
    column, window = chosen.column, chosen.window
    order = (column if chosen.score in BEST_IS_HIGH else f"-{column}", "-node_h", "source", "job_id")
    filters = (*chosen.where, Present(column), OWN_ROW, *chosen.days)
    # filters select whole days: jobs outside a window that ends within one are skipped here
    limit = top if window is None or window.whole_days else None
    for batch in chosen.store.read(SCORES, filters, order=order, limit=limit):
        for row in batch.to_pylist():
            if window is None or window.start <= row["end_time"] < window.end:
                same = {name: row[name] for name in JOB_SCHEMA.names if name in row}
                own = {"name": row["job_id"], "score": row[column], "spread": 0.0}
                yield {**same, **own, "coverage": 1.0, "n_jobs": 1, "n_scored": 1}


def _differing(rows: pa.Table, by: str) -> Iterator[str]:
    """Yield notes on names that differ, of all names, and on names without an interval, by reason."""
    compared = [each for each in rows.column("differs").to_pylist() if each is not None]
    if compared:
        yield said(sum(compared), len(compared)) + ("" if any(compared) else "; their order has no meaning")
    without = rows.filter(pc.and_(rows.column("score").is_valid(), rows.column("score_low").is_null()))
    few = pc.sum(pc.less(without.column("n_scored"), FEW_JOBS)).as_py() or 0
    if few:
        fewer = f"fewer than {FEW_JOBS} scored jobs"
        yield f"{many(few, 'name')} with {fewer}: no interval, listed behind the others"
    if similar := without.num_rows - few:
        *others, last = cluster_columns(by)
        kinds = f"{', '.join(others)} and {last}"
        yield (
            f"{many(similar, 'name')} without an interval: the jobs are of fewer than {LEAST_CLUSTERS:.0f} "
            f"combinations of {kinds}"
        )


def _missing(chosen: Selection) -> Iterator[str]:
    """Yield notes on reasons of missing scores, and on clipped ones."""
    reason, has_score = f"{chosen.column}_reason", Present(chosen.column)
    if reason not in SCORES.column_names:
        return
    score, hours = chosen.score, WEIGHTS[chosen.weight]
    missing = chosen.shares(reason, (Missing(chosen.column),), USUAL_REASONS.get(chosen.column))
    if missing:
        few = dict(list(missing.items())[:_REASONS])
        yield f"{score} missing: {_listed(few)} of the unscored {hours}"
    beyond = chosen.hours((has_score, In(reason, (OUTSIDE,))))
    if beyond:
        share = percent(beyond / chosen.hours((has_score,)))
        yield (
            f"{share} of the scored {hours}: inconsistent counters put {score} outside 0 to 100; it is "
            "clipped"
        )


def _mixed(chosen: Selection) -> Iterator[str]:
    """Yield notes on mixed definitions, sums of different numbers of scores, and assumed node sizes."""
    hours, has_score = WEIGHTS[chosen.weight], (Present(chosen.column),)
    if chosen.definition and chosen.variant is None:
        shares = chosen.shares(chosen.definition, has_score)
        if len(shares) > 1:
            yield (
                f"mixed definitions of {chosen.score} ({_listed(shares)} of the scored {hours}) are not "
                "comparable; select one with --variant"
            )
    if chosen.column == "score_sum":
        shares = chosen.shares("n_scores", has_score)
        if len(shares) > 1:
            yield (
                f"{chosen.score} adds different numbers of scores per job ({_listed(shares)} of the scored "
                f"{hours}), so jobs with more measurements score higher; compare means instead"
            )
    from_load = chosen.shares("cpu_from", has_score).get("load", 0.0)
    if from_load and chosen.column == "cpu_efficiency":
        yield f"{percent(from_load)} of the scored {hours} have no CPU time; the load of cores stands for it"
    assumed = 0.0
    if chosen.weight == "node_h":
        assumed = chosen.shares("node_h_from", has_score).get("assumed", 0.0)
    if assumed:
        yield (
            f"{percent(assumed)} of the node-hours assume a node size (scores.cores_per_node): means are "
            "reliable, absolute node-hours are not"
        )


def _sharing(chosen: Selection, by: str) -> Iterator[str]:
    """Yield a note on jobs without rows of their own, where they are left out or their days are divided."""
    if by != "job" and (chosen.window is None or chosen.window.whole_days):
        return
    query = Query((), (Sum("n_jobs", "n"),), where=(Missing("job_id"), *chosen.days), over=SCORES)
    (found,) = chosen.store.aggregate(query).table.to_pylist()
    if not found["n"]:
        return
    ordinary = f"{many(int(found['n']), 'ordinary job')} share rows (scores.own_rows)"
    yield f"{ordinary} and are not listed" if by == "job" else f"{ordinary}; a row counts at its latest end"


def _listed(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items())


def _nothing_scored(window: Window | None, variant: str | None) -> str:
    of = "" if variant is None else f" of the variant {variant}"
    inside = "" if window is None else f" in {window}"
    return f"no scored job{of}{inside}; run: esjobs score, or see the reasons: esjobs show scores"


def _require(what: str, name: str, accepted: Sequence[str]) -> None:
    if name not in accepted:
        raise UsageError(f"unknown {what} '{name}'; use one of: {', '.join(accepted)}")
