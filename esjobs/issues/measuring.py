"""Detectors applied to a block of series: answers per job, with their evidence."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from esjobs.core.arrays import Ints
from esjobs.core.plugins import broken, warn
from esjobs.issues.catalogue import DETECTORS, USUAL, detector_named
from esjobs.issues.detectors import REASONS, Measured, Reason, require_measured, unassessed
from esjobs.issues.detectors.batch import Batch
from esjobs.issues.detectors.detector import Detector

NO_CORES = "cores of a node unknown"
"""Reason of jobs whose load per node cannot be compared with limits per core."""


@dataclass(frozen=True)
class Measurement:
    """Answers of a detector; ``rows``: jobs of the block, beside their evidence metric and reason."""

    detector: Detector
    variant: str
    rows: Ints
    answers: Measured
    metrics: tuple[str, ...]
    reasons: tuple[str | None, ...]


def measurements(batch: Batch, wanted: Collection[tuple[str, str]] = USUAL) -> Iterator[Measurement]:
    """Yield the measurements of jobs that have the metrics; ``wanted``: detectors and variants."""
    own = {detector.name for detector in DETECTORS}
    foreign = sorted({name for name, _ in wanted} - own)
    for detector in (*DETECTORS, *map(detector_named, foreign)):
        rows = _with_metrics(batch, detector)
        if len(rows):
            variants = [each for each in detector.variants if (detector.name, each) in wanted]
            yield from (_measurement(batch, detector, variant, rows) for variant in variants)


def _with_metrics(batch: Batch, detector: Detector) -> Ints:
    needed = np.logical_and.reduce([batch.has(metric) for metric in detector.metrics])
    if detector.any_metrics:
        needed &= np.logical_or.reduce([batch.has(metric) for metric in detector.any_metrics])
    return np.flatnonzero(needed)


def _measurement(batch: Batch, detector: Detector, variant: str, rows: Ints) -> Measurement:
    answers = _answers(batch, detector, variant)
    reasons = [REASONS[Reason(int(code))] or None for code in answers.reason[rows]]
    if detector.per_core:
        per_core = batch.per_core[rows]
        # whatever else was found: without cores the limits mean nothing
        reasons = [why if fits else NO_CORES for why, fits in zip(reasons, per_core, strict=True)]
    shown: tuple[str, ...] = detector.metrics[:1] * len(rows)
    if detector.any_metrics:
        present = batch.present(detector.any_metrics)
        # a job that was not assessed has no pair; its metric is shown all the same
        pairs = np.nan_to_num(answers.numbers["pair"][rows], nan=0.0).astype(np.int64)
        shown = tuple(present[pair] for pair in pairs)
    return Measurement(detector, variant, rows, answers, shown, tuple(reasons))


def _answers(batch: Batch, detector: Detector, variant: str) -> Measured:
    assert detector.measure is not None, "checked when it was found"  # noqa: S101
    # our own may raise: that is a fault to be seen
    if not detector.package:
        return detector.measure(batch, variant)
    n_jobs = len(batch.step_s)
    try:
        answers = detector.measure(batch, variant)
        require_measured(answers, n_jobs, detector.numbers)
    except MemoryError:
        raise
    # the code of another package must not end the night
    except (Exception, SystemExit) as error:
        warn(f"{detector.package}: detector '{detector.name}' failed: {broken(error)}")
        return unassessed(Reason.FAILED, n_jobs, detector.numbers)
    return answers
