"""Errors from resampling whole tasks: they believe no model of the scatter inside a task."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fitters.buckets import Buckets, Floats
from fitters.components import Part, empty
from fitters.errors import SettingError
from fitters.factors import fit_speed_factors
from fitters.kernels import GAMMA, GAMMA_SLOPE, unit_roots
from fitters.passes import evaluate, hessian_of
from fitters.results import Fitted, Ints, Table, Texts
from fitters.solve import Factor, factorise, minimise, modes
from fitters.tables import texts
from fitters.threads import modest_blas

least_replicas = 100
chord_limit = 25


@dataclass(frozen=True, eq=False)
class BootstrapUnits(Table):
    """One row per unit, as in the fit.

    Attributes
    ----------
    name : array of labels
    k : float64 array
        The factor of the fit itself.
    k_err : float64 array
        k times the standard deviation of ln k over the replicas. NaN unless ``ok``.
    low, high : float64 arrays
        The 15.87 % and 84.13 % quantiles of k.
    component, n_tasks : int64 arrays
        Below about 20 tasks the spread of replicas is too small.
    n_replicas : int64 array
        Replicas in which the unit was connected with the largest piece of its component.
    status : array of str
        ``ok``; ``too few replicas`` (connected in less than half, or 100, of them); ``no fit``.
    """

    name: Texts
    k: Floats
    k_err: Floats
    low: Floats
    high: Floats
    component: Ints
    n_tasks: Ints
    n_replicas: Ints
    status: Texts


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """What the replicas say.

    Attributes
    ----------
    units : BootstrapUnits
    ln_k : float64 array, shape (n, n_units)
        ln k of every replica in the scale of the fit; NaN where it has none.
    n, seed : int
    n_refitted : int
        Replicas of a component that needed a search of their own: units or links lost, or the chord failed.
    seconds : float
        For the replicas, without the first fit.
    """

    units: BootstrapUnits
    ln_k: Floats
    n: int
    seed: int
    n_refitted: int
    seconds: float


def bootstrap(
    buckets: Buckets,
    n: int = 1000,
    objective: Literal["paper", "gamma"] = "paper",
    weights: Literal["none", "jobs", "floor"] = "none",
    *,
    robust: Literal["none", "reject", "tukey"] = "none",
    sigma_int: float | None = None,
    seed: int = 0,
    threads: int = 1,
) -> BootstrapResult:
    """Draw the tasks of each component n times with replacement and fit the factors again.

    Parameters
    ----------
    buckets, objective, weights, robust, sigma_int
        As for `fit_speed_factors`. Weights and rejected buckets stay those of the fit.
    n
        Number of replicas, 100 or more; 1000 give an error to 2 %.
    seed
        Replicas depend on it and on their number alone, not on threads.
    threads
        Replicas that are worked on side by side.

    Raises
    ------
    SettingError
        Fewer than 100 replicas, or an option that the fit refuses.

    Notes
    -----
    A task drawn m times counts m-fold (Efron, Ann. Stat. 7 (1979) 1; whole clusters: Davison & Hinkley,
    Bootstrap Methods and their Application, 1997, 3.8). A replica starts at the minimum of the fit and goes
    on with the factor of its Hessian, which takes three or four passes over the drawn buckets, until a step
    is below 1e-3 of the smallest error. Replicas that lose a unit or fall apart are fitted from scratch in
    their largest piece, scaled to the factors that it shares with the fit. With Tukey's biweight the spread
    is stretched by what fixed weights leave out. Memory 8 n units bytes.

    >>> rows = [(t, u) for t in range(30) for u in "AB"]
    >>> values = np.exp(np.random.default_rng(1).normal(0, 0.1, 60))
    >>> buckets = Buckets.from_columns([t for t, _ in rows], [u for _, u in rows], values)
    >>> units = bootstrap(buckets, 200).units
    >>> (units.k_err / units.k).round(2).tolist(), units.n_replicas.tolist()
    ([0.01, 0.01], [200, 200])
    """
    if n < least_replicas:
        msg = f"n is {n}; at least {least_replicas} replicas are needed"
        raise SettingError(msg)
    result = fit_speed_factors(
        buckets, objective, weights, robust=robust, errors="model", sigma_int=sigma_int, judge="none",
        threads=threads,
    )  # fmt: skip
    began = time.perf_counter()
    units = result.units
    ln_k = np.full((n, len(units)), np.nan)
    stretch = float(np.sqrt(result.weighting.sandwich_factor))
    n_refitted = 0
    with modest_blas(len(units)):
        for number, inside in sorted(result.fitted.items()):
            replicas = _Replicas(inside, modes[objective], stretch)

            def one(
                place: int, number: int = number, replicas: "_Replicas" = replicas
            ) -> tuple[Floats, bool]:
                return replicas.fit(np.random.default_rng([seed, number, place]))

            with ThreadPoolExecutor(threads) as pool:
                for place, (found, refitted) in enumerate(pool.map(one, range(n), chunksize=8)):
                    ln_k[place, inside.part.units] = found
                    n_refitted += refitted
    seconds = time.perf_counter() - began
    return BootstrapResult(_table(units, ln_k), ln_k, n, seed, n_refitted, seconds)


class _Replicas:
    """Fits replicas of one component."""

    def __init__(self, inside: Fitted, mode: int, stretch: float) -> None:
        self.part = replace(inside.part, threads=1, rel_var=empty)
        self.sizes = np.diff(self.part.ptr)
        self.mode, self.stretch = mode, stretch
        self.k = inside.propagation.k
        self.theta = np.log(self.k)
        self.factor: Factor | None = factorise(hessian_of(self.part, self.k, mode))
        error = np.sqrt(np.diagonal(inside.propagation.inverse_hessian) * 2.0)
        spread = np.sqrt(inside.solution.squares / max(self.part.dof, 1))
        self.tolerance = max(1e-3 * float(error.min() * spread), 1e-9)

    def fit(self, rng: np.random.Generator) -> tuple[Floats, bool]:
        """Return ln k of one replica, scaled as the fit, and whether it was fitted from scratch."""
        n_tasks = self.part.n_tasks
        times = np.bincount(rng.integers(0, n_tasks, n_tasks), minlength=n_tasks)
        part = self._drawn(times)
        roots = unit_roots(part.ptr, part.unit, part.n_units)
        theta = self._chord(part) if not roots.any() else None
        refitted = theta is None
        if theta is None:
            theta = self._largest_piece(part, roots)
        there = np.isfinite(theta)
        if there.any():
            theta = theta - np.log(np.exp(theta[there]).sum() / self.k[there].sum())
        return self.theta + self.stretch * (theta - self.theta), refitted

    def _drawn(self, times: NDArray[np.int64]) -> Part:
        part, drawn = self.part, times > 0
        chosen = np.repeat(drawn, self.sizes)
        sizes = self.sizes[drawn]
        weight = np.repeat(times[drawn].astype(np.float64), sizes)
        if part.weight.size:
            weight *= part.weight[chosen]
        return replace(
            part,
            tasks=part.tasks[drawn],
            ptr=np.concatenate([[0], np.cumsum(sizes)]),
            unit=part.unit[chosen],
            value=part.value[chosen],
            weight=weight,
        )

    def _chord(self, part: Part) -> Floats | None:
        """Newton steps with the fit's Hessian; None if they do not get smaller fast."""
        if self.factor is None:
            return None
        theta, before = self.theta, np.inf
        for _ in range(chord_limit):
            *_, gradient = evaluate(part, np.exp(theta), GAMMA_SLOPE if self.mode == GAMMA else self.mode)
            step = self.factor.solve(gradient)
            step -= step.mean()
            size = float(np.abs(step).max())
            if not size < 0.7 * before:
                return None
            theta, before = theta - step, size
            if size < self.tolerance:
                return theta
        return None

    def _largest_piece(self, part: Part, roots: NDArray[np.int32]) -> Floats:
        theta = np.full(part.n_units, np.nan)
        label, members = np.unique(roots, return_counts=True)
        root = label[np.argmax(members)]
        if members.max() < 2:
            return theta
        places = np.flatnonzero(roots == root)
        mine = roots[part.unit[part.ptr[:-1]]] == root
        sizes = np.diff(part.ptr)
        inside = np.repeat(mine, sizes)
        local = np.zeros(part.n_units, np.int32)
        local[places] = np.arange(places.size)
        piece = replace(
            part,
            units=part.units[places],
            tasks=part.tasks[mine],
            ptr=np.concatenate([[0], np.cumsum(sizes[mine])]),
            unit=local[part.unit[inside]],
            value=part.value[inside],
            weight=part.weight[inside],
        )
        solution = minimise(piece, self.mode, self.theta[places])
        if not solution.converged:
            solution = minimise(piece, self.mode)
        if solution.converged:
            theta[places] = solution.theta
        return theta


def _table(units: Table, ln_k: Floats) -> BootstrapUnits:
    columns = units.columns()
    k, n = columns["k"], ln_k.shape[0]
    count = np.isfinite(ln_k).sum(axis=0)
    good = np.isfinite(k) & (count >= max(least_replicas, n // 2))
    err, low, high = (np.full(k.size, np.nan) for _ in range(3))
    if good.any():
        err[good] = k[good] * np.nanstd(ln_k[:, good], axis=0, ddof=1)
        low[good], high[good] = np.exp(np.nanquantile(ln_k[:, good], [0.1587, 0.8413], axis=0))
    status = texts(k.size, "ok")
    status[~good] = "too few replicas"
    status[~np.isfinite(k)] = "no fit"
    return BootstrapUnits(
        columns["name"].copy(), k.copy(), err, low, high, columns["component"].copy(),
        columns["n_tasks"].copy(), count, status,
    )  # fmt: skip
