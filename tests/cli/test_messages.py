"""Messages for mistakes that a newcomer makes, and what the tables of declared values say."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from esjobs.cli import main
from tests.cli.running import job_file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_a_global_option_after_the_command_gets_a_hint(tmp_path: Path) -> None:
    result = run("show", "flags", "--store", f"duckdb:{tmp_path / 'x'}")
    assert result.exit_code == 2
    assert "stands before the command: esjobs --store" in result.stderr


@pytest.mark.parametrize(
    "command", [["show", "flags"], ["query", "--by", "site"], ["doctor"], ["report", "-o", "r.html"]]
)
def test_reading_makes_no_store(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "typo.duckdb"
    result = run("--store", f"duckdb:{path}", *command)
    assert f"no store at {path}" in result.output
    assert not path.exists()


@pytest.mark.parametrize("variable", ["ESJOBS_NONSENSE", "ESJOBS_FIT__METODS", "ESJOBS_RULES__MIN_WAL"])
def test_a_misspelt_variable_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    result = run("--store", "duckdb::memory:", "query", "--by", "site")
    assert result.exit_code == 1
    assert variable.removeprefix("ESJOBS_").lower().replace("__", ".") in result.stderr
    assert "there are" in result.stderr


def test_nothing_run_yet_and_a_task_that_is_not_there(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run("--store", store, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=3)))
    assert "nothing has been run yet" in run("--store", store, "show", "flags").stderr
    assert run("--store", store, "aggregate").exit_code == 0
    assert "no bucket in" in run("--store", store, "fit", "--task", "999").stderr


def test_declared_values_are_shown_with_origin_and_can_be_taken_back(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run("--store", store, "ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=3)))
    table = tmp_path / "declared.csv"
    table.write_text("queue,corepower,benchmark\nSITE01,10.0,HS06\nSITE02,17.5,HS23\n")
    imported = run("--store", store, "corepower", "import", str(table))
    assert "valid from 1970-01-01" in imported.stdout

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
