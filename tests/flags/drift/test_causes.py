"""Causes of a change: the error of a predicted one counts the jobs and tasks behind the shares."""

import numpy as np
import pytest

from esjobs.flags.drift.causes import CpuTime, explains, mix_change

FACTORS = {"slow": (0.8, 0.004), "fast": (1.6, 0.008)}


def side(rng: np.random.Generator, tasks: list[int], n_jobs: int, fast: float, together: bool) -> CpuTime:
    """Jobs of an hour on either CPU model; ``together``: all jobs of a task run on the same one."""
    sums: dict[tuple[str | None, str], tuple[float, float]] = {}
    of_task = {task: rng.random() < fast for task in tasks}
    for task in rng.choice(tasks, n_jobs).tolist():
        quick = of_task[task] if together else rng.random() < fast
        key, seconds = (f"task{task}", "fast" if quick else "slow"), 3600.0 * rng.lognormal(0, 0.3)
        total, squares = sums.get(key, (0.0, 0.0))
        sums[key] = total + seconds, squares + seconds**2
    return sums


def hours(**jobs: dict[str, int]) -> CpuTime:
    return {
        (task, model): (3600.0 * number, 3600.0**2 * number)
        for task, models in jobs.items()
        for model, number in models.items()
    }


def test_a_few_jobs_of_few_tasks_explain_nothing() -> None:
    """3 of 22 jobs before and 17 of 30 after, of two tasks each: the factors alone are known to 0.7 %."""
    before = hours(a={"slow": 19}, b={"fast": 3})
    after = hours(c={"fast": 17}, d={"slow": 13})
    found = mix_change(before, after, FACTORS)
    assert found is not None
    assert found.change == pytest.approx(np.log((0.8 + 0.8 * 17 / 30) / (0.8 + 0.8 * 3 / 22)))
    assert found.error > 0.2
    assert not explains(found, 0.25)


def test_many_tasks_explain_and_the_error_is_that_of_the_factors() -> None:
    rng = np.random.default_rng(3)
    before = side(rng, list(range(40)), 4000, 0.2, False)
    after = side(rng, list(range(20, 60)), 4000, 0.6, False)
    found = mix_change(before, after, FACTORS)
    assert found is not None
    assert found.error < 0.02
    assert explains(found, 0.28)


def test_a_change_of_all_jobs_is_as_sure_as_there_are_jobs() -> None:
    """From one model to the other altogether: without scatter inside, and yet three jobs say little."""
    errors = []
    for number in (3, 30, 3000):
        found = mix_change(
            hours(a={"slow": number}, b={"slow": number}),
            hours(a={"fast": number}, c={"fast": number}),
            FACTORS,
        )
        assert found is not None
        errors.append(found.error)
    assert errors[0] > 5 * errors[1] > 5 * errors[2]
    assert errors[0] > 0.1


@pytest.mark.parametrize(("tasks", "together"), [(6, True), (12, True), (40, True), (12, False)])
def test_without_a_change_of_the_mix_few_are_sure(tasks: int, together: bool) -> None:
    """The shares of both sides come from one law; beyond two errors lies what Student's t leaves there."""
    rng = np.random.default_rng(11)
    beyond = 0
    for _ in range(1000):
        found = mix_change(
            side(rng, list(range(tasks)), 300, 0.35, together),
            side(rng, list(range(tasks // 2, tasks + tasks // 2)), 300, 0.35, together),
            {"slow": (0.8, 0.0), "fast": (1.6, 0.0)},
        )
        assert found is not None
        beyond += abs(found.change) > 2 * found.error
    assert beyond <= 75
