"""The detectors that rules may name: what each measures, in which unit, and its further numbers.

Facts alone; :mod:`esjobs.issues.measuring` calls the functions behind them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from esjobs.core.plugins import package_of, plugin, plugin_names


@dataclass(frozen=True)
class Detector:
    """A detector. ``metrics``: what it looks at; of ``any_metrics`` one is enough. It says nothing of a job
    without them.

    ``unit``: of its value. ``numbers``: what it gives beside the value, by name. ``variants``: definitions of
    it, the usual one first. ``measure``: function of a detector of another package, which takes a
    :class:`~esjobs.issues.measuring.Batch` and the variant and returns
    :class:`~esjobs.issues.detectors.Measured`; the first of ``metrics`` shows its evidence. ``package``: name
    and version of that package, filled in when it is found.
    """

    name: str
    meaning: str
    unit: str
    metrics: tuple[str, ...]
    numbers: tuple[str, ...]
    any_metrics: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("pika",)
    measure: Callable[[Any, str], Any] | None = None
    package: str = ""


OF_NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(("idle_s", "wait_s", "last_s", "period_s"), "s"),
    **dict.fromkeys(("bytes_per_hour", "leaking_bytes_per_hour"), "B/h"),
    "peak_b": "B",
    "mean": "1/s",
}
"""Units of the further numbers; those of another partner for each job have none, the others count."""
_OF_PARTNERS = ("other_mean", "other_range")
_AT_MOST = {"r": 1.0, "peak": 2.0, "median": 2.0, "median_adaptive": 2.0}
_SHARES = ("share", "lost", "unit_share", "last_share", "job_share")
_VALUES_ARE_SHARES = ("cpu-idle", "gpu-idle", "cpu-unused", "gpu-unused", "late-start", "gpu-late-start")


def unit_and_range(detector: Detector, number: str) -> tuple[str | None, float, float]:
    """The unit of what a detector gives (None: of its partner), and between what it lies.

    >>> unit_and_range(detector_named("memory-leak"), "bytes_per_hour")
    ('B/h', -inf, inf)
    """
    if detector.package:
        return (detector.unit if number == "value" else None), -math.inf, math.inf
    if detector.name == "memory-leak" and number in ("value", "bytes_per_hour"):
        return OF_NUMBERS.get(number, detector.unit), -math.inf, math.inf
    if number in _OF_PARTNERS:
        return None, 0.0, math.inf
    if number in _SHARES or (number == "value" and detector.name in _VALUES_ARE_SHARES):
        return "1", 0.0, 1.0
    unit = detector.unit if number == "value" else OF_NUMBERS.get(number, "1")
    low = {"r": -1.0, "intercept": -math.inf}.get(number, 0.0)
    return unit, low, _AT_MOST.get(number, math.inf)


_IDLE = ("idle_s", "idle_samples", "units", "unit_share")
_UNUSED = ("unused", "used", "units", "unused_lenient")
_IMBALANCE = ("used_only", "lost", "largest", "mean_load")
_COLLAPSE = ("before", "after", "job", "job_begin", "job_share")
_LATE = ("wait_s", "last_share", "last_s", "never")
_PHASES = (
    *("peak", "median", "median_adaptive", "r", "frequency_index", "periods", "period_s", "load_mean"),
    *("load_range", "other_mean", "other_range", "io_ratio"),
)
_LEAK = (
    *("residual", "ratio", "intercept", "bytes_per_hour", "peak_b", "leaking", "leaking_bytes_per_hour"),
)

DETECTORS: tuple[Detector, ...] = (
    Detector("cpu-idle", "part of the cores' time with a load below 0.01", "1", ("cpu_load",), _IDLE),
    Detector("gpu-idle", "part of the GPUs' time with a load of 0", "1", ("gpu_load",), _IDLE),
    Detector("cpu-unused", "part of the cores with one busy sample at most", "1", ("cpu_load",), _UNUSED),
    Detector("gpu-unused", "part of the GPUs with one busy sample at most", "1", ("gpu_load",), _UNUSED),
    Detector(
        "cpu-imbalance",
        "mean over time of the standard deviation of the load across cores",
        "1",
        ("cpu_load",),
        _IMBALANCE,
    ),
    Detector(
        "gpu-imbalance",
        "mean over time of the standard deviation of the load across GPUs",
        "1",
        ("gpu_load",),
        _IMBALANCE,
    ),
    Detector(
        "metadata-congestion",
        "largest rate of files opened and closed, over all nodes",
        "1/s",
        ("metadata_ops_s",),
        ("mean", "units"),
    ),
    Detector(
        "io-blocking",
        "periods in which the cores wait for I/O",
        "periods",
        ("cpu_load",),
        (*_PHASES, "pair"),
        ("read_b_s", "write_b_s", "metadata_ops_s"),
        ("pika", "adaptive"),
    ),
    Detector(
        "sync-offloading",
        "periods in which cores and GPUs wait for each other",
        "periods",
        ("cpu_load", "gpu_load"),
        _PHASES,
    ),
    Detector(
        "memory-leak",
        "slope of the memory in use, of a job of length 1 and a largest value of 1",
        "1",
        ("mem_used_b",),
        _LEAK,
        (),
        ("pika", "trim", "trim-start"),
    ),
    Detector(
        "collapse", "smallest ratio of the load after an instant to before it", "1", ("cpu_load",), _COLLAPSE
    ),
    Detector(
        "gpu-collapse",
        "smallest ratio of the load of GPUs after an instant to before it",
        "1",
        ("gpu_load",),
        _COLLAPSE,
    ),
    Detector("late-start", "part of the time before any core worked", "1", ("cpu_load",), _LATE),
    Detector("gpu-late-start", "part of the time before any GPU worked", "1", ("gpu_load",), _LATE),
)
"""In the order in which people read of them."""

USUAL: tuple[tuple[str, str], ...] = tuple((each.name, each.variants[0]) for each in DETECTORS)
"""What is measured whatever the rules are, so that other rules can be replayed."""


GROUP = "esjobs.detectors"
"""Entry points of detectors of other packages; each names a :class:`Detector` of that name."""


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
        raise TypeError("not a Detector of esjobs.issues.catalogue")
    if found.name != name:
        raise ValueError(f"it is the detector '{found.name}'; both must have one name")
    if not (callable(found.measure) and found.metrics and found.variants):
        raise ValueError("a detector needs measure(batch, variant), metrics and variants")
    return replace(found, package=package_of(GROUP, name))
