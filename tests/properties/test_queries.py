"""Ad-hoc questions against a second implementation in plain pandas."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.conditions import quoted
from esjobs.core.errors import NoJobsError
from esjobs.core.window import Window
from tests.conftest import memory_session
from tests.properties.jobs_of_all_kinds import FIRST, JOBS, N_DAYS, frame_of_jobs, put

KEYS = ["day", "task_id", "queue", "cpu_model", "processing_type", "user", "state", "cores", "core_class"]
METRICS = ["jobs", "events", "cpu_h", "wall_h", "core_h", "efficiency", "cpu_s_per_event"]
VALUES: dict[str, list[str]] = {
    "task_id": ["1", "2", "13332803", "", "3"],
    "queue": ["CERN", "cern", "RAL", "CER%", "*", "' OR '1'='1"],
    "cpu_model": ["Intel Xeon E5-2650 v2", "AMD EPYC 7302", "", "Intel%"],
    "processing_type": ["simul", "Merge", "merge", "", "simul*", "_", "%"],
    "user": ["me", "", "' OR 1=1 --", "%", "*", "m_"],
    "state": ["finished", "failed", ""],
    "cores": ["1", "8", "0", "", "3"],
    "core_class": ["single", "multi", ""],
    "day": ["2018-08-10", "2018-08-12", "2020-01-01"],
}


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    moments = st.integers(-3600, N_DAYS * 86_400).map(lambda s: FIRST + timedelta(seconds=s, microseconds=1))
    start, end = draw(st.tuples(moments, moments).filter(lambda pair: pair[0] < pair[1]))
    conditions = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2))
    return {
        "by": draw(st.lists(st.sampled_from(KEYS), max_size=3, unique=True)),
        "metrics": draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=4, unique=True)),
        "where": [f"{name}={draw(st.sampled_from(VALUES[name]))}" for name in conditions],
        "window": draw(st.sampled_from([None, (start, end)])),
    }


def holds(frame: pd.DataFrame, where: Sequence[str]) -> pd.Series:
    """The same field again means or, another one means and; nothing after the sign stands for missing."""
    wanted: dict[str, list[str]] = {}
    for condition in where:
        name, _, value = condition.partition("=")
        wanted.setdefault(name, []).append(value)
    kept = pd.Series(data=True, index=frame.index)
    for name, values in wanted.items():
        column = frame[name]
        shown = [
            "" if pd.isna(value) else str(int(value)) if name == "cores" else str(value) for value in column
        ]
        kept &= pd.Series(shown, index=frame.index).isin(values)
    return kept


def metric(group: pd.DataFrame, name: str) -> float:
    match name:
        case "jobs":
            return len(group)
        case "events":
            return group["events"].sum(min_count=1)
        case "cpu_h":
            return group["cpu_s"].sum(min_count=1) / 3600
        case "wall_h":
            return group["wall_s"].sum(min_count=1) / 3600
        case "core_h":
            return (group["wall_s"] * group["cores"]).sum(min_count=1) / 3600
        case "efficiency":
            full = group.dropna(subset=["cpu_s", "wall_s", "cores"])
            under = (full["wall_s"] * full["cores"]).sum()
            return full["cpu_s"].sum() / under if under > 0 else np.nan
        case _:
            full = group.dropna(subset=["cpu_s", "events"])
            return full["cpu_s"].sum() / full["events"].sum() if full["events"].sum() > 0 else np.nan


def answer(frame: pd.DataFrame, question: dict[str, Any]) -> dict[tuple[Any, ...], list[float]]:
    if question["window"] is not None:
        start, end = question["window"]
        ends = pd.to_datetime(frame["end_time"], utc=True)
        frame = frame[(ends >= start) & (ends < end)]
    frame = frame[holds(frame, question["where"])]
    if frame.empty:
        return {}
    keys = question["by"]
    if not keys:
        return {(): [metric(frame, name) for name in question["metrics"]]}
    return {
        tuple(_plain(part) for part in key): [metric(group, name) for name in question["metrics"]]
        for key, group in frame.groupby(keys, dropna=False)
    }


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.date()
    return int(value) if isinstance(value, float | np.integer) else value


@pytest.fixture(scope="module")
def emptied() -> Iterator[Session]:
    with memory_session() as session:
        yield session


@settings(max_examples=25, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=40), st.lists(questions(), min_size=4, max_size=8))
def test_answers_are_those_of_a_second_implementation(
    emptied: Session, jobs: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    frame = frame_of_jobs(jobs)
    put(emptied, jobs)
    try:
        for question in asked:
            expected = answer(frame, question)
            window = question["window"]
            ask = {**question, "window": None if window is None else Window(*window)}
            if not expected:
                with pytest.raises(NoJobsError):
                    emptied.query(**ask).to_pandas()
                continue
            found = emptied.query(**ask).to_pandas()
            assert list(found.columns) == [*question["by"], *question["metrics"]]
            n_keys = len(question["by"])
            rows = {
                tuple(_plain(part) for part in row[:n_keys]): list(row[n_keys:])
                for row in found.itertuples(index=False, name=None)
            }
            assert rows.keys() == expected.keys()
            assert len(rows) == len(found)
            for key, values in expected.items():
                numbers = [np.nan if pd.isna(value) else float(value) for value in rows[key]]
                np.testing.assert_allclose(numbers, values, rtol=1e-12)
            if question["by"][:1] == ["day"]:
                assert found["day"].is_monotonic_increasing
            elif "jobs" in found and "day" not in found:
                assert found["jobs"].is_monotonic_decreasing
    finally:
        emptied.store.undo_load("load")


HOSTILE = [
    "' OR 1=1 --",
    "'; DROP TABLE jobs; --",
    "$1",
    "?",
    "%",
    "_",
    "*",
    "SITE*",
    "\\",
    '"',
    "a=b",
    "a,b",
    " blank ",
    "Ω≈ç√",
    "👩‍💻",
    "new\nline",
    "x" * 5000,
    "null",
    "NaN",
    "all",
]


def test_values_are_values(session: Session) -> None:
    """Whatever a site is called, asking for it gives its jobs and no others."""
    template = {
        "task_id": "1",
        "cpu_raw": None,
        "processing_type": None,
        "state": None,
        "end_time": datetime.fromisoformat("2018-08-10T12:00:00+00:00"),
    }
    numbers = {name: number for number, name in enumerate(HOSTILE, 1)}
    put(session, [{**template, "queue": name} for name, count in numbers.items() for _ in range(count)])
    for name, count in numbers.items():
        for where in ({"queue": name}, f"queue={quoted(name)}"):
            found = session.query("queue", where=where).to_pandas()
            assert found["queue"].tolist() == [name]
            assert found["jobs"].tolist() == [count]
            assert len(session.jobs(where=where).to_pandas()) == count
    everything = session.query("queue").to_pandas()
    assert dict(zip(everything["queue"], everything["jobs"], strict=True)) == numbers
    both = session.query("queue", where=["queue=%", "queue=_"]).to_pandas()
    assert set(both["queue"]) == {"%", "_"}


def test_ratios_are_of_sums_over_jobs_with_every_term(session: Session) -> None:
    base = {"queue": "CERN", "task_id": "1", "state": "failed", "end_time": FIRST}
    put(
        session,
        [
            {**base, "cpu_s": 100.0, "wall_s": 100.0, "cores": 1, "events": 10},
            {**base, "cpu_s": 300.0, "wall_s": 300.0, "cores": 4, "events": None},
            {**base, "cpu_s": 5000.0, "wall_s": None, "cores": 1, "events": 5},
            {**base, "cpu_s": None, "wall_s": 900.0, "cores": 1, "events": 1000},
            {**base, "cpu_s": 700.0, "wall_s": 900.0, "cores": None, "events": 0},
        ],
    )
    row = session.query("queue", METRICS).to_pandas().iloc[0].to_dict()
    assert row["jobs"] == 5
    assert row["efficiency"] == pytest.approx(400 / 1300, rel=1e-14)
    assert row["cpu_s_per_event"] == pytest.approx(5800 / 15, rel=1e-14)
    assert row["events"] == 1015
    assert row["cpu_h"] == pytest.approx(6100 / 3600)
    assert row["core_h"] == pytest.approx(2200 / 3600)
    with pytest.raises(NoJobsError):
        session.query("queue", METRICS, clean=True).to_pandas()  # all of them failed


def test_the_window_is_half_open_to_the_microsecond(session: Session) -> None:
    noon = datetime.fromisoformat("2018-08-10T12:00:00+00:00")
    tick = timedelta(microseconds=1)
    put(session, [{"queue": f"{n}", "task_id": "1", "end_time": noon + n * tick} for n in (-1, 0, 1)])

    def sites(start: datetime, end: datetime) -> list[str]:
        return sorted(session.query("queue", window=Window(start, end)).to_pandas()["queue"])

    assert sites(noon, noon + tick) == ["0"]
    assert sites(noon - tick, noon) == ["-1"]
    assert sites(noon, noon + 2 * tick) == ["0", "1"]
    with pytest.raises(NoJobsError):
        sites(noon + 2 * tick, noon + 3 * tick)
