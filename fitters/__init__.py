"""Speed factors of sites and CPU models from bucket means, and the line through declared values.

Arrays in, frozen results out; needs NumPy, SciPy, iminuit and Numba and knows nothing of jobs or stores.
"""

from fitters.bridges import Bridges, find_bridges
from fitters.buckets import Buckets
from fitters.corrected_sums import CorrectedSums, correct_fixed_cost, fixed_cost_residuals
from fitters.errors import FitError, InputError, SettingError, UnknownNameError
from fitters.factors import fit_speed_factors
from fitters.fixed_cost import FixedCosts, estimate_fixed_cost
from fitters.line import LineResult, fit_line
from fitters.mixture import find_mixtures
from fitters.mixture_results import Mixtures
from fitters.residuals import BucketTable, bucket_table
from fitters.results import FitResult
from fitters.significance import benjamini_hochberg
from fitters.stability import compare, leave_one_task_out

__all__ = [
    "Bridges",
    "BucketTable",
    "Buckets",
    "CorrectedSums",
    "FitError",
    "FitResult",
    "FixedCosts",
    "InputError",
    "LineResult",
    "Mixtures",
    "SettingError",
    "UnknownNameError",
    "benjamini_hochberg",
    "bucket_table",
    "compare",
    "correct_fixed_cost",
    "estimate_fixed_cost",
    "find_bridges",
    "find_mixtures",
    "fit_line",
    "fit_speed_factors",
    "fixed_cost_residuals",
    "leave_one_task_out",
]
