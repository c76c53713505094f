"""Delivered work against sums by hand, with declared values that change inside the window."""

import csv
import math
from pathlib import Path

import duckdb
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.words import HALF_WIDTH_90
from esjobs.delivered.scores import Measured
from esjobs.delivered.work import _error

HEADER = "source,job_id,queue,user,state,start_time,end_time,wall_s,cores,cpu_s,hs06_s"
JOBS = (
    ("A", "ann", "finished", "2025-06-01", 3600, 4, 7200, 144000),
    ("A", "ann", "finished", "2025-06-10", 3600, 4, 7200, 144000),
    ("A", "bob", "failed", "2025-06-10", 7200, 1, 3600, 72000),
    ("B", "bob", "finished", "2025-06-10", 3600, 8, 28800, ""),
    ("B", "bob", "finished", "2025-07-02", 3600, 8, 28800, ""),
    ("C", "bob", "cancelled", "2025-06-11", 3600, 2, "", ""),
)


@pytest.fixture
def filled(session: Session, tmp_path: Path) -> Session:
    """Queue A declares 10.5 HS06, from 5 June 12.5; B 20 HS23; nobody knows of C."""
    jobs = tmp_path / "jobs.csv"
    with jobs.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        for number, (queue, user, state, day, *used) in enumerate(JOBS):
            times = (f"{day}T01:00:00Z", f"{day}T09:00:00Z")
            writer.writerow(["grid", number, queue, user, state, *times, *used])
    session.ingest("jobs", jobs)
    for benchmark, rows in (
        ("HS06", ["A,10.5,2025-01-01", "A,12.5,2025-06-05"]),
        ("HS23", ["B,20.5,2025-01-01"]),
    ):
        table = tmp_path / f"{benchmark}.csv"
        table.write_text("\n".join(["name,corepower,valid_from", *rows]) + "\n", encoding="utf-8")
        session.declared.import_values(table, benchmark=benchmark)
    return session


def of(rows: list[dict[str, object]], **names: object) -> dict[str, object]:
    (row,) = [row for row in rows if all(row[name] == value for name, value in names.items())]
    return row


def test_a_value_counts_while_it_is_valid(filled: Session) -> None:
    rows = filled.delivered.work("queue").rows.to_pylist()
    assert of(rows, queue="A") == {
        "queue": "A",
        "benchmark": "HS06",
        "core_h": 10.0,
        "cpu_core_h": 5.0,
        "useful_core_h": 4.0,
        "failed_core_h": 2.0,
        "declared_h": 4 * 10.5 + 6 * 12.5,
        "measured_h": None,
        "measured_h_err": None,
        "recorded_h": 100.0,
        "pledge_h": None,
        "of_pledge_percent": None,
        "available_share": None,
        "of_available_percent": None,
        "gain_h": None,
        "gain_h_err": None,
        "no_declared_core_h": None,
        "no_measured_core_h": 10.0,
        "n_jobs": 3,
    }
    assert of(rows, queue="B")["declared_h"] == 16 * 20.5
    nobody = of(rows, queue="C")
    assert (nobody["benchmark"], nobody["declared_h"], nobody["no_declared_core_h"]) == (None, None, 2.0)


def test_benchmarks_are_never_added(filled: Session) -> None:
    answer = filled.delivered.work("user")
    rows = answer.rows.to_pylist()
    assert of(rows, user="bob", benchmark="HS06")["declared_h"] == 2 * 12.5
    assert of(rows, user="bob", benchmark="HS23")["declared_h"] == 16 * 20.5
    assert of(rows, user="bob", benchmark=None)["core_h"] == 2.0
    assert any("must not be added" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("window", "in_part"),
    [("2025-06-02/2025-06-20", 1), ("2025-06-01/2025-07-01", 0), ("2025-05-30/2025-07-02", 2)],
)
def test_months_that_the_window_cuts_are_named_once(filled: Session, window: str, in_part: int) -> None:
    notes = filled.delivered.work("month", window=window).notes
    assert len([note for note in notes if "is counted in part" in note]) == in_part


def test_months_and_windows(filled: Session) -> None:
    by_month = filled.delivered.work(["month", "queue"]).rows.to_pylist()
    assert of(by_month, month="2025-06", queue="B")["declared_h"] == 8 * 20.5
    window = filled.delivered.work("queue", window="2025-06-01/2025-07-01").rows.to_pylist()
    assert of(window, queue="B") == {key: of(by_month, month="2025-06", queue="B")[key] for key in window[0]}


def test_conditions(filled: Session) -> None:
    (row,) = filled.delivered.work("user", where="queue=B").rows.to_pylist()
    assert (row["user"], row["n_jobs"]) == ("bob", 2)


def test_unknown_groupings_and_empty_windows(filled: Session) -> None:
    with pytest.raises(UsageError):
        filled.delivered.work("colour")
    with pytest.raises(NoJobsError):
        filled.delivered.work("queue", window="2024-01-01/2024-02-01")


def test_errors_of_queues_add_in_squares_and_that_of_the_line_as_it_is() -> None:
    measured = {"A": Measured(10.0, "HS06", 0.03, 0.02), "B": Measured(12.0, "HS06", 0.04, 0.02)}
    own = math.hypot(100 * 0.03, 200 * 0.04)
    assert _error({"A": 100.0, "B": 200.0}, measured) == pytest.approx(math.hypot(own, 300 * 0.02))


def test_the_demo_by_hand(demo_folder: Path) -> None:
    location = demo_folder / "demo.duckdb"
    with esjobs.open(f"duckdb:{location}", read_only=True) as session:
        rows = session.delivered.work("queue").rows
        flags = session.tables.flags(level="queue", type="all").to_pandas()
    by_hand = """SELECT queue, sum(wall_s * cores) / 3600 AS core_h, sum(hs06_s) / 3600 AS recorded_h
        FROM read_parquet(?) GROUP BY queue"""
    jobs = duckdb.execute(by_hand, [str(demo_folder / "jobs.parquet")]).df()
    merged = rows.to_pandas().merge(jobs, on="queue", suffixes=("", "_sql"))
    flags = flags[flags["method"] == "gamma"]
    merged = merged.merge(flags, left_on="queue", right_on="name", suffixes=("", "_flag"))
    assert len(merged) > 30
    assert merged["core_h"].to_numpy() == pytest.approx(merged["core_h_sql"].to_numpy(), rel=1e-9)
    assert merged["recorded_h"].to_numpy() == pytest.approx(
        merged["recorded_h_sql"].to_numpy(), rel=1e-9, nan_ok=True
    )
    known = merged[merged["estimate"].notna()]
    expected = known["core_h"] * known["estimate"]
    assert known["measured_h"].to_numpy(float) == pytest.approx(expected.to_numpy(float), rel=1e-9)
    half = (known["estimate_high"] / known["estimate_low"]).apply(math.log) / (2 * HALF_WIDTH_90)
    assert known["measured_h_err"].to_numpy(float) == pytest.approx(
        (expected * half).to_numpy(float), rel=1e-6
    )
    own = known[known["origin"] == "own"]
    assert own["declared_h"].to_numpy(float) == pytest.approx(
        (own["core_h"] * own["corepower"]).to_numpy(float), rel=1e-9
    )
