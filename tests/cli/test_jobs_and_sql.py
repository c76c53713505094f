"""Lists of jobs, SQL and windows in words on the command line."""

import json
from pathlib import Path

from tests.cli.running import run
from tests.messages import compare_text


def test_the_jobs_that_meet_conditions(filled: Path) -> None:
    store = ("--store", f"duckdb:{filled}")
    listed = run(*store, "jobs", "--sort", "cpu_s", "--desc", "--top", "3", "--format", "jsonl")
    assert listed.exit_code == 0, listed.output
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert len(rows) == 3
    assert {"job_id", "queue", "efficiency", "cpu_model"} <= rows[0].keys()
    nothing = run(*store, "jobs", "--where", "efficiency<0")
    assert nothing.exit_code == 1
    compare_text(nothing.stderr)
    assert run(*store, "jobs", "--where", "efficiency<many").exit_code == 2
    assert "of" in run(*store, "jobs", "--top", "1").stdout.splitlines()[0]


def test_a_window_in_words_is_said(filled: Path) -> None:
    store = ("--store", f"duckdb:{filled}")
    asked = run(*store, "query", "--by", "queue", "--window", "1999-W01")
    compare_text(asked.stderr)
    quiet = run(*store, "--quiet", "query", "--by", "queue", "--window", "1999-W01")
    assert "window: " not in quiet.stderr
    for command in (
        ("query", "--by", "site"),
        ("run",),
        ("export", "jobs"),
        ("jobs",),
        ("show", "day_books"),
    ):
        wrong = run(*store, *command, "--window", "next-week")
        assert wrong.exit_code != 0
        compare_text(wrong.stderr)


def test_sql_answers_and_refuses_in_a_line(filled: Path) -> None:
    store = ("--store", f"duckdb:{filled}")
    counted = run(*store, "sql", "select count(*) as n from jobs", "--format", "json")
    assert json.loads(counted.stdout)[0]["n"] > 0
    for text in ("drop table jobs", "select * from read_csv('/etc/passwd')", "selekt"):
        refused = run(*store, "sql", text)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("esjobs: SQL: ")
        assert len(refused.stderr.splitlines()) == 1
