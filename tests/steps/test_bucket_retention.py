"""Buckets of months long past go by a rule, a month at a time; jobs and runs stay."""

from collections.abc import Iterator
from datetime import date

import pytest

from esjobs.api.session import Session
from esjobs.core.clock import system_clock
from esjobs.core.errors import UsageError
from esjobs.publish.publication import rows_table
from esjobs.schema.drift import DAILY_FACTORS
from scheduler.ledger import Ledger
from tests.conftest import memory_session, with_settings
from tests.contract.jobs import START, batch, hours, job
from tests.messages import raised

WINDOW = "2018-07-01/2018-10-01"
DAYS = ["2018-07-30", "2018-07-31", "2018-08-01", "2018-09-10"]


@pytest.fixture
def session() -> Iterator[Session]:
    with memory_session() as opened:
        ends = (hours(-30), hours(-1), hours(1), START.replace(month=9, day=10))
        opened.store.put_jobs([batch([job(n, end_time=end) for n, end in enumerate(ends)])], "a")
        opened.speed.aggregate(WINDOW)
        yield opened


def days(session: Session, table: str = "buckets") -> list[str]:
    return sorted({str(day)[:10] for day in session.tables.read(table).to_pandas()["day"]})


def test_the_newest_months_stay(session: Session) -> None:
    told = session.runs.prune(bucket_months=2, dry_run=True)
    assert told.counts["days of buckets"] == 2
    assert "would be removed: the buckets of 2018-07, 2 days; the newest 2 months are kept" in told.notes
    assert days(session) == DAYS
    report = session.runs.prune(bucket_months=2)
    assert report.counts["days of buckets"] == 2
    assert report.counts["rows removed"] > 2
    assert days(session) == days(session, "day_books") == DAYS[2:]
    assert session.query(by=["day"]).to_pandas()["jobs"].sum() == 4
    assert "days of buckets" not in session.runs.prune(bucket_months=2).counts
    assert session.speed.aggregate(WINDOW).counts["days recomputed"] == 2
    assert days(session) == DAYS


def test_what_else_is_kept_per_day_goes_with_the_buckets(session: Session) -> None:
    for day in (*DAYS, "2018-06-01"):
        row = {"day": date.fromisoformat(day), "level": "queue", "name": "A", "k": 1.0}
        rows = rows_table(DAILY_FACTORS, [row]).to_batches()
        session.store.publish([session.store.replace(DAILY_FACTORS, day, rows)])
    report = session.runs.prune(bucket_months=2)
    assert report.counts["days of daily factors"] == 3
    assert days(session, "daily_factors") == days(session) == DAYS[2:]


def test_nights_and_flags_do_not_go_with_the_buckets(session: Session) -> None:
    Ledger(session.store, system_clock).write({"night": date(2018, 7, 30), "state": "done", "attempt": 1}, [])
    session.runs.prune(bucket_months=1)
    assert len(session.tables.nights().to_pandas()) == 1


def test_buckets_stay_unless_somebody_says_of_how_many_months(session: Session) -> None:
    session.runs.prune()
    assert days(session) == DAYS
    retention = session.settings.retention.model_copy(update={"keep_bucket_months": 1})
    session = with_settings(session, session.settings.model_copy(update={"retention": retention}))
    session.runs.prune()
    assert days(session) == DAYS[3:]


@pytest.mark.parametrize("months", [0, -1, True, 1.5])
def test_a_number_of_months_is_one_at_least(session: Session, months: object) -> None:
    with raised(UsageError):
        session.runs.prune(bucket_months=months)  # type: ignore[arg-type]
    assert days(session) == DAYS
