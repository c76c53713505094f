"""Detectors that rules may name: ours, each in its module, and those of other packages."""

from dataclasses import replace
from functools import partial

from esjobs.core.plugins import package_of, plugin, plugin_names
from esjobs.issues.detectors.collapse import COLLAPSE, GPU_COLLAPSE
from esjobs.issues.detectors.congestion import CONGESTION
from esjobs.issues.detectors.detector import Detector
from esjobs.issues.detectors.idle import CPU_IDLE, GPU_IDLE
from esjobs.issues.detectors.imbalance import CPU_IMBALANCE, GPU_IMBALANCE
from esjobs.issues.detectors.late_start import GPU_LATE_START, LATE_START
from esjobs.issues.detectors.leak import MEMORY_LEAK
from esjobs.issues.detectors.periodic import IO_BLOCKING, SYNC_OFFLOADING
from esjobs.issues.detectors.unused import CPU_UNUSED, GPU_UNUSED

GROUP = "esjobs.detectors"
"""Entry points of detectors of other packages; each names a :class:`Detector` of that name."""

DETECTORS: tuple[Detector, ...] = (
    *(CPU_IDLE, GPU_IDLE, CPU_UNUSED, GPU_UNUSED, CPU_IMBALANCE, GPU_IMBALANCE, CONGESTION),
    *(IO_BLOCKING, SYNC_OFFLOADING, MEMORY_LEAK, COLLAPSE, GPU_COLLAPSE, LATE_START, GPU_LATE_START),
)
"""Our detectors, in the order of reports."""

USUAL: tuple[tuple[str, str], ...] = tuple((each.name, each.variants[0]) for each in DETECTORS)
"""Detectors and variants that are measured whatever the rules, so that other rules can be replayed."""


def detector_named(name: object) -> Detector:
    """Look a detector up by name, ours first; KeyError where there is none.

    Raises :class:`UsageError` for a detector of another package that cannot be used.
    """
    for detector in DETECTORS:
        if detector.name == name:
            return detector
    found = plugin(GROUP, name, partial(_checked, name)) if isinstance(name, str) else None
    if found is None:
        raise KeyError(name)
    return found


def detector_names() -> tuple[str, ...]:
    """Return the names of all detectors, those of other packages last."""
    own = [detector.name for detector in DETECTORS]
    return (*own, *plugin_names(GROUP, own))


def _checked(name: str, found: object) -> Detector:
    if not isinstance(found, Detector):
        raise TypeError("not a Detector of esjobs.issues.detectors")
    # rules and stored rows know a detector by one name
    if found.name != name:
        raise ValueError(f"it is the detector '{found.name}'; both must have the same name")
    if not (callable(found.measure) and found.metrics and found.variants):
        raise ValueError("a detector requires measure(batch, variant), metrics and variants")
    return replace(found, package=package_of(GROUP, name))
