"""Issues of jobs on the command line: finding and showing them, rules, one job."""

import csv
import io
import json
from pathlib import Path

import pytest

import esjobs
from tests.cli.running import run
from tests.issues.made_jobs import made_series, put_records, put_series, record
from tests.messages import compare_text


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detect")
    store = folder / "jobs.duckdb"
    given = {name: one for name, one in made_series().items() if name in ("idle", "leak")}
    with esjobs.open(f"duckdb:{store}") as session:
        put_records(session, folder, [*map(record, given), record("lazy", cpu_s=14400.0, user="bob")])
        put_series(session, given)
    assert "3 jobs" in run("detect", store=store).output
    return store


def rows(*arguments: str, store: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv", store=store).stdout)))


def test_issues_are_shown_by_who_what_and_how_bad(judged: Path) -> None:
    everything = rows("show", "issues", store=judged)
    assert {row["job_id"] for row in everything} == {"idle", "leak", "lazy"}
    assert {row["job_id"] for row in rows("show", "issues", "--user", "bob", store=judged)} == {"lazy"}
    worst = rows("show", "issues", "--min-severity", "minor", store=judged)
    assert {row["detector"] for row in worst} == {"memory-leak", "low-efficiency", "one-core-used"}
    assert rows("show", "issues", "--detector", "cpu-idle", store=judged)[0]["unit"] == "n1/2"
    refused = run("show", "issues", "--project", "none", store=judged)
    assert refused.exit_code == 2
    compare_text(refused.stderr)


def test_the_list_of_work_counts_jobs(judged: Path) -> None:
    (bob,) = rows("issues", "--min-severity", "info", "--user", "bob", store=judged)
    assert (bob["user"], bob["n_jobs"], bob["lost_node_h"]) == ("bob", "1", "3.0")
    users = rows("issues", "--min-severity", "info", "--sort", "n_jobs", store=judged)
    assert [row["user"] for row in users] == ["alice", "bob"]
    assert run("issues", "--sort", "colour", store=judged).exit_code == 2


def test_a_second_time_nothing_is_made(judged: Path) -> None:
    assert "days up to date" in run("detect", store=judged).output
    assert "days computed" in run("detect", "--rebuild", store=judged).output
    assert run("detect", "--window", "2026-03-01T01:00/2026-03-02", store=judged).exit_code == 2


def test_rules_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        '[rule.cpu-idle]\nlimits.idle = "60 %"\n[rule.short-job]\nenabled = false\n'
        '[rule.mine]\narea = "cpu"\nwhen = "cores > 100"\nseverity = "info"\nhint = "wide"\n'
    )
    checked = run("rules", "check", str(path))
    assert checked.exit_code == 0
    assert checked.stdout.splitlines()[1:] == [
        "new: mine",
        "changed: cpu-idle",
        "removed: short-job",
        "  cpu-idle: limits.idle 0.25 -> 0.6",
    ]
    path.write_text("# nothing yet\n")
    empty = run("rules", "check", str(path))
    assert empty.stdout.splitlines()[1:] == [
        f"{path} is empty: no rule and no condition",
        "no changes",
    ]
    path.write_text('[rule.cpu-idle]\nwhen = "value >"\n')
    wrong = run("rules", "check", str(path))
    assert wrong.exit_code == 1
    assert wrong.stderr.startswith(f"esjobs: {path}, line 2: 'value >' is not an expression")
    assert run("rules", "check", str(tmp_path / "none.toml")).exit_code == 1


def test_rules_are_shown() -> None:
    names = [row["name"] for row in json.loads(run("rules", "show", "--format", "json").stdout)]
    assert {"memory-bound", "cpu-idle"} <= set(names)
    (one,) = json.loads(run("rules", "show", "cpu-idle", "--format", "json").stdout)
    assert one["when"].startswith("value >= idle and not (")
    assert one["limits"] == "idle = 0.25, busy_gpus = 0.7"
    assert run("rules", "show", "nothing").exit_code == 2


def test_a_replay_tells_and_writes_nothing(judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('[rule.cpu-idle]\nlimits.idle = "60 %"\n')
    before = rows("show", "issues", store=judged)
    (row,) = rows("rules", "replay", str(path), store=judged)
    assert (row["rule"], row["change"], row["n_jobs"], row["examples"]) == (
        "cpu-idle",
        "no longer flagged",
        "1",
        "c/idle",
    )
    assert rows("show", "issues", store=judged) == before
    path.write_text("[rule.cpu-idle]\nenabled = true\n")
    assert "no changes" in run("rules", "replay", str(path), store=judged).stdout


def test_one_job(judged: Path, tmp_path: Path) -> None:
    shown = run("job", "leak", store=judged).stdout
    assert "memory-leak" in shown
    assert "━" in shown
    out = tmp_path / "job.html"
    assert run("job", "leak", "--out", str(out), store=judged).exit_code == 0
    assert out.read_text().startswith("<!doctype html>")
    assert "<svg" in run("job", "leak", "--out", "-", store=judged).stdout
    assert run("job", "none", store=judged).exit_code == 1
    assert run("job", "leak", "--source", "other", store=judged).exit_code == 1


def test_a_user_on_a_login_node_sees_own_jobs_alone(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "bob")
    assert "lazy" in run("job", "lazy", "--mine", store=judged).stdout
    for others in (["leak"], ["lazy", "leak"]):
        refused = run("job", *others, "--mine", store=judged)
        assert refused.exit_code == 1
        assert not refused.stdout
        assert "leak" in refused.stderr
