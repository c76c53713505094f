"""Files that every night reads: by day, late ones too, none twice, into a store that is not there yet."""

import json
import os
import socket
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.cli.nightly import Trigger, require_files
from esjobs.core.errors import InputError
from esjobs.publish.publication import read_table
from esjobs.records.demo import Grid
from esjobs.records.export.jobs import write_jobs
from esjobs.schema.jobs import LOADS
from esjobs.store.files.destination import writing
from scheduler import files
from tests.messages import compare_text, raised
from tests.scheduler.stage import FIRST, Hands, days, settings_of

GRID = Grid(jobs_per_day=400, n_queues=20, n_models=8)


def settings(folder: Path) -> Settings:
    source = {"format": "jobs", "files": [str(folder / "in" / "jobs-{night}*.parquet")]}
    return settings_of(f"duckdb:{folder / 'jobs.duckdb'}", ingest=[source])


def deliver(folder: Path, day: date, name: str = "", grid: Grid = GRID) -> None:
    (folder / "in").mkdir(exist_ok=True)
    with writing(folder / "in" / f"jobs-{day}{name}.parquet") as stream:
        write_jobs(grid.jobs(day), stream, "parquet")


def steps_of(session: Session) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = session.tables.night_steps().rows.to_pylist()
    return rows


def notes(folder: Path, night: date) -> str:
    with open_session(settings=settings(folder)) as session:
        rows = [row for row in steps_of(session) if row["night"] == night and row["step"] == "ingest"]
    return str(rows[0]["notes"])


def test_each_night_reads_what_is_new(tmp_path: Path) -> None:
    hands = Hands()
    trigger = Trigger(settings(tmp_path), hands.clock, hands.patience)
    for day in days(FIRST, 3):
        deliver(tmp_path, day)
        hands.morning_after(day)
        ((row, *_), _) = trigger.tend()
        assert (row["state"], row["jobs"]) == ("done", 400)
    last = FIRST + timedelta(days=2)
    assert notes(tmp_path, last).startswith("jobs-2025-06-03.parquet: 400 rows, 0 rejected")
    # late: a further file of the second day, with that of the fourth
    further = Grid(seed=7, jobs_per_day=30, n_queues=20, n_models=8)
    deliver(tmp_path, FIRST + timedelta(days=1), "-late", further)
    deliver(tmp_path, last + timedelta(days=1))
    hands.morning_after(last + timedelta(days=1))
    rows, _ = trigger.tend()
    made = {str(row["night"]): (row["state"], row["jobs"]) for row in rows}
    assert made == {
        "2025-06-02": ("done", 430),
        "2025-06-03": ("done", 400),
        "2025-06-04": ("done", 400),
    }
    (due,) = (row for row in rows if row["night"] == last + timedelta(days=1))
    assert due["attempt"] == 1
    with open_session(settings=settings(tmp_path)) as session:
        assert read_table(session.store, LOADS).num_rows == 5


def test_a_file_that_is_read_is_not_read_again_unless_it_changes(tmp_path: Path) -> None:
    hands = Hands()
    trigger = Trigger(settings(tmp_path), hands.clock, hands.patience)
    deliver(tmp_path, FIRST)
    for _ in range(2):
        trigger.tend()
    with open_session(settings=settings(tmp_path)) as session:
        (step,) = (row for row in steps_of(session) if row["step"] == "ingest")
        assert (step["attempt"], step["rows_in"]) == (1, 400)
    deliver(tmp_path, FIRST, grid=Grid(jobs_per_day=500, n_queues=20, n_models=8))
    trigger.tend()
    with open_session(settings=settings(tmp_path)) as session:
        (step,) = (row for row in steps_of(session) if row["step"] == "ingest")
        assert (step["attempt"], step["rows_in"]) == (3, 500)


def test_files_that_changed_long_ago_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_REMEMBERED", 2)
    hands = Hands()
    trigger = Trigger(settings(tmp_path), hands.clock, hands.patience)
    for number, day in enumerate(days(FIRST, 4)):
        deliver(tmp_path, day)
        os.utime(tmp_path / "in" / f"jobs-{day}.parquet", (1e9 + number, 1e9 + number))
    hands.morning_after(FIRST + timedelta(days=3))
    trigger.tend()
    with open_session(settings=settings(tmp_path)) as session:
        remembered = json.loads(session.store.value("files that nights have read") or "{}")
        changed = {int(state.partition(" ")[2]) for state in remembered.values()}
        assert changed == {10**18 + 2 * 10**9, 10**18 + 3 * 10**9}
        assert session.store.span().jobs == 1600


def test_a_file_that_cannot_be_read_fails_the_night_with_its_name(tmp_path: Path) -> None:
    hands = Hands()
    trigger = Trigger(settings(tmp_path), hands.clock, hands.patience)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"jobs-{FIRST}.parquet").write_bytes(b"no parquet")
    ((row,), _) = trigger.tend()
    assert row["state"] == "failed"
    assert f"jobs-{FIRST}.parquet" in row["reason"]


SAMPLES = "jobid,__name__,time,value,host\n" + "".join(
    f"j{job},load_one,{1_748_736_000 + 30 * at},{job + 1}.0,node{job}\n"
    for job in range(3)
    for at in range(40)
)
MAP = """source = "alpha"
time_unit = "s"
columns = {job_id = "jobid", metric = "__name__", unit = "host"}
[metrics]
load_one = {name = "cpu_load"}
"""


@pytest.mark.parametrize("mapped", [True, False])
def test_samples_are_read_by_a_map_and_a_file_without_a_good_row_fails_the_night(
    tmp_path: Path, mapped: bool
) -> None:
    hands = Hands()
    deliver(tmp_path, FIRST)
    (tmp_path / "in" / f"samples-{FIRST}.csv").write_text(SAMPLES)
    (tmp_path / "alpha.toml").write_text(MAP)
    series = {"format": "series", "files": [str(tmp_path / "in" / "samples-{night}.csv")]}
    jobs = {"format": "jobs", "files": [str(tmp_path / "in" / "jobs-{night}*.parquet")]}
    chosen = settings_of(
        f"duckdb:{tmp_path / 'jobs.duckdb'}",
        ingest=[series | ({"map": str(tmp_path / "alpha.toml")} if mapped else {}), jobs],
    )
    ((row,), _) = Trigger(chosen, hands.clock, hands.patience).tend()
    with open_session(settings=chosen) as session:
        n_series = session.sql("SELECT count(*) AS n FROM series").rows["n"][0].as_py()
        assert session.store.span().jobs == 400
    assert (row["state"], n_series) == (("done", 3) if mapped else ("failed", 0))
    assert mapped or f"samples-{FIRST}.csv" in row["reason"]


def test_a_file_that_did_not_come_is_told_and_ends_the_trigger_badly(tmp_path: Path) -> None:
    hands = Hands()
    chosen = settings(tmp_path)
    trigger = Trigger(chosen, hands.clock, hands.patience)
    deliver(tmp_path, FIRST)
    hands.morning_after(FIRST)
    rows, _ = trigger.tend()
    require_files(chosen, rows)
    quiet = FIRST + timedelta(days=1)
    hands.morning_after(quiet)
    rows, _ = trigger.tend()
    name = str(tmp_path / "in" / f"jobs-{quiet}*.parquet")
    assert (rows[-1]["state"], rows[-1]["reason"]) == (
        "missing",
        f"no jobs ended on this day; file not found: {name}",
    )
    assert notes(tmp_path, quiet) == f"file not found: {name}"
    with raised(InputError):
        require_files(chosen, rows)
    deliver(tmp_path, quiet)
    rows, _ = trigger.tend()
    assert (rows[-1]["state"], rows[-1]["reason"]) == ("done", None)
    require_files(chosen, rows)


def test_of_two_sources_the_one_without_a_file_is_named(tmp_path: Path) -> None:
    hands = Hands()
    source = {"format": "jobs", "files": [str(tmp_path / "in" / "jobs-{night}*.parquet")]}
    other = {
        "format": "cric",
        "files": [str(tmp_path / "queues.json"), str(tmp_path / "queues-{night}.json")],
    }
    chosen = settings_of(f"duckdb:{tmp_path / 'jobs.duckdb'}", ingest=[source, other])
    deliver(tmp_path, FIRST)
    hands.morning_after(FIRST)
    rows, _ = Trigger(chosen, hands.clock, hands.patience).tend()
    assert (rows[-1]["state"], rows[-1]["jobs"]) == ("done", 400)
    with raised(InputError):
        require_files(chosen, rows)


def test_serve_once_ends_with_1_where_a_file_is_missing(tmp_path: Path) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text(
        f'store = "duckdb:{tmp_path / "jobs.duckdb"}"\n'
        f'[[nights.ingest]]\nformat = "jobs"\nfiles = ["{tmp_path / "in"}/{{night}}.csv"]\n'
    )
    ended = CliRunner().invoke(main, ["--config", str(config), "serve", "--once"])
    assert ended.exit_code == 1
    assert "no jobs ended on this day; file not found" in ended.stdout
    compare_text(ended.stderr)


def test_a_trigger_says_which_messages_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        mail = {
            "host": "127.0.0.1",
            "port": nobody.getsockname()[1],
            "security": "none",
            "sender": "a@b.example",
        }
        operator = {"name": "ops", "role": "operator", "channel": "mail", "address": "ops@b.example"}
        usual = settings(tmp_path).model_dump()
        usual["notify"] = {"mail": mail, "recipients": [operator], "attempts": 1}
        hands = Hands()
        deliver(tmp_path, FIRST)
        # nothing comes for the day after, so that operators have a message
        hands.morning_after(FIRST)
        trigger = Trigger(Settings.model_validate(usual), hands.clock, hands.patience)
        trigger.tend()
        assert "not delivered" not in caplog.text
        hands.morning_after(FIRST + timedelta(days=1))
        _, found = trigger.tend()
    assert found.unsent == 1
    assert "1 message not delivered yet; see: esjobs notify log" in caplog.text
