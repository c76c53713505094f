"""Answers of detectors per job, and reasons why a job was not assessed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Values = NDArray[Any]
"""Samples in any numeric type, usually float32."""

NONE = -1
"""Index of no unit or sample."""


class Reason(IntEnum):
    """Reason why a job was not assessed; codes keep their meaning."""

    ASSESSED = 0
    NO_DATA = 1
    TOO_FEW_SAMPLES = 2
    GAPS = 3
    FLAT = 4
    NEVER_BUSY = 5
    FAILED = 6
    UNKNOWN_DURATION = 10
    SHORT = 11
    UNKNOWN_CORES = 12
    ONE_CORE = 13
    UNKNOWN_STATE = 14
    OTHER_STATE = 15


REASONS: Mapping[Reason, str] = {
    Reason.ASSESSED: "",
    Reason.NO_DATA: "no samples",
    Reason.TOO_FEW_SAMPLES: "fewer than 3 samples",
    Reason.GAPS: "too many gaps",
    Reason.FLAT: "a series is constant",
    Reason.NEVER_BUSY: "never busy",
    Reason.FAILED: "the detector failed",
    Reason.UNKNOWN_DURATION: "duration unknown",
    Reason.SHORT: "shorter than an hour",
    Reason.UNKNOWN_CORES: "number of cores unknown",
    Reason.ONE_CORE: "one core",
    Reason.UNKNOWN_STATE: "final state unknown",
    Reason.OTHER_STATE: "not completed, out of memory or out of time",
}
"""Texts of reasons."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Answers of a detector, one entry per job, whatever the thresholds.

    ``unit``: index of the unit that is the evidence, in samples ``begin`` to ``end - 1``; -1: none.
    ``share``: share of the job's time concerned. ``numbers``: further numbers by name. Not assessed
    (``reason`` not 0): value and numbers NaN, share 0. Nothing is infinite.
    """

    value: Floats
    unit: Ints
    begin: Ints
    end: Ints
    share: Floats
    reason: NDArray[np.int8]
    numbers: Mapping[str, Floats]


def measured(
    reason: NDArray[np.int8],
    value: Values,
    *,
    unit: Values | int = NONE,
    begin: Values | int = NONE,
    end: Values | int = NONE,
    share: Values | float,
    numbers: Mapping[str, Values],
) -> Measured:
    """Return answers, blank for jobs that were not assessed."""
    assessed = reason == Reason.ASSESSED
    return Measured(
        value=_blanked(assessed, value),
        unit=np.where(assessed, unit, NONE),
        begin=np.where(assessed, begin, NONE),
        end=np.where(assessed, end, NONE),
        # rounding may exceed 1 a little
        share=np.where(assessed, np.clip(share, 0.0, 1.0), 0.0),
        reason=reason,
        numbers={name: _blanked(assessed, number) for name, number in numbers.items()},
    )


def unassessed(reason: Reason, n_jobs: int, numbers: Iterable[str]) -> Measured:
    """Return blank answers: no job was assessed, for one reason."""
    blank = np.full(n_jobs, np.nan)
    codes = np.full(n_jobs, reason, np.int8)
    return measured(codes, blank, share=0.0, numbers=dict.fromkeys(numbers, blank))


def require_measured(found: object, n_jobs: int, numbers: Iterable[str]) -> None:
    """Refuse what is not the answer of a detector for so many jobs, with these numbers.

    Raises :class:`TypeError` or :class:`ValueError`. Cost: one pass over the answers.
    """
    if not isinstance(found, Measured):
        raise TypeError(f"it returned {type(found).__name__}, not Measured of esjobs.issues.detectors")
    if set(found.numbers) != set(numbers):
        raise ValueError(f"it returned the numbers {sorted(found.numbers)}, not {sorted(numbers)}")
    # written by others: a wrong shape would be taken for other jobs further on
    columns: list[NDArray[Any]] = [found.value, found.unit, found.begin, found.end, found.share, found.reason]
    if any(column.shape != (n_jobs,) for column in (*columns, *found.numbers.values())):
        raise ValueError(f"it returned columns that are not of shape ({n_jobs},)")
    if not set(np.unique(found.reason).tolist()) <= set(Reason):
        raise ValueError("it returned reasons that are not in Reason")
    assessed = found.reason == Reason.ASSESSED
    if not all(np.isfinite(column[assessed]).all() for column in (found.value, found.share)):
        raise ValueError("it returned values or shares of assessed jobs that are not finite")
    if any(np.isinf(column).any() for column in (found.value, *found.numbers.values())):
        raise ValueError("it returned infinite numbers")


def _blanked(assessed: Mask, number: Values) -> Floats:
    return np.where(assessed, np.asarray(number, dtype=np.float64), np.nan)


def steps(step_s: Values | float, n_jobs: int) -> Floats:
    """Return seconds between samples per job, NaN if invalid."""
    step = np.broadcast_to(np.asarray(step_s, dtype=np.float64), (n_jobs,))
    return np.where(np.isfinite(step) & (step > 0), step, np.nan)
