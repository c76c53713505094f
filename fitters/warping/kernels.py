"""Compiled loops of dynamic time warping.

Series are float32, for a hundred thousand of them must fit into memory; costs add up in float64. What is
added up in float32 to find out which of them are worth that stands in :mod:`fitters.warping.rough`. Sixteen
candidates lie side by side, each with its own sum, and loops go over all that the band allows at once: that
is what a compiler makes vector instructions of without being allowed to reorder a sum.
"""

import numpy as np
import numpy.typing as npt

from fitters.compiled import compiled

LANES = 16  # Candidates that are warped at once
# After so many samples of the query it is asked whether a group of candidates can be given up
_LOOKED_AT = 16
Floats32 = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Either = npt.NDArray[np.floating]  # Compiled for both


@compiled
def _steps(values: Floats32, lanes: Floats32, first: int, step: Floats) -> None:
    # Cost to join one sample of the query (metrics) with those from ``first`` on.
    step[:] = 0.0
    for metric in range(values.size):
        value = values[metric]
        others = lanes[metric][first : first + step.size]
        for k in range(step.size):
            apart = np.float64(value - others[k])
            step[k] += apart * apart


@compiled
def row_costs(step: Either, above: Either, here: Either, best: Either) -> None:
    """Write the costs of the paths to one sample of the query to ``here``, from those to the previous one.

    ``above`` and ``here`` start one place before the band and are ``LANES`` longer than ``step``.
    """
    diagonal, straight = above[: step.size], above[LANES:]
    for k in range(step.size):
        best[k] = diagonal[k] if diagonal[k] < straight[k] else straight[k]
    # what stands left of the band is left over from two rows before
    here[:LANES] = np.inf
    for place in range(0, step.size, LANES):
        for k in range(place, place + LANES):
            least = here[k] if here[k] < best[k] else best[k]
            here[k + LANES] = least + step[k]


@compiled
def warped_costs(
    query: Floats32, lanes: Floats32, band: int, limit: float, rows: Floats, out: Floats
) -> None:
    """Write the cost of the cheapest path from a query to each of ``LANES`` candidates to ``out``.

    ``query``: (samples, metrics); ``lanes``: (metrics, samples x LANES), the candidates of a sample side by
    side. A path stays within ``band`` samples of the diagonal; a step costs the squared Euclidean distance
    over all metrics. ``rows``: scratch, (4, (samples + 1) x LANES). When no path of any candidate can cost at
    most ``limit``, all may be infinite.
    """
    n_samples = query.shape[0]
    rows[:2] = np.inf
    rows[0, :LANES] = 0.0
    for i in range(n_samples):
        first, end = max(0, i - band) * LANES, min(n_samples, i + band + 1) * LANES
        step = rows[2][: end - first]
        _steps(query[i], lanes, first, step)
        here = rows[(i + 1) % 2][first : end + LANES]
        row_costs(step, rows[i % 2][first : end + LANES], here, rows[3])
        # the least of a row takes as long as a metric: it is looked at now and then
        if i % _LOOKED_AT == 0 and here.min() > limit:
            out[:] = np.inf
            return
    out[:] = rows[n_samples % 2, n_samples * LANES :]


@compiled
def segment_bounds(means: Floats, lower: Floats, upper: Floats, widths: Floats, out: Floats) -> None:
    """Write a lower bound of the cost of each candidate, from means over segments, to ``out``.

    ``means``: (candidates, segments, metrics); ``lower``, ``upper``: means of the query's envelope over the
    same segments; ``widths``: samples of each. The square of what is outside is convex, so that its mean over
    a segment is at least the square of the mean.
    """
    for candidate in range(means.shape[0]):
        total = 0.0
        for segment in range(means.shape[1]):
            part = 0.0
            for metric in range(means.shape[2]):
                value = means[candidate, segment, metric]
                outside = max(value - upper[segment, metric], lower[segment, metric] - value, 0.0)
                part += outside * outside
            total += widths[segment] * part
        out[candidate] = total


@compiled
def path_costs(query: Floats32, series: Floats32, band: int, costs: Floats, out: Floats) -> None:
    """Write the part of each metric in the cost of the cheapest path to ``out`` (metrics).

    ``costs``: scratch, (samples + 1, samples + 1), of infinite values. Of two ways of the same cost the
    diagonal one is taken.
    """
    n_samples, n_metrics = query.shape
    costs[0, 0] = 0.0
    for i in range(n_samples):
        for j in range(max(0, i - band), min(n_samples, i + band + 1)):
            step = 0.0
            for metric in range(n_metrics):
                apart = np.float64(query[i, metric] - series[j, metric])
                step += apart * apart
            costs[i + 1, j + 1] = step + min(costs[i, j], costs[i, j + 1], costs[i + 1, j])
    i, j = n_samples, n_samples
    while i > 0 and j > 0:
        for metric in range(n_metrics):
            apart = np.float64(query[i - 1, metric] - series[j - 1, metric])
            out[metric] += apart * apart
        diagonal, above, before = costs[i - 1, j - 1], costs[i - 1, j], costs[i, j - 1]
        if diagonal <= above and diagonal <= before:
            i, j = i - 1, j - 1
        elif above <= before:
            i -= 1
        else:
            j -= 1
