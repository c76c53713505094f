"""Result tables from the outcomes of single components."""

from dataclasses import dataclass

import numpy as np

from fitters.fit.covariance import Propagation
from fitters.fit.interaction import LEAST_DOF, SigmaInt
from fitters.fit.migrad import MinuitMinimum
from fitters.fit.results import Components, Units
from fitters.fit.solve import Solution
from fitters.layout.arrays import Floats, Ints, Mask, texts
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, Partition
from fitters.layout.kernels import count

SANDWICH_TASKS = 20  # Below so many tasks a sandwich error is far too small or large; the model error stands


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Outcome of the fit of one component."""

    part: Part
    solution: Solution
    propagation: Propagation | None
    minuit: MinuitMinimum | None
    reduced_chi2: float

    @property
    def failure(self) -> str:
        """Reason why the fit cannot be used; empty if it can."""
        if not self.solution.converged:
            return f"the search did not converge (last step {self.solution.step:.2g} in ln k)"
        if self.propagation is None:
            return "the Hessian is not positive definite, so this is not a minimum"
        return ""


@dataclass(frozen=True, slots=True)
class Pooled:
    """Pooled over all components: S^2, its degrees of freedom and sigma_int."""

    variance: float
    dof: int
    scatter: SigmaInt


def unit_table(buckets: Buckets, split: Partition, outcomes: list[Outcome], pooled: Pooled) -> Units:
    """Return one row per unit, with or without a factor."""
    n, dof, variance, scatter = buckets.n_units, pooled.dof, pooled.variance, pooled.scatter
    k, err, stat, interaction, model, sandwich = (np.full(n, np.nan) for _ in range(6))
    status, reason = texts(n, "no common task"), texts(n, "shares no task with another unit")
    n_used, jobs = _counts(buckets, split.bucket_used)
    for index, why in buckets.unit_reasons.items():
        status[index], reason[index] = "no data", f"all rows dropped: {why}"
    n_total = sum(outcome.part.n_buckets for outcome in outcomes if outcome.solution.converged)
    for outcome in outcomes:
        units, propagation = outcome.part.units, outcome.propagation
        if outcome.failure or propagation is None:
            status[units], reason[units] = "fit failed", outcome.failure
            continue
        k[units] = propagation.k
        stat[units] = propagation.k * np.sqrt(propagation.unit_stat)
        interaction[units] = propagation.k * scatter.value * scatter.widening * np.sqrt(propagation.unit_int)
        model[units] = propagation.k * np.sqrt(variance * propagation.unit_model)
        if dof > 0:
            # the usual correction of few degrees of freedom, over all components as S^2
            spread = propagation.unit_sandwich * n_total / dof
            sandwich[units] = np.where(
                n_used[units] >= SANDWICH_TASKS, propagation.k * np.sqrt(spread), np.nan
            )
        has_rel_var = outcome.part.rel_var.size > 0
        # without loops of its own a component shows no scatter, and that of another one is not its own
        scatter_of_its_own = model[units] if outcome.part.dof > 0 else np.full(units.size, np.nan)
        basis = np.hypot(stat[units], interaction[units]) if has_rel_var else scatter_of_its_own
        err[units] = basis
        status[units] = np.where(np.isfinite(basis), "ok", "no dof")
        reason[units] = "its component has no redundancy and rel_var is missing, so no error can be estimated"
        remarks = [_remark(int(tasks), has_rel_var=has_rel_var, dof=dof) for tasks in n_used[units]]
        reason[units] = np.where(np.isfinite(basis), np.array(remarks, object), reason[units])
    return Units(
        name=buckets.unit_names.copy(),
        k=k,
        k_err=err,
        k_err_stat=stat,
        k_err_int=interaction,
        k_err_model=model,
        k_err_sandwich=sandwich,
        component=split.unit_component.copy(),
        n_tasks=n_used,
        n_buckets=n_used.copy(),
        n_jobs=jobs,
        status=status,
        reason=reason,
    )


def _remark(tasks: int, *, has_rel_var: bool, dof: int) -> str:
    remarks = []
    if tasks == 1:
        remarks.append("one task: its residual is zero by construction")
    if not has_rel_var and dof < LEAST_DOF:
        remarks.append(f"error from a standard deviation with {dof} degrees of freedom")
    return "; ".join(remarks)


def _counts(buckets: Buckets, used: Mask | None) -> tuple[Ints, Floats]:
    unit = buckets.unit if used is None else buckets.unit[used]
    n_buckets = count(unit, buckets.n_units)
    if buckets.jobs is None:
        return n_buckets, np.full(buckets.n_units, np.nan)
    jobs = buckets.jobs if used is None else buckets.jobs[used]
    return n_buckets, np.bincount(unit, jobs, buckets.n_units).astype(np.float64)


def component_table(buckets: Buckets, split: Partition, outcomes: list[Outcome]) -> Components:
    """Return one row per component, fitted or not."""
    n = split.n_components
    f, spread, chi2, condition, step, worst = (np.full(n, np.nan) for _ in range(6))
    dof, tasks_used, buckets_used = (np.zeros(n, np.int64) for _ in range(3))
    status, reason = texts(n, "no common task"), texts(n, "no two units share a task")
    minuit = np.empty(n, object)
    n_buckets = np.bincount(split.task_component, np.diff(buckets.ptr), n).astype(np.int64)
    for outcome in outcomes:
        part, number = outcome.part, outcome.part.number
        minuit[number] = outcome.minuit
        dof[number], tasks_used[number], buckets_used[number] = part.dof, part.n_tasks, part.n_buckets
        step[number] = outcome.solution.step
        if outcome.failure or outcome.propagation is None:
            status[number], reason[number] = "fit failed", outcome.failure
            continue
        f[number], worst[number] = outcome.solution.cost, outcome.solution.worst
        condition[number] = outcome.propagation.condition
        chi2[number] = outcome.reduced_chi2
        status[number], reason[number] = ("ok", "") if part.dof > 0 else ("no dof", "exact fit")
        if part.dof > 0:
            spread[number] = np.sqrt(outcome.solution.squares / part.dof)
    return Components(
        name=np.arange(n),
        n_units=np.bincount(split.unit_component, minlength=n).astype(np.int64),
        n_tasks=np.bincount(split.task_component, minlength=n).astype(np.int64),
        n_buckets=n_buckets,
        n_tasks_used=tasks_used,
        n_buckets_used=buckets_used,
        f=f,
        dof=dof,
        S=spread,
        reduced_chi2=chi2,
        condition=condition,
        max_step=step,
        max_residual=worst,
        status=status,
        reason=reason,
        minuit=minuit,
    )
