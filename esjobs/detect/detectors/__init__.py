"""Detectors of inefficient jobs: arrays of samples in, an answer per job out, whatever thresholds say.

Each takes a batch of jobs with equally many samples, shape (jobs, units, samples), NaN where there is none,
and gives :class:`Measured`. Jobs do not influence each other. No detector raises or warns because of samples,
and none fires on missing ones. Thresholds are compared afterwards, with :func:`flagged` or by rules.
"""

from esjobs.detect.detectors.collapse import collapse
from esjobs.detect.detectors.congestion import congestion
from esjobs.detect.detectors.eligibility import eligibility
from esjobs.detect.detectors.idle import idle
from esjobs.detect.detectors.imbalance import imbalance
from esjobs.detect.detectors.late_start import late_start
from esjobs.detect.detectors.leak import TRIM, Lines, leak, memory_lines
from esjobs.detect.detectors.limits import PUBLISHED, Limit, flagged
from esjobs.detect.detectors.measured import NONE, REASONS, Measured, Reason
from esjobs.detect.detectors.periodic import (
    Phases,
    inverse_phases,
    io_blocking,
    synchronous_offloading,
)
from esjobs.detect.detectors.samples import Samples, samples
from esjobs.detect.detectors.spectra import LoadPhases, load_phases
from esjobs.detect.detectors.unused import unused

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
    "memory_lines",
    "samples",
    "synchronous_offloading",
    "unused",
]
