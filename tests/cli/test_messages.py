"""Messages for mistakes that a newcomer makes, and what the tables of declared values say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from esjobs.cli.main import main
from tests.cli.running import job_file
from tests.messages import compare_text


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_a_global_option_after_the_command_gets_a_hint(tmp_path: Path) -> None:
    result = run("show", "flags", "--store", f"duckdb:{tmp_path / 'x'}")
    assert result.exit_code == 2
    compare_text(result.stderr)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["show", "flags"], 1),
        (["query", "--by", "queue"], 1),
        (["doctor"], 0),
        (["report", "-o", "r.html"], 1),
    ],
)
def test_reading_makes_no_store(tmp_path: Path, command: list[str], status: int) -> None:
    path = tmp_path / "typo.duckdb"
    result = run("--store", f"duckdb:{path}", *command)
    assert result.exit_code == status
    assert str(path) in result.output
    assert not path.exists()


@pytest.mark.parametrize("variable", ["ESJOBS_NONSENSE", "ESJOBS_FIT__METODS", "ESJOBS_RULES__MIN_WAL"])
def test_a_misspelt_variable_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    result = run("--store", "duckdb::memory:", "query", "--by", "queue")
    assert result.exit_code == 1
    assert variable.removeprefix("ESJOBS_").lower().replace("__", ".") in result.stderr
    compare_text(result.stderr)


@pytest.mark.parametrize("typed", ["queue", "site", "nonsense"])
def test_a_condition_without_a_value_is_named_as_it_was_typed(filled: Path, typed: str) -> None:
    for command in (("run",), ("fit",), ("query", "--by", "queue")):
        result = run("--store", f"duckdb:{filled}", *command, "--where", typed)
        assert result.exit_code == 2
        compare_text(result.stderr)


def test_nothing_run_yet_and_a_task_that_is_not_there(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run("--store", store, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=3)))
    assert "has no runs yet" in run("--store", store, "show", "flags").stderr
    assert run("--store", store, "aggregate").exit_code == 0
    assert "no bucket in" in run("--store", store, "fit", "--task", "999").stderr


def test_declared_values_are_shown_with_origin_and_can_be_taken_back(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run("--store", store, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=3)))
    table = tmp_path / "declared.csv"
    table.write_text("queue,corepower,benchmark\nSITE01,10.0,HS06\nSITE02,17.5,HS23\n")
    imported = run("--store", store, "corepower", "import", str(table))
    assert "valid from 1970-01-01" in imported.stdout
    assert "1 of 2 values are within 0.02 of the system default 10 or 12" in imported.stdout
    assert "count as undeclared: SITE01 10" in imported.stdout

    def shown() -> list[dict[str, object]]:
        rows: list[dict[str, object]] = json.loads(
            run("--store", store, "show", "corepower", "--format", "json").stdout
        )
        return rows

    origins = {(row["name"], row["source"]): row["origin"] for row in shown()}
    assert origins["SITE01", "declared.csv"] == "default"
    assert origins["SITE02", "declared.csv"] == "own"
    assert origins["SITE01", "records"] is None
    assert origins["SITE03", "records"] == "own"
    import_id = next(str(row["import_id"]) for row in shown() if row["import_id"])
    assert run("--store", store, "corepower", "remove", import_id).exit_code == 0
    assert {row["source"] for row in shown()} == {"records"}
    assert run("--store", store, "corepower", "remove", import_id).exit_code == 1


@pytest.mark.parametrize(
    "command",
    [
        ["export", "jobs"],
        ["export", "jobs", "--format", "parquet"],
        ["show", "buckets", "--format", "csv"],
        ["show", "factors"],
    ],
)
def test_a_reader_that_has_seen_enough_ends_the_program_without_a_word(
    filled: Path, command: list[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{filled}", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


def test_a_full_disk_behind_standard_output_is_said_in_one_line(filled: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    command = [sys.executable, "-m", "esjobs", "--store", f"duckdb:{filled}", "show", "runs"]
    with full.open("w") as stream:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("esjobs: cannot write standard output")
    assert done.stderr.count("\n") == 1


def test_a_report_goes_to_standard_output(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--store", f"duckdb:{filled}", "report", "--out", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert result.stderr == ""
    assert not list(tmp_path.iterdir())


def test_doctor_fails_when_a_check_does_and_names_what_failed(
    filled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def states(store: Path) -> tuple[int, dict[str, str]]:
        result = run("--store", f"duckdb:{store}", "doctor", "--format", "json")
        return result.exit_code, {row["check"]: row["state"] for row in json.loads(result.stdout)}

    assert states(filled)[0] == 0
    broken = tmp_path / "broken.duckdb"
    broken.write_text("no store of ours")
    code, found = states(broken)
    assert (code, found["settings"], found["store"]) == (1, "ok", "failed")
    monkeypatch.setenv("ESJOBS_FIT__MIN_BUCKET_JOBS", "many")
    code, found = states(filled)
    assert (code, found["settings"]) == (1, "failed")
    assert "store" not in found


def test_an_import_says_what_it_assumed_and_which_names_have_no_jobs(filled: Path, tmp_path: Path) -> None:
    table = tmp_path / "declared.csv"
    table.write_text("name,corepower\nSITE01,10.5\nSIET02,17.5\n")
    for name in ("hs06", "HS06", "hs23", "HS23"):
        command = ("--store", f"duckdb:{filled}", "corepower", "import", str(table), "--benchmark", name)
        imported = run(*command)
        assert imported.exit_code == 0
        assert "2 names" in imported.stdout
        assert "1 of 2 queues have no jobs in the store: SIET02" in imported.stdout
        import_id = imported.stdout.partition("(")[2].partition(")")[0]
        assert run("--store", f"duckdb:{filled}", "corepower", "remove", import_id).exit_code == 0


def test_declared_values_survive_a_backup(tmp_path: Path) -> None:
    """The recipe of the operator guide, also where a value was corrected by a later import."""
    old, new = (f"duckdb:{tmp_path / name}.duckdb" for name in ("old", "new"))
    run("--store", old, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=3)))
    declared, jobs, saved = (tmp_path / name for name in ("declared.csv", "jobs.parquet", "saved.csv"))
    for value in ("17.5", "18.5"):
        declared.write_text(
            f"queue,corepower,benchmark,served_corepower\nSITE02,{value},HS23,10\nSITE03,,HS06,\n"
        )
        assert run("--store", old, "corepower", "import", str(declared)).exit_code == 0
    assert run("--store", old, "export", "jobs", "--out", str(jobs)).exit_code == 0
    assert run("--store", old, "show", "corepower", "--format", "csv", "--out", str(saved)).exit_code == 0
    assert run("--store", new, "ingest", "jobs", str(jobs)).exit_code == 0
    back = run("--store", new, "corepower", "import", str(saved))
    assert back.exit_code == 0
    assert "12  follows from the records" in back.stdout
    assert "2  replaced by a later import" in back.stdout

    def declares(store: str) -> list[tuple[object, ...]]:
        rows = json.loads(run("--store", store, "show", "corepower", "--format", "json").stdout)
        columns = ("name", "corepower", "benchmark", "valid_from", "served_corepower", "source", "origin")
        return [tuple(row[name] for name in columns) for row in rows if row["corepower"] != 17.5]

    assert [row for row in declares(new) if row[5] == "declared.csv"]
    assert sorted(set(declares(new)), key=str) == sorted(set(declares(old)), key=str)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ESJOBS_RULES__FINISHED_STATES", "finished"),
        ("ESJOBS_MEMORY", "lots"),
        ("ESJOBS_FIT__MIN_BUCKET_JOBS", "x"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_accepted(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    result = run("--store", "duckdb::memory:", "show", "runs")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"esjobs: {variable}={value} in the environment: ")
    compare_text(result.stderr)
    assert result.stderr.count("\n") == 1


def test_a_run_is_not_compared_with_itself(filled: Path) -> None:
    store = f"duckdb:{filled}"
    name = json.loads(run("--store", store, "show", "runs", "--format", "json").stdout)[0]["run"]
    result = run("--store", store, "compare", name, name)
    assert result.exit_code == 2
    compare_text(result.stderr)


def test_a_store_that_is_not_there_says_which_option_names_another(tmp_path: Path) -> None:
    result = run("--store", f"duckdb:{tmp_path / 'none.duckdb'}", "show", "runs")
    assert result.exit_code == 1
    compare_text(result.stderr)


def test_a_condition_that_no_job_meets_gets_a_hint(filled: Path) -> None:
    command = ("--store", f"duckdb:{filled}", "query", "--by", "queue", "--where", "queue=X")
    result = run(*command, "--where", "queue=SITE01")
    assert result.exit_code == 0
    assert result.stderr.startswith("hint: no job has queue 'X'; use one of: SITE00")
    assert result.stderr.count("\n") == 1
    assert run("--quiet", *command, "--where", "queue=SITE01").stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        ["flags", "--name", "SITE1"],
        ["flags", "--type", "reco"],
        ["factors", "--name", "SITE01", "--name", "X"],
        ["flags", "--level", "cpu_model", "--name", "SITE99", "--format", "csv"],
        ["corepower", "--name", "SITE1"],
        ["corepower", "--type", "all"],
        ["corepower", "--run", "abcd"],
        ["buckets", "--type", "reco"],
    ],
)
def test_a_value_that_no_row_has_is_refused_with_what_is_close(filled: Path, command: list[str]) -> None:
    result = run("--quiet", "--store", f"duckdb:{filled}", "show", *command)
    assert result.exit_code == 2
    assert result.stdout == ""
    compare_text(result.stderr)
    assert result.stderr.count("\n") == 1


def test_a_run_that_is_not_there_is_refused_in_every_table(filled: Path) -> None:
    for what in ("flags", "factors", "runs"):
        result = run("--store", f"duckdb:{filled}", "show", what, "--run", "ffff")
        assert (result.exit_code, result.stdout) == (1, "")
        compare_text(result.stderr)


def test_case_is_forgiven(filled: Path) -> None:
    show = ("--store", f"duckdb:{filled}", "show", "flags", "--format", "csv")
    exact = run(*show, "--name", "SITE01", "--type", "simul", "--method", "paper", "--level", "queue")
    other = run(*show, "--name", "site01", "--type", "SIMUL", "--method", "Paper", "--level", "Queue")
    assert other.exit_code == 0
    assert other.stdout == exact.stdout != ""
    # a site is known, though no CPU model has its name
    assert run(*show, "--name", "SITE01", "--level", "cpu_model").stdout.count("\n") == 1


@pytest.mark.parametrize("name", ["atlas-panda", "no-such-map"])
def test_a_field_map_is_for_clusters(filled: Path, name: str) -> None:
    result = run("--store", f"duckdb:{filled}", "--field-map", name, "show", "flags")
    assert result.exit_code == 2
    compare_text(result.stderr)


def test_what_is_there_gets_no_hint_and_unknown_methods_are_usage(filled: Path) -> None:
    show = ("--store", f"duckdb:{filled}", "show", "flags")
    assert run(*show, "--type", "simul", "--name", "SITE01", "--method", "paper").stderr == ""
    assert run(*show, "--method", "magic").exit_code == 2
    nothing = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "queue=X")
    assert nothing.exit_code == 1
    compare_text(nothing.stderr)
    nothing = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "cores>1000")
    assert "case-sensitive" not in nothing.stderr
    quotes = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "queue='SITE01'")
    compare_text(quotes.stderr)
    part = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "queue~site")
    compare_text(part.stderr)
    part = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "queue~nosuch*")
    assert "without *" not in part.stderr
    group = run("--store", f"duckdb:{filled}", "query", "--by", "day", "--where", "jobs>=100")
    assert group.exit_code == 2
    compare_text(group.stderr)


def test_a_table_says_which_run_it_shows_and_to_what_it_was_restricted(filled: Path, tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'copy.duckdb'}"
    (tmp_path / "copy.duckdb").write_bytes(filled.read_bytes())
    rows = json.loads(run("--store", store, "show", "runs", "--format", "json").stdout)
    shown = run("--store", store, "show", "lines").stdout
    assert shown.startswith(f"run {rows[0]['run']}")
    assert "restricted" not in shown
    task = json.loads(run("--store", store, "show", "tasks", "--format", "json").stdout)[0]["task_id"]
    assert run("--store", store, "run", "--task", task).exit_code == 0
    again = json.loads(run("--store", store, "show", "runs", "--format", "json").stdout)
    title = run("--store", store, "show", "flags", "--run", again[0]["run"]).stdout.splitlines()[0]
    assert title.startswith(f"run {again[0]['run']} [2018-08-10/2018-08-15], restricted to {task}")
    assert run("--store", store, "show", "lines").stdout == shown
    alone = f"duckdb:{tmp_path / 'alone.duckdb'}"
    assert run("--store", alone, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv"))).exit_code == 0
    assert run("--store", alone, "run", "--task", task).exit_code == 0
    title = run("--store", alone, "show", "flags").stdout.splitlines()[0]
    assert f"restricted to {task}, no unrestricted run has any" in title


def test_a_comparison_names_both_runs_and_their_windows(filled: Path, tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'copy.duckdb'}"
    (tmp_path / "copy.duckdb").write_bytes(filled.read_bytes())
    nothing = run("--store", store, "compare")
    assert nothing.exit_code == 1
    compare_text(nothing.stderr)
    for window in ("2018-08-13/2018-08-15", "2018-08-11/2018-08-13"):
        assert run("--store", store, "run", "--window", window).exit_code == 0
    rows = json.loads(run("--store", store, "compare", "--format", "json").stdout)
    a, b = rows[0]["run_a"], rows[0]["run_b"]
    shown = run("--store", store, "compare").stdout
    title = f"a: run {a} [2018-08-11/2018-08-13]; b: run {b} [2018-08-13/2018-08-15]"
    assert shown.startswith(f"{title}; ")
    assert run("--store", store, "compare", a).stdout == shown
    assert "run_a" not in shown


def test_an_export_says_how_many_jobs_it_wrote(filled: Path, tmp_path: Path) -> None:
    store = f"duckdb:{filled}"
    result = run("--store", store, "export", "jobs", "--out", str(tmp_path / "jobs.csv"))
    assert result.exit_code == 0
    compare_text(result.stderr)


def test_an_interrupt_inside_an_import_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python wraps what is raised while it builds a class in a RuntimeError; any other one is a defect."""
    causes: list[BaseException] = [KeyboardInterrupt(), ValueError("a defect")]

    def interrupted(*_: object) -> object:
        raise RuntimeError("Error calling __set_name__ on 'Field' instance") from causes.pop(0)

    monkeypatch.setattr("esjobs.cli.doctor.examine", interrupted)
    result = run("doctor")
    assert result.exit_code == 130
    compare_text(result.stderr)
    with pytest.raises(RuntimeError, match="__set_name__"):
        run("doctor")
