"""Detectors applied to a block of series: what each measures of each job, with its evidence."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from esjobs.core.plugins import broken, warn
from esjobs.issues import detectors
from esjobs.issues.catalogue import DETECTORS, USUAL, Detector, detector_named
from esjobs.issues.detectors import LoadPhases, Measured, Samples
from esjobs.records.series.blocks import Block

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NO_CORES = "cores of a node unknown"
"""Why a load of nodes cannot be compared with limits that hold for a core."""
_SHARED = ("socket", "node", "job")
"""Scopes whose load is the sum over several cores."""
_TRIM_START = 0.15
"""Share of the samples that the ``trim-start`` variant of the leak leaves out at the beginning."""


@dataclass(frozen=True)
class Measurement:
    """What a detector measured of some jobs of a block: row numbers, answers, and the metric of each."""

    detector: Detector
    variant: str
    rows: Ints
    answers: Measured
    metrics: tuple[str, ...]
    reasons: tuple[str | None, ...]


class Batch:
    """The jobs of a block as detectors take them.

    ``cores``: of each job, NaN where not known. A load of a node or of the job as a whole is divided by its
    cores, so that limits that hold for a core hold for it.
    """

    def __init__(self, block: Block, cores: Floats) -> None:
        self.block = block
        self._cores = cores

    def has(self, metric: str) -> npt.NDArray[np.bool_]:
        """Which jobs have a metric."""
        if metric not in self.block.units:
            return np.zeros(len(self._cores), np.bool_)
        return np.array([bool(units) for units in self.block.units[metric]], np.bool_)

    @cached_property
    def load(self) -> npt.NDArray[np.float32]:
        """Load of each core, or of each node as a mean over its cores; NaN where that is not known."""
        values = self.block.values["cpu_load"]
        by = np.ones(len(values))
        for number, scope in enumerate(self.block.scopes["cpu_load"]):
            if scope in _SHARED:
                by[number] = self._cores[number] / max(1, len(self.block.units["cpu_load"][number]))
        if (by == 1).all():
            return np.asarray(values)
        with np.errstate(all="ignore"):
            return np.where(by > 0, values.T / by, np.nan).T.astype(np.float32)

    @cached_property
    def load_samples(self) -> Samples:
        """The load, looked through once for all detectors."""
        return detectors.samples(self.load)

    @cached_property
    def raw_load_samples(self) -> Samples:
        """The load as it is measured, of cores or of nodes."""
        raw = self.block.values["cpu_load"]
        return self.load_samples if self.load is raw else detectors.samples(raw)

    @cached_property
    def load_phases(self) -> LoadPhases:
        """The spectrum of the load, which all partners share."""
        return detectors.load_phases(self.load_samples)

    @cached_property
    def gpu_samples(self) -> Samples:
        """The load of GPUs."""
        return detectors.samples(self.block.values["gpu_load"])

    @cached_property
    def normalised(self) -> npt.NDArray[np.bool_]:
        """Which jobs have a load per core."""
        shared = np.array([scope in _SHARED for scope in self.block.scopes["cpu_load"]], np.bool_)
        return ~shared | (self._cores > 0)


def measurements(batch: Batch, wanted: Collection[tuple[str, str]] = USUAL) -> Iterator[Measurement]:
    """What the detectors measure of the jobs that have their metrics; ``wanted``: by name and variant."""
    own = {detector.name for detector in DETECTORS}
    foreign = sorted({name for name, _ in wanted} - own)
    for detector in (*DETECTORS, *map(detector_named, foreign)):
        needed = np.logical_and.reduce([batch.has(metric) for metric in detector.metrics])
        if detector.any_metrics:
            needed &= np.logical_or.reduce([batch.has(metric) for metric in detector.any_metrics])
        rows = np.flatnonzero(needed)
        if not len(rows):
            continue
        for variant in detector.variants:
            if (detector.name, variant) in wanted:
                answers, metrics = _measured(batch, detector, variant)
                yield _of_jobs(batch, detector, variant, rows, answers, metrics)


def _of_jobs(
    batch: Batch, detector: Detector, variant: str, rows: Ints, answers: Measured, metrics: tuple[str, ...]
) -> Measurement:
    reasons = [detectors.REASONS[detectors.Reason(int(code))] or None for code in answers.reason[rows]]
    if detector.name in _PER_CORE:
        known = batch.normalised[rows]
        reasons = [why if fits else NO_CORES for why, fits in zip(reasons, known, strict=True)]
    return Measurement(detector, variant, rows, answers, tuple(metrics[row] for row in rows), tuple(reasons))


_PER_CORE = ("cpu-imbalance", "io-blocking", "sync-offloading")


_Answer = Callable[[Batch, str], Measured]

_TRIMS: Mapping[str, float | tuple[float, float]] = {
    "pika": 0.0,
    "trim": detectors.TRIM,
    "trim-start": (_TRIM_START, detectors.TRIM),
}
_ANSWERS: Mapping[str, tuple[str, _Answer]] = {
    "cpu-idle": ("cpu_load", lambda of, _: detectors.idle(of.raw_load_samples, of.block.step_s)),
    "gpu-idle": ("gpu_load", lambda of, _: detectors.idle(of.gpu_samples, of.block.step_s, "gpu")),
    "cpu-unused": ("cpu_load", lambda of, _: detectors.unused(of.raw_load_samples)),
    "gpu-unused": ("gpu_load", lambda of, _: detectors.unused(of.gpu_samples, "gpu")),
    "cpu-imbalance": ("cpu_load", lambda of, _: detectors.imbalance(of.load_samples)),
    "gpu-imbalance": ("gpu_load", lambda of, _: detectors.imbalance(of.gpu_samples, "gpu")),
    "metadata-congestion": (
        "metadata_ops_s",
        lambda of, _: detectors.congestion(of.block.values["metadata_ops_s"]),
    ),
    "sync-offloading": (
        "gpu_load",
        lambda of, _: detectors.synchronous_offloading(of.load_phases, of.gpu_samples, of.block.step_s),
    ),
    "memory-leak": (
        "mem_used_b",
        lambda of, variant: detectors.leak(
            of.block.values["mem_used_b"], of.block.step_s, trim=_TRIMS[variant]
        ),
    ),
    "collapse": ("cpu_load", lambda of, _: detectors.collapse(of.raw_load_samples)),
    "gpu-collapse": ("gpu_load", lambda of, _: detectors.collapse(of.gpu_samples)),
    "late-start": ("cpu_load", lambda of, _: detectors.late_start(of.raw_load_samples, of.block.step_s)),
    "gpu-late-start": (
        "gpu_load",
        lambda of, _: detectors.late_start(of.gpu_samples, of.block.step_s, "gpu"),
    ),
}
"""The metric that shows each detector's evidence, and its function; I/O blocking chooses one per job."""


def _measured(batch: Batch, detector: Detector, variant: str) -> tuple[Measured, tuple[str, ...]]:
    """The answers of a detector for all jobs of the block, and the metric of its evidence for each."""
    n_jobs = len(batch.block.step_s)
    if detector.package:
        return _foreign(batch, detector, variant, n_jobs), (detector.metrics[0],) * n_jobs
    if detector.name not in _ANSWERS:
        return _io_blocking(batch, variant)
    metric, answer = _ANSWERS[detector.name]
    return answer(batch, variant), (metric,) * n_jobs


def _foreign(batch: Batch, detector: Detector, variant: str, n_jobs: int) -> Measured:
    """The answers of a detector of another package; if it fails, logs a line and assesses no job."""
    assert detector.measure is not None, "checked when it was found"  # noqa: S101
    try:
        found = detector.measure(batch, variant)
        detectors.require_measured(found, n_jobs, detector.numbers)
    except MemoryError:
        raise
    # the code of another package must not end the night
    except (Exception, SystemExit) as error:
        warn(f"{detector.package}: detector '{detector.name}' failed: {broken(error)}")
        return detectors.unassessed(detectors.Reason.FAILED, n_jobs, detector.numbers)
    return cast("Measured", found)


def _io_blocking(batch: Batch, variant: str) -> tuple[Measured, tuple[str, ...]]:
    block = batch.block
    kinds = {
        metric: block.values[metric]
        for metric in ("read_b_s", "write_b_s", "metadata_ops_s")
        if metric in block.values and block.values[metric].shape[1]
    }
    limits = detectors.PUBLISHED["io_blocking" if variant == "pika" else "io_blocking adaptive"]
    found = detectors.io_blocking(batch.load_phases, kinds, block.step_s, limits=limits).strongest
    names = tuple(kinds)
    pairs = np.nan_to_num(found.numbers["pair"], nan=0.0).astype(np.int64)
    return found, tuple(names[pair] for pair in pairs)
