"""Rankings: who uses what they are given badly, weighted by what they are given."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.numbers import many, percent
from esjobs.core.query import Count, Days, Filter, In, Missing, Present, Query, Range, Sum, SumProduct
from esjobs.core.rates import FEW_JOBS, said
from esjobs.core.window import Window
from esjobs.schema.scores import BEST_IS_HIGH, BY, RANKED, SCORE_CHOICES, SCORES, WEIGHTS
from esjobs.schema.similar import PREDICTED_NAMES
from esjobs.scores.findings import SCORED_AREAS
from esjobs.scores.intervals import alike, means
from esjobs.scores.predictions import PREDICTED_SHARE, predicted_notes, predicted_sums, with_predicted_jobs
from esjobs.scores.scoring import OUTSIDE
from esjobs.store.base import JobStore

RANK_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("score", pa.float64()), ("coverage", pa.float64())),
        *(("node_h", pa.float64()), ("n_jobs", pa.int64()), ("spread", pa.float64())),
        *(("core_h", pa.float64()), ("n_scored", pa.int64()), ("idle_core_h", pa.float64())),
        *(("score_low", pa.float64()), ("score_high", pa.float64()), ("differs", pa.bool_())),
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
_REASONS = 3
"""Reasons that a note has, those of most hours."""
_NEGLIGIBLE = 1e-12
"""A variance below this, against the square of the mean, is rounding."""


@dataclass(frozen=True)
class Ranking:
    """Names from the worst on, and what has to be said of them."""

    rows: pa.Table
    notes: tuple[str, ...]


def rank(
    store: JobStore,
    by: str,
    score: str,
    *,
    window: Window | None = None,
    top: int | None = 25,
    weight: str = "node_h",
    variant: str | None = None,
    predicted: bool = False,
) -> Ranking:
    """Rank names by the mean of a score, weighted by the hours that their jobs took; the surely worst first.

    Per name: ``score`` is sum(score x hours) / sum(hours) over the jobs that have both; ``coverage`` the part
    of the hours of all of its jobs that these have; ``spread`` the weighted standard deviation of the score
    over jobs; ``node_h``, ``core_h``, ``n_jobs`` and ``idle_core_h`` are of all jobs,
    ``n_scored`` of those with the score; ``idle_core_h`` adds up as ``idle_core_h`` of ``esjobs
    query``. ``score_low`` and ``score_high`` are the ends of its 95 % interval, from clusters of jobs that
    are alike (:mod:`esjobs.scores.intervals`), null for fewer than five jobs or clusters; ``differs`` is true
    of a name more than three standard errors from the rest. The order is that of the better end, of
    the score where there is no interval; names of fewer than five scored jobs come after the others, and
    names without a score last. ``variant``: only jobs
    whose score has this definition.
    ``predicted``: scores that were not measured count, too, and the column
    ``predicted_share`` is their part of the hours behind ``score``. Raises :class:`UsageError` for what
    cannot be ranked, :class:`NoResultError` when no job of the window is scored at all.

    Cost: two grouped queries, and two small ones for the notes; of ``job`` the rows that are shown.
    """
    _require("by", by, BY)
    _require("score", score, SCORE_CHOICES)
    _require("weight", weight, WEIGHTS)
    column = "score_sum" if score == "sum" else score
    defined = _defined(column)
    if variant is not None and not defined:
        raise UsageError(f"{score} has one definition; leave the variant out")
    where: tuple[Filter, ...] = () if variant is None else (In(defined, (variant,)),)
    if predicted and score not in PREDICTED_NAMES:
        raise UsageError(f"{score} is never predicted; {' and '.join(PREDICTED_NAMES)} are")
    if by == "job":
        rows = _jobs(store, column, window, where, top)
        if predicted:
            rows = with_predicted_jobs(store, rows, column, window, variant, top)
    else:
        rows = _names(store, by, column, window, where, weight, predicted)
        rows = rows if top is None else rows.slice(0, top)
    if not rows.num_rows:
        of = "" if variant is None else f" of the variant {variant}"
        raise NoResultError(f"no job{of} is scored{_inside(window)}; make scores: esjobs score")
    notes = _notes(store, score, column, defined, window, weight, variant)
    if by != "job" and not predicted:
        notes = (*_differing(rows), *notes)
    if predicted:
        notes += predicted_notes(store, column, window, weight, variant)
    return Ranking(rows, notes)


def _names(
    store: JobStore,
    by: str,
    column: str,
    window: Window | None,
    where: Sequence[Filter],
    weight: str,
    predicted: bool,
) -> pa.Table:
    hours = (Sum("node_h", "node_h"), Sum("core_h", "core_h"))
    everything = store.aggregate(
        Query((by,), (Count("n_jobs"), *hours, Sum("idle_core_h", "wasted")), window, over=SCORES)
    ).table
    scored = store.aggregate(
        Query(
            (by,),
            (
                Count("n_scored"),
                Sum(weight, "weights"),
                SumProduct(column, weight, "weighted"),
                SumProduct(f"{column}_sq", weight, "squares"),
            ),
            window,
            (*where, Present(column), Present(weight)),
            over=SCORES,
        )
    ).table
    of_name = {row[by]: row for row in scored.to_pylist()}
    shares: dict[str | None, float] = {}
    measured = _intervals(store, by, column, window, where, weight) if not predicted else {}
    if predicted:
        variants = [each for each in where if isinstance(each, In)]
        of_name, shares = predicted_sums(store, by, column, window, variants, weight, of_name)
    rows = [
        _row(row[by], row, of_name.get(row[by], {}), weight) | measured.get(row[by], {})
        for row in everything.to_pylist()
    ]
    sign, better = (1, "score_high") if column in BEST_IS_HIGH else (-1, "score_low")
    rows.sort(
        key=lambda row: (
            row["score"] is None,
            (row["n_scored"] or 0) < FEW_JOBS,
            sign * (row["score"] or 0.0 if row.get(better) is None else row[better]),
            sign * (row["score"] or 0.0),
            -(row[weight] or 0.0),
            row["name"] or "",
        )
    )
    ranked = pa.Table.from_pylist(rows, RANK_SCHEMA)
    if not predicted:
        return ranked
    return ranked.append_column(
        PREDICTED_SHARE, pa.array([shares.get(row["name"]) for row in rows], pa.float64())
    )


def _intervals(
    store: JobStore, by: str, column: str, window: Window | None, where: Sequence[Filter], weight: str
) -> dict[str | None, dict[str, Any]]:
    """By name the interval of its mean, and whether it differs from the rest."""
    keys = (by, *alike(by))
    asked = Query(
        keys,
        (Count("n_jobs"), Sum(weight, "weights"), SumProduct(column, weight, "weighted")),
        window,
        (*where, Present(column), Present(weight)),
        over=SCORES,
    )
    cells = store.aggregate(asked).table
    if not cells.num_rows:
        return {}
    names = cells.column(by).to_pylist()
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    weighted, weights, n_jobs = (
        np.nan_to_num(cells.column(name).to_numpy().astype(float))
        for name in ("weighted", "weights", "n_jobs")
    )
    found = means(np.array([place[name] for name in names]), weighted, weights, n_jobs, len(place))
    ends = {"score_low": found.low, "score_high": found.high}
    return {
        name: {"differs": found.differs[number]}
        | {end: None if np.isnan(values[number]) else float(values[number]) for end, values in ends.items()}
        for name, number in place.items()
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
        "coverage": min(1.0, weights / total) if total > 0 else None,
        "node_h": everything["node_h"],
        "n_jobs": everything["n_jobs"],
        "spread": None if mean is None else _deviation(mean, scored["squares"] / weights),
        "core_h": everything["core_h"],
        "n_scored": scored.get("n_scored", 0),
        "idle_core_h": everything["wasted"],
    }


def _deviation(mean: float, square: float) -> float:
    """The standard deviation from a mean and a mean of squares; what is rounding alone is none."""
    variance = square - mean * mean
    return math.sqrt(variance) if variance > _NEGLIGIBLE * max(square, mean * mean) else 0.0


def _jobs(
    store: JobStore, column: str, window: Window | None, where: Sequence[Filter], top: int | None
) -> pa.Table:
    """The worst jobs; the ones with more node-hours first among equals."""
    order = (column if column in BEST_IS_HIGH else f"-{column}", "-node_h", "source", "job_id")
    filters: list[Filter] = [*where, Present(column)]
    if window is not None:
        filters.append(Days.of_window(window))
    whole = window is None or window.whole_days
    read = store.read(SCORES, filters, order=order, limit=top if whole else None)
    rows: list[dict[str, Any]] = []
    for batch in read:
        for row in batch.to_pylist():
            if window is None or window.start <= row["end_time"] < window.end:
                rows.append(_job_row(row, column))
            if top is not None and len(rows) == top:
                return pa.Table.from_pylist(rows, JOB_SCHEMA)
    return pa.Table.from_pylist(rows, JOB_SCHEMA)


def _job_row(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    same = {name: row[name] for name in JOB_SCHEMA.names if name in row}
    return {
        **same,
        "name": row["job_id"],
        "score": row[column],
        "coverage": 1.0,
        "n_jobs": 1,
        "n_scored": 1,
        "spread": 0.0,
    }


def _differing(rows: pa.Table) -> Iterator[str]:
    """How many names differ from the rest, and how many are too few jobs to be ranked."""
    told = [each for each in rows.column("differs").to_pylist() if each is not None]
    if told:
        yield said(sum(told), len(told)) + ("" if any(told) else ": their order says nothing")
    without = rows.num_rows - rows.column("score").null_count - len(told)
    if without and told:
        yield f"no interval: {many(without, 'name')} of fewer than {FEW_JOBS} jobs or groups of similar jobs"


def _notes(
    store: JobStore,
    score: str,
    column: str,
    defined: str,
    window: Window | None,
    weight: str,
    variant: str | None,
) -> tuple[str, ...]:
    """What mixes definitions, sums of unlike scores, and hours of nodes that nobody described."""
    hours = weight.replace("_", "-")
    known: tuple[Filter, ...] = (Present(column),)
    notes = []
    if f"{column}_reason" in SCORES.column_names:
        missing = _shares(store, f"{column}_reason", (Missing(column),), window, weight)
        if missing:
            few = dict(list(missing.items())[:_REASONS])
            notes.append(f"{score} is missing because of: {_listed(few)} of the {hours} without it")
        beyond = _hours(store, (*known, In(f"{column}_reason", (OUTSIDE,))), window, weight)
        if beyond:
            share = beyond / _hours(store, known, window, weight)
            notes.append(
                f"{percent(share)} of the {hours} scored are of jobs whose counters do not fit each "
                f"other: their {score} lies outside 0 to 100 and counts as 0 or 100"
            )
    if defined and variant is None:
        shares = _shares(store, defined, known, window, weight)
        if len(shares) > 1:
            notes.append(
                f"{score} has several definitions here, which do not compare: {_listed(shares)} of the "
                f"{hours} scored; --variant takes one"
            )
    if column == "score_sum":
        shares = _shares(store, "n_scores", known, window, weight)
        if len(shares) > 1:
            notes.append(
                f"sums of unlike numbers of scores: {_listed(shares)} of the {hours} scored have so many; a "
                "job of which more is known has more to add up"
            )
    if weight == "node_h":
        shares = _shares(store, "node_h_from", known, window, weight)
        assumed = shares.get("assumed", 0.0)
        if assumed:
            notes.append(
                f"{percent(assumed)} of the node-hours are core-hours over an assumed size of nodes "
                "(scores.cores_per_node): what compares are the means, not the node-hours"
            )
    return tuple(notes)


def _shares(
    store: JobStore, key: str, where: Sequence[Filter], window: Window | None, weight: str
) -> dict[str, float]:
    """How the hours of some jobs are divided among the values of a column, the largest part first."""
    filters = (*where, Present(key), Range(weight, gt=0))
    asked = Query((key,), (Sum(weight, "hours"),), window, filters, over=SCORES)
    parts = {str(row[key]): row["hours"] for row in store.aggregate(asked).table.to_pylist()}
    total = math.fsum(parts.values())
    return {name: part / total for name, part in sorted(parts.items(), key=lambda item: (-item[1], item[0]))}


def _hours(store: JobStore, where: Sequence[Filter], window: Window | None, weight: str) -> float:
    """The hours of some jobs."""
    asked = Query((), (Sum(weight, "hours"),), window, tuple(where), over=SCORES)
    return float(store.aggregate(asked).table.column("hours")[0].as_py() or 0.0)


def _listed(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items())


def _defined(column: str) -> str:
    """The column that names the definition of a score; empty where there is one definition."""
    if column in SCORED_AREAS:
        return "issues_variant"
    return "variant" if column in ("score_cpu", "score_mem", "score_sum") else ""


def _inside(window: Window | None) -> str:
    return "" if window is None else f" in {window}"


def _require(what: str, given: str, accepted: Sequence[str]) -> None:
    if given not in accepted:
        raise UsageError(f"no {what} '{given}'; there are {', '.join(accepted)}")
