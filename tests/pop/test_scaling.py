"""Scaling of applications against numbers made by hand, and changes of them from one day on."""

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.pop.changes import change_rows
from esjobs.pop.scaling import scaling_rows
from tests.pop.reports import minimal, put_job, written

DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def run(cpus: int, elapsed: float, efficiency: float, **members: Any) -> dict[str, Any]:
    """A row of ``pop``, as far as scaling needs it."""
    others = dict.fromkeys(
        (
            "mpi_parallel_efficiency",
            "mpi_communication_efficiency",
            "mpi_load_balance",
            "omp_parallel_efficiency",
        )
    )
    row = {"source": "s", "application": "a", "region": "Global", "main": True, "time": DAY, "cpus": cpus}
    row |= {"elapsed_s": elapsed, "parallel_efficiency": efficiency, "gigainstructions": None}
    return {**row, **others, "ipc": None, "frequency_ghz": None, **members}


def counted(cpus: int, elapsed: float, efficiency: float, instructions: float, ipc: float, ghz: float) -> Any:
    return run(cpus, elapsed, efficiency, gigainstructions=instructions, ipc=ipc, frequency_ghz=ghz)


def test_strong_scaling_by_hand() -> None:
    runs = [counted(4, 100.0, 0.95, 1000.0, 2.0, 3.0), counted(16, 30.0, 0.8, 1250.0, 1.8, 2.7)]
    first, last = scaling_rows(reversed(runs))
    assert (first["mode"], first["reference_cpus"], first["computation_scalability"]) == ("strong", 4, 1.0)
    assert last["instruction_scalability"] == pytest.approx(0.8)
    assert last["ipc_scalability"] == pytest.approx(0.9)
    assert last["frequency_scalability"] == pytest.approx(0.9)
    assert last["computation_scalability"] == pytest.approx(0.648)
    assert last["global_efficiency"] == pytest.approx(0.8 * 0.648)
    assert last["speedup"] == pytest.approx(100 / 30)
    assert last["speedup_efficiency"] == pytest.approx(100 / 30 / 4)
    assert last["global_from_times"] == pytest.approx(0.95 * 100 / 30 / 4)


def test_both_ways_to_the_global_efficiency_agree_where_nothing_else_is_lost() -> None:
    """Useful time = instructions / (IPC x frequency) = elapsed time x CPUs x parallel efficiency."""
    rows = []
    for cpus, instructions, ipc, ghz, efficiency in ((2, 600.0, 2.0, 3.0, 0.9), (8, 700.0, 1.5, 2.5, 0.7)):
        useful = instructions / (ipc * ghz)
        rows.append(counted(cpus, useful / (cpus * efficiency), efficiency, instructions, ipc, ghz))
    _, last = scaling_rows(rows)
    assert last["global_efficiency"] == pytest.approx(last["global_from_times"], rel=1e-12)


def test_weak_scaling_by_hand() -> None:
    runs = [counted(4, 100.0, 0.95, 1000.0, 2.0, 3.0), counted(16, 110.0, 0.9, 4400.0, 2.0, 3.0)]
    _, last = scaling_rows(runs)
    assert last["mode"] == "weak"
    assert last["instruction_scalability"] == pytest.approx(1000 / 4 / (4400 / 16))
    assert last["speedup_efficiency"] == pytest.approx(100 / 110)


@pytest.mark.parametrize(("instructions", "mode"), [(1499.0, "strong"), (1500.0, "weak")])
def test_the_limit_between_strong_and_weak(instructions: float, mode: str) -> None:
    runs = [counted(4, 1.0, 0.9, 1000.0, 1.0, 1.0), counted(8, 1.0, 0.9, instructions, 1.0, 1.0)]
    assert scaling_rows(runs)[0]["mode"] == mode


def test_without_counters_nobody_can_tell_strong_from_weak() -> None:
    _, last = scaling_rows([run(4, 100.0, 0.95), run(8, 60.0, 0.9)])
    assert (last["mode"], last["reason"]) == ("unknown", "no counters of cycles and instructions")
    assert (last["computation_scalability"], last["speedup_efficiency"]) == (None, None)
    assert last["speedup"] == pytest.approx(100 / 60)


def test_better_than_perfect_is_told_as_it_is() -> None:
    runs = [counted(4, 100.0, 0.9, 1000.0, 1.0, 2.0), counted(8, 40.0, 0.9, 1000.0, 1.3, 2.0)]
    assert scaling_rows(runs)[1]["speedup_efficiency"] == pytest.approx(1.25)
    assert scaling_rows(runs)[1]["ipc_scalability"] == pytest.approx(1.3)


def test_sizes_are_medians_over_their_runs_in_any_order() -> None:
    runs = [run(4, elapsed, 0.9) for elapsed in (100.0, 300.0, 110.0)]
    (row,) = scaling_rows(runs)
    assert (row["n_runs"], row["elapsed_s"], row["mode"]) == (3, 110.0, "single")
    assert scaling_rows(reversed(runs)) == [row]


def daily(days: int, *, step_at: int | None, seed: int, efficiency: bool = False) -> list[dict[str, Any]]:
    made = random.Random(seed)
    rows = []
    for day in range(days):
        slower = 1.25 if step_at is not None and day >= step_at else 1.0
        for _ in range(3):
            noise = math.exp(made.gauss(0, 0.03))
            value = 0.8 * noise / (slower if efficiency else 1.0)
            one = run(8, 100.0 * (1.0 if efficiency else slower) * noise, min(value, 1.0))
            rows.append({**one, "time": DAY + timedelta(days=day)})
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_a_release_that_is_slower_is_a_regression_of_its_day(seed: int) -> None:
    (change,) = [
        each
        for each in change_rows(daily(30, step_at=17, seed=seed), 4.0, 0.05)
        if each["metric"] == "elapsed_s"
    ]
    assert change["kind"] == "regression"
    assert change["day_low"] <= (DAY + timedelta(days=17)).date() <= change["day_high"]
    assert change["change"] == pytest.approx(0.25, abs=4 * change["change_err"])


def test_lost_efficiency_is_a_regression_too() -> None:
    rows = daily(30, step_at=12, seed=5, efficiency=True)
    (change,) = [each for each in change_rows(rows, 4.0, 0.05) if each["metric"] == "parallel_efficiency"]
    assert (change["kind"], change["change"] < 0) == ("regression", True)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_no_change(seed: int) -> None:
    assert list(change_rows(daily(40, step_at=None, seed=seed), 4.0, 0.05)) == []


def test_few_days_are_not_judged() -> None:
    assert list(change_rows(daily(7, step_at=4, seed=1), 4.0, 0.05)) == []


def reports_of_sizes(folder: Path) -> list[Path]:
    paths = []
    for number, cpus in enumerate((4, 8, 16)):
        elapsed = 4 * 10**9 // cpus * (1 + number)
        useful = round(0.9**number * elapsed * cpus)
        members = {"numCpus": cpus, "numMpiRanks": cpus, "elapsedTime": elapsed, "usefulTime": useful}
        members |= {"mpiTime": elapsed * cpus - useful, "minMpiNormdProc": 0, "minMpiNormdNode": 0}
        members |= {"cycles": 2 * useful, "instructions": 3 * useful}
        paths.append(written(folder, minimal(**members), f"talp.{number + 100}.0.n.1.json"))
    return paths


def test_the_table_follows_the_reports_and_their_jobs(session: Session, tmp_path: Path) -> None:
    for job in ("100", "101", "102"):
        put_job(session.store, job)
    report = session.ingest("talp", reports_of_sizes(tmp_path))
    rows = session.tables.pop_scaling(application="solver").rows.to_pylist()
    assert [row["cpus"] for row in rows] == [4, 8, 16]
    assert {row["reference_cpus"] for row in rows} == {4}
    session.undo(report.run)
    assert session.tables.pop_scaling().rows.num_rows == 0


def test_changes_come_into_their_table(session: Session, tmp_path: Path) -> None:
    files = []
    for day in range(1, 25):
        slower = 13 * 10**8 if day > 12 else 10**9
        document = minimal(elapsedTime=slower + day * 10**6 * (-1) ** day)
        document["timestamp"] = f"2026-10-{day:02}T12:00:00"
        put_job(session.store, str(100 + day))
        files.append(written(tmp_path, document, f"talp.{100 + day}.0.n.1.json"))
    session.ingest("talp", files)
    found = session.tables.pop_changes(application="solver").rows.to_pylist()
    assert [(str(row["day"]), row["kind"]) for row in found if row["metric"] == "elapsed_s"] == [
        ("2026-10-13", "regression")
    ]


def test_the_command_shows_one_application(tmp_path: Path) -> None:
    store = ["--store", f"duckdb:{tmp_path}/s.duckdb"]
    jobs = tmp_path / "jobs.csv"
    lines = [f"{job},batch,2026-11-20T23:00:00Z,solver" for job in (100, 101, 102)]
    jobs.write_text("\n".join(["job_id,queue,end_time,application", *lines]) + "\n")
    invoke = CliRunner().invoke
    assert invoke(main, [*store, "ingest", "jobs", str(jobs)]).exit_code == 0
    files = [str(path) for path in reports_of_sizes(tmp_path)]
    assert invoke(main, [*store, "ingest", "talp", *files]).exit_code == 0
    shown = invoke(main, [*store, "show", "pop_scaling", "--application", "solver"])
    assert shown.exit_code == 0, shown.output
    assert "global_efficiency" in shown.output
    assert invoke(main, [*store, "show", "pop_scaling", "--application", "other"]).exit_code == 2
