"""Speed factors of sites and CPU models from bucket means, the line through declared values, nearest series.

Arrays in, frozen results out; needs NumPy, SciPy, iminuit and Numba and knows nothing of jobs or stores.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitters.change.alignment import align_days
    from fitters.change.noise import fading, shared
    from fitters.change.steps import Series, Slope, Step, find_slope, find_steps
    from fitters.change.student import student_width
    from fitters.checks.levels import TimeCheck, time_check
    from fitters.checks.power import PowerCheck, power_check
    from fitters.checks.structure import StructureCheck, structure_check
    from fitters.effects.effects import Effects, fit_effects
    from fitters.effects.mixed import MixedEffects, fit_mixed
    from fitters.effects.shares import Variance, VarianceShares, shrink, variance_shares
    from fitters.errors import FitError, InputError, SettingError, UnknownNameError
    from fitters.fit.bridges import Bridges, find_bridges
    from fitters.fit.comparison import compare
    from fitters.fit.factors import fit_speed_factors
    from fitters.fit.interaction import ASSUMED_SIGMA_INT, LEAST_DOF
    from fitters.fit.migrad import MinuitMinimum
    from fitters.fit.residuals import BucketTable, bucket_table
    from fitters.fit.response import LinearResponse
    from fitters.fit.results import Components, FitResult, Units
    from fitters.fit.thin_links import LEAST_LINKING_JOBS, linked_groups
    from fitters.fixed_cost.corrected_sums import CorrectedSums, correct_fixed_cost, fixed_cost_residuals
    from fitters.fixed_cost.estimate import CostTable, FixedCosts, draw_fixed_costs, estimate_fixed_cost
    from fitters.fixed_cost.of_kinds import kind_shares
    from fitters.fixed_cost.of_units import BucketSlopes, UnitCosts, bucket_slopes, pooled, unit_costs
    from fitters.layout.arrays import grouped_median
    from fitters.layout.buckets import Buckets
    from fitters.layout.columns import Labels, factorise
    from fitters.line.declarations import LEAST_HONEST, OtherGroup
    from fitters.line.line import LineResult, fit_line
    from fitters.mixture.results import Mixtures
    from fitters.mixture.search import find_mixtures
    from fitters.ranking.grades import Ranking, rank_estimates
    from fitters.robust import MAD_FACTOR
    from fitters.variance.of_estimates import LEAST_ESTIMATES
    from fitters.variance.of_jobs import JobScatter, job_scatter, unit_scatter
    from fitters.variance.of_kinds import KindScatter, inner_scatter, kind_scatter
    from fitters.warping.search import Nearest, WarpedSeries

__all__ = ["ASSUMED_SIGMA_INT", "LEAST_DOF", "LEAST_ESTIMATES", "LEAST_HONEST", "LEAST_LINKING_JOBS"]
__all__ += ["MAD_FACTOR"]
__all__ += ["Bridges", "BucketSlopes", "BucketTable", "Buckets", "Components", "CorrectedSums", "CostTable"]
__all__ += ["Effects", "FitError", "FitResult", "FixedCosts", "InputError", "JobScatter", "KindScatter"]
__all__ += ["Labels", "LineResult", "LinearResponse", "MinuitMinimum", "MixedEffects", "Mixtures", "Nearest"]
__all__ += ["OtherGroup", "PowerCheck", "Ranking", "Series", "SettingError", "Slope", "Step"]
__all__ += ["StructureCheck", "TimeCheck", "UnitCosts", "Units", "UnknownNameError", "Variance"]
__all__ += ["VarianceShares", "WarpedSeries", "align_days", "bucket_slopes", "bucket_table", "compare"]
__all__ += ["correct_fixed_cost", "draw_fixed_costs", "estimate_fixed_cost", "factorise", "fading"]
__all__ += ["find_bridges", "find_mixtures", "find_slope", "find_steps", "fit_effects", "fit_line"]
__all__ += ["fit_mixed", "fit_speed_factors", "fixed_cost_residuals", "grouped_median", "inner_scatter"]
__all__ += ["job_scatter", "kind_scatter", "kind_shares", "linked_groups", "pooled", "power_check"]
__all__ += ["rank_estimates", "shared", "shrink", "structure_check", "student_width", "time_check"]
__all__ += ["unit_costs", "unit_scatter", "variance_shares"]
# Once more for the run time, by module: the imports above are for type checkers only
_MODULES = {
    "change.alignment": "align_days",
    "change.noise": "fading shared",
    "change.steps": "Series Slope Step find_slope find_steps",
    "change.student": "student_width",
    "checks.levels": "TimeCheck time_check",
    "checks.power": "PowerCheck power_check",
    "checks.structure": "StructureCheck structure_check",
    "effects.effects": "Effects fit_effects",
    "effects.mixed": "MixedEffects fit_mixed",
    "effects.shares": "Variance VarianceShares shrink variance_shares",
    "errors": "FitError InputError SettingError UnknownNameError",
    "fit.bridges": "Bridges find_bridges",
    "fit.comparison": "compare",
    "fit.factors": "fit_speed_factors",
    "fit.interaction": "ASSUMED_SIGMA_INT LEAST_DOF",
    "fit.migrad": "MinuitMinimum",
    "fit.residuals": "BucketTable bucket_table",
    "fit.response": "LinearResponse",
    "fit.results": "Components FitResult Units",
    "fit.thin_links": "LEAST_LINKING_JOBS linked_groups",
    "fixed_cost.corrected_sums": "CorrectedSums correct_fixed_cost fixed_cost_residuals",
    "fixed_cost.estimate": "CostTable FixedCosts draw_fixed_costs estimate_fixed_cost",
    "fixed_cost.of_kinds": "kind_shares",
    "fixed_cost.of_units": "BucketSlopes UnitCosts bucket_slopes pooled unit_costs",
    "layout.arrays": "grouped_median",
    "layout.buckets": "Buckets",
    "layout.columns": "Labels factorise",
    "line.declarations": "LEAST_HONEST OtherGroup",
    "line.line": "LineResult fit_line",
    "mixture.results": "Mixtures",
    "mixture.search": "find_mixtures",
    "ranking.grades": "Ranking rank_estimates",
    "robust": "MAD_FACTOR",
    "variance.of_estimates": "LEAST_ESTIMATES",
    "variance.of_jobs": "JobScatter job_scatter unit_scatter",
    "variance.of_kinds": "KindScatter inner_scatter kind_scatter",
    "warping.search": "Nearest WarpedSeries",
}
_HOMES = {name: f"fitters.{module}" for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # imported at first use: SciPy, Numba and Minuit take more than a second
        if name not in _HOMES:
            raise AttributeError(f"module 'fitters' has no attribute '{name}'")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
