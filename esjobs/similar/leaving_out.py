"""Jobs of the knowledge base predicted from the others: what limits, errors and evaluations rest on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import NoResultError
from esjobs.similar.knowledge import KnowledgeBase, Near
from esjobs.similar.limits import TOLERATED_COARSE, TOLERATED_FINE, farthest_alike, least_static
from esjobs.similar.neighbours import Limits, neighbours, predicted
from esjobs.similar.settings import SimilarSettings

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Similarity = Callable[[int], Floats]
"""Static similarities of a job of the knowledge base to all of them, NaN where nothing is known."""

_ASKED = 300
"""Jobs whose nearest others tell the limits."""
_NEAREST = 20


@dataclass(frozen=True)
class LeftOut:
    """Predictions of some jobs: value and spread, NaN without neighbours; their measured scores."""

    places: Places
    measured: Floats
    values: Floats
    spreads: Floats

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which have a prediction."""
        return ~np.isnan(self.values)

    @property
    def residuals(self) -> Floats:
        """Measured minus predicted, of those that have a prediction."""
        left: Floats = (self.measured - self.values)[self.known]
        return left


def spaced(places: Places, most: int) -> Places:
    """At most so many of some places, evenly spaced, so that the same are taken whenever it is asked."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def limits_of(
    base: KnowledgeBase, score: str, settings: SimilarSettings, static: Similarity | None
) -> Limits:
    """The limits of the settings, and where these are silent, those of the knowledge base.

    From pairs of jobs of different runs of one half: each of some hundred jobs with its nearest. Errors are
    those of the other half: jobs whose scores had a say in the limits lie better within them than new ones.
    Raises :class:`NoResultError` where there are too few pairs to tell.
    """
    asked = spaced(np.flatnonzero(base.limiting & ~np.isnan(base.scores[score])), _ASKED)
    similarities = {place: static(place) for place in asked.tolist()} if static is not None else {}
    least = None
    if similarities:
        least = settings.static if settings.static is not None else _least_static(base, similarities)
    fine = settings.fine
    if fine is None:
        fine = farthest_alike(*_pairs(base, score, asked, None), TOLERATED_FINE)
    if fine is None:
        raise NoResultError(
            f"too few jobs with a measured {score} and comparable others of other runs to say how near is "
            "near; set similar.fine"
        )
    if least is None:
        return Limits(None, None, fine)
    coarse = settings.coarse
    if coarse is None:
        alike = {place: np.flatnonzero(found >= least) for place, found in similarities.items()}
        found = farthest_alike(*_pairs(base, score, asked, alike), TOLERATED_COARSE)
        # too few pairs of programs that are alike: no further than any others
        coarse = fine if found is None else max(fine, found)
    return Limits(least, coarse, fine)


def left_out(
    base: KnowledgeBase,
    score: str,
    near: dict[int, Near],
    limits: Limits,
    approach: str,
    aggregation: str,
    groups: Places,
    static: Similarity | None,
) -> LeftOut:
    """Predict jobs of the knowledge base from those that are not of their group.

    ``near``: by place the comparable jobs up to the farthest limit; others are comparable, too, and count
    where it is asked whether a program that is alike is there.
    """
    places = np.array([place for place in near if not np.isnan(base.scores[score][place])], np.int64)
    values, spreads = np.full(len(places), np.nan), np.full(len(places), np.nan)
    for number, place in enumerate(places.tolist()):
        others = base.comparable_to(place)
        others = others[(groups[others] != groups[place]) & ~np.isnan(base.scores[score][others])]
        distances = np.full(len(base), np.inf)
        distances[near[place].places] = near[place].distances
        known = None if static is None else static(place)[others]
        chosen, _ = neighbours(distances[others], known, limits, approach)
        if chosen.any():
            mine = others[chosen]
            found = predicted(base.scores[score][mine], distances[mine], aggregation)
            values[number], spreads[number] = found.value, found.spread
    return LeftOut(places, base.scores[score][places], values, spreads)


def without_limits(base: KnowledgeBase, score: str) -> Places:
    """The jobs with a measured score that had no part in the limits."""
    found: Places = np.flatnonzero(~base.limiting & ~np.isnan(base.scores[score]))
    return found


def near_each(base: KnowledgeBase, places: Places, distance: float) -> dict[int, Near]:
    """The comparable jobs within a distance of each of some jobs. Cost: a search for each."""
    return {
        place: base.near(base.series.series[place], distance, base.comparable_to(place))
        for place in places.tolist()
    }


def _pairs(
    base: KnowledgeBase, score: str, asked: Places, alike: dict[int, Places] | None
) -> tuple[Floats, Floats]:
    """Distances of jobs to their nearest of other runs, and how far their scores are apart.

    Of the half of the runs that tells limits. ``alike``: by place, among which; None: among all that are
    comparable.
    """
    distances: list[Floats] = [np.empty(0)]
    differences: list[Floats] = [np.empty(0)]
    scores = base.scores[score]
    for place in asked.tolist():
        others = base.comparable_to(place)
        others = others[base.limiting[others] & (base.runs[others] != base.runs[place])]
        others = others[~np.isnan(scores[others])]
        if alike is not None:
            others = np.intersect1d(others, alike[place])
        if len(others):
            found = base.series.nearest(base.series.series[place], _NEAREST, others)
            distances.append(found.distances)
            differences.append(np.abs(scores[found.places] - scores[place]))
    return np.concatenate(distances), np.concatenate(differences)


def _least_static(base: KnowledgeBase, similarities: dict[int, Floats]) -> float:
    values: list[Sequence[float]] = []
    same: list[Sequence[bool]] = []
    names = base.applications
    for place, found in similarities.items():
        told = ~np.isnan(found) & (names != "") & (base.runs != base.runs[place])
        if names[place]:
            values.append(found[told].tolist())
            same.append((names[told] == names[place]).tolist())
    return least_static(
        np.array([each for part in values for each in part]),
        np.array([each for part in same for each in part], bool),
    )
