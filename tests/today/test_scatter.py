"""Levels of queues, and nights with tasks in common: slow loops, planted truth, toys."""

import numpy as np
import pytest

from esjobs.today.expected import NIGHTS, Cells, of_nights
from esjobs.today.scatter import LATEST, covariances, of_latest, overlaps, queue_levels, shared

SITES, TASKS, DAYS = 3, 4, 8


def cells(seed: int) -> Cells:
    """Cells of random sites and tasks, sorted by age, site and task."""
    rng = np.random.default_rng(seed)
    rows = [
        (age, site, task)
        for age in range(DAYS)
        for site in range(SITES)
        for task in range(TASKS)
        if rng.random() < 0.6 and (age, site) != (2, 1)
    ]
    age, site, task = np.array(rows).T
    n = rng.uniform(1, 100, len(rows))
    return Cells(age, site, task, task * 0, n * 0.8, n, n)


@pytest.mark.parametrize("seed", [1, 2])
def test_overlaps_are_cosines_of_the_jobs_by_task(seed: int) -> None:
    of = cells(seed)
    jobs = np.zeros((SITES, DAYS, TASKS))
    jobs[of.site, of.age, of.task] = of.under
    found = overlaps(of, SITES, TASKS, DAYS)
    for site in range(SITES):
        for age in range(DAYS):
            for lag in range(1, min(LATEST, DAYS - age)):
                one, other = jobs[site, age], jobs[site, age + lag]
                size = np.linalg.norm(one) * np.linalg.norm(other)
                assert found[site, age, lag] == pytest.approx(one @ other / size if size else 0.0)
    assert not found[:, :, 0].any()


@pytest.mark.parametrize("foretold", [0.0, 0.5, 1.0])
def test_the_latest_nights_are_beside_what_those_before_foretell(foretold: float) -> None:
    rng = np.random.default_rng(3)
    overlap, of_site = 0.2 * rng.random((SITES, 10, LATEST)), rng.random(SITES)
    z = rng.normal(0, 2, (SITES, 12))
    z[1, -2] = np.nan
    found = of_latest(z, covariances(of_site, overlap), foretold=foretold)
    for site in range(SITES):
        matrix, known = np.eye(LATEST), np.isfinite(z[site, ::-1])
        for age, before in ((a, b) for a in range(LATEST) for b in range(a + 1, LATEST)):
            if known[age] and known[before]:
                matrix[age, before] = matrix[before, age] = of_site[site] * overlap[site, age, before - age]
        value = np.nan_to_num(z[site, ::-1][:LATEST])
        for number, w in enumerate(NIGHTS):
            weight = np.linalg.inv(matrix[w:, w:]) @ matrix[w:, :w].sum(axis=1)
            left = matrix[w:, :w].sum(axis=1) @ weight if foretold else 0.0
            total = value[:w].sum() - foretold * weight @ np.clip(value[w:], -2, 2)
            assert found[site, number] == pytest.approx(total / np.sqrt(matrix[:w, :w].sum() - left))


@pytest.mark.parametrize("planted", [0.0, 0.4, 0.8])
def test_what_nights_share_is_found_and_their_sum_has_the_tails_that_it_states(planted: float) -> None:
    rng = np.random.default_rng(4)
    n, days = 3000, 33
    # tasks live four nights: those of one life share their scatter
    life = (np.arange(days) + np.arange(n)[:, None]) // 4
    lasting = np.take_along_axis(rng.standard_normal((n, days // 4 + n // 4 + 2)), life - life[:, :1], axis=1)
    z = np.sqrt(planted) * lasting + np.sqrt(1 - planted) * rng.standard_normal((n, days))
    overlap = np.zeros((n, days, LATEST))
    for age in range(days):
        for lag in range(1, min(LATEST, days - age)):
            overlap[:, age, lag] = life[:, days - 1 - age] == life[:, days - 1 - age - lag]
    of_site = shared(z[:, :-1], overlap[:, 1:])
    assert of_site.mean() == pytest.approx(planted, abs=0.08)
    found = of_latest(z, covariances(of_site, overlap), foretold=0.0)
    assert (found > 2.0).mean(axis=0) == pytest.approx(0.0228, abs=0.008)
    beside = of_latest(z, covariances(of_site, overlap), foretold=1.0)
    assert (beside > 2.0).mean(axis=0) == pytest.approx(0.0228, abs=0.012)
    if planted > 0.5:
        assert (of_nights(z)[:, -1] > 2.0).mean() > 0.04


def test_levels_of_queues_are_found_whatever_tasks_they_run() -> None:
    rng = np.random.default_rng(5)
    level, task_level, site_level = np.array([0.8, 1.1, 1.0, 1.0]), rng.uniform(0.5, 1.5, 20), (1.3, 0.9)
    queue = rng.integers(0, 4, 4000)
    # poor tasks are rather in the first queue
    task = np.where(queue == 0, rng.integers(0, 12, 4000), rng.integers(6, 20, 4000))
    site = queue // 2
    under = rng.uniform(1, 2, 4000)
    over = under * level[queue] * task_level[task] * np.array(site_level)[site]
    found = queue_levels(queue, site, task, over, under, 1.0)
    assert found[1] / found[0] == pytest.approx(1.1 / 0.8, rel=0.05)
    assert found[2:] == pytest.approx([1.0, 1.0], abs=0.02)


def test_a_queue_without_a_past_is_as_its_site() -> None:
    queue, none = np.array([0, 1, 2]), np.zeros(3)
    assert queue_levels(queue, queue // 2, queue, none, none, 1.0).tolist() == [1.0, 1.0, 1.0]
    empty = np.zeros(0, np.int64)
    assert len(queue_levels(empty, empty, empty, none[:0], none[:0], 1.0)) == 0
