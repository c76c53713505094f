"""Detectors of inefficient jobs: arrays of samples in, :class:`Measured` per job out.

Each takes jobs with equally many samples, shape (jobs, units, samples), NaN if missing. Jobs do not influence
each other; no samples make a detector raise or warn, and missing ones never flag a job. Thresholds are
compared afterwards, by rules or :func:`flagged`.
"""

from esjobs.issues.detectors.collapse import collapse
from esjobs.issues.detectors.congestion import congestion
from esjobs.issues.detectors.detector import Detector, Range
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
    "Detector",
    "Limit",
    "Lines",
    "LoadPhases",
    "Measured",
    "Phases",
    "Range",
    "Reason",
    "Samples",
    "collapse",
    "congestion",
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
