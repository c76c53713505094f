"""Speed factors of sites and CPU models from bucket means, and the line through declared values.

Arrays in, frozen results out; needs NumPy, SciPy, iminuit and Numba and knows nothing of jobs or stores.
"""

from fitters.buckets import Buckets
from fitters.errors import FitError, InputError, SettingError, UnknownNameError
from fitters.factors import fit_speed_factors
from fitters.results import FitResult
from fitters.significance import benjamini_hochberg

__all__ = [
    "Buckets",
    "FitError",
    "FitResult",
    "InputError",
    "SettingError",
    "UnknownNameError",
    "benjamini_hochberg",
    "fit_speed_factors",
]
