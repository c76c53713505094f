"""Results of a fit: read-only tables of equal-length columns, with a status for every row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fitters.errors import UnknownNameError
from fitters.fit.covariance import Propagation, normalised_covariance
from fitters.fit.interaction import SigmaInt
from fitters.fit.passes import task_levels
from fitters.fit.solve import MODES, Solution
from fitters.fit.weighting import Weighting
from fitters.layout.arrays import Floats, Ints, Texts, texts
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, Partition
from fitters.layout.table import Table


@dataclass(frozen=True, eq=False)
class Units(Table):
    """One row per unit that occurred in the input, sorted by name."""

    name: Texts
    # Speed factor; per component the factors sum to their number. NaN unless the status is ``ok`` or ``no
    # dof``.
    k: Floats
    # One standard deviation of k: sqrt(k_err_stat^2 + k_err_int^2) where rel_var was given, otherwise
    # k_err_model
    k_err: Floats
    # k_err_stat, k_err_int: From rel_var, and from the interaction scatter sigma_int (widened for its own
    # uncertainty, see `SigmaInt.widening`). NaN without rel_var.
    k_err_stat: Floats
    k_err_int: Floats
    # From the Hessian, scaled with S^2, which is pooled over components; NaN without degrees of freedom. It
    # is no error of k for a component that has none of its own.
    k_err_model: Floats
    k_err_sandwich: Floats  # Clustered by task. NaN below 20 tasks or without degrees of freedom.
    component: Ints  # Number of the component; 0 is the largest
    # n_tasks, n_buckets: Tasks shared with another unit, and buckets in them: what the factor rests on
    n_tasks: Ints
    n_buckets: Ints
    n_jobs: Floats  # Jobs in these buckets; NaN if jobs were not given
    # ``ok``; ``no dof`` (k holds, no error can be given); ``no common task``; ``no data`` (all rows dropped);
    # ``fit failed``
    status: Texts
    reason: Texts  # Why there is no factor or error; on ``ok`` rows a remark or empty


@dataclass(frozen=True, eq=False)
class Tasks(Table):
    """One row per task with a bucket, in the order of `Buckets.task_names`."""

    name: Texts
    # Time per event at k = 1, in the unit of the input and the scale sum k = n of its component; NaN unless
    # ``ok``
    A: Floats
    component: Ints
    n_units: Ints  # Buckets of the task
    status: Texts  # ``ok``, ``one unit`` (its level says nothing about speed) or ``fit failed``


@dataclass(frozen=True, eq=False)
class Components(Table):
    """One row per component of everything that entered, largest first."""

    name: Ints  # Number of the component, 0, 1, ...
    # n_units, n_tasks, n_buckets: All units, tasks and buckets of the component
    n_units: Ints
    n_tasks: Ints
    n_buckets: Ints
    # n_tasks_used, n_buckets_used: Those that more than one unit shares
    n_tasks_used: Ints
    n_buckets_used: Ints
    f: Floats  # Cost of the objective at the minimum
    dof: Ints  # n_buckets_used - n_tasks_used - n_units + 1; 0 without a common task
    S: Floats  # sqrt(sum w (a k / A - 1)^2 / dof) of this component alone; NaN without degrees of freedom
    # chi2 / dof of ln a with the variances rel_var + sigma_int^2, its own weighted log-linear fit; NaN
    # without rel_var or degrees of freedom
    reduced_chi2: Floats
    condition: Floats  # Reciprocal condition number of the Hessian; small values mean weak links
    max_step: Floats  # Last Newton step in ln k
    max_residual: Floats  # Largest |a k / A - 1|
    status: Texts  # ``ok``, ``no dof`` (fitted exactly), ``no common task`` or ``fit failed``
    reason: Texts
    minuit: Texts  # `MinuitMinimum`; None unless Minuit searched


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the fit; see `fit_speed_factors`."""

    objective: str
    weights: str
    sigma_int: float | None
    search: str
    robust: str = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Internals of a fitted component, for results computed on request."""

    part: Part
    solution: Solution
    propagation: Propagation


@dataclass(frozen=True, eq=False)
class FitResult:
    """Result of a fit."""

    # units, components: Tables; `tasks` is another one, made when it is first asked for
    units: Units
    components: Components
    # S, dof: Residual spread sqrt(sum w r^2 / dof) pooled over components, and its degrees of freedom. S is
    # NaN if dof <= 0.
    S: float
    dof: int
    sigma_int: SigmaInt  # The interaction scatter and where it comes from
    weighting: Weighting  # What the weights are and mean, variance components, number of rejected buckets
    n_imputed: int  # Buckets whose rel_var was unknown and filled in, see `interaction.complete_rel_var`
    settings: Settings
    # Input rows that are not in the fit, by reason: those of the cleaning, ``rejected as
    # outlier`` and ``task with one unit``
    dropped: Mapping[str, int]
    # n_rows, n_used: Rows that came in and rows in the fit: ``n_rows == n_used + sum(dropped.values())``
    n_rows: int
    n_used: int
    timings: Mapping[str, float]  # Seconds by stage
    # buckets, source: Those of the fit, and as they came, which differ if some were rejected
    buckets: Buckets = field(repr=False)
    source: Buckets = field(repr=False)
    # Of the buckets of `source`, unknown ones filled in; length 0 if none is known
    rel_var: Floats = field(repr=False)
    partition: Partition = field(repr=False)
    fitted: Mapping[int, Fitted] = field(repr=False)

    @cached_property
    def tasks(self) -> Tasks:
        """Levels of the tasks; computed at first use, linear in the buckets."""
        n = self.buckets.n_tasks
        level, status = np.full(n, np.nan), texts(n, "one unit")
        for part in self.partition.parts:
            inside = self.fitted.get(part.number)
            status[part.tasks] = "fit failed" if inside is None else "ok"
            if inside is not None:
                level[part.tasks] = task_levels(part, inside.propagation.k, MODES[self.settings.objective])
        return Tasks(
            name=self.buckets.task_names.copy(),
            A=level,
            component=self.partition.task_component.copy(),
            n_units=np.diff(self.buckets.ptr),
            status=status,
        )

    def covariance(self, component: int = 0) -> tuple[Texts, Floats]:
        """Covariance of ln k in one component, in the scale sum k = n: 2 S^2 times the inverse Hessian.

        Returns the n names and the matrix, rows and columns in their order. Cov(k) is diag(k) Cov(ln k)
        diag(k); its rows sum to 0.

        Raises :class:`UnknownNameError`: if the component has no fit.
        """
        if component not in self.fitted:
            raise UnknownNameError(
                f"component {component} was not fitted; fitted components: {sorted(self.fitted)}"
            )
        inside = self.fitted[component]
        p = inside.propagation.k / inside.part.n_units
        factor = 2.0 * self.S**2
        names: Texts = self.units.name[inside.part.units]
        return names, factor * normalised_covariance(inside.propagation.inverse_hessian, p)
