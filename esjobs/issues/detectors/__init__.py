"""Detectors of inefficient jobs: arrays of samples in, an answer per job out, whatever thresholds say.

Each takes a batch of jobs with equally many samples, shape (jobs, units, samples), NaN where there is none,
and gives :class:`Measured`. Jobs do not influence each other. No detector raises or warns because of samples,
and none fires on missing ones. Thresholds are compared afterwards, with :func:`flagged` or by rules.
"""

from esjobs.issues.detectors.collapse import collapse
from esjobs.issues.detectors.congestion import congestion
from esjobs.issues.detectors.eligibility import eligibility
from esjobs.issues.detectors.idle import idle
from esjobs.issues.detectors.imbalance import imbalance
from esjobs.issues.detectors.late_start import late_start
from esjobs.issues.detectors.leak import TRIM, Lines, leak, memory_lines
from esjobs.issues.detectors.limits import PUBLISHED, Limit, flagged
from esjobs.issues.detectors.measured import (
    NONE,
    REASONS,
    Measured,
    Reason,
    measured,
    require_measured,
    unassessed,
)
from esjobs.issues.detectors.periodic import Phases, inverse_phases, io_blocking, synchronous_offloading
from esjobs.issues.detectors.samples import Samples, samples
from esjobs.issues.detectors.spectra import LoadPhases, load_phases
from esjobs.issues.detectors.unused import unused

__all__ = [
    "NONE",
    "PUBLISHED",
    "REASONS",
    "TRIM",
    "Limit",
    "Lines",
    "LoadPhases",
    "Measured",
    "Phases",
    "Reason",
    "Samples",
    "collapse",
    "congestion",
    "eligibility",
    "flagged",
    "idle",
    "imbalance",
    "inverse_phases",
    "io_blocking",
    "late_start",
    "leak",
    "load_phases",
    "measured",
    "memory_lines",
    "require_measured",
    "samples",
    "synchronous_offloading",
    "unassessed",
    "unused",
]
