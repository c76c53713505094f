"""Which jobs findings count for."""

from typing import Any

import numpy as np
import pytest

from esjobs.issues.detectors import Reason, eligibility

NAN = float("nan")


@pytest.mark.parametrize(
    ("duration_s", "cores", "state", "reason"),
    [
        (3600.0, 2.0, "COMPLETED", Reason.ASSESSED),
        (3600.0, 2.0, "completed", Reason.ASSESSED),
        (3600.0, 2.0, "finished", Reason.ASSESSED),
        (1e7, 10_000.0, "TIMEOUT", Reason.ASSESSED),
        (7200.0, 1.5, "OUT_OF_MEMORY", Reason.ASSESSED),
        (7200.0, 2.0, "out-of-memory", Reason.ASSESSED),
        (3599.9, 2.0, "COMPLETED", Reason.SHORT),
        (0.0, 2.0, "COMPLETED", Reason.SHORT),
        (NAN, 2.0, "COMPLETED", Reason.UNKNOWN_DURATION),
        (-5.0, 2.0, "COMPLETED", Reason.UNKNOWN_DURATION),
        (float("inf"), 2.0, "COMPLETED", Reason.UNKNOWN_DURATION),
        (7200.0, 1.0, "COMPLETED", Reason.ONE_CORE),
        (7200.0, NAN, "COMPLETED", Reason.UNKNOWN_CORES),
        (7200.0, 0.0, "COMPLETED", Reason.UNKNOWN_CORES),
        (7200.0, 2.0, "FAILED", Reason.OTHER_STATE),
        (7200.0, 2.0, "CANCELLED by 1234", Reason.OTHER_STATE),
        (7200.0, 2.0, "RUNNING", Reason.OTHER_STATE),
        (7200.0, 2.0, None, Reason.UNKNOWN_STATE),
        (7200.0, 2.0, NAN, Reason.UNKNOWN_STATE),
        (7200.0, 2.0, "", Reason.UNKNOWN_STATE),
        (60.0, 1.0, "FAILED", Reason.SHORT),
    ],
)
def test_reasons(duration_s: float, cores: float, state: Any, reason: Reason) -> None:
    assert eligibility([duration_s], [cores], [state]).tolist() == [reason]


def test_many_at_once_and_none() -> None:
    states = np.array(["COMPLETED", None, "FAILED"] * 1000, dtype=object)
    found = eligibility(np.full(3000, 7200.0), np.full(3000, 4.0), states)
    assert found.tolist() == [Reason.ASSESSED, Reason.UNKNOWN_STATE, Reason.OTHER_STATE] * 1000
    assert eligibility([], [], []).tolist() == []


def test_other_limits() -> None:
    assert eligibility([600.0], [2.0], ["FAILED"], least_s=600.0, states=frozenset({"FAILED"})).tolist() == [
        0
    ]
