"""Changes of a ratio and of a sum between windows: toys without a change, planted ones, and closed forms."""

import numpy as np
import pytest
from scipy import stats

from esjobs.records.jobs.questions.changes import Terms, change_of_ratio, change_of_sum


def world(
    rng: np.random.Generator, n_queues: int, n_tasks: int, step: float = 0.0, shared: float = 0.3
) -> Terms:
    """CPU time over wall-clock time; queues, tasks and their pairs differ, some tasks run in both windows.

    ``step``: change of the efficiency of every job after, in ln.
    """
    queue, level = rng.normal(0, 0.1, n_queues), rng.normal(0, 0.2, n_tasks)
    pair = rng.normal(0, 0.08, (n_tasks, n_queues))
    size, popular = rng.lognormal(0, 1, n_tasks), rng.lognormal(0, 1, n_queues)
    both, first = rng.random(n_tasks) < shared, rng.random(n_tasks) < 0.5
    sums: dict[tuple[int, int], list[float]] = {}
    for task in range(n_tasks):
        for window in (0, 1) if both[task] else (0,) if first[task] else (1,):
            for at in np.flatnonzero(rng.random(n_queues) < 0.5).tolist():
                n_jobs = int(rng.poisson(8 * size[task] * popular[at]))
                wall = rng.lognormal(0, 0.5, n_jobs)
                noise = rng.normal(0, 0.1, n_jobs)
                cpu = 0.7 * wall * np.exp(level[task] + queue[at] + pair[task, at] + step * window + noise)
                row = sums.setdefault((task, at), [0.0] * 4)
                row[window] += float(cpu.sum())
                row[2 + window] += float(wall.sum())
    keys, values = np.array(list(sums)), np.array(list(sums.values()))
    task, at = keys.T.copy()
    return Terms(
        np.zeros(len(keys), np.int64), task * n_queues + at, (task, at), values[:, :2].T, values[:, 2:].T
    )


@pytest.mark.parametrize(("n_queues", "n_tasks"), [(40, 60), (12, 15)])
def test_without_a_change_z_is_one_wide(n_queues: int, n_tasks: int) -> None:
    rng = np.random.default_rng(5)
    found = [change_of_ratio(world(rng, n_queues, n_tasks), 1) for _ in range(150)]
    z = np.array([one.z[0] for one in found if not one.few[0]])
    assert len(z) > 80
    assert 0.85 < z.std() < 1.3
    assert np.mean(np.abs(z) < 1.96) > 0.9
    assert np.mean(np.abs(z) > 3) <= 0.01


def test_sums_of_tasks_that_come_and_go_have_not_changed() -> None:
    rng = np.random.default_rng(6)
    z = np.array([change_of_sum(world(rng, 30, 60), 1).z[0] for _ in range(100)])
    assert 0.6 < np.nanstd(z) < 1.2
    assert np.nanmax(np.abs(z)) < 3


def test_a_change_of_all_jobs_is_seen_and_is_within() -> None:
    rng = np.random.default_rng(7)
    found = change_of_ratio(world(rng, 40, 80, step=-0.2, shared=1.0), 1)
    assert found.z[0] < -3
    assert found.within_z[0] < -3
    assert found.within[0] == pytest.approx(-0.13, abs=0.03)
    assert abs(found.mix[0]) < 0.05


def test_another_mix_alone_is_no_change_within() -> None:
    """Two queues of 0.5 and 0.9: tasks move from one to the other, and no job runs otherwise than before."""
    n = 30
    task, queue = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    efficiency = np.where(queue, 0.9, 0.5)
    under = np.stack([np.where(queue, 2.0, 8.0), np.where(queue, 7.0, 3.0)])
    group = np.zeros(2 * n, np.int64)
    found = change_of_ratio(Terms(group, task * 2 + queue, (task,), under * efficiency, under), 1)
    assert (found.within[0], found.mix[0], found.turnover[0]) == pytest.approx((0.0, 0.2, 0.0))


def test_of_alike_clusters_in_one_way_it_is_the_t_of_their_differences() -> None:
    """Tasks of one size in both windows: a paired t test of their ratios, as textbooks have it."""
    rng = np.random.default_rng(8)
    over = rng.normal(0.7, 0.1, (2, 12))
    task, group = np.arange(12), np.zeros(12, np.int64)
    found = change_of_ratio(Terms(group, task, (task,), over, np.ones((2, 12))), 1)
    paired = stats.ttest_rel(over[1], over[0])
    assert found.z[0] == pytest.approx(np.sign(paired.statistic) * stats.norm.isf(paired.pvalue / 2))


def test_few_clusters_have_no_z_and_groups_do_not_touch() -> None:
    rng = np.random.default_rng(9)
    large, small = world(rng, 30, 40), world(rng, 3, 3, shared=1.0)
    joined = Terms(
        np.concatenate([large.group, small.group + 1]),
        np.concatenate([large.cell, small.cell]),
        tuple(np.concatenate(pair) for pair in zip(large.clusters, small.clusters, strict=True)),
        np.concatenate([large.over, small.over], axis=1),
        np.concatenate([large.under, small.under], axis=1),
    )
    found = change_of_ratio(joined, 2)
    assert found.few.tolist() == [False, True]
    assert np.isnan(found.z[1])
    assert found.z[0] == change_of_ratio(large, 1).z[0]


def test_none_in_a_window_is_as_sure_as_counts_are() -> None:
    """4 of 277 jobs failed and none of 278 before: nothing to speak of, although no cell before scatters."""
    task = np.arange(20)
    under = np.full((2, 20), 14.0)
    over = np.zeros((2, 20))
    over[1, :4] = 1.0
    group = np.zeros(20, np.int64)
    found = change_of_ratio(Terms(group, task, (task,), over, under), 1, counted=True)
    assert 0 < found.z[0] < 2.1


def mixed(rng: np.random.Generator, *, step: float = 0.0, shift: float = 0.0) -> Terms:
    """Two kinds of work of 0.6 and 0.9, no task of which runs in both windows.

    ``step``: change of every job after, in ln; ``shift``: of the part of the second kind.
    """
    n = 60
    window, kind = np.repeat([0, 1], n), rng.integers(0, 2, 2 * n)
    level = np.where(kind, 0.9, 0.6) * np.exp(rng.normal(0, 0.05, 2 * n) + step * window)
    size = rng.lognormal(0, 0.5, 2 * n) * np.where(kind & window, 1.0 + shift, 1.0)
    under = np.where(window == np.array([[0], [1]]), size, 0.0)
    task = np.arange(2 * n)
    return Terms(np.zeros(2 * n, np.int64), task, (task,), under * level, under, kind)


def test_kinds_of_work_tell_a_mix_from_a_change_where_no_task_stays() -> None:
    rng = np.random.default_rng(11)
    none = [change_of_ratio(mixed(rng), 1) for _ in range(200)]
    for z in (np.array([one.within_z[0] for one in none]), np.array([one.mix_z[0] for one in none])):  # type: ignore[index]
        assert 0.8 < z.std() < 1.2
        assert np.mean(np.abs(z) > 3) <= 0.02
    other = change_of_ratio(mixed(rng, shift=3.0), 1)
    assert other.mix_z is not None
    assert other.mix[0] > 0.05
    assert other.mix_z[0] > 3
    assert abs(other.within_z[0]) < 3
    worse = change_of_ratio(mixed(rng, step=-0.1), 1)
    assert worse.within[0] == pytest.approx(-0.07, abs=0.025)
    assert worse.within_z[0] < -3
    for one in (*none[:5], other, worse):
        assert one.turnover[0] == pytest.approx(0.0, abs=1e-12)


def test_parts_by_kinds_are_those_of_a_loop() -> None:
    cells = mixed(np.random.default_rng(12), step=-0.05, shift=1.0)
    assert cells.stratum is not None
    shares, ratios = np.zeros((2, 2)), np.zeros((2, 2))
    for kind in (0, 1):
        mine = cells.stratum == kind
        for side in (0, 1):
            shares[side, kind] = cells.under[side, mine].sum() / cells.under[side].sum()
            ratios[side, kind] = cells.over[side, mine].sum() / cells.under[side, mine].sum()
    found = change_of_ratio(cells, 1)
    assert found.within[0] == pytest.approx((shares.mean(axis=0) * (ratios[1] - ratios[0])).sum())
    assert found.mix[0] == pytest.approx((ratios.mean(axis=0) * (shares[1] - shares[0])).sum())


def test_the_share_of_a_part_that_does_not_change_has_a_z_of_one() -> None:
    """Tasks take their nodes by chance: half of the jobs of each run on the first CPU model."""
    rng = np.random.default_rng(13)
    z = []
    for _ in range(200):
        under = np.where(np.repeat([0, 1], 30) == np.array([[0], [1]]), rng.lognormal(0, 0.7, 60), 0.0)
        task, over = np.arange(60), under * rng.beta(5, 5, 60)
        terms = Terms(np.zeros(60, np.int64), task, (task,), over, under)
        z.append(change_of_ratio(terms, 1, share=True).z[0])
    assert 0.8 < np.nanstd(z) < 1.2


def test_the_scatter_of_days_is_the_least_error_and_an_incident_is_none_of_it() -> None:
    """Two queues whose days scatter, jobs of which tell tasks apart no better than a day does."""
    rng = np.random.default_rng(8)
    z: dict[str, list[float]] = {"usual": [], "three bad days": []}
    for _ in range(400):
        level = 0.8 + 0.03 * rng.normal(size=14)
        for name, drop in (("usual", 0.0), ("three bad days", 0.3)):
            of_day = level - drop * np.isin(np.arange(14), (9, 10, 11))
            day, task = np.repeat(np.arange(14), 40), np.arange(14 * 40)
            under = np.zeros((2, len(task)))
            under[(day >= 7).astype(int), task] = rng.gamma(4, 1, len(task))
            over = under * of_day[day]
            cells = Terms(task * 0, task, (task,), over, under)
            sums = [[np.bincount(day, side).astype(float) for side in sides] for sides in (over, under)]
            days = Terms(np.zeros(14, int), np.arange(14), (np.arange(14),), *map(np.stack, sums))
            z[name].append(change_of_ratio(cells, 1, days=days).z[0])
            assert abs(z[name][-1]) <= abs(change_of_ratio(cells, 1).z[0]) + 1e-9
    assert 0.8 < np.std(z["usual"]) < 1.2
    assert np.mean(np.abs(z["usual"]) > 3) < 0.02
    assert np.mean(np.array(z["three bad days"]) < -3) > 0.7
