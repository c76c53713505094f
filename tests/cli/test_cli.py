"""The command line as people and scripts use it: output, exit codes, messages."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.cli.registry import COMMANDS
from esjobs.cli.terminal import print_report
from esjobs.core.report import RunReport
from tests.cli.running import job_file, run, run_apart
from tests.messages import compare_text


def test_every_command_has_help() -> None:
    for name, command in ((each.name, each.load.load()) for each in COMMANDS.values()):
        assert run(name, "--help").exit_code == 0
        assert command.help, name


def test_the_deviating_site_is_found(filled: Path) -> None:
    """By either method; stability is tested for the headline, and only what is stable is proposed."""

    def flags(method: str) -> dict[str, dict[str, str]]:
        chosen = ("--level", "queue", "--type", "all", "--method", method, "--format", "csv")
        result = run("show", "flags", *chosen, store=filled)
        return {row["name"]: row for row in csv.DictReader(io.StringIO(result.stdout))}

    for method, tested in (("gamma", ("true", "true")), ("paper", ("", "false"))):
        rows = flags(method)
        found = rows.pop("SITE11")
        assert found["verdict"] == "deviates"
        assert {row["verdict"] for row in rows.values()} == {"ok"}
        assert (found["stable"], found["confirmed"]) == tested
    assert float(flags("gamma")["SITE11"]["proposed_corepower"]) == pytest.approx(48, rel=0.1)
    assert "stability is tested for the default method only" in flags("paper")["SITE11"]["sentence"]


@pytest.mark.parametrize(
    "what",
    ["factors", "fits", "lines", "flags", "components", "buckets", "rejects", "runs", "loads", "corepower"],
)
def test_every_table_shows_in_every_format(filled: Path, tmp_path: Path, what: str) -> None:
    for form in ("table", "csv", "json", "parquet"):
        out = tmp_path / f"rows.{form}"
        assert run("show", what, "--format", form, "--out", str(out), store=filled).exit_code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text("utf-8"))))
    objects = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    frame = pd.read_parquet(tmp_path / "rows.parquet")
    assert len(rows) == len(objects) == len(frame)
    assert list(rows[0] if rows else []) == list(objects[0] if objects else [])
    for row, plain in zip(rows, objects, strict=True):
        for name, value in plain.items():
            if isinstance(value, bool):
                assert row[name] == ("true" if value else "false")
            elif isinstance(value, float):
                assert float(row[name]) == value
            else:
                assert row[name] == ("" if value is None else str(value))


def test_steps_alone_give_what_run_gives(filled: Path, loaded: Path, tmp_path: Path) -> None:
    store = loaded.rename(tmp_path / "steps.duckdb")
    early = run("correlate", store=store)
    assert early.exit_code == 1
    compare_text(early.stderr)
    for step in ("aggregate", "fit", "correlate", "flag"):
        assert run(step, store=store).exit_code == 0, step
    for what in ("factors", "lines", "flags"):
        arguments = ("show", what, "--format", "json")
        alone, together = (json.loads(run(*arguments, store=path).stdout) for path in (store, filled))
        assert len(alone) == len(together) > 0
        for row, expected in zip(alone, together, strict=True):
            for name, value in expected.items():
                close = value if not isinstance(value, float) else pytest.approx(value, rel=1e-9, abs=1e-12)
                assert row[name] == close, name


def test_query_and_where(filled: Path) -> None:
    result = run(
        "query",
        "--by",
        "queue",
        "--metric",
        "jobs,efficiency",
        "--where",
        "queue=SITE01",
        "--where",
        "queue=SITE02",
        "--where",
        "task_id=task0",
        "--format",
        "json",
        store=filled,
    )
    rows = json.loads(result.stdout)
    assert [row["queue"] for row in rows] == ["SITE01", "SITE02"]
    assert all(row["jobs"] == 60 for row in rows)
    assert rows[0]["efficiency"] == pytest.approx(1 / 1.1, rel=1e-3)
    by_model = json.loads(run("query", "--by", "cpu_model", "--format", "json", store=filled).stdout)
    assert {row["cpu_model"] for row in by_model} == {f"Intel Xeon E5-2650 v{n}" for n in (2, 3, 4)}
    filtered = run(
        "query",
        "--by",
        "queue",
        "--where",
        "cpu_model=Intel Xeon E5-2650 v2",
        "--format",
        "json",
        store=filled,
    )
    assert len(json.loads(filtered.stdout)) == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["query", "--by", "sight"], 2),
        (["query", "--by", "queue", "--metric", "speed"], 2),
        (["query", "--by", "queue", "--where", "queue"], 2),
        (["query", "--by", "queue", "--where", "cores=many"], 2),
        (["query", "--by", "cpu_s"], 2),
        (["run", "--window", "2018-08-32"], 2),
        (["run", "--window", "2018-08-01T01:00/2018-08-02"], 2),
        (["run", "--window", "2020-01-01/2020-02-01"], 1),
        (["fit", "--where", "user=me"], 2),
        (["ingest", "nonsense", "file"], 2),
        (["ingest", "panda", "nowhere.csv"], 1),
        (["ingest", "jobs"], 2),
        (["show", "flags", "--run", "ffff"], 1),
        (["show", "lines", "--name", "X"], 2),
        (["compare", "aaaa", "bbbb"], 1),
        (["ingest", "--undo", "aaaa"], 1),
        (["report", "--out", "/nowhere/report.html"], 1),
        (["corepower", "import", "nowhere.csv"], 1),
    ],
)
def test_mistakes_get_one_line_and_an_exit_code(filled: Path, arguments: list[str], code: int) -> None:
    result = run(*arguments, store=filled)
    assert result.exit_code == code
    compare_text(result.stderr)
    assert result.stdout == ""
    if not result.stderr.startswith("Usage"):
        assert result.stderr.count("\n") == 1


def test_an_unknown_store_and_a_wrong_setting_are_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--store", "mysql:x", "doctor"])
    assert "mysql:x" in result.stdout
    config = tmp_path / "esjobs.toml"
    for text in (
        "[fit]\nmin_bucket_jobs = 0\n",
        "[fit]\nnonsense = 1\n",
        "[rules]\nmin_eventz = 1\n",
        "broken",
    ):
        config.write_text(text)
        result = CliRunner().invoke(main, ["--config", str(config), "show", "runs"])
        assert result.exit_code == 1
        compare_text(result.stderr)


def test_settings_from_file_and_environment(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text(f'store = "duckdb:{filled}"\n[fit]\nmin_bucket_jobs = 61\n')
    result = CliRunner().invoke(main, ["--config", str(config), "run"])
    assert result.exit_code == 0
    shown = CliRunner().invoke(
        main, ["--config", str(config), "show", "factors", "--level", "queue", "--format", "json"]
    )
    assert {row["status"] for row in json.loads(shown.stdout)} == {"too few jobs"}
    monkeypatch.setenv("ESJOBS_FIT__MIN_BUCKET_JOBS", "20")
    assert CliRunner().invoke(main, ["--config", str(config), "run"]).exit_code == 0
    shown = CliRunner().invoke(
        main, ["--config", str(config), "show", "factors", "--level", "queue", "--format", "json"]
    )
    assert {row["status"] for row in json.loads(shown.stdout)} == {"ok"}


def test_compare_and_prune(loaded: Path) -> None:
    store = loaded
    for window in ("2018-08-10/2018-08-15", "2018-08-10/2018-08-14", "2018-08-11/2018-08-15"):
        assert run("run", "--window", window, store=store).exit_code == 0
    runs = json.loads(run("show", "runs", "--format", "json", store=store).stdout)
    ids = list(dict.fromkeys(row["run"] for row in runs if row["step"] == "flag"))
    assert len(ids) == 3
    changes = json.loads(run("compare", ids[0], ids[1], "--format", "json", store=store).stdout)
    assert len(changes) > 12
    assert max(abs(row["sigma"] or 0) for row in changes) < 5
    assert run("prune", "--keep", "1", "--dry-run", store=store).exit_code == 0
    assert run("show", "factors", "--run", ids[1], store=store).exit_code == 0
    assert run("prune", "--keep", "1", store=store).exit_code == 0
    assert run("show", "factors", "--run", ids[1], store=store).exit_code == 1
    assert run("show", "factors", "--run", ids[0], store=store).exit_code == 0
    assert json.loads(run("show", "buckets", "--format", "json", store=store).stdout)


def test_prune_by_a_rule(loaded: Path, tmp_path: Path) -> None:
    store = loaded
    for window in ("2018-08-10/2018-08-13", "2018-08-11/2018-08-14", "2018-08-12/2018-08-15"):
        assert run("run", "--window", window, store=store).exit_code == 0
    assert "kept" in run("prune", store=store).stdout

    def left() -> int:
        rows = json.loads(run("show", "runs", "--format", "json", store=store).stdout)
        return len({row["run"] for row in rows})

    assert left() == 3  # the settings keep every night of two months
    both = run("prune", "--keep", "1", "--keep-daily", "1", store=store)
    assert both.exit_code == 2
    compare_text(both.stderr)
    assert "--keep counts all runs and excludes the others" in " ".join(run("prune", "--help").output.split())
    none = run("prune", "--keep-newest", "0", "--dry-run", store=store)
    assert (none.exit_code, none.stdout.count("only the latest of 3 days")) == (0, 2)
    dry = run("prune", "--keep-daily", "2", "--dry-run", store=store)
    assert "would be removed: run" in dry.stdout
    assert "[2018-08-10/2018-08-13]" in dry.stdout
    assert left() == 3
    assert run("prune", "--keep-daily", "2", store=store).exit_code == 0
    assert left() == 2
    config = tmp_path / "esjobs.toml"
    config.write_text("[retention]\nkeep_newest = 0\nkeep_daily = 0\nkeep_weekly = 0\nkeep_monthly = 0\n")
    assert run("--config", str(config), "prune", store=store).exit_code == 0
    assert left() == 1


def test_the_format_of_an_export_is_that_of_its_help(filled: Path, tmp_path: Path) -> None:
    help_text = " ".join(run("export", "--help").output.split())
    assert "default: from the file name, csv on standard output" in help_text
    for name in ("a.csv", "a.json", "a.jsonl", "a.parquet"):
        assert run("export", "jobs", "--out", str(tmp_path / name), store=filled).exit_code == 0
    other = run("export", "jobs", "--out", str(tmp_path / "j.xyz"), store=filled)
    assert other.exit_code != 0
    assert "cannot derive the format" in other.output + other.stderr
    assert not (tmp_path / "j.xyz").exists()
    named = run("export", "jobs", "--out", str(tmp_path / "j.xyz"), "--format", "csv", store=filled)
    assert named.exit_code == 0


def test_export_round_trip(filled: Path, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"jobs.{form}"
        assert run("export", "jobs", "--out", str(out), store=filled).exit_code == 0
        again = tmp_path / f"again-{form}.duckdb"
        assert run("ingest", "jobs", str(out), store=again).exit_code == 0
        arguments = (
            "query",
            "--by",
            "queue,day,task_id",
            "--metric",
            "jobs,cpu_h,events,wall_h",
            "--format",
            "csv",
        )
        assert run(*arguments, store=again).stdout == run(*arguments, store=filled).stdout


def test_a_load_can_be_taken_back(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv")), "--set", "user=wrong", store=store)
    load = json.loads(run("show", "loads", "--format", "json", store=store).stdout)[0]
    assert (load["state"], load["filled"], load["rows_in"]) == ("complete", "user=wrong", 2160)
    assert run("ingest", "--undo", load["load_id"], store=store).exit_code == 0
    assert json.loads(run("show", "loads", "--format", "json", store=store).stdout) == []
    assert run("query", "--by", "queue", store=store).exit_code == 1


def test_dry_run_stores_nothing(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    result = run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv")), "--dry-run", store=store)
    assert "2,160" in result.stdout
    assert run("query", "--by", "queue", store=store).exit_code == 1


def test_doctor_and_fields(filled: Path) -> None:
    rows = json.loads(run("doctor", "--format", "json", store=filled).stdout)
    assert {row["state"] for row in rows} <= {"ok", "missing"}
    assert any(row["check"] == "last run" and row["state"] == "ok" for row in rows)
    said = {row["check"]: row["value"] for row in rows}
    for what in ("buckets", "day_books", "runs", "loads"):
        shown = json.loads(run("show", what, "--format", "json", store=filled).stdout)
        assert said[f"table {what}"] == f"{len(shown):,} rows", what
    flags = json.loads(run("show", "flags", "--format", "json", store=filled).stdout)
    (run_id,) = {row["run"] for row in flags}
    assert said["latest run"].startswith(run_id)
    listed = json.loads(run("fields", "--format", "json").stdout)
    assert {"field", "metric"} == {row["kind"] for row in listed}


@pytest.mark.parametrize("line", ['[nights]\ncron = "99 3 * * *"', '[web]\nlisten = "foo"'])
def test_doctor_names_settings_that_a_service_refuses(filled: Path, tmp_path: Path, line: str) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text(f"{line}\n")
    result = run("--config", str(config), "doctor", "--format", "json", store=filled)
    assert result.exit_code == 1
    assert {row["check"] for row in json.loads(result.stdout) if row["state"] == "failed"} == {"settings"}


def test_doctor_of_a_new_installation_has_notes_only(tmp_path: Path) -> None:
    result = run("doctor", "--format", "json", store=tmp_path / "new.duckdb")
    assert result.exit_code == 0
    assert {row["check"] for row in json.loads(result.stdout) if row["state"] != "ok"} == {"store"}


def test_doctor_names_jobs_of_the_future(tmp_path: Path) -> None:
    store, jobs = tmp_path / "jobs.duckdb", job_file(tmp_path / "jobs.csv", n_jobs=1)
    jobs.write_text(jobs.read_text().replace("2018-08-10", "2099-08-10"))
    run("ingest", "jobs", str(jobs), store=store)
    rows = json.loads(run("doctor", "--format", "json", store=store).stdout)
    assert "jobs" in {row["check"] for row in rows if row["state"] == "failed"}


def test_parquet_is_read_back_as_the_frame_of_a_session(filled: Path, tmp_path: Path) -> None:
    for what in ("flags", "day_books"):
        out = tmp_path / f"{what}.parquet"
        asked = ("show", what, "--format", "parquet", "--out", str(out))
        assert run_apart("--store", f"duckdb:{filled}", *asked).returncode == 0
        with esjobs.open(f"duckdb:{filled}") as session:
            pd.testing.assert_frame_equal(pd.read_parquet(out), session.tables.read(what).to_pandas())


def test_a_day_is_its_midnight_in_files_and_itself_in_tables(filled: Path) -> None:
    asked = ("query", "--by", "day")
    assert run(*asked, store=filled).stdout.splitlines()[1].startswith("2018-08-10 ")
    assert (
        run(*asked, "--format", "csv", store=filled)
        .stdout.splitlines()[1]
        .startswith("2018-08-10T00:00:00Z,")
    )
    assert (
        json.loads(run(*asked, "--format", "json", store=filled).stdout)[0]["day"] == "2018-08-10T00:00:00Z"
    )


def test_a_column_is_called_as_the_field_was_asked_for(filled: Path) -> None:
    for asked in ("queue", "queue"):
        answer = run("query", "--by", asked, "--format", "csv", store=filled).stdout
        assert answer.splitlines()[0] == f"{asked},jobs"


def test_an_unknown_state_is_said_to_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(
        RunReport("aggregate", "d5f6", 3, 2, 0.1, dropped={"failed": 1}, counts={"state unknown": 2})
    )
    assert "2  state unknown: kept, " in capsys.readouterr().out
