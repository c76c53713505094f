"""Points of inputs, areas and the quality index. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from esjobs.provisioning.questionnaire import Input
from esjobs.schema.provisioning_names import AREAS


@dataclass(frozen=True)
class Points:
    """Points of an area or index, 0 to 100.

    ``points``: over present inputs, None without any. ``low``, ``high``: with all missing inputs at worst or
    best. ``coverage``: weight of present inputs.
    """

    points: float | None
    low: float
    high: float
    coverage: float


def points_of(value: float, worst: float, best: float) -> float:
    """Return the points of a value, from 0 at the worst to 100 at the best, clipped.

    >>> points_of(0.5, 0.25, 0.75), points_of(7200, 3600, 600), points_of(0, 3600, 600)
    (50.0, 0.0, 100.0)
    """
    return 100.0 * min(max((value - worst) / (best - worst), 0.0), 1.0)


def area_points(inputs: Sequence[Input], values: Sequence[float | None]) -> Points:
    """Return the weighted mean over present inputs."""
    total = math.fsum(each.weight for each in inputs)
    present = [
        (each.weight, points_of(value, each.worst, each.best))
        for each, value in zip(inputs, values, strict=True)
        if value is not None
    ]
    return _mean(present, total)


def index_points(areas: Mapping[str, Points], weights: Mapping[str, float]) -> Points:
    """Return the weighted mean over areas with points, whatever their coverage."""
    total = math.fsum(weights[area] for area in AREAS)
    present = [(weights[name], each.points) for name, each in areas.items() if each.points is not None]
    mean = _mean(present, total)
    # areas without questions: anything from 0 to 100
    missing = {name: Points(None, 0.0, 100.0, 0.0) for name in AREAS}
    listed = [(weights[name], each) for name, each in {**missing, **areas}.items()]
    return Points(
        mean.points,
        math.fsum(weight * each.low for weight, each in listed) / total,
        math.fsum(weight * each.high for weight, each in listed) / total,
        math.fsum(weight * each.coverage for weight, each in listed) / total,
    )


def _mean(present: Sequence[tuple[float, float]], total: float) -> Points:
    weight = math.fsum(weight for weight, _ in present)
    if weight <= 0:
        return Points(None, 0.0, 100.0, 0.0)
    worth = math.fsum(weight * points for weight, points in present)
    # total and weight are sums in different orders
    missing = max(total - weight, 0.0)
    return Points(worth / weight, worth / total, (worth + 100.0 * missing) / total, min(weight / total, 1.0))
