"""Do the errors cover the truth, for any interaction and number of tasks? Few toys; more in benchmarks."""

import numpy as np
import pytest

from fitters import fit_speed_factors
from tests.fitters.toys import Floats, Toy, make

TOYS = 40
UNITS = 40


def toy_of(rng: np.random.Generator, tasks: int, sigma_int: float) -> Toy:
    """Uneven statistical errors around 5 %; few tasks run everywhere, many on twelve units each."""
    per_task = UNITS if tasks <= 10 else 12
    task = np.repeat(np.arange(tasks), per_task)
    unit = np.concatenate([rng.permutation(UNITS)[:per_task] for _ in range(tasks)])
    rel_var = 0.05**2 * np.exp(rng.normal(0, 0.7, task.size))
    size = np.sqrt(rel_var + sigma_int**2)
    toy = make(rng, UNITS, tasks, sigma=size, layout=(task, unit), law="gamma")
    return Toy(toy.task, toy.unit, toy.value, toy.k, toy.A, None, rel_var)


USUAL = {(0.0, 2), (0.20, 2), (0.05, 5), (0.10, 20), (0.0, 200), (0.20, 200)}
"""The corners, and two between them."""


@pytest.mark.parametrize(
    ("sigma_int", "tasks"),
    [
        pytest.param(sigma_int, tasks, marks=() if (sigma_int, tasks) in USUAL else pytest.mark.matrix)
        for sigma_int in (0.0, 0.05, 0.10, 0.20)
        for tasks in (2, 5, 20, 200)
    ],
)
def test_errors_cover_whatever_the_interaction(sigma_int: float, tasks: int) -> None:
    rng = np.random.default_rng([81, tasks, int(100 * sigma_int)])
    shares: list[tuple[Floats, Floats]] = []
    for _ in range(TOYS):
        toy = toy_of(rng, tasks, sigma_int)
        result = fit_speed_factors(toy.buckets(), "gamma", "floor")
        units = result.units
        assert result.sigma_int.source == "estimated"
        truth = np.log(toy.k[units.name.astype(int)])
        pull = (np.log(units.k) - truth + np.log(np.exp(truth).mean())) * units.k / units.k_err
        shares.append((np.mean(np.abs(pull) < 1), np.mean(np.abs(pull) < 1.96)))
    # pulls of one toy share their scale: the error of a share is that between toys
    for share, expected in zip(np.array(shares).T, (0.6827, 0.95), strict=True):
        assert abs(share.mean() - expected) < 0.015 + 3 * share.std() / np.sqrt(TOYS)
