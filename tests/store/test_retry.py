"""Requests that are repeated: only what may pass, so often, after the pause that was asked for."""

from collections.abc import Callable

import pytest

from esjobs.store.elastic.transport.retry import PassingError, patiently


def failing(*errors: Exception) -> Callable[[], str]:
    """A request that fails with these errors in turn, then answers."""
    left = list(errors)

    def ask() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return ask


def error(*, passing: bool = True, wait_s: float | None = None) -> PassingError:
    made = PassingError("busy")
    made.passing, made.wait_s = passing, wait_s
    return made


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def test_what_passes_is_asked_again(pauses: list[float]) -> None:
    assert patiently(failing(error(), error(wait_s=4.0)), 3) == "answer"
    assert 0.25 <= pauses[0] <= 0.5
    assert pauses[1:] == [4.0]


@pytest.mark.parametrize(("repetitions", "n_pauses"), [(0, 0), (2, 2)])
def test_the_last_error_is_raised(pauses: list[float], repetitions: int, n_pauses: int) -> None:
    errors = [error() for _ in range(repetitions + 1)]
    with pytest.raises(PassingError) as raised:
        patiently(failing(*errors), repetitions)
    assert raised.value is errors[-1]
    assert raised.value.__context__ is None
    assert len(pauses) == n_pauses


@pytest.mark.parametrize("other", [error(passing=False), ValueError("a defect")])
def test_what_does_not_pass_is_raised_at_once(pauses: list[float], other: Exception) -> None:
    with pytest.raises(type(other)):
        patiently(failing(other), 3)
    assert pauses == []
