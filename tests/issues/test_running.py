"""Running jobs: five rules, two looks before a warning, the hook afterwards, nothing among finished jobs."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esjobs
from esjobs.core.errors import InputError
from esjobs.issues.running.look import look
from esjobs.issues.running.rules import RULES, Running
from esjobs.issues.settings import RunningSettings
from esjobs.publish.publication import read_table
from esjobs.records.ingest.formats.job_files import Books, job_piece
from esjobs.schema.issues import RUNNING_ISSUES
from scheduler.notifications.job_issues import running_job
from tests.messages import compare_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
N, GB = 360, 1e9  # three hours of 30 s


def running(memory_b: float = 64 * GB, nodes: int = 2, **values: Any) -> Running:
    arrays = {name: np.atleast_2d(np.asarray(value, np.float32)) for name, value in values.items()}
    units = {name: tuple(f"n{row}" for row in range(len(value))) for name, value in arrays.items()}
    return Running(N * 30.0, np.linspace(30.0, 30.0 * N, N), 30.0, arrays, units, memory_b, nodes)


BUSY = 8 + np.sin(np.arange(N))
FALLEN = np.where(np.arange(N) < 230, 8.0, 0.1)
PERIODIC = np.where(np.arange(N) % 130 < 70, 8.0, 0.0)
RISING = np.linspace(10 * GB, 62 * GB, N)
HEALTHY: dict[str, Any] = {
    "cpu_load": [BUSY, BUSY],
    "gpu_load": [BUSY / 10, BUSY / 10],
    "swap_used_b": np.zeros(N),
    "mem_used_b": np.full(N, 62 * GB),
}
ILL: dict[str, dict[str, Any]] = {
    "gpu-idle": {"gpu_load": [np.minimum(BUSY, 1.0), np.zeros(N)]},
    "collapse": {"cpu_load": [FALLEN, FALLEN]},
    "swap": {"swap_used_b": np.linspace(0, 2 * GB, N)},
    "memory-limit": {"mem_used_b": RISING},
    "nodes-unused": {"cpu_load": [BUSY, np.zeros(N)]},
}


def flagged(job: Running) -> Mapping[str, bool | None]:
    answers = {name: rule(job) for name, rule in RULES.items()}
    return {name: None if answer is None else answer.flagged for name, answer in answers.items()}


def test_each_rule_finds_its_own_job_and_no_healthy_one() -> None:
    assert flagged(running(**HEALTHY)) == dict.fromkeys(RULES, False)
    for name, values in ILL.items():
        assert [rule for rule, found in flagged(running(**values)).items() if found] == [name]


def test_pauses_of_a_periodic_job_are_no_collapse() -> None:
    assert flagged(running(cpu_load=PERIODIC))["collapse"] is False


def test_what_was_not_seen_is_not_idle() -> None:
    silent = np.where(np.arange(N) < N - 3, 0.0, np.nan)
    thin = np.where(np.arange(N) % 2, np.nan, 0.0)
    for load in (silent, thin):
        assert set(flagged(running(gpu_load=load, cpu_load=[load, load])).values()) == {None}
    assert set(flagged(running(float("nan"), mem_used_b=RISING, swap_used_b=RISING)).values()) == {None}


def listed(folder: Path, *states: str) -> Path:
    """Write the scheduler's list: jobs 100, 101, ... in these states, of an hour's limit and three hours."""
    path = folder / "running.txt"
    head = "JobID|Cluster|Partition|User|State|Start|End|Timelimit|ReqTRES|NNodes|JobName"
    start = f"{NOW - timedelta(hours=3):%Y-%m-%dT%H:%M:%S}"
    rows = [
        f"{100 + number}|alpha|gpu|ann|{state}|{start}|Unknown|10:00:00|mem=64G|2|run|with bar"
        for number, state in enumerate(states)
    ]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def sampled(folder: Path, jobs: Mapping[int, Mapping[str, Any]], until: datetime = NOW) -> Path:
    path = folder / "samples.csv"
    lines = ["job_id,metric,time,value,unit,source"]
    for job, metrics in jobs.items():
        for metric, values in metrics.items():
            for unit, row in enumerate(np.atleast_2d(values)):
                for back, value in enumerate(row[::-1]):
                    time = until.timestamp() - 30 * back
                    lines.append(f"{job},{metric},{time:.0f},{value},n{unit},alpha")
    path.write_text("\n".join(lines) + "\n")
    return path


def settings(folder: Path, **more: Any) -> RunningSettings:
    series = (str(folder / "sam*.csv"),)
    return RunningSettings(every="5m", jobs=str(folder / "running.txt"), series=series, **more)


def test_two_looks_warn_the_hook_follows_and_the_end_is_noted(tmp_path: Path) -> None:
    noted = tmp_path / "called"
    script = f"import sys; open({str(noted)!r}, 'a').write(' '.join(sys.argv[1:])); sys.exit(3)"
    chosen = settings(
        tmp_path, hook=(sys.executable, "-c", script, "{job_id}", "{rule}"), hook_after_minutes=10
    )
    jobs = {100: ILL["gpu-idle"] | {"x_other": BUSY}, 101: HEALTHY, 102: ILL["gpu-idle"]}
    states = ("RUNNING", "RUNNING", "PENDING")
    with esjobs.open("duckdb::memory:") as session:

        def looked(minutes: int, *now_states: str) -> tuple[Any, Any, list[dict[str, Any]]]:
            now = NOW + timedelta(minutes=minutes)
            listed(tmp_path, *now_states)
            sampled(tmp_path, jobs, now)
            report, warned = look(session.store, chosen, now)
            return report, warned, read_table(session.store, RUNNING_ISSUES).to_pylist()

        report, warned, rows = looked(0, *states)
        assert (report.rows_in, report.rows_out, report.dropped) == (2, 1, {"is not running": 1})
        assert [row["job_id"] for row in rows] == ["100"]
        assert not warned
        _, (row,), _ = looked(5, *states)
        assert (row["job_id"], row["rule"], row["unit"], row["n_looks"]) == ("100", "gpu-idle", "n1", 2)
        compare_text("\n".join([running_job(row).subject, running_job(row).text]))
        # sent once, by its name: it is listed as long as it holds
        assert [each["warned_at"] for each in looked(10, *states)[1]] == [NOW + timedelta(minutes=5)]
        assert not noted.exists()
        report, _, (row,) = looked(15, *states)
        assert noted.read_text() == "100 gpu-idle"
        assert (report.counts["hooks failed"], row["hook_error"]) == (1, "exit code 3")
        _, warned, (row,) = looked(20, "COMPLETED", "RUNNING")
        assert (warned, row["ended_at"]) == ([], NOW + timedelta(minutes=20))
        assert noted.read_text() == "100 gpu-idle"
        assert session.store.span().first is None


def test_a_file_about_a_job_that_runs_is_refused(tmp_path: Path) -> None:
    job = {"job_id": "1", "queue": "q", "end_time": NOW, "state": "running"}
    piece = job_piece(job, tmp_path, {}, "alpha", Books("meta.json"))
    assert (piece.batch.num_rows, [reject.reason for reject in piece.rejects]) == (0, ["has not ended"])


def test_old_samples_and_missing_files_change_nothing(tmp_path: Path) -> None:
    listed(tmp_path, "RUNNING")
    with esjobs.open("duckdb::memory:") as session:
        with pytest.raises(InputError, match="no file"):
            look(session.store, settings(tmp_path), NOW)
        sampled(tmp_path, {100: ILL["gpu-idle"]}, NOW - timedelta(hours=1))
        with pytest.raises(InputError, match="newest sample"):
            look(session.store, settings(tmp_path), NOW)
        (tmp_path / "running.txt").write_text("JobID|User\n1|ann\n")
        with pytest.raises(InputError, match="State and End"):
            look(session.store, settings(tmp_path), NOW)
