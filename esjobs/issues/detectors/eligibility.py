"""Which jobs findings count for (PIKA): long enough, on several cores, and over."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.measured import Reason, Values

LEAST_DURATION_S = 3600.0
MORE_THAN_CORES = 1.0
STATES = frozenset({"COMPLETED", "OUT_OF_MEMORY", "TIMEOUT", "FINISHED"})
"""States of jobs that ran to their own end or into a limit; ``finished`` is what a grid calls completed."""


def eligibility(
    duration_s: Values | Sequence[float],
    cores: Values | Sequence[float],
    state: Values | Sequence[str | None],
    *,
    least_s: float = LEAST_DURATION_S,
    states: frozenset[str] = STATES,
) -> NDArray[np.int8]:
    """Why findings of a job do not count, a code of :class:`Reason` per job; 0: they do.

    The first of the reasons is given, in their order: duration, cores, state. A job that was stopped by hand,
    or failed, says little about how its program works.

    Parameters
    ----------
    duration_s
        Wall time; NaN: unknown. Longer than what was asked for is no fault.
    cores
        Physical cores of the job on all nodes: hardware threads / 2 with SMT on; NaN: unknown.
    state
        Texts, in any case, None or NaN: unknown. ``CANCELLED by 1234`` is read as its first word.
    """
    duration, core = np.asarray(duration_s, dtype=np.float64), np.asarray(cores, dtype=np.float64)
    words = np.asarray(state, dtype=object)
    names, place = _names(words)
    known = np.array([bool(name) for name in names], dtype=bool)
    final = np.array([name in states for name in names], dtype=bool)
    reason = np.full(len(duration), Reason.ASSESSED, np.int8)
    for holds, why in (
        (~final[place], Reason.OTHER_STATE),
        (~known[place], Reason.UNKNOWN_STATE),
        (~(core > MORE_THAN_CORES), Reason.ONE_CORE),
        (~np.isfinite(core) | (core <= 0), Reason.UNKNOWN_CORES),
        (~(duration >= least_s), Reason.SHORT),
        (~np.isfinite(duration) | (duration < 0), Reason.UNKNOWN_DURATION),
    ):
        reason[holds] = why
    return reason


def _names(states: Values) -> tuple[list[str], NDArray[np.int64]]:
    """The states that occur, as one word in capitals (empty: unknown), and which of them each job has."""
    texts = np.where(_missing(states), "", states).astype(str)
    names, place = np.unique(texts, return_inverse=True)
    return [str(name).strip().upper().split(" ")[0].replace("-", "_") for name in names], place


def _missing(states: Values) -> NDArray[np.bool_]:
    # a missing text may be the number NaN
    return np.fromiter((state is None or isinstance(state, float) for state in states), bool, len(states))
