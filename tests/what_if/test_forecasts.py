"""Forecasts over stored jobs: sums by hand in SQL, orders and ranks, wrong inputs."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoJobsError, NoResultError, UsageError
from esjobs.core.states import FAILED
from esjobs.what_if.finishing import DRAWS, _days_needed
from tests.messages import raised

TASK = "22957682"
FROM, TO = "YEW-HEP", "MYRTLE-LCG2_UCORE"


@pytest.fixture(scope="module")
def demo(demo_folder: Path) -> Iterator[Session]:
    with esjobs.open(f"duckdb:{demo_folder / 'demo.duckdb'}", read_only=True) as session:
        yield session


@pytest.fixture(scope="module")
def busy(demo: Session) -> tuple[str, str, str]:
    """A task that many queues ran, and two of these, most jobs first."""
    tasks = demo.tables.tasks(top=200).to_pandas()
    (task, *_) = tasks[(tasks.n_queues > 20) & tasks.decision.isin(["kept", "corrected"])].task_id
    rows = demo.query("queue", "jobs", where=f"task_id={task}", sort="jobs").rows.to_pylist()
    return task, rows[0]["queue"], rows[1]["queue"]


def sql(text: str, *values: object) -> list[dict[str, Any]]:
    cursor = duckdb.execute(text, [*values])
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_a_task_that_both_queues_ran_is_forecast_within_its_interval(
    demo: Session, busy: tuple[str, str, str]
) -> None:
    task, origin, target = busy
    answer = demo.what_if.move(origin, target, task=task)
    (row,) = answer.rows.to_pylist()
    assert row["reason"] is None
    assert row["cpu_s_low"] < row["cpu_s_low_68"] < row["cpu_s"] < row["cpu_s_high_68"] < row["cpu_s_high"]
    # what the target really ran lies near: it is no part of the forecast
    assert (
        abs(np.log(row["observed_cpu_s"] / row["cpu_s"]))
        < 3 * np.log(row["cpu_s_high"] / row["cpu_s"]) / 1.645
    )
    where = f"WHERE task_id = '{task}' AND queue = '{origin}'"
    sums = "SELECT sum(n_jobs) AS n, sum(cpu_s) AS cpu_s, sum(events) AS events FROM buckets "
    buckets = demo.sql(sums + where).rows.to_pylist()[0]
    assert (row["n_jobs"], row["cpu_s_from"]) == (buckets["n"], buckets["cpu_s"])
    assert row["events_per_job"] == pytest.approx(buckets["events"] / buckets["n"])
    assert row["wall_s"] == pytest.approx(
        row["job_cpu_s"] / row["efficiency"] / (8 if row["core_class"] == "multi" else 1), rel=0.2
    )
    assert row["job_cpu_s_low"] < row["cpu_s_low"] / row["n_jobs"]
    assert any("calibration: 90 % intervals hold 0." in note for note in answer.notes)


def test_a_number_of_jobs_scales_the_forecast_and_widens_it(
    demo: Session, busy: tuple[str, str, str]
) -> None:
    task, origin, target = busy
    (every,) = demo.what_if.move(origin, target, task=task).rows.to_pylist()
    (some,) = demo.what_if.move(origin, target, task=task, jobs=10).rows.to_pylist()
    assert some["n_jobs"] == 10
    assert some["cpu_s"] == pytest.approx(every["cpu_s"] * 10 / every["n_jobs"])
    assert some["cpu_s_high"] / some["cpu_s"] > every["cpu_s_high"] / every["cpu_s"]


def test_a_type_is_the_sum_of_its_tasks(demo: Session) -> None:
    kinds = {row["processing_type"] for row in demo.query("processing_type").rows.to_pylist()}
    kind = "simul" if "simul" in kinds else sorted(kinds)[0]
    queues = demo.query("queue", "jobs", where=f"processing_type={kind}", sort="jobs").rows.to_pylist()
    origin, target = queues[0]["queue"], queues[1]["queue"]
    (row,) = demo.what_if.move(origin, target, processing_type=kind).rows.to_pylist()
    conditions = (f"queue={origin}", f"processing_type={kind}")
    tasks = demo.query("task_id", where=conditions).rows["task_id"].to_pylist()
    single = [
        part
        for task in sorted(filter(None, tasks))
        for part in demo.what_if.move(origin, target, task=task).rows.to_pylist()
        if part["processing_type"] == kind and part["reason"] is None
    ]
    assert row["n_jobs"] == sum(part["n_jobs"] for part in single)
    # of the single ones the task is taken out of the factors
    assert row["cpu_s"] == pytest.approx(sum(part["cpu_s"] for part in single), rel=0.03)
    widths = [part["cpu_s_high"] / part["cpu_s"] for part in single]
    assert 1 < row["cpu_s_high"] / row["cpu_s"] < np.mean(widths)


def test_moves_that_make_no_sense(demo: Session, busy: tuple[str, str, str], session: Session) -> None:
    task, origin, target = busy
    with raised(UsageError):
        demo.what_if.move(origin, target)
    with raised(UsageError):
        demo.what_if.move(origin, "NOWHERE", task=task)
    with raised(UsageError):
        demo.what_if.move(origin, origin, task=task)
    with raised(UsageError):
        demo.what_if.move(origin, target, task="4711")
    with pytest.raises(NoResultError):
        session.what_if.move(origin, target, task=task)


def test_free_cores_by_measured_score_and_efficiency(demo: Session, demo_folder: Path) -> None:
    answer = demo.what_if.place_cores(500)
    rows = answer.rows.to_pylist()
    flags = demo.tables.flags(level="queue", type="all").to_pandas()
    estimate = flags[flags.method == "gamma"].set_index("name").estimate
    for row in rows:
        assert row["score"] == pytest.approx(estimate[row["queue"]])
        assert row["work_h"] == pytest.approx(500 * row["score"] * row["efficiency"])
        above = [each for each in rows if each["work_h_low"] > row["work_h_high"]]
        assert row["rank"] == 1 + len(above)
        overlapping = [each for each in rows if each["work_h_low"] <= row["work_h_high"]]
        assert row in overlapping
    by_hand = sql(
        "SELECT queue, quantile_cont(queue_s, 0.5) AS waiting, max(max_rss_b / cores) AS memory "
        "FROM read_parquet(?) GROUP BY queue",
        str(demo_folder / "jobs.parquet"),
    )
    expected = {row["queue"]: row for row in by_hand}
    assert len(rows) > 40
    for row in rows:
        assert row["waiting_p50_s"] == pytest.approx(expected[row["queue"]]["waiting"], rel=0.01)


def test_memory_and_type_restrict_the_queues(demo: Session) -> None:
    every = demo.what_if.place_cores(1000).rows.to_pylist()
    limit = sorted(row["mem_per_core_max_gb"] for row in every if row["mem_per_core_max_gb"])[-5] * 1000
    fitting = demo.what_if.place_cores(1000, memory_mb=limit)
    assert len(fitting) == 5
    assert any("so much memory" in note for note in fitting.notes)
    with pytest.raises(NoJobsError):
        demo.what_if.place_cores(1000, processing_type="nothing")


def test_chance_to_finish_grows_with_time_and_falls_with_jobs(
    demo: Session, busy: tuple[str, str, str]
) -> None:
    task, *_ = busy

    def chances(due: str, jobs: int) -> dict[str, float]:
        rows = demo.what_if.finish(task, due, jobs=jobs).rows.to_pylist()
        shown = [row["p_done"] for row in rows if row["p_done"] is not None]
        assert shown == sorted(shown, reverse=True)
        return {row["queue"]: row["p_done"] for row in rows if row["p_done"] is not None}

    soon, later, more = chances("2025-07-05", 200), chances("2025-07-25", 200), chances("2025-07-25", 2000)
    assert soon.keys() == later.keys()
    assert all(later[queue] >= soon[queue] for queue in soon)
    assert all(later[queue] >= more[queue] for queue in soon)
    assert max(later.values()) > 0.5
    assert chances("2025-07-05", 200) == soon
    with raised(UsageError):
        demo.what_if.finish(task, date(2025, 6, 1))


def test_days_needed_by_hand() -> None:
    rng = np.random.default_rng(0)
    need = np.full(DRAWS, 2.5 * 4 * 86_400.0)
    assert _days_needed(need, np.full(28, 4.0), rng) == pytest.approx(np.full(DRAWS, 2.5))
    assert np.isinf(_days_needed(need, np.zeros(28), rng)).all()


def test_another_declaration_changes_credit_share_and_rank(demo: Session) -> None:
    hours = {
        row["queue"]: row["core_h"]
        for row in demo.query("queue", "core_h", window="2025-06-01/2025-07-01").rows.to_pylist()
    }
    flags = demo.tables.flags(level="queue", type="all").to_pandas()
    declared = (
        flags[(flags.method == "gamma") & (flags.benchmark == "HS06")].set_index("name").corepower.dropna()
    )
    queue = declared.index[len(declared) // 2]
    (row,) = demo.what_if.declare({queue: 2 * declared[queue]}).rows.to_pylist()
    assert row["declared"] == declared[queue]
    assert row["credit_h"] == pytest.approx(hours[queue] * declared[queue])
    assert row["change_h"] == pytest.approx(row["credit_h"])
    assert row["share"] < row["share_new"] < 2 * row["share"]
    assert row["rank_new"] <= row["rank"]
    assert row["measured_low"] < row["measured"] < row["measured_high"]
    with raised(UsageError):
        demo.what_if.declare({queue: -1.0})
    with raised(UsageError):
        demo.what_if.declare({"NOWHERE": 10.0})


def test_each_site_loses_what_it_loses_alone(demo: Session) -> None:
    every = demo.what_if.drain().rows.to_pylist()
    works = [row["work_h_per_day"] for row in every if row["work_h_per_day"] is not None]
    assert works == sorted(works)
    assert sum(row["grid_share"] for row in every) == pytest.approx(1)
    for row in every[:: len(every) // 5]:
        alone = demo.what_if.drain(row["site"]).rows.to_pylist()
        (same,) = [
            each
            for each in alone
            if (each["processing_type"], each["benchmark"]) == ("all", row["benchmark"])
        ]
        assert {name: row[name] for name in same if name in row} == pytest.approx(
            {name: same[name] for name in same if name in row}
        )
        (asked,) = demo.query(
            "site",
            ["core_h", "lost_core_h"],
            where=[f"site={row['site']}"],
            window="2025-06-03/2025-07-01",
        )
        # the hours of a failed job are lost once, idle or not
        finished = [f"site={row['site']}", "state=finished"]
        (ran,) = demo.query("site", ["idle_core_h"], where=finished, window="2025-06-03/2025-07-01")
        wasted = ((asked["lost_core_h"] or 0) + (ran["idle_core_h"] or 0)) / asked["core_h"]
        assert row["wasted_share"] == pytest.approx(wasted)


def test_a_drained_site_loses_its_mean_day(demo: Session, demo_folder: Path) -> None:
    queue = "YEW-HEP"
    answer = demo.what_if.drain(queue)
    rows = {row["processing_type"]: row for row in answer.rows.to_pylist()}
    days = sql(
        "SELECT coalesce(processing_type, 'none') AS kind, sum(wall_s * cores) / 3600 / 28 AS h "
        "FROM read_parquet(?) WHERE queue = ? AND state = 'finished' "
        "AND end_time >= '2025-06-03' AND end_time < '2025-07-01' GROUP BY ALL",
        str(demo_folder / "jobs.parquet"),
        queue,
    )
    for row in days:
        assert rows[row["kind"]]["core_h_per_day"] == pytest.approx(row["h"])
    assert rows["all"]["core_h_per_day"] == pytest.approx(sum(row["h"] for row in days))
    score = {row["queue"]: row["score"] for row in demo.what_if.place_cores(1).rows.to_pylist()}[queue]
    assert rows["all"]["work_h_per_day"] == pytest.approx(rows["all"]["core_h_per_day"] * score)
    assert 0 < rows["all"]["work_h_per_day_err"] < 0.1 * rows["all"]["work_h_per_day"]
    with raised(NoJobsError):
        demo.what_if.drain("NOWHERE")


def test_machines_by_price_and_power(demo: Session, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "cpu_model,price,cores,power_w\nAMD EPYC 7302 16-Core Processor,4000,64,400\n"
        "AMD EPYC 9654,20000,384,\n",
        encoding="utf-8",
    )
    rows = {row["cpu_model"]: row for row in demo.what_if.buy(prices).rows.to_pylist()}
    row = rows["AMD EPYC 7302"]
    assert row["score_per_eur"] == pytest.approx(row["score"] * 64 / 4000)
    assert row["work_per_kwh"] == pytest.approx(row["score"] * 64 / 0.4)
    relative = row["score_err"] / row["score"]
    assert row["work_per_kwh_err"] == pytest.approx(row["work_per_kwh"] * np.hypot(relative, 0.10))
    assert rows["AMD EPYC 9654"]["work_per_kwh"] is None
    listed = list(rows)
    assert {listed[0], listed[1]} == {"AMD EPYC 9654", "AMD EPYC 7302"}
    flags = demo.tables.flags(level="cpu_model", type="all").to_pandas()
    estimate = flags[flags.method == "gamma"].set_index("name").estimate.dropna()
    assert {name: rows[name]["score"] for name in estimate.index} == pytest.approx(estimate.to_dict())


@pytest.mark.parametrize(
    "text",
    [
        "cpu_model,cost\nAMD EPYC 7302,4000\n",
        "cpu_model,price\nAMD EPYC 7302,cheap\n",
        "cpu_model,price\nAMD EPYC 7302,-1\n",
        "cpu_model,price\nAMD EPYC 7302,\n",
        "cpu_model,price\n,5\n",
    ],
)
def test_broken_prices(demo: Session, tmp_path: Path, text: str) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(text, encoding="utf-8")
    with raised(InputError):
        demo.what_if.buy(prices)


def test_power_of_a_reference_table(session: Session, tmp_path: Path) -> None:
    from esjobs.what_if.buying import _machines

    table = tmp_path / "hs23.csv"
    table.write_text(
        "CPU,SMT enabled,Threads/core,Ncores,Score,electric_power_mean\n"
        "AMD EPYC 7302 16-Core Processor,1,2,64,1000,320\nAMD EPYC 7302 16-Core Processor,1,2,64,1010,-\n",
        encoding="utf-8",
    )
    session.declared.import_references(table, form="hepix-hs23")
    assert _machines(session.store) == {"AMD EPYC 7302": {"cores": 64.0, "power_w": 320.0}}


def test_the_profile_of_a_task(demo: Session, demo_folder: Path, busy: tuple[str, str, str]) -> None:
    task, *_ = busy
    answer = demo.what_if.task(task)
    rows = answer.rows.to_pylist()
    by_hand = sql(
        "SELECT queue, count(*) AS n, count(*) FILTER (list_contains(?, state)) AS failed, "
        "max(wall_s) AS longest FROM read_parquet(?) WHERE task_id = ? GROUP BY queue",
        [*FAILED],
        str(demo_folder / "jobs.parquet"),
        task,
    )
    expected = {row["queue"]: (row["n"], row["failed"], row["longest"]) for row in by_hand}
    others = sql(
        "SELECT queue, avg(CASE WHEN list_contains(?, state) THEN 1 ELSE 0 END) AS rate "
        "FROM read_parquet(?) WHERE task_id IS DISTINCT FROM ? GROUP BY queue",
        [*FAILED],
        str(demo_folder / "jobs.parquet"),
        task,
    )
    rates = {row["queue"]: row["rate"] for row in others}
    assert all(row["usual_failure_rate"] == pytest.approx(rates[row["queue"]]) for row in rows)
    assert {row["queue"]: (row["n_jobs"], row["failed"], row["wall_max_s"]) for row in rows} == expected
    ratios = np.array([row["cpu_ratio"] for row in rows if row["cpu_ratio"] is not None])
    held = [row["cpu_ratio_low"] < 1 < row["cpu_ratio_high"] for row in rows if row["cpu_ratio"] is not None]
    assert abs(np.median(np.log(ratios))) < 0.1
    assert np.mean(held) > 0.7
    progress = demo.what_if.progress(task).rows.to_pylist()
    assert sum(row["jobs"] for row in progress) == demo.query(where=f"task_id={task}").rows["jobs"][0].as_py()
    assert [row["day"] for row in progress] == sorted(row["day"] for row in progress)
    with raised(UsageError):
        demo.what_if.task("4711")


def story_row(queue: str, **changes: Any) -> dict[str, Any]:
    base = {"queue": queue, "n_jobs": 100, "failed": 1, "failure_rate": 0.01, "usual_failure_rate": 0.01}
    return base | {"n_sigma": 0.5, "cpu_ratio": 1.02, "wall_p50_s": 100.0, "wall_max_s": 200.0} | changes


def test_site_or_task() -> None:
    from esjobs.what_if.task import _site_or_task, _stragglers

    quiet = [story_row(name) for name in "ABCD"]
    assert _site_or_task(quiet).startswith("failures are as usual")
    slow = [story_row("A", n_sigma=5.0, cpu_ratio=1.4), *quiet[1:]]
    assert _site_or_task(slow).endswith("site: CPU time is off at A +40 %")
    one = [story_row("A", failed=30, failure_rate=0.3), *quiet[1:]]
    assert _site_or_task(one).startswith("site: more failures than usual at A (30 %)")
    every = [story_row(name, failed=30, failure_rate=0.3) for name in "ABCD"]
    assert _site_or_task(every).startswith("task: 30 % of its jobs fail")
    sick = [story_row("A", failed=30, failure_rate=0.3, usual_failure_rate=0.28), *quiet[1:]]
    assert _site_or_task(sick).startswith(
        "site: many jobs of all tasks fail at A (30 %, 28 % of its other jobs)"
    )
    assert _stragglers(quiet) == []
    assert "A (5.0 x the median)" in _stragglers([story_row("A", wall_max_s=500.0)])[0]


def test_unknown_walls_and_rates_are_no_stragglers_and_no_failures() -> None:
    from esjobs.what_if.task import _site_or_task, _stragglers

    only = story_row("A", failed=30, failure_rate=0.3, usual_failure_rate=None)
    assert _site_or_task([only]).startswith("failures are as usual")
    row = story_row("A", failure_rate=None, wall_p50_s=None, wall_max_s=None, n_sigma=None, cpu_ratio=None)
    assert _stragglers([row]) == []
    assert _site_or_task([row]).startswith("failures are as usual")


def test_commands_print_rows_and_notes(demo_folder: Path, busy: tuple[str, str, str]) -> None:
    from tests.cli.running import run

    task, origin, target = busy
    store = ("--store", f"duckdb:{demo_folder / 'demo.duckdb'}")
    moved = run(
        *store, "what-if", "move", "--task", task, "--from", origin, "--to", target, "--format", "csv"
    )
    assert moved.stdout.splitlines()[0].startswith("task_id,core_class,processing_type,from,to,n_jobs")
    assert "calibration" in moved.stderr
    due = str(date(2025, 7, 1) + timedelta(days=9))
    for words in (
        ("what-if", "place", "--top", "3"),
        ("what-if", "place", "--task", task, "--due", due),
        ("what-if", "declare", f"{origin}=11"),
        ("what-if", "drain", "YEW-HEP"),
        ("what-if", "buy", "--top", "3"),
        ("task", task),
        ("task", task, "--progress"),
    ):
        assert run(*store, *words).stdout.strip(), words
    assert run(*store, "what-if", "place", "--task", task).exit_code == 2
    assert run(*store, "what-if", "declare", "nonsense").exit_code == 2
