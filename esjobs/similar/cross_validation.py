"""Cross-validation: jobs of the knowledge base predicted from others, for limits, errors and evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from esjobs.core.errors import NoResultError
from esjobs.similar.knowledge import KnowledgeBase
from esjobs.similar.limits import TOLERATED_A, TOLERATED_B, farthest_similar, least_static
from esjobs.similar.neighbours import Limits, neighbours, predicted
from esjobs.similar.settings import SimilarSettings
from fitters import Nearest
from fitters.layout.arrays import Floats, Ints, Mask

Similarity = Callable[[int], Floats]
"""Program similarities of a job to all of the knowledge base, NaN if unknown."""

# Jobs whose nearest others tell the limits
_TARGETS = 300
_NEAREST = 20


@dataclass(frozen=True)
class LeftOut:
    """Predictions of held-out jobs: value and spread, NaN without neighbours; measured scores."""

    places: Ints
    measured: Floats
    values: Floats
    spreads: Floats

    @property
    def has_value(self) -> Mask:
        """True if the job has a prediction: a mask, one entry per job."""
        return ~np.isnan(self.values)

    @property
    def residuals(self) -> Floats:
        """Measured minus predicted, of jobs with a prediction."""
        return (self.measured - self.values)[self.has_value]


def spaced(places: Ints, most: int) -> Ints:
    """Return at most ``most`` entries, evenly spaced."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def _derived_b(base: KnowledgeBase, score: str, targets: Ints) -> float:
    found = farthest_similar(*_pairs(base, score, targets, None), TOLERATED_B)
    if found is None:
        raise NoResultError(
            f"too few jobs with a measured {score} and comparable jobs of other runs to derive a limit; "
            "set similar.distance_limit_b"
        )
    return found


def limits_of(
    base: KnowledgeBase, score: str, settings: SimilarSettings, static: Similarity | None
) -> Limits:
    """Return the limits of the settings; missing ones are derived from the knowledge base.

    Derived from pairs of jobs of different runs in one half; errors use the other half. Raises
    :class:`NoResultError` for too few pairs.
    """
    # one search each: a few hundred tell a limit, which is a quantile, well enough
    targets = spaced(np.flatnonzero(base.limiting & ~np.isnan(base.scores[score])), _TARGETS)
    similarities, least = {}, None
    if static is not None:
        similarities = {index: static(index) for index in targets.tolist()}
    if similarities:
        least = _least_static(base, similarities) if settings.static is None else settings.static
    limit_b = settings.distance_limit_b
    if limit_b is None:
        limit_b = _derived_b(base, score, targets)
    if least is None:
        return Limits(None, None, limit_b)
    if settings.distance_limit_a is not None:
        return Limits(least, settings.distance_limit_a, limit_b)
    candidates = {index: np.flatnonzero(found >= least) for index, found in similarities.items()}
    limit_a = farthest_similar(*_pairs(base, score, targets, candidates), TOLERATED_A)
    # too few pairs of similar programs: no further than any others
    return Limits(least, max(limit_b, limit_a or limit_b), limit_b)


def left_out(
    base: KnowledgeBase,
    score: str,
    near: Mapping[int, Nearest],
    limits: Limits,
    approach: str,
    aggregation: str,
    groups: Ints,
    static: Similarity | None,
) -> LeftOut:
    """Predict jobs of the knowledge base from jobs of other groups.

    ``near``: comparable jobs up to the largest limit, by index.
    """
    places = np.array([index for index in near if not np.isnan(base.scores[score][index])], np.int64)
    values, spreads = np.full(len(places), np.nan), np.full(len(places), np.nan)
    for number, index in enumerate(places.tolist()):
        # a job of the same run, or user, would tell itself
        others = base.comparable_to(index)
        others = others[(groups[others] != groups[index]) & ~np.isnan(base.scores[score][others])]
        distances = np.full(len(base), np.inf)  # Beyond the largest limit no job is a neighbour
        distances[near[index].places] = near[index].distances
        similar = None if static is None else static(index)[others]
        chosen, _ = neighbours(distances[others], similar, limits, approach)
        if chosen.any():
            mine = others[chosen]
            found = predicted(base.scores[score][mine], distances[mine], aggregation)
            values[number], spreads[number] = found.value, found.spread
    return LeftOut(places, base.scores[score][places], values, spreads)


def without_limits(base: KnowledgeBase, score: str) -> Ints:
    """Return jobs with a measured score that did not determine the limits."""
    return np.flatnonzero(~base.limiting & ~np.isnan(base.scores[score]))


def near_each(base: KnowledgeBase, places: Ints, distance: float) -> dict[int, Nearest]:
    """Return the comparable jobs within a distance, for each job. Cost: one search each."""
    return {
        index: base.series.within(base.series.series[index], distance, base.comparable_to(index))
        for index in places.tolist()
    }


def _pairs(
    base: KnowledgeBase, score: str, targets: Ints, candidates: dict[int, Ints] | None
) -> tuple[Floats, Floats]:
    """Return distances of jobs to their nearest of other runs, and differences of scores.

    ``candidates``: candidates by index; None: all comparable jobs.
    """
    # empty parts first: without any pair the concatenation still has a type
    distances: list[Floats] = [np.empty(0)]
    differences: list[Floats] = [np.empty(0)]
    scores = base.scores[score]
    for index in targets.tolist():
        others = base.comparable_to(index)
        others = others[base.limiting[others] & (base.runs[others] != base.runs[index])]
        others = others[~np.isnan(scores[others])]
        if candidates is not None:
            others = np.intersect1d(others, candidates[index])
        if len(others):
            found = base.series.nearest(base.series.series[index], _NEAREST, others)
            distances.append(found.distances)
            differences.append(np.abs(scores[found.places] - scores[index]))
    return np.concatenate(distances), np.concatenate(differences)


def _least_static(base: KnowledgeBase, similarities: dict[int, Floats]) -> float:
    values: list[Floats] = [np.empty(0)]
    same: list[Mask] = [np.empty(0, bool)]
    names = base.applications
    for index, found in similarities.items():
        comparable = ~np.isnan(found) & (names != "") & (base.runs != base.runs[index])
        # a job without an application says nothing about who belongs together
        if names[index]:
            values.append(found[comparable])
            same.append(names[comparable] == names[index])
    return least_static(np.concatenate(values), np.concatenate(same))
