"""The jobs of the made-up grid: deterministic, of the right schema, and true to what is planted."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.rules import CleaningRules
from esjobs.records.demo import LAST_DAY, Grid, PayloadTruth

EXCLUDED = ("pmerge", "hammercloud-fct")
MIN_JOBS = 20
ENDS = ("failed", "timeout", "out_of_memory", "node_fail", "cancelled")


def table(grid: Grid, days: list[date]) -> pa.Table:
    return pa.Table.from_batches([batch for day in days for batch in grid.jobs(day)], PUT_SCHEMA)


def clean(jobs: pd.DataFrame) -> pd.DataFrame:
    efficiency = jobs.cpu_s / (jobs.wall_s * jobs.cores)
    kept = jobs[
        (jobs.state.fillna("finished") == "finished")
        & (jobs.events >= 1)
        & (jobs.cores >= 1)
        & (jobs.wall_s > 60)
        & (efficiency > 0)
        & (efficiency < 2)
        & ~jobs.processing_type.isin(EXCLUDED)
        & jobs.task_id.notna()
    ]
    unit = kept.task_id + np.where(kept.cores > 1, " multi ", " single ") + kept.processing_type
    return kept.assign(unit=unit)


def cells(jobs: pd.DataFrame, by: str) -> pd.DataFrame:
    """CPU time per event of task x core class x ``by``, with enough jobs and something to compare with."""
    grouped = jobs.groupby(["unit", by], as_index=False)
    sums = grouped.agg(n=("cpu_s", "size"), cpu_s=("cpu_s", "sum"), events=("events", "sum"))
    enough = sums[sums.n >= MIN_JOBS]
    return enough[enough.groupby("unit")[by].transform("size") >= 2]


def speeds(sums: pd.DataFrame, by: str) -> pd.Series:
    """ln of the speed up to a constant: additive in task and name, solved by alternating means."""
    name, unit = sums[by].astype("category").cat, sums.unit.astype("category").cat
    i, a = name.codes.to_numpy(), unit.codes.to_numpy()
    slowness = np.log((sums.cpu_s / sums.events).to_numpy())
    speed = np.zeros(len(name.categories))
    for _ in range(100):
        task = np.bincount(a, slowness + speed[i]) / np.bincount(a)
        speed = np.bincount(i, task[a] - slowness) / np.bincount(i)
    return pd.Series(speed - np.median(speed), index=name.categories)


def components(sums: pd.DataFrame) -> list[set[str]]:
    """Queues joined by common tasks, largest set first."""
    groups: list[set[str]] = []
    for _, queues in sums.groupby("unit").queue:
        joined = set(queues)
        apart = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return sorted(groups, key=len, reverse=True)


@pytest.fixture(scope="module")
def grid() -> Grid:
    return Grid.of_size(300_000, seed=1)


@pytest.fixture(scope="module")
def jobs(grid: Grid) -> pd.DataFrame:
    frame: pd.DataFrame = table(grid, grid.days(300_000)).to_pandas()
    return frame


@pytest.fixture(scope="module")
def kept(jobs: pd.DataFrame) -> pd.DataFrame:
    return clean(jobs)


@pytest.fixture(scope="module")
def payloads(grid: Grid) -> list[PayloadTruth]:
    first = grid.days(300_000)[0] - timedelta(days=5)
    return [payload for n in range(35) for payload in grid.tasks(first + timedelta(days=n))]


def test_a_day_is_a_pure_function_of_the_seed() -> None:
    days = [date(2025, 6, 3), date(2025, 6, 1), date(2024, 2, 29)]
    grid, twin = Grid(seed=5, jobs_per_day=3000), Grid(seed=5, jobs_per_day=3000)
    forward = {day: table(grid, [day]) for day in days}
    for day in reversed(days):
        assert table(twin, [day]).equals(forward[day])
    assert not table(Grid(seed=6, jobs_per_day=3000), [days[0]]).equals(forward[days[0]])
    assert not forward[days[0]].drop(["end_time"]).equals(forward[days[1]].drop(["end_time"]))


def test_batches_are_bounded_and_ordered() -> None:
    day = date(2025, 6, 1)
    batches = list(Grid(jobs_per_day=150_000).jobs(day))
    assert [batch.num_rows for batch in batches] == [65_536, 65_536, 18_928]
    assert all(batch.schema.equals(PUT_SCHEMA) for batch in batches)
    whole = pa.Table.from_batches(batches)
    whole.validate(full=True)
    ends = whole["end_time"].to_pandas()
    assert ends.is_monotonic_increasing
    assert set(ends.dt.date) == {day}
    assert len(whole["job_id"].unique()) == 150_000
    assert whole["origin_line"].to_pylist() == list(range(1, 150_001))
    assert whole["origin_file"].unique().to_pylist() == ["grid-2025-06-01"]


def test_required_fields_are_there_and_times_run_forward(jobs: pd.DataFrame) -> None:
    assert len(jobs) == 300_000
    assert jobs.job_id.is_unique
    assert jobs[["source", "job_id", "queue", "end_time", "processing_type"]].notna().all().all()
    assert (jobs.submit_time <= jobs.start_time).all()
    assert (jobs.start_time < jobs.end_time).all()
    assert ((jobs.end_time - jobs.start_time).dt.total_seconds() == jobs.wall_s).all()
    numbers = jobs.select_dtypes("number").drop(columns="cores")
    assert (numbers.fillna(0) >= 0).all().all()
    assert jobs.exe_s.min() > 0
    assert set(jobs.cores.dropna()) == {1, 8}


@pytest.mark.parametrize(("n_jobs", "days"), [(300_000, 30), (1000, 30), (20_000, 3), (7, 7)])
def test_days_hold_about_the_jobs_asked_for(n_jobs: int, days: int) -> None:
    grid = Grid.of_size(n_jobs, days=days)
    listed = grid.days(n_jobs)
    assert listed[-1] == LAST_DAY
    assert len(listed) == pytest.approx(days, abs=1)
    assert sum(b.num_rows for day in listed for b in grid.jobs(day)) == pytest.approx(n_jobs, rel=0.05)


def test_shares_are_heavy_tailed_but_most_queues_can_be_judged(
    grid: Grid, jobs: pd.DataFrame, kept: pd.DataFrame
) -> None:
    share = jobs.queue.value_counts(normalize=True)
    assert len(share) == 60
    assert share.iloc[:6].sum() > 0.35
    assert share.median() < 0.7 / 60
    tasks = cells(kept, "queue").groupby("queue").unit.nunique()
    assert tasks.median() >= 20
    assert (tasks >= 8).sum() >= 56
    assert cells(kept, "queue").groupby("unit").queue.nunique().max() >= 30
    sizes = kept.task_id.value_counts()
    assert sizes.max() > 12 * sizes.median()
    for name in grid.truth().misdeclared:
        assert tasks[name] >= 5


def test_types_and_core_classes_are_mixed(jobs: pd.DataFrame, kept: pd.DataFrame) -> None:
    assert set(kept.processing_type) == {"evgen", "simul", "pile", "reprocessing", "deriv"}
    assert kept.processing_type.value_counts(normalize=True).min() > 0.03
    assert set(jobs.processing_type) - set(kept.processing_type) == set(EXCLUDED)
    assert 0.002 < jobs.processing_type.isin(EXCLUDED).mean() < 0.05
    assert 0.25 < (kept.cores > 1).mean() < 0.85
    assert kept.groupby("task_id").cores.nunique().max() == 2
    assert kept.wall_s.between(300, 10 * 86400).all()


def test_days_share_tasks(jobs: pd.DataFrame) -> None:
    days = jobs.assign(day=jobs.end_time.dt.date).groupby("task_id")["day"].nunique()
    assert days.max() == 6
    assert (days >= 2).mean() > 0.5


def test_dirty_rows_of_every_kind(jobs: pd.DataFrame) -> None:
    efficiency = jobs.cpu_s / (jobs.wall_s * jobs.cores)
    found = {
        "failed": jobs.state.isin(ENDS).mean(),
        "state missing": jobs.state.isna().mean(),
        "no CPU time": (jobs.cpu_s == 0).mean(),
        "no events": ((jobs.events == 0) & ~jobs.state.isin(ENDS)).mean(),
        "cores missing": jobs.cores.isna().mean(),
        "efficiency above 2": (efficiency > 2).mean(),
        "wall time of 5 s": (jobs.wall_s == 5).mean(),
        "task missing": jobs.task_id.isna().mean(),
        "CPU string missing": jobs.cpu_raw.isna().mean(),
    }
    planted = {"failed": 0.012, "cores missing": 0.002, "efficiency above 2": 0.002}
    planted |= {"wall time of 5 s": 0.002, "task missing": 0.002}
    for defect, fraction in found.items():
        assert fraction == pytest.approx(planted.get(defect, 0.003), rel=0.3), defect
    assert 0.025 < sum(found.values()) < 0.04


def test_the_types_left_out_are_those_that_the_rules_exclude() -> None:
    excluded = CleaningRules().excluded_types
    assert "pmerge" in excluded
    assert "hammercloud*" in excluded


def test_normalised_work_holds_the_declared_constant(grid: Grid, jobs: pd.DataFrame) -> None:
    whole = jobs[jobs.cores.notna() & (jobs.wall_s > 60)]
    ratio = (whole.hs06_s / (whole.wall_s * whole.cores)).groupby(whole.queue).agg(["min", "max"])
    for queue in grid.truth().queues:
        smallest, largest = ratio["min"][queue.name], ratio["max"][queue.name]
        if queue.declared is None:
            assert np.isnan([smallest, largest]).all()
        else:
            assert (smallest, largest) == pytest.approx((queue.declared, queue.declared), rel=1e-3)


def test_one_main_component_and_the_island(grid: Grid, kept: pd.DataFrame) -> None:
    main, island = components(cells(kept, "queue"))
    assert island == set(grid.truth().island)
    assert len(main) >= 54
    together = components(kept[["unit", "queue"]].drop_duplicates())
    assert together == [{queue.name for queue in grid.truth().queues} - island, island]


def test_true_speeds_of_queues_can_be_found(grid: Grid, kept: pd.DataFrame) -> None:
    truth = grid.truth()
    found = speeds(cells(kept[~kept.queue.isin(truth.island)], "queue"), "queue")
    error = found - np.log([truth.queue(name).speed for name in found.index])
    error -= error.median()
    short = np.asarray([truth.queue(name).short_jobs for name in found.index])
    assert error[~short].abs().max() < 0.08
    assert error[~short].std() < 0.03
    assert (error[short] < -0.01).all()  # start-up time makes short jobs look slow
    assert (error[short] > -0.2).all()


def test_planted_declarations_are_found_by_a_plain_estimate(grid: Grid, kept: pd.DataFrame) -> None:
    truth = grid.truth()
    found = speeds(cells(kept[~kept.queue.isin(truth.island)], "queue"), "queue")
    own = [name for name in found.index if truth.queue(name).origin in {"own", "inherited"}]
    deviation = found[own] - np.log([truth.queue(name).declared or np.nan for name in own])
    deviation = np.expm1(deviation - deviation.median())
    score = grid.score({name: "confirmed" if abs(d) > 0.2 else "ok" for name, d in deviation.items()})
    assert score.found == truth.misdeclared
    assert score.others == ()


def test_true_speeds_of_cpu_models_can_be_found(grid: Grid, kept: pd.DataFrame) -> None:
    truth = grid.truth()
    model = {raw: cpu.name for cpu in truth.cpu_models for raw in cpu.raw}
    named = kept[kept.cpu_raw.notna()]
    long = named[~named.queue.isin([queue.name for queue in truth.queues if queue.short_jobs])]
    found = speeds(cells(long.assign(model=long.cpu_raw.map(model)), "model"), "model")
    true = {cpu.name: cpu.speed for cpu in truth.cpu_models}
    error = found - np.log([true[name] for name in found.index])
    assert len(found) >= 38
    assert (error - error.median()).abs().max() < 0.12
    assert error.std() < 0.04


def test_fixed_costs_are_where_they_are_planted(kept: pd.DataFrame, payloads: list[PayloadTruth]) -> None:
    fixed = {p.task_id: p.fixed_events for p in payloads if p.fixed_events > 0}
    share = kept.task_id.isin(fixed).mean()
    assert 0.05 < share < 0.4
    largest = kept[kept.task_id.isin(fixed)].groupby("unit").size().idxmax()
    jobs = kept[kept.unit == largest]
    per_event = pd.Series(np.log(jobs.cpu_s / jobs.events))
    events = pd.Series(np.log(jobs.events.astype(float)))
    centred = events - events.groupby(jobs.queue).transform("mean")
    slope = (centred * per_event).sum() / (centred**2).sum()
    assert -0.95 < slope < -0.2


def test_the_mixed_task_holds_two_kinds_in_one_core_class(
    kept: pd.DataFrame, payloads: list[PayloadTruth]
) -> None:
    merging = [p for p in payloads if p.transformation == "EVNTMerge_tf.py"]
    assert len(merging) == 1
    jobs = kept[kept.task_id == merging[0].task_id]
    assert len(jobs) > 200
    assert set(jobs.cores) == {1}
    assert jobs.transformation.value_counts(normalize=True).min() > 0.2
    median = (jobs.cpu_s / jobs.events).groupby(jobs.transformation).median()
    assert median["Gen_tf.py"] / median["EVNTMerge_tf.py"] == pytest.approx(10, rel=0.2)
    kinds = jobs.groupby("queue").transformation.value_counts(normalize=True)
    assert kinds.max() > 0.7  # queues get the kinds in different proportions


def test_the_planted_work_is_what_jobs_take(
    grid: Grid, kept: pd.DataFrame, payloads: list[PayloadTruth]
) -> None:
    speed = {raw: cpu.speed for cpu in grid.truth().cpu_models for raw in cpu.raw}
    plain = kept[kept.cpu_raw.notna()]
    counts = pd.Series([p.task_id for p in payloads]).value_counts()
    tasks = pd.DataFrame([vars(p) for p in payloads]).set_index("task_id")[["work_hs06_s", "fixed_events"]]
    plain = plain[plain.task_id.isin(counts[counts == 1].index)].join(tasks, on="task_id")
    expected = plain.work_hs06_s * (plain.fixed_events + plain.events) / plain.cpu_raw.map(speed)
    residual = np.log(plain.cpu_s / expected)
    assert residual.mean() == pytest.approx(0.0, abs=0.01)
    assert residual.std() == pytest.approx((0.04**2 + 0.05**2) ** 0.5, rel=0.1)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_any_seed_gives_a_main_component_and_an_island(seed: int) -> None:
    grid = Grid.of_size(80_000, seed=seed, days=8)
    kept = clean(table(grid, grid.days(80_000)).to_pandas())
    truth = grid.truth()
    groups = components(kept[["unit", "queue"]].drop_duplicates())
    assert set(truth.island) in groups
    main = groups[0]
    assert not main & set(truth.island)
    assert len(main) >= 54
    assert set(truth.misdeclared) <= main
    firm = components(cells(kept, "queue"))
    assert len(firm[0]) >= 48


def test_larger_grids_have_more_of_everything() -> None:
    day = date(2025, 6, 1)
    large = Grid(seed=2, jobs_per_day=60_000, n_queues=150, n_models=44)
    jobs = table(large, [day]).to_pandas()
    assert jobs.queue.nunique() > 140
    assert jobs.task_id.nunique() > 100
    assert Grid(jobs_per_day=60_000, tasks_per_day=10).tasks(day) != large.tasks(day)
