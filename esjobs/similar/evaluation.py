"""Evaluation of predictions: cross-validation on the knowledge base, in nine combinations."""

import zlib
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Ints
from esjobs.core.errors import NoResultError
from esjobs.schema.similar import AGGREGATIONS, APPROACHES, PREDICTED_NAMES
from esjobs.similar.calibration import LEVELS, calibrated
from esjobs.similar.cross_validation import (
    LeftOut,
    Similarity,
    left_out,
    limits_of,
    near_each,
    spaced,
    without_limits,
)
from esjobs.similar.knowledge import KnowledgeBase, knowledge_base
from esjobs.similar.limits import FAR_APART
from esjobs.similar.neighbours import Limits, shown_limit
from esjobs.similar.program_similarity import NO_PROGRAMS, ProgramSimilarity, program_similarity
from esjobs.similar.settings import SimilarSettings
from esjobs.store.base import JobStore

LEFT_OUT = ("run", "user")
"""Held-out group of each job: its run, or all jobs of its user."""
_FOLDS = 5

EVALUATION = pa.schema(
    [
        *(("score_name", pa.string()), ("left_out", pa.string()), ("approach", pa.string())),
        *(("aggregation", pa.string()), ("n_jobs", pa.int64()), ("predicted_frac", pa.float64())),
        *(("mae", pa.float64()), ("mse", pa.float64()), ("over_10_frac", pa.float64())),
        *(("cover_68", pa.float64()), ("cover_95", pa.float64()), ("static", pa.float64())),
        *(("distance_limit_a", pa.float64()), ("distance_limit_b", pa.float64()), ("reason", pa.string())),
    ]
)
"""``over_10_frac``: of predicted jobs; ``cover``: share within errors calibrated on others."""


def evaluate(store: JobStore, settings: SimilarSettings, most: int | None = 2000) -> pa.Table:
    """Return one row per score, held-out group, approach and aggregation (:data:`EVALUATION`).

    Predicted are jobs of the half of the runs that did not determine the limits; ``most``: at most so many,
    evenly spaced. Raises :class:`NoResultError` without a knowledge base. Cost: one search per job.
    """
    base = knowledge_base(store, settings)
    try:
        programs = program_similarity(store, base.keys, (), settings.programs)
    except NoResultError:
        programs = None
    return pa.Table.from_pylist(
        [row for name in PREDICTED_NAMES for row in _of_score(base, name, settings, most, programs)],
        EVALUATION,
    )


def _limits(
    base: KnowledgeBase, name: str, settings: SimilarSettings, static: Similarity | None
) -> tuple[Limits | None, str]:
    """Return the limits for a score, or None and the reason."""
    if np.isnan(base.scores[name]).all():
        return None, f"no job with a measured {name} and time series"
    try:
        return limits_of(base, name, settings, static), ""
    except NoResultError as error:
        return None, str(error)


def _of_score(
    base: KnowledgeBase,
    name: str,
    settings: SimilarSettings,
    most: int | None,
    programs: ProgramSimilarity | None,
) -> list[dict[str, Any]]:
    unseen = without_limits(base, name)
    jobs = unseen if most is None else spaced(unseen, most)
    static = None if programs is None else programs.of
    limits, reason = _limits(base, name, settings, static)
    near = {} if limits is None else near_each(base, jobs, limits.farthest)
    rows: list[dict[str, Any]] = []
    for group, approach, how in product(LEFT_OUT, APPROACHES, AGGREGATIONS):
        row: dict[str, Any] = {"score_name": name, "left_out": group, "approach": approach}
        row |= {"aggregation": how, "n_jobs": len(jobs)}
        if limits is None:
            row["reason"] = reason
        elif approach != "dynamic" and static is None:
            row["reason"] = NO_PROGRAMS
        else:
            groups = base.runs if group == "run" else base.users
            found = left_out(base, name, near, limits, approach, how, groups, static)
            row["static"] = limits.static
            row["distance_limit_a"] = shown_limit(limits.limit_a)
            row["distance_limit_b"] = shown_limit(limits.limit_b)
            row |= _accuracy(found) | _coverage(found, _folds(base, found.places))
        rows.append(row)
    return rows


def _accuracy(found: LeftOut) -> dict[str, Any]:
    errors = np.abs(found.residuals)
    if not len(errors):
        return {"predicted_frac": 0.0, "reason": "no job has a neighbour"}
    return {
        "predicted_frac": float(found.has_value.mean()),
        "mae": float(errors.mean()),
        "mse": float(np.square(errors).mean()),
        "over_10_frac": float((errors > FAR_APART).mean()),
    }


def _coverage(found: LeftOut, folds: Ints) -> dict[str, float]:
    """Return the share of jobs of each fold within the errors from the other folds."""
    residuals, spreads, folds = found.residuals, found.spreads[found.has_value], folds[found.has_value]
    inside: list[list[bool]] = [[] for _ in LEVELS]
    for fold in np.unique(folds).tolist():
        mine = folds == fold
        # too few for the errors that people see are enough to test the method
        learned = calibrated(residuals[~mine], spreads[~mine], (1, 1))
        for residual, spread in zip(residuals[mine].tolist(), spreads[mine].tolist(), strict=True):
            for listed, error in zip(inside, learned.errors(spread), strict=True):
                if error is not None:
                    listed.append(abs(residual) <= error)
    return {
        f"cover_{100 * level:.0f}": float(np.mean(listed))
        for level, listed in zip(LEVELS, inside, strict=True)
        if listed
    }


def _folds(base: KnowledgeBase, places: Ints) -> Ints:
    names: Sequence[str] = [str(base.runs[index]) for index in places.tolist()]
    # by name, so that another job added to the base leaves the others in their folds
    return np.array([zlib.crc32(name.encode()) % _FOLDS for name in names], np.int64)
