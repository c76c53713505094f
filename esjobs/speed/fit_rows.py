"""Rows of factors, fits and components from a fit."""

from collections.abc import Iterator, Sequence

import numpy as np

from esjobs.core.tables import columns
from esjobs.publish.publication import finite
from esjobs.records.names.sites import Sites
from esjobs.speed.factors import LATER, METHODS, Fit
from esjobs.speed.links import what_would_link
from esjobs.speed.residual_rows import pull_width
from fitters import FitResult, MinuitMinimum
from fitters.layout.arrays import Codes, Floats

_NUMBERS = (*columns("k k_err k_err_stat k_err_int k_raw events_per_job efficiency"), *LATER)
_COUNTS = columns("component n_units n_tasks n_jobs n_rejected n_cut")
_TEXTS = ("reason", "sole_link", "records_doubt")
_OF_MINUIT = columns("valid accurate ln_k_err edm n_calls cost agreement found_by")


def factor_rows(item: Fit, sites: Sites) -> Iterator[dict[str, object]]:
    """Yield one row per name, with or without a factor."""
    factors, data = item.factors, item.data
    units = {} if item.result is None else {row["name"]: row for row in item.result.units.rows()}
    position = data.name.used().codes
    count = len(factors.name)
    rho = _mean_rho(item, position, count)
    for index, (name, of_costs) in enumerate(zip(factors.name, _name_costs(item), strict=True)):
        unit = units.get(name, {})
        site, guessed = sites.at(data.level, name) or (None, None)
        shift, sigmas = item.shift.get(name, (None, None))
        yield {
            "name": name,
            **{column: finite(getattr(factors, column)[index]) for column in _NUMBERS},
            **{column: int(getattr(factors, column)[index]) for column in _COUNTS},
            **{column: finite(unit.get(column)) for column in ("k_err_sandwich", "k_err_model")},
            "rho": finite(rho[index]),
            "n_buckets": int(unit.get("n_buckets", 0)),
            "status": factors.status[index],
            **{column: getattr(factors, column)[index] or None for column in _TEXTS},
            "site": site,
            "site_guessed": guessed,
            "method_shift": finite(shift),
            "method_sigmas": finite(sigmas),
            **of_costs,
            **factors.ranking.get(name, {}),
        }


def _name_costs(item: Fit) -> list[dict[str, object]]:
    """Return the columns of start-up times of each name; none where the method does not correct for them."""
    factors, costs = item.factors, item.data.name_costs
    if costs is None or not METHODS[factors.method].corrected:
        return [{} for _ in factors.name]
    numbers = {"cost_factor": np.exp(costs.costs.ln_f), "cost_factor_err": costs.costs.ln_f_err}
    if costs.earlier is not None:
        ln_f, variance = costs.earlier
        numbers |= {"cost_prior": np.exp(ln_f), "cost_prior_err": np.sqrt(variance)}
    standing_out = set(costs.standing_out().tolist())
    codes = np.searchsorted(item.data.name.names.astype(str), factors.name.astype(str)).tolist()
    return [
        {
            **{name: finite(column[code]) for name, column in numbers.items()},
            "cost_stands_out": code in standing_out,
        }
        for code in codes
    ]


def _mean_rho(item: Fit, position: Codes, count: int) -> Floats:
    # Per name, the mean start-up time of the jobs that were corrected; NaN if none was.
    taken = item.entered & (item.data.rho > 0) & METHODS[item.factors.method].corrected
    jobs = np.bincount(position, item.data.n_jobs * taken, count)
    total = np.bincount(position, item.data.n_jobs * item.data.rho * taken, count)
    mean: Floats = np.divide(total, jobs, out=np.full(count, np.nan), where=jobs > 0)
    return mean


def fit_rows(item: Fit) -> Iterator[dict[str, object]]:
    """Yield the row of a fit: input, quality, Minuit's search."""
    factors, data = item.factors, item.data
    good = factors.status == "ok"
    total = int(data.n_jobs.sum()) + data.n_jobs_unnamed
    n_jobs = 0 if item.result is None else int(factors.n_jobs[good].sum())
    unknown = (data.unknown.codes >= 0) & METHODS[factors.method].corrected
    excluded = (data.mixed.codes >= 0) | unknown
    yield {
        "status": "ok" if good.any() else "no factors",
        "reason": None if good.any() else _why_none(item),
        "n_names": int(good.sum()),
        "n_names_without": int((~good).sum()),
        "n_components": 0,
        "n_units": 0,
        "n_buckets": 0,
        "n_jobs": n_jobs,
        "n_jobs_dropped": total - n_jobs,
        "left_out": factors.left_out or None,
        "n_jobs_excluded": int(data.n_jobs[excluded].sum()),
        **({} if item.result is None else _quality(item, item.result)),
        "jobs_share": n_jobs / total if total and item.result is not None else None,
    }


def _quality(item: Fit, result: FitResult) -> dict[str, object]:
    fitted = [part for part in result.components.rows() if part["status"] in ("ok", "no dof")]
    return {
        "n_components": len(fitted),
        "n_units": int(sum(part["n_tasks_used"] for part in fitted)),
        "n_buckets": int(sum(part["n_buckets_used"] for part in fitted)),
        "objective": finite(sum(part["f"] for part in fitted)),
        "dof": result.dof,
        "rel_spread": finite(result.S),
        "chi2": finite(sum(part["reduced_chi2"] * part["dof"] for part in fitted if part["dof"] > 0)),
        "sigma_int": finite(result.sigma_int.value),
        "sigma_int_err": finite(result.sigma_int.error),
        "sigma_int_kind": result.sigma_int.source,
        **_minuit([part["minuit"] for part in fitted if part["minuit"] is not None]),
        "n_rejected": int(result.weighting.n_rejected),
        "pull_width": pull_width(item),
        **_shared_scatters(item),
    }


def _minuit(found: Sequence[MinuitMinimum]) -> dict[str, object]:
    # What Minuit's search found, over all components; nothing where it did not search.
    if not found:
        return {}
    of = {name: [getattr(each, name) for each in found] for name in _OF_MINUIT}
    # Minuit's flag is about the error matrix, which HESSE makes for small fits only
    with_hesse = np.isfinite(np.concatenate(of["ln_k_err"])).all()
    return {
        "minuit_valid": all(of["valid"]),
        "minuit_accurate": all(of["accurate"]) if with_hesse else None,
        "minuit_edm": finite(max(of["edm"])),
        "minuit_calls": sum(of["n_calls"]),
        "minuit_objective": finite(sum(of["cost"])),
        "minuit_agreement": finite(max(of["agreement"])),
        "found_by": "minuit" if set(of["found_by"]) == {"minuit"} else "own",
    }


def _shared_scatters(item: Fit) -> dict[str, object]:
    shared, costs = item.shared, item.data.name_costs
    if shared is None:
        return {}
    row: dict[str, object] = {
        "only_type": shared.only_type or None,
        "sigma_inner": finite(shared.sigma_int),
        "sigma_type": finite(shared.by_type.sigma),
        "sigma_type_err": finite(shared.by_type.error),
        "sigma_type_kind": shared.by_type.source,
        "sigma_class": None if shared.by_class is None else finite(shared.by_class.sigma),
        "sigma_class_err": None if shared.by_class is None else finite(shared.by_class.error),
    }
    if costs is not None and costs.scatter is not None:
        row |= {
            "sigma_cost": finite(costs.scatter),
            "sigma_cost_err": finite(costs.costs.sigma_err) if costs.kind == "estimated" else None,
            "sigma_cost_kind": "corrected" if costs.corrected else costs.kind,
            "cost_prior_runs": ", ".join(costs.earlier_runs) or None,
        }
    return row


def _why_none(item: Fit) -> str:
    if not len(item.data):
        return "no job record names a CPU model" if item.data.level == "cpu_model" else "no buckets"
    return "no two names share a task with enough jobs in both"


def component_rows(item: Fit) -> Iterator[dict[str, object]]:
    """Yield one row per component, and one per name outside the fit."""
    factors, data = item.factors, item.data
    details = [] if item.result is None else item.result.components.rows()
    of_row = factors.component[data.name.used().codes]
    links = what_would_link(data, item.entered, of_row, item.min_bucket_jobs)
    # names outside the fit show what they have
    counted = item.entered | (of_row >= len(details))
    n_buckets = np.bincount(of_row[counted], minlength=factors.n_components)
    n_jobs = np.bincount(of_row[counted], data.n_jobs[counted], factors.n_components)
    pairs = np.unique(of_row[counted] << 32 | data.task.codes[counted])
    n_units = np.bincount(pairs >> 32, minlength=factors.n_components)
    for number in range(factors.n_components):
        members = np.flatnonzero(factors.component == number)
        detail = details[number] if number < len(details) else {}
        minuit = detail.get("minuit")
        by_jobs = members[np.argsort(-factors.n_jobs[members], kind="stable")]
        yield {
            "component": number,
            "n_names": len(members),
            "n_units": int(n_units[number]),
            "n_buckets": int(n_buckets[number]),
            "n_jobs": int(n_jobs[number]),
            "dof": int(detail["dof"]) if detail else None,
            "rel_spread": finite(detail.get("S")),
            "minuit_valid": None if minuit is None else bool(minuit.valid),
            "names": ", ".join(factors.name[by_jobs]),
            "link": None if number == 0 else links(number, list(factors.name[by_jobs])),
        }
