"""Samples become rows: at regular instants, with the end of the job and the part of its day."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esjobs
from esjobs.core.metrics import METRICS, other
from esjobs.records.series.packing import SLOTS, unpack
from esjobs.records.series.rows import Series, regular, rows_of

START = datetime(2026, 1, 1, 23, tzinfo=UTC)


def test_rows_of_a_job_share_its_end_and_its_part_of_the_day() -> None:
    some = [
        Series("cpu_load", "core", "n1/0", START, 60.0, np.array([1.0, np.nan, 0.5])),
        Series("mem_used_b", "node", "n1", START, 60.0, np.arange(90.0), remark="repaired"),
    ]
    rows = rows_of("emmy", "7", some).to_pylist()
    assert {row["end_time"] for row in rows} == {START + timedelta(minutes=89)}
    assert {row["day"] for row in rows} == {date(2026, 1, 2)}
    assert len({row["slot"] for row in rows}) == 1
    assert 0 <= rows[0]["slot"] < SLOTS
    assert [(row["n_samples"], row["n_gaps"], row["remark"]) for row in rows] == [
        (3, 1, None),
        (90, 0, "repaired"),
    ]
    assert unpack(rows[1]["packed"], 90).tolist() == list(range(90))
    assert rows_of("emmy", "7", some, START).column("end_time")[0].as_py() == START


def test_irregular_samples_are_laid_on_the_median_distance() -> None:
    laid = regular(np.array([0.0, 60.0, 120.0, 205.0, 240.0]), [np.arange(5.0)])
    assert laid.step_s == 60.0
    assert laid.columns[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert laid.remark == "1 samples moved to regular instants"


def test_a_distance_that_is_a_little_off_leaves_no_gap() -> None:
    times = np.cumsum([0, *([61, 61, 62] * 133)]).astype(float)
    laid = regular(times, [np.ones(400)])
    assert laid.step_s == pytest.approx(times[-1] / 399)
    assert np.isfinite(laid.columns[0]).all()


def test_time_that_goes_back_and_repeats_is_sorted_and_counted() -> None:
    laid = regular(np.array([0.0, 20.0, 10.0, 10.0, 30.0]), [np.array([0.0, 2.0, 1.0, 9.0, 3.0])])
    assert laid.columns[0].tolist() == [0.0, 9.0, 2.0, 3.0]
    assert (laid.shifted, laid.dropped) == (0, 1)
    assert laid.remark == "1 samples with the time of another sample"


def test_samples_that_are_missing_are_gaps() -> None:
    laid = regular(np.array([0.0, 10.0, 20.0, 50.0]), [np.arange(4.0)])
    np.testing.assert_array_equal(laid.columns[0], [0, 1, 2, np.nan, np.nan, 3])
    assert laid.remark is None


def test_one_instant_has_no_distance() -> None:
    laid = regular(np.array([5.0, 5.0]), [np.array([1.0, 2.0])])
    assert (laid.step_s, laid.columns[0].tolist()) == (0.0, [2.0])


def test_instants_beyond_all_measure_are_refused() -> None:
    with pytest.raises(ValueError, match="distances of 1 s"):
        regular(np.array([0.0, 1.0, 2.0, 1e9]), [np.zeros(4)])


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=30))
def test_no_sample_is_lost_without_being_counted(times: list[float]) -> None:
    try:
        laid = regular(np.array(times), [np.arange(1.0, 1 + len(times))])
    except ValueError:
        return
    assert np.isfinite(laid.columns[0]).sum() + laid.dropped == len(times)
    assert np.isfinite(laid.columns[0][[0, -1]]).all()


def test_the_page_names_every_metric_with_its_unit() -> None:
    page = (Path(__file__).parents[3] / "docs" / "fields.md").read_text(encoding="utf-8")
    for known in METRICS:
        mark = " +" if known.over_units == "sum" else ""
        assert f"- `{known.name}` ({known.unit}{mark}): {known.meaning}\n" in page


@given(st.text(max_size=20))
@settings(deadline=None)
def test_a_metric_that_is_not_there_keeps_its_name_in_plain_letters(name: str) -> None:
    assert re.fullmatch(r"x_[a-z0-9_]+", other(name))


def test_times_of_rows_are_those_that_an_index_knows(tmp_path: Path) -> None:
    fine = START.replace(microsecond=251_350)
    (row,) = rows_of("s", "1", [Series("ipc", "job", "", fine, 0.3337, np.ones(2))]).to_pylist()
    assert [row[name].microsecond for name in ("start_time", "end_time")] == [251_000, 584_000]
    file = tmp_path / "prmon_4711.txt"
    file.write_text("Time rss\n1700000000 5\n1700000060 6\n")
    with esjobs.open("duckdb::memory:", clock=lambda: fine) as session:
        session.ingest("prmon", [file])
        (row,) = session.tables.series().rows.to_pylist()
    assert row["loaded_at"].microsecond == 251_000
