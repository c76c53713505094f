"""Forecasts are the same on every engine: their sums come from buckets, aggregates and stored runs."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.cli.running import job_file
from tests.conftest import NOW, memory_session

KEYS = ("queue", "processing_type", "core_class", "cpu_model", "day")


def forecasts(session: Session, jobs: Path) -> dict[str, list[dict[str, Any]]]:
    """Every forecast on a small grid, by name."""
    session.ingest("jobs", jobs)
    session.run("2018-08-01/2018-09-01")
    ask = session.what_if
    answers = {
        "move": ask.move("SITE03", "SITE07", task="task1"),
        "type": ask.move("SITE03", "SITE07", processing_type="simul", jobs=500),
        "place": ask.place_cores(1000),
        "finish": ask.finish("task2", "2018-08-20", jobs=40),
        "declare": ask.declare({"SITE11": 40.0}),
        "drain": ask.drain("SITE03"),
        "buy": ask.buy(),
        "task": ask.task("task0"),
        "progress": ask.progress("task0"),
    }
    return {name: answer.rows.to_pylist() for name, answer in answers.items()}


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row.get(name)) for name in KEYS])


def test_forecasts(store: JobStore, tmp_path: Path) -> None:
    jobs = job_file(tmp_path / "jobs.csv")
    here = forecasts(Session(store, Settings(), clock=lambda: NOW), jobs)
    with memory_session() as session:
        expected = forecasts(session, jobs)
    for name, rows in expected.items():
        assert [row.keys() for row in here[name]] == [row.keys() for row in rows], name
        for found, row in zip(by_key(here[name]), by_key(rows), strict=True):
            for column, value in row.items():
                close = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
                assert found[column] == close, (name, column)
    (row,) = expected["move"]
    assert row["reason"] is None
    assert row["waiting_p50_s"] is None
    # speeds are those that were planted: 13 + site
    assert row["cpu_s"] / row["cpu_s_from"] == pytest.approx((13 + 3) / (13 + 7), rel=0.02)
    assert row["cpu_s_low"] < row["cpu_s_from"] * 16 / 20 < row["cpu_s_high"]
