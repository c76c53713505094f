"""Expectation and surprise: the arrays beside a slow loop, toys, limits."""

import math
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from esjobs.today.expected import (
    CELL_SD,
    FACTOR,
    LAG,
    MEMORY,
    PAIR_SD,
    PASSES,
    TASK_FAILURES,
    Cells,
    Past,
    Prior,
    combined,
    count_surprise,
    efficiency_prior,
    expect,
    failure_prior,
    of_nights,
    onset,
    ratio_surprise,
)

SITES, TASKS, KINDS, DAYS = 4, 5, 2, 15


def cells(seed: int) -> Cells:
    """Sums of random sites and tasks; kind of a task: its number modulo the kinds."""
    rng = np.random.default_rng(seed)
    rows = [
        (age, site, task)
        for age in range(DAYS)
        for site in range(SITES)
        for task in range(TASKS)
        if rng.random() < 0.7
    ]
    age, site, task = np.array(rows).T
    under = rng.uniform(100, 1000, len(rows))
    over = under * rng.uniform(0.3, 0.9, len(rows))
    return Cells(age, site, task, task % KINDS, over, under, np.full(len(rows), 10.0))


def slow(of: Cells, prior: Prior, skip: np.ndarray) -> dict[tuple[int, int], float]:
    """Expected value of each site and task by loops."""
    rows = range(len(of.age))
    older = {s: {of.age[r] for r in rows if of.site[r] == s and of.age[r] > LAG} for s in range(SITES)}
    late = [of.age[r] <= LAG and len(older[of.site[r]]) >= 7 for r in rows]
    weight = [0.0 if of.age[r] == 0 or late[r] else skip[r] * 0.5 ** (of.age[r] / 14) for r in rows]
    level = dict.fromkeys(of.task.tolist(), 1.0)
    for _ in range(PASSES):
        base = slow_base(of, prior, weight, level)
        for task in level:
            mine = [r for r in rows if of.task[r] == task]
            soft = prior.task[of.kind[mine[0]]]
            due = sum(weight[r] * of.under[r] * base[of.site[r], of.kind[r]] for r in mine)
            ratio = (soft + sum(weight[r] * of.over[r] for r in mine)) / (soft + due)
            level[task] = min(max(ratio, FACTOR[0]), FACTOR[1])
    expected = {}
    for r in rows:
        if of.age[r]:
            continue
        seen = due = prior.task[of.kind[r]]
        for q in rows:
            if of.task[q] != of.task[r] or (of.site[q] == of.site[r] and (of.age[q] == 0 or late[q])):
                continue
            part = 1.0 if of.age[q] == 0 else skip[q] * MEMORY ** of.age[q]
            seen += part * of.over[q]
            due += part * of.under[q] * base[of.site[q], of.kind[q]]
        factor = min(max(seen / due, FACTOR[0]), FACTOR[1])
        usual = of.under[r] * base[of.site[r], of.kind[r]]
        expected[int(of.site[r]), int(of.task[r])] = (
            usual * factor * slow_lasting(of, prior, skip, weight, base, r)
        )
    return expected


def slow_base(
    of: Cells, prior: Prior, weight: list[float], level: dict[int, float]
) -> dict[tuple[int, int], float]:
    """Bases by loops; ``level``: of tasks."""
    over: dict[tuple[int, int], float] = defaultdict(float)
    under: dict[tuple[int, int], float] = defaultdict(float)
    for r in range(len(of.age)):
        over[of.site[r], of.kind[r]] += weight[r] * of.over[r]
        under[of.site[r], of.kind[r]] += weight[r] * of.under[r] * level[of.task[r]]
    ratio = sum(over.values()) / sum(under.values())
    grid = []
    for kind in range(KINDS):
        y, w = (sum(values[s, kind] for s in range(SITES)) for values in (over, under))
        grid.append((y + prior.base[kind] * ratio) / (w + prior.base[kind]))
    soft = sum(prior.base[kind] * grid[kind] for kind in range(KINDS)) / KINDS
    base = {}
    for s in range(SITES):
        mine = sum(over[s, kind] for kind in range(KINDS)) + soft
        ratio = mine / (sum(under[s, kind] * grid[kind] for kind in range(KINDS)) + soft)
        for kind in range(KINDS):
            m = prior.base[kind]
            base[s, kind] = (over[s, kind] + m * grid[kind] * ratio) / (under[s, kind] + m)
    return base


def slow_lasting(
    of: Cells,
    prior: Prior,
    skip: np.ndarray,
    weight: list[float],
    base: dict[tuple[int, int], float],
    row: int,
) -> float:
    """Factor of the task of a row at its site, by loops, from the days that a base is learned from."""

    def due(q: int) -> float:
        return float(of.under[q] * base[of.site[q], of.kind[q]])

    same = [q for q in range(len(of.age)) if of.task[q] == of.task[row]]
    past = {q: skip[q] * MEMORY ** of.age[q] for q in same if of.age[q]}
    soft = prior.task[of.kind[row]]
    seen = soft + sum(part * of.over[q] for q, part in past.items())
    usual = min(max(seen / (soft + sum(part * due(q) for q, part in past.items())), FACTOR[0]), FACTOR[1])
    mine = [q for q in same if of.site[q] == of.site[row] and weight[q] > 0]
    if not mine:
        return 1.0
    total = sum(due(q) * usual for q in mine)
    noise = sum(
        (due(q) * usual) ** 2 * (CELL_SD**2 - PAIR_SD**2 + prior.job[of.kind[q]] / of.n[q]) for q in mine
    )
    settled = PAIR_SD**2 / (PAIR_SD**2 + noise / total**2)
    log = settled * math.log(sum(of.over[q] for q in mine) / total)
    return math.exp(min(max(log, -3 * PAIR_SD), 3 * PAIR_SD))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_expectation_equals_that_of_loops(seed: int) -> None:
    of = cells(seed)
    prior = Prior(np.array([300.0, 500.0]), np.array([50.0, 80.0]), np.full(2, 0.1), np.full(2, 0.5))
    skip = np.where(np.random.default_rng(seed).random(len(of.age)) < 0.2, 0.0, 1.0)
    found = expect(of, prior, (SITES, TASKS, KINDS), skip, np.zeros(SITES, np.bool_))
    wanted = slow(of, prior, skip)
    keys = zip(of.site[of.now].tolist(), of.task[of.now].tolist(), strict=True)
    np.testing.assert_allclose(found.value, [wanted[key] for key in keys], rtol=1e-9)


def test_a_task_that_is_slow_everywhere_is_expected_to_be() -> None:
    of = cells(4)
    slowed = np.where(of.now & (of.task == 2), 0.3, 1.0)
    worse = Cells(of.age, of.site, of.task, of.kind, of.over * slowed, of.under, of.n)
    prior = Prior(np.full(2, 300.0), np.full(2, 1.0), np.full(2, 0.1), np.full(2, 0.5))
    keep, nobody = np.ones(len(of.age)), np.zeros(SITES, np.bool_)
    before, after = (expect(each, prior, (SITES, TASKS, KINDS), keep, nobody) for each in (of, worse))
    task = of.task[of.now] == 2
    assert (after.value[task] < 0.995 * before.value[task]).all()
    np.testing.assert_allclose(after.past, before.past)
    np.testing.assert_allclose(after.value[~task], before.value[~task])


def test_what_tasks_differ_by_is_none_of_the_sites_that_ran_them() -> None:
    rng = np.random.default_rng(6)
    of_task, of_site = np.exp(0.3 * rng.standard_normal(20)), np.exp(0.1 * rng.standard_normal(6))
    # each site ran tasks of its own choice; today all run two tasks that some of them know
    runs = rng.random((6, 20)) < 0.5
    rows = [(0, s, t) for s in range(6) for t in (3, 4)]
    rows += [(age, s, t) for age in range(1, 28) for s, t in zip(*np.nonzero(runs), strict=True)]
    age, site, task = np.array(rows).T
    under = np.full(len(rows), 1e4)
    over = 0.5 * under * of_task[task] * of_site[site]
    of = Cells(age, site, task, np.zeros_like(task), over, under, np.full(len(rows), 100.0))
    prior = Prior(np.full(1, 10.0), np.full(1, 10.0), np.full(1, 0.3), np.full(1, 0.2), counts=True)
    found = expect(of, prior, (6, 20, 1), np.ones(len(rows)), np.zeros(6, np.bool_))
    np.testing.assert_allclose(found.value, over[age == 0], rtol=0.03)


def scattered(sd: tuple[float, float], *, counts: bool = False) -> Cells:
    """Two tasks at 30 sites for 21 days, each with a scatter of its own from day to day."""
    rng = np.random.default_rng(5)
    age, site, task = (codes.ravel() for codes in np.meshgrid(np.arange(21), np.arange(30), np.arange(2)))
    of_day = np.exp(np.array(sd) * rng.standard_normal((21, 2)))[age, task]
    under = np.full(len(age), 1000.0)
    over = rng.poisson(30 * of_day) if counts else 700 * of_day * np.exp(0.05 * rng.standard_normal(len(age)))
    return Cells(age, site, task, np.zeros_like(task), over.astype(float), under, np.full(len(age), 500.0))


@pytest.mark.parametrize("counts", [False, True])
def test_the_scatter_of_a_task_from_day_to_day_is_that_of_its_past(counts: bool) -> None:
    sd = (0.0, 0.5) if counts else (0.0, 0.09)
    of = scattered(sd, counts=counts)
    prior = failure_prior(1) if counts else efficiency_prior(of, 1)
    found = expect(of, prior, (30, 2, 1), np.ones(len(of.age)), np.zeros(30, np.bool_))
    steady, restless = (np.unique(found.steady[of.task[of.now] == task]) for task in (0, 1))
    assert len(steady) == len(restless) == 1
    usual = TASK_FAILURES if counts else CELL_SD**2
    # the prior has the weight of five days of twenty-five
    assert steady[0] == pytest.approx(usual * 5 / 25, rel=0.3)
    assert restless[0] == pytest.approx((20 * sd[1] ** 2 + 5 * usual) / 25, rel=0.5)


def test_a_task_without_a_past_scatters_as_usual() -> None:
    of = scattered((0.0, 0.0))
    new = Cells(
        *(values[of.age == 0] for values in (of.age, of.site, of.task, of.kind, of.over, of.under, of.n))
    )
    found = expect(new, efficiency_prior(new, 1), (30, 2, 1), np.ones(60), np.zeros(30, np.bool_))
    np.testing.assert_allclose(found.steady, CELL_SD**2)


def past(observed: np.ndarray, expected: np.ndarray, variance: float = 0.01) -> Past:
    return Past(observed, expected, np.full_like(observed, variance))


def test_surprise_of_efficiency_has_the_tails_that_it_states() -> None:
    rng = np.random.default_rng(7)
    n, sd = 4000, 0.05
    history = 100 * np.exp(sd * rng.standard_normal((n, 28)))
    today = 100 * np.exp(-sd * rng.standard_normal(n))
    found = ratio_surprise(today, np.full(n, 100.0), np.full(n, 0.01), past(history, np.full((n, 28), 100.0)))
    for limit in (1.0, 2.0):
        share = float((found.z > limit).mean())
        assert share == pytest.approx(stats.norm.sf(limit), rel=0.25)


def test_surprise_of_failures_is_not_above_that_of_their_distribution() -> None:
    rng = np.random.default_rng(8)
    n, mean, size = 4000, 20.0, 0.1
    drawn = rng.poisson(mean * rng.gamma(1 / size, size, (n, 29))).astype(float)
    found = count_surprise(
        drawn[:, -1], np.full(n, mean), np.zeros(n), past(drawn[:, :-1], np.full((n, 28), mean))
    )
    assert (found.z > 3).mean() < 3 * stats.norm.sf(3)
    assert found.mean.mean() == pytest.approx(mean, rel=0.02)


def test_ten_failures_where_hardly_one_was_expected_are_surprising_and_none_is_not() -> None:
    history = past(np.zeros((2, 28)), np.full((2, 28), 0.2))
    found = count_surprise(np.array([10.0, 0.0]), np.full(2, 0.2), np.zeros(2), history)
    assert found.z[0] > 4
    assert found.z[1] == -2.0


def test_several_nights_add_up() -> None:
    z = np.array([[np.nan, 0.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 0.0, 40.0]])
    found = of_nights(z)
    np.testing.assert_allclose(found[0], [3, 6 / math.sqrt(2), 9 / math.sqrt(3), 9 / math.sqrt(5)])
    assert found[1].max() == 8.0


def test_categories_count_by_their_number() -> None:
    few, many = np.array([[5.0]]), np.column_stack([[5.0], np.zeros((1, 7))])
    assert combined(np.zeros(1), few)[0] > combined(np.zeros(1), many)[0] > 3.9


def test_an_onset_without_a_past_is_the_night_itself() -> None:
    assert onset(np.array([np.nan, np.nan, 9.0])) == 0
