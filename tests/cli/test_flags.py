"""Flags with memory on the command line: what stands open, what is entered, and how it came about."""

import csv
import io
import json
from pathlib import Path

import pytest

import esjobs
from tests.cli.running import job_file, run
from tests.flags.verdict_nights import VerdictNights, night, verdict
from tests.messages import compare_text

ESCAPE = "\x1b[31mRED"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A is open on night 3, for all types and one of them; B is a candidate, C was one."""
    store = tmp_path_factory.mktemp("flags") / "flags.duckdb"
    with esjobs.open(f"duckdb:{store}") as session:
        nights = VerdictNights(session.store)
        for number in range(4):
            rows = [
                verdict("A", -0.35),
                verdict("A", -0.4, kind="simul"),
                verdict(f"B{ESCAPE}", -0.3 if number == 3 else 0.0),
                verdict("C", -0.3 if number == 1 else 0.0),
            ]
            nights.publish(number, rows, rows)
            nights.watch(number)
    return store


def test_nothing_is_open_in_a_store_that_nobody_watched(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=2)), store=store)
    shown = run("flags", store=store)
    assert (shown.exit_code, shown.stdout) == (0, "no open flags\n")
    failed = run("watch", store=store)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr == "esjobs: no complete run, so flags cannot be updated; run: esjobs run\n"
    failed = run("flags", "ack", "A", "--until", "2026-01-01", "--who", "ann", store=store)
    assert failed.stderr == "esjobs: no flags yet; run: esjobs watch\n"


def test_a_name_has_one_line_and_the_state_of_its_first_flag(watched: Path) -> None:
    title, heading, *lines = run("flags", store=watched).stdout.splitlines()
    assert title == "1 open, as of night 2025-01-04"
    assert heading.split()[0] == "name"
    assert len(lines) == 1
    assert lines[0].split("  ")[0] == "A"
    assert "−35 % (−38 % to −32 %)" in lines[0]
    assert lines[0].endswith("all, simul")
    assert run("flags", "--state", "new", store=watched).stdout.splitlines()[0].startswith("1 new")
    rows = list(csv.DictReader(io.StringIO(run("flags", "--format", "csv", store=watched).stdout)))
    assert [(row["name"], row["state"], row["since"], row["nights"]) for row in rows] == [
        ("A", "open", "2025-01-01T00:00:00Z", "4")
    ]


def test_names_do_not_reach_the_terminal_raw(watched: Path) -> None:
    shown = run("flags", "--state", "new", store=watched).stdout
    assert "\x1b" not in shown
    assert "RED" in shown
    history = run("flags", "history", f"B{ESCAPE}", store=watched).stdout
    assert "\x1b" not in history
    assert "noticed" in history


def test_what_is_entered_is_seen_at_once_and_stays(watched: Path, tmp_path: Path) -> None:
    store = tmp_path / "copy.duckdb"
    store.write_bytes(watched.read_bytes())
    until = str(night(9))
    done = run("flags", "ack", "a", "--until", until, "--who", "ann", "--note", "known", store=store)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("flags ack: 1 note, 2 flags concerned")
    assert f"acknowledged by ann until {until}" in run("flags", store=store).stdout
    done = run("flags", "answer", "A", "--text", "SMT was off", "--processing-type", "simul", store=store)
    assert done.stdout.startswith("flags answer: 1 note, 1 flags concerned")
    for _ in range(2):
        rows = json.loads(run("flags", "history", "A", "--format", "json", store=store).stdout)
        assert [(row["processing_type"], row["kind"], row["entered_by"]) for row in rows] == [
            ("all", "noticed", None),
            ("simul", "noticed", None),
            ("all", "opened", None),
            ("all", "acknowledged", "ann"),
            ("simul", "opened", None),
            ("simul", "acknowledged", "ann"),
            ("simul", "answered", "A"),
        ]
        assert run("watch", "--night", str(night(0)), store=store).exit_code == 0
    assert run("prune", "--keep", "1", store=store).exit_code == 0
    notes = run("show", "flag_notes", "--format", "csv", store=store).stdout
    assert len(list(csv.DictReader(io.StringIO(notes)))) == 2
    assert "acknowledged by ann" in run("flags", store=store).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ack", "A", "--who", "ann"), 2),
        (("ack", "A", "--until", "tomorrow", "--who", "ann"), 2),
        (("ack", "C", "--until", "2026-01-01", "--who", "ann"), 1),
        (("ack", "Z", "--until", "2026-01-01", "--who", "ann"), 2),
        (("answer", "A", "--text", " "), 2),
        (("history", "Z"), 2),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(
    watched: Path, arguments: tuple[str, ...], code: int
) -> None:
    failed = run("flags", *arguments, store=watched)
    assert failed.exit_code == code
    compare_text(failed.stderr)
    assert "Traceback" not in failed.stderr


def test_rows_are_chosen_by_window_and_site(watched: Path) -> None:
    shown = run("show", "flag_events", "--window", "2025-01-04/2025-01-05", "--format", "csv", store=watched)
    assert {row["night"] for row in csv.DictReader(io.StringIO(shown.stdout))} == {"2025-01-04T00:00:00Z"}
    shown = run("show", "flag_states", "--site", "A", "--format", "csv", store=watched)
    assert {row["name"] for row in csv.DictReader(io.StringIO(shown.stdout))} == {"A"}


def test_the_memory_of_a_run_from_jobs(filled: Path) -> None:
    done = run("watch", store=filled)
    assert done.exit_code == 0, done.stderr
    rows = json.loads(run("flags", "--state", "new", "--format", "json", store=filled).stdout)
    assert [row["name"] for row in rows if row["level"] == "queue"] == ["SITE11"]
