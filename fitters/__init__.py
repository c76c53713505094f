"""Speed factors of sites and CPU models from bucket means, the line through declared values, nearest series.

Arrays in, frozen results out; needs NumPy, SciPy, iminuit and Numba and knows nothing of jobs or stores.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitters.change.alignment import align_days
    from fitters.change.noise import fading, shared
    from fitters.change.steps import Series, Step, find_steps
    from fitters.change.student import student_width
    from fitters.effects.effects import Effects, fit_effects
    from fitters.errors import FitError, InputError, SettingError, UnknownNameError
    from fitters.fit.bridges import Bridges, find_bridges
    from fitters.fit.comparison import compare
    from fitters.fit.factors import fit_speed_factors
    from fitters.fit.interaction import ASSUMED_SIGMA_INT, LEAST_DOF
    from fitters.fit.residuals import BucketTable, bucket_table
    from fitters.fit.response import LinearResponse
    from fitters.fit.results import Components, FitResult, Units
    from fitters.fit.thin_links import LEAST_LINKING_JOBS, linked_groups
    from fitters.fixed_cost.corrected_sums import CorrectedSums, correct_fixed_cost, fixed_cost_residuals
    from fitters.fixed_cost.estimate import CostTable, FixedCosts, draw_fixed_costs, estimate_fixed_cost
    from fitters.fixed_cost.of_kinds import kind_shares
    from fitters.fixed_cost.of_units import BucketSlopes, UnitCosts, bucket_slopes, unit_costs
    from fitters.layout.arrays import grouped_median
    from fitters.layout.buckets import Buckets
    from fitters.layout.columns import Labels, factorise
    from fitters.line.line import LineResult, fit_line
    from fitters.line.significance import benjamini_hochberg
    from fitters.mixture.results import Mixtures
    from fitters.mixture.search import find_mixtures
    from fitters.variance.of_estimates import LEAST_ESTIMATES
    from fitters.variance.of_jobs import JobScatter, job_scatter, unit_scatter
    from fitters.variance.of_kinds import KindScatter, inner_scatter, kind_scatter
    from fitters.warping.search import Nearest, WarpedSeries

__all__ = [
    "ASSUMED_SIGMA_INT",
    "LEAST_DOF",
    "LEAST_ESTIMATES",
    "LEAST_LINKING_JOBS",
    "Bridges",
    "BucketSlopes",
    "BucketTable",
    "Buckets",
    "Components",
    "CorrectedSums",
    "CostTable",
    "Effects",
    "FitError",
    "FitResult",
    "FixedCosts",
    "InputError",
    "JobScatter",
    "KindScatter",
    "Labels",
    "LineResult",
    "LinearResponse",
    "Mixtures",
    "Nearest",
    "Series",
    "SettingError",
    "Step",
    "UnitCosts",
    "Units",
    "UnknownNameError",
    "WarpedSeries",
    "align_days",
    "benjamini_hochberg",
    "bucket_slopes",
    "bucket_table",
    "compare",
    "correct_fixed_cost",
    "draw_fixed_costs",
    "estimate_fixed_cost",
    "factorise",
    "fading",
    "find_bridges",
    "find_mixtures",
    "find_steps",
    "fit_effects",
    "fit_line",
    "fit_speed_factors",
    "fixed_cost_residuals",
    "grouped_median",
    "inner_scatter",
    "job_scatter",
    "kind_scatter",
    "kind_shares",
    "linked_groups",
    "shared",
    "student_width",
    "unit_costs",
    "unit_scatter",
]
_HOMES = {
    "align_days": "fitters.change.alignment",
    "fading": "fitters.change.noise",
    "shared": "fitters.change.noise",
    "Series": "fitters.change.steps",
    "Step": "fitters.change.steps",
    "find_steps": "fitters.change.steps",
    "student_width": "fitters.change.student",
    "Effects": "fitters.effects.effects",
    "fit_effects": "fitters.effects.effects",
    "FitError": "fitters.errors",
    "InputError": "fitters.errors",
    "SettingError": "fitters.errors",
    "UnknownNameError": "fitters.errors",
    "Bridges": "fitters.fit.bridges",
    "find_bridges": "fitters.fit.bridges",
    "compare": "fitters.fit.comparison",
    "fit_speed_factors": "fitters.fit.factors",
    "ASSUMED_SIGMA_INT": "fitters.fit.interaction",
    "LEAST_DOF": "fitters.fit.interaction",
    "BucketTable": "fitters.fit.residuals",
    "bucket_table": "fitters.fit.residuals",
    "LinearResponse": "fitters.fit.response",
    "Components": "fitters.fit.results",
    "FitResult": "fitters.fit.results",
    "Units": "fitters.fit.results",
    "LEAST_LINKING_JOBS": "fitters.fit.thin_links",
    "linked_groups": "fitters.fit.thin_links",
    "CorrectedSums": "fitters.fixed_cost.corrected_sums",
    "correct_fixed_cost": "fitters.fixed_cost.corrected_sums",
    "fixed_cost_residuals": "fitters.fixed_cost.corrected_sums",
    "CostTable": "fitters.fixed_cost.estimate",
    "FixedCosts": "fitters.fixed_cost.estimate",
    "draw_fixed_costs": "fitters.fixed_cost.estimate",
    "estimate_fixed_cost": "fitters.fixed_cost.estimate",
    "kind_shares": "fitters.fixed_cost.of_kinds",
    "BucketSlopes": "fitters.fixed_cost.of_units",
    "UnitCosts": "fitters.fixed_cost.of_units",
    "bucket_slopes": "fitters.fixed_cost.of_units",
    "unit_costs": "fitters.fixed_cost.of_units",
    "grouped_median": "fitters.layout.arrays",
    "Buckets": "fitters.layout.buckets",
    "Labels": "fitters.layout.columns",
    "factorise": "fitters.layout.columns",
    "LineResult": "fitters.line.line",
    "fit_line": "fitters.line.line",
    "benjamini_hochberg": "fitters.line.significance",
    "Mixtures": "fitters.mixture.results",
    "find_mixtures": "fitters.mixture.search",
    "LEAST_ESTIMATES": "fitters.variance.of_estimates",
    "JobScatter": "fitters.variance.of_jobs",
    "job_scatter": "fitters.variance.of_jobs",
    "unit_scatter": "fitters.variance.of_jobs",
    "KindScatter": "fitters.variance.of_kinds",
    "inner_scatter": "fitters.variance.of_kinds",
    "kind_scatter": "fitters.variance.of_kinds",
    "Nearest": "fitters.warping.search",
    "WarpedSeries": "fitters.warping.search",
}
"""Where names come from."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import what is asked for, and only then: SciPy, Numba and Minuit take more than a second."""
        if name not in _HOMES:
            raise AttributeError(f"module 'fitters' has no attribute '{name}'")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
