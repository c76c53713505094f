"""Waiting, use and losses per name: against NumPy on the same jobs, alike on DuckDB and in pieces."""

from datetime import timedelta

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.fields import field
from tests.contract.jobs import START, Row, job, put
from tests.messages import raised

N_DAYS = 28


def jobs(per_week: float) -> list[Row]:
    """Ten jobs a day whose waiting grows by a share a week in projects a and shrinks in b."""
    rng = np.random.default_rng(11)
    rows = []
    for number in range(10 * N_DAYS):
        day, project = number // 10, "ab"[number % 2]
        grown = (1 + per_week) ** (day / 7 * (1 if project == "a" else -1))
        rows.append(
            job(
                number,
                project=project,
                cores=1 if project == "a" else 128,
                end_time=START + timedelta(days=day, minutes=number % 10),
                queue_s=float(36_000 * grown * rng.lognormal(0, 0.1)),
                requested_wall_s=4000.0,
                requested_memory_b=2e9 if number % 3 else None,
                max_rss_b=1e9,
                state="timeout" if number % 20 == 0 else "failed" if number % 20 == 2 else "finished",
                exit_code="0:9" if number % 40 == 2 else None,
            )
        )
    return rows


@pytest.fixture
def filled(session: Session) -> tuple[Session, list[Row]]:
    rows = jobs(0.3)
    put(session.store, "load", *rows, job("silent", project="c"))
    return session, rows


def test_percentiles_and_trends(filled: tuple[Session, list[Row]]) -> None:
    session, rows = filled
    told = {row["name"]: row for row in session.provisioning.waiting("project").rows.to_pylist()}
    assert set(told) == {"a", "b"}  # c says nothing of waiting
    for name, row in told.items():
        waits = [each["queue_s"] for each in rows if each["project"] == name]
        assert row["n_jobs"] == len(waits)
        assert [row["median_s"], row["p90_s"], row["p99_s"]] == pytest.approx(
            list(np.percentile(waits, [50, 90, 99]))
        )
    assert [told[name]["trend"] for name in "ab"] == ["growing", "shrinking"]
    assert told["a"]["change_low"] < 0.3 < told["a"]["change_high"]
    assert told["b"]["change_low"] < 1 / 1.3 - 1 < told["b"]["change_high"]


def test_sizes_are_classes_of_cores(filled: tuple[Session, list[Row]]) -> None:
    session, _ = filled
    assert {row["name"] for row in session.provisioning.waiting("size").rows.to_pylist()} == {
        "1 core",
        "65 to 512 cores",
    }


def test_short_windows_have_no_trend(filled: tuple[Session, list[Row]]) -> None:
    session, _ = filled
    (row, _) = session.provisioning.waiting("project", window="2018-08-01/2018-08-15").rows.to_pylist()
    assert (row["trend"], row["change_per_week"]) == ("too few days", None)


def test_used_is_a_ratio_of_sums_of_jobs_that_say_both(filled: tuple[Session, list[Row]]) -> None:
    session, rows = filled
    (row,) = [each for each in session.provisioning.used("project").rows.to_pylist() if each["name"] == "a"]
    both = [each for each in rows if each["project"] == "a" and each["requested_memory_b"]]
    asked = sum(each["requested_memory_b"] for each in both)
    assert row["memory_used"] == pytest.approx(sum(each["max_rss_b"] for each in both) / asked)
    assert row["time_used"] == pytest.approx(1000 / 4000)
    (silent,) = [
        each for each in session.provisioning.used("project").rows.to_pylist() if each["name"] == "c"
    ]
    assert silent["time_used"] is silent["memory_used"] is None


def test_losses_by_reason_add_up(filled: tuple[Session, list[Row]]) -> None:
    session, rows = filled
    told = session.provisioning.lost("project").rows.to_pylist()
    assert {(row["name"], row["reason"], row["exit_code"]) for row in told} == {
        ("a", "timeout", None),
        ("a", "failed", None),
        ("a", "failed", "0:9"),
        ("b", None, None),
        ("c", None, None),
    }
    mine = [row for row in rows if row["project"] == "a"]
    core_h = [row["wall_s"] * row["cores"] / 3600 for row in mine]
    gone = sum(hours for hours, row in zip(core_h, mine, strict=True) if row["state"] != "finished")
    of_a = [row for row in told if row["name"] == "a"]
    assert sum(row["lost_core_h"] for row in of_a) == pytest.approx(gone)
    assert sum(row["lost_share"] for row in of_a) == pytest.approx(gone / sum(core_h))
    assert [row["lost_share"] for row in told if row["name"] == "b"] == [0.0]


def test_what_cannot_be_asked(session: Session) -> None:
    with raised(UsageError):
        session.provisioning.waiting("moon")
    with raised(NoJobsError):
        session.provisioning.lost("queue")
    put(session.store, "load", job(1))
    with raised(NoJobsError):
        session.provisioning.waiting("queue")
    assert field("queue_s").unit == "s"
