"""Modes of ln residuals: per group, and bimodality of the pooled ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, special

from fitters.layout.arrays import Floats, Ints, Mask, group_sums
from fitters.robust import MAD_FACTOR

GAP_LIMIT = float(np.log(2.0))  # Modes closer than a factor of two may be CPUs of two generations
SHARE_LIMIT = 0.05
SIGMA_LIMIT = 0.5
SIGMA_RATIO = 1.5  # How many times the median of its task a unit's sigma must be: noise is as wide everywhere
LARGEST_NOISE = 1.0  # A sigma beyond which no noise is
SIGNIFICANCE = 3.0
LEAST_JOBS_OF_TASK = 20
LEAST_JOBS_OF_UNIT = 5
LEAST_JOBS_FOR_WIDTH = 10
LEAST_UNITS = 3

GRID_STEP = GAP_LIMIT / 64
GRID_REACH = 6.0


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Values in groups, sorted by group and value."""

    order: NDArray[np.intp]  # Input position of each value; shape (n,)
    group: NDArray[np.intp]  # shape (n,): Codes 0 .. m-1, each present.
    # start, size: Where each group begins, and how many values it has; shape (m,)
    start: NDArray[np.intp]
    size: NDArray[np.intp]
    value: Floats  # shape (n,)

    @classmethod
    def of(cls, group: NDArray[np.intp], value: Floats) -> "Grouped":
        """Sort values within their groups."""
        order = np.lexsort((value, group))
        group = group[order]
        start = np.flatnonzero(np.diff(group, prepend=-1))
        return cls(order, group, start, np.diff(start, append=group.size), value[order])

    def medians(self) -> Floats:
        """Median of each group; between two values it is their middle."""
        low, high = self.start + (self.size - 1) // 2, self.start + self.size // 2
        return np.asarray(0.5 * (self.value[low] + self.value[high]))

    def modes(self) -> Floats:
        """Mode of each group: the shorth, then five mean shifts in a window of a factor of two.

        The shorth is the mean of the shortest interval that holds half of the values (Andrews et al., Robust
        Estimates of Location, 1972). It keeps to one kind where a median falls between two.
        """
        n = self.value.size
        first = np.arange(n)
        last = first + ((self.size + 1) // 2 - 1)[self.group]
        inside = last < (self.start + self.size)[self.group]
        last = np.minimum(last, n - 1)
        width = np.where(inside, self.value[last] - self.value, np.inf)
        shortest = np.minimum.reduceat(width, self.start)
        begin = np.minimum.reduceat(np.where(width <= shortest[self.group], first, n - 1), self.start)
        end = last[begin]
        mass = np.concatenate([[0.0], np.cumsum(self.value)])
        mode = (mass[end + 1] - mass[begin]) / (end + 1 - begin)
        for _ in range(5):
            near = (np.abs(self.value - mode[self.group]) <= 0.5 * GAP_LIMIT).astype(np.float64)
            number = group_sums(self.group, near, mode.size)
            updated = group_sums(self.group, near * self.value, mode.size) / np.where(number > 0, number, 1.0)
            mode = np.where(number > 0, updated, mode)
        return np.asarray(mode)


def centre(group: NDArray[np.intp], value: Floats) -> tuple[Floats, Ints, Floats]:
    """Return the values relative to the mode of their group, and size and robust sigma of each group.

    >>> group, value = np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 1.1, 1.2, 5.0, 5.0, 9.0])
    >>> centred, _, sigma = centre(group, value)
    >>> centred.round(2).tolist(), sigma.round(3).tolist()
    ([-0.1, 0.0, 0.1, 0.0, 0.0, 4.0], [0.148, 0.0])
    """
    points = Grouped.of(group, value)
    centred = np.empty(value.size)
    centred[points.order] = points.value - points.modes()[points.group]
    distance = np.abs(points.value - points.medians()[points.group])
    sigma = MAD_FACTOR * Grouped.of(points.group, distance).medians()
    return centred, points.size, sigma


@dataclass(frozen=True, slots=True)
class Valley:
    """The deepest valley between two modes more than a factor of two apart."""

    gap: float  # Distance of the modes, in ln; 0 if there is no such valley
    share: float  # Share of the values on its lighter side
    significance: float  # Depth in units of its counting error

    @property
    def bimodal(self) -> bool:
        """True if the valley is deeper than counting errors explain."""
        return self.significance > SIGNIFICANCE


def deepest_valley(centred: Floats) -> Valley:
    """Return the deepest valley between two modes of ln residuals.

    Gaussian kernel of width 0.9 sigma N^(-1/5) (Silverman, Density Estimation, 1986, section 3.4), sigma
    robust, between 0.03 and ln(2) / 4. The depth is measured from the lower of the highest points on both
    sides; N f 2 sqrt(pi) h jobs support the kernel estimate f. A side needs 5 % of the jobs, less 1.645
    counting errors.

    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.normal(0, 0.2, 500), rng.normal(1.5, 0.2, 100)
    >>> deepest_valley(one).bimodal
    False
    >>> valley = deepest_valley(np.concatenate([one, other]))
    >>> valley.bimodal, round(valley.gap, 1), round(valley.share, 2)
    (True, 1.5, 0.17)
    """
    number = float(centred.size)
    sigma = MAD_FACTOR * float(np.median(np.abs(centred)))
    width = float(np.clip(0.9 * sigma * number**-0.2, 0.03, 0.25 * GAP_LIMIT))
    size = 2 * int(GRID_REACH / GRID_STEP) + 1
    index = np.clip(np.rint(centred / GRID_STEP) + size // 2, 0, size - 1).astype(np.intp)
    counts = np.bincount(index, minlength=size).astype(np.float64)
    density = ndimage.gaussian_filter1d(counts, width / GRID_STEP, mode="constant", truncate=6.0)
    left = np.maximum.accumulate(density)
    right = np.maximum.accumulate(density[::-1])[::-1]
    here = np.arange(size)
    left_at = np.maximum.accumulate(np.where(density >= left, here, 0))
    right_at = np.minimum.accumulate(np.where(density >= right, here, size)[::-1])[::-1]
    below = np.cumsum(density) / max(density.sum(), 1e-300)
    share = np.minimum(below, 1.0 - below)
    least = SHARE_LIMIT - 1.645 * np.sqrt(SHARE_LIMIT * (1.0 - SHARE_LIMIT) / number)
    gap = (right_at - left_at) * GRID_STEP
    lower = np.minimum(left, right)
    kernel = 2.0 * np.sqrt(np.pi) * width / GRID_STEP
    depth = (lower - density) * np.sqrt(kernel / np.maximum(lower + density, 1e-300))
    depth = np.where((gap > GAP_LIMIT) & (share >= least), depth, 0.0)
    best = int(np.argmax(depth))
    if depth[best] <= 0:
        return Valley(0.0, 0.0, 0.0)
    return Valley(float(gap[best]), float(share[best]), float(depth[best]))


def too_wide(sigma: Floats, n_jobs: Ints) -> Mask:
    """Return the mask of groups with a robust sigma above 0.5, beyond 1 % counting error over all groups.

    If three groups or more are equally wide it is the noise of jobs: a group then has to exceed 1.5 times
    their median, or 1. The relative error of a robust sigma from N jobs is 1.17 / sqrt(N).

    >>> too_wide(np.array([0.7, 0.7]), np.array([1000, 12])).tolist()
    [True, False]
    """
    tested = n_jobs >= LEAST_JOBS_FOR_WIDTH
    quantile = float(special.ndtri(1.0 - 0.01 / max(int(tested.sum()), 1)))
    usual = SIGMA_RATIO * float(np.median(sigma[tested])) if tested.sum() >= LEAST_UNITS else 0.0
    least = min(max(SIGMA_LIMIT, usual), LARGEST_NOISE)
    limit = least * (1.0 + quantile * 1.17 / np.sqrt(np.maximum(n_jobs, 1)))
    return np.asarray(tested & (sigma > limit))
