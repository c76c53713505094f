"""Waiting, throughput, memory, CPU models and arrivals of sites: planted truth, campaigns, few records."""

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.publish.publication import read_table
from esjobs.schema.today import DAY_SUMS, TODAY_DAYS, WAIT_EDGES_S, WAITED
from esjobs.today.metrics import METRICS, median
from scheduler.notifications.incident_notices import incident_notices
from tests.today.grid_jobs import SITES, Row, day, jobs_of, put

SITE = "OAK"
BAD_FROM, DAYS = 20, 23


def shifted(row: Row, metric: str, index: int) -> Row | None:
    """A job as a deviation leaves it."""
    if metric == "waiting":
        return row | {"queue_s": row["queue_s"] * 12}
    if metric == "memory":
        return row | {"max_rss_b": row["max_rss_b"] * 1.5}
    if metric == "unknown cpu":
        return row | {"cpu_raw": (None, "s+UNKNOWN")[index % 2]} if index % 3 == 0 else row
    return row if metric == "throughput" and index % 20 == 0 else None


@pytest.mark.parametrize("metric", [each.name for each in METRICS])
def test_a_planted_deviation_is_the_only_incident(session: Session, metric: str) -> None:
    def change(row: Row, number: int, index: int) -> Row | None:
        return shifted(row, metric, index) if row["queue"] == SITE and number >= BAD_FROM else row

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    nights = [session.flags.today.incidents(day(number)).rows.to_pylist() for number in range(DAYS)]
    assert all(not rows for rows in nights[:BAD_FROM])
    # late records look like little work: the second night decides
    first = BAD_FROM + (metric == "throughput")
    (row,) = nights[first + 1]
    assert (row["site"], row["metric"], row["state"]) == (SITE, metric, "open")
    assert row["since"] == day(BAD_FROM)
    assert row["total_core_h"] == 0.0
    assert row["cause"] is None
    below = metric in ("throughput", "arrivals")
    assert (row["observed"] < row["expected"] / 2) if below else (row["observed"] > row["expected"] * 1.2)
    assert row["low"] < row["expected"] < row["high"]
    assert not (row["low"] <= row["observed"] <= row["high"])
    opened = [notice for number in range(DAYS) for notice in incident_notices(session.store, day(number))]
    assert [notice.kind for notice in opened].count("incident_opened") == 1
    assert "core-hours so far" not in row["sentence"]


def test_a_deviation_ends_and_leaves_efficiency_alone(session: Session) -> None:
    def change(row: Row, number: int, index: int) -> Row | None:
        ill = row["queue"] == SITE and BAD_FROM <= number < BAD_FROM + 2
        return shifted(row, "unknown cpu", index) if ill else row

    put(session.store, jobs_of(range(DAYS + 2), bad=False, change=change))
    session.flags.today.update()
    (row,) = session.flags.today.incidents().rows.to_pylist()
    assert (row["state"], row["until"]) == ("closed", day(BAD_FROM + 1))
    rows = read_table(session.store, TODAY_DAYS).to_pylist()
    frozen = {(one["site"], one["metric"]) for one in rows if one["in_incident"]}
    assert frozen == {(SITE, "unknown cpu")}


def test_a_campaign_raises_nothing(session: Session) -> None:
    def change(row: Row, number: int, index: int) -> Row | None:
        if number < BAD_FROM:
            return row
        # new tasks everywhere, that wait longer and need more memory
        more = {
            "task_id": f"new-{index % 3}",
            "queue_s": row["queue_s"] * 3,
            "max_rss_b": row["max_rss_b"] * 1.8,
        }
        return row | more if index % 2 else row

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    assert session.flags.today.incidents().rows.num_rows == 0


def test_a_grid_without_work_is_one_incident(session: Session) -> None:
    def change(row: Row, number: int, index: int) -> Row | None:
        return row if number < BAD_FROM or index % 20 == 0 else None

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    (row,) = session.flags.today.incidents().rows.to_pylist()
    assert (row["site"], row["metric"], row["since"]) == ("everywhere", "throughput", day(BAD_FROM))


def test_one_night_with_few_records_is_not_less_work(session: Session) -> None:
    def change(row: Row, number: int, index: int) -> Row | None:
        return row if number != DAYS - 1 or row["queue"] != SITE or index % 5 == 0 else None

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    assert session.flags.today.incidents().rows.num_rows == 0
    last = [one for one in read_table(session.store, TODAY_DAYS).to_pylist() if one["day"] == day(DAYS - 1)]
    assert {one["site"] for one in last if one["partial"]} == {SITE}


def test_the_new_sums_are_those_of_the_jobs(session: Session) -> None:
    rows = jobs_of(range(2), change=lambda row, _, index: shifted(row, "unknown cpu", index))
    for row in rows[::7]:
        row["queue_s"] = None
    put(session.store, rows)
    session.flags.today.update()
    sums = read_table(session.store, DAY_SUMS).to_pylist()
    waits = [row["queue_s"] for row in rows if row["queue_s"] is not None]
    wanted, _ = np.histogram(waits, [0.0, *WAIT_EDGES_S, np.inf])
    assert [sum(one[name] for one in sums) for name in WAITED] == wanted.tolist()
    assert sum(one["n_unknown_cpu"] for one in sums) == 2 * len(SITES) * 20
    assert sum(one["n_memory"] for one in sums) == len(rows)
    assert sum(one["memory_b"] for one in sums) == pytest.approx(sum(row["max_rss_b"] for row in rows))
    assert sum(one["memory_cores"] for one in sums) == 8 * len(rows)


def test_records_without_these_fields_have_no_such_rows(session: Session) -> None:
    def change(row: Row, _number: int, _index: int) -> Row:
        return row | {"queue_s": None, "max_rss_b": None, "cpu_raw": None}

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    rows = read_table(session.store, TODAY_DAYS).to_pylist()
    assert not {"waiting", "memory"} & {one["metric"] for one in rows}
    assert {one["observed"] for one in rows if one["metric"] == "unknown cpu"} == {1.0}
    assert session.flags.today.incidents().rows.num_rows == 0


def test_a_median_of_few_is_missing() -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random((50, 9)) < 0.4, np.nan, rng.random((50, 9)))
    for row, found in zip(values, median(values, 3), strict=True):
        kept = row[np.isfinite(row)]
        assert found == pytest.approx(np.median(kept)) if len(kept) >= 3 else np.isnan(found)
