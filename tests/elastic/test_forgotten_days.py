"""An archive that forgets: buckets of days whose jobs are gone stay, those of jobs taken back go."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError
from esjobs.core.report import RunReport
from esjobs.schema.jobs import BUCKETS
from esjobs.settings import ClusterSettings
from tests.contract.jobs import Row, batch, job
from tests.elastic.foreign import CATALOGUE, make_index, plain
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

FIRST = datetime(2018, 8, 30, 12, tzinfo=UTC)
"""Two days of August and two of September follow."""
WINDOW = "2018-08-30/2018-09-03"
KEPT = (
    "2 days from 2018-08-30 on kept their buckets, although the archive no longer has their jobs. Remove "
    "these buckets with --rebuild and a window of these days, or with esjobs prune"
)


def jobs() -> list[Row]:
    """Two jobs of each of four days; of one of each the record is no job that can be used."""
    ends = [FIRST + timedelta(days=number) for number in range(4)]
    return [job(f"{end:%d}-{n}", end_time=end, events=100 * n) for end in ends for n in (0, 1)]


def settings(server: Server, prefix: str, *, archive: bool) -> Settings:
    read = {"jobs_index": f"{prefix}archive-*", "field_map": "esjobs"} if archive else {}
    return Settings(
        store=server.url, cluster=ClusterSettings.model_validate({"prefix": f"{prefix}own"} | read)
    )


def fill(server: Server, prefix: str, some: Iterable[Row]) -> None:
    """An index for each month, as an archive has them."""
    by_month: dict[str, list[Row]] = {}
    for row in some:
        by_month.setdefault(f"{row['end_time']:%Y-%m}", []).append(row)
    for month, rows in by_month.items():
        make_index(server, f"{prefix}archive-{month}", CATALOGUE, map(plain, rows))


def days(session: Session) -> list[int]:
    """The days that have buckets, which must be those that have books."""
    with_books = sorted(set(session.tables.day_books().to_pandas()["day"].dt.day))
    assert sorted(session.tables.buckets().to_pandas()["day"].dt.day) == with_books
    return with_books


def kept(report: RunReport) -> list[str]:
    return [note for note in report.notes if " kept their buckets" in note]


def test_days_that_an_archive_has_forgotten_stay(server: Server, index_prefix: str) -> None:
    fill(server, index_prefix, jobs())
    with esjobs.open(settings=settings(server, index_prefix, archive=True)) as session:
        first = session.speed.aggregate(WINDOW)
        assert (first.rows_in, first.rows_out, first.counts["days recomputed"]) == (8, 4, 4)
        server.json("DELETE", f"{index_prefix}archive-2018-08")
        # a window that reaches back counts them, and says so
        report = session.speed.aggregate(WINDOW)
        assert (report.rows_in, report.rows_out) == (first.rows_in, first.rows_out)
        assert (report.counts["days"], report.counts["days recomputed"]) == (4, 0)
        assert kept(report) == [KEPT]
        # as does one that has nothing else; one that does not reach back leaves them alone
        assert kept(session.speed.aggregate("2018-08-30/2018-09-01")) == [KEPT]
        assert kept(session.speed.aggregate("2018-09-01/2018-09-03")) == []
        assert days(session) == [1, 2, 30, 31]
        # who asks for what is there now gets it
        session.speed.aggregate(WINDOW, rebuild=True)
        assert days(session) == [1, 2]
        with raised(NoJobsError):
            session.speed.aggregate("2018-08-30/2018-09-01")


def test_a_day_of_which_an_archive_has_some_jobs_left_is_made_again(
    server: Server, index_prefix: str
) -> None:
    fill(server, index_prefix, jobs())
    with esjobs.open(settings=settings(server, index_prefix, archive=True)) as session:
        session.speed.aggregate(WINDOW)
        server.json("DELETE", f"{index_prefix}archive-2018-08")
        fill(server, index_prefix, jobs()[:1])
        report = session.speed.aggregate(WINDOW)
        assert (report.rows_in, report.counts["days recomputed"]) == (7, 1)
        assert kept(report)[0].startswith("1 days from 2018-08-31 on kept their buckets")
        assert sorted(session.tables.buckets().to_pandas()["day"].dt.day) == [1, 2, 31]


def test_forgotten_days_whose_buckets_are_lost_go(server: Server, index_prefix: str) -> None:
    """What is left of such a day can neither be used nor made again."""
    fill(server, index_prefix, jobs())
    with esjobs.open(settings=settings(server, index_prefix, archive=True)) as session:
        session.speed.aggregate(WINDOW)
        server.json("DELETE", f"{index_prefix}archive-2018-08")
        session.store.publish([session.store.replace(BUCKETS, "2018-08-31", [])])
        assert kept(session.speed.aggregate(WINDOW))[0].startswith("1 days from ")
        assert days(session) == [1, 2, 30]


def test_a_month_of_own_jobs_that_somebody_deletes_is_forgotten_one_taken_back_is_not(
    server: Server, index_prefix: str, tmp_path: Path
) -> None:
    with esjobs.open(settings=settings(server, index_prefix, archive=False)) as session:
        october = [job(f"later-{n}", end_time=FIRST + timedelta(days=40 + n)) for n in range(2)]
        for load, some in (("all", jobs()), ("october", october)):
            session.store.put_jobs([batch(some)], load)
        whole = "2018-08-30/2018-10-11"
        session.speed.aggregate(whole)
        assert days(session) == [1, 2, 9, 10, 30, 31]
        server.json("DELETE", f"{index_prefix}own-jobs-2018-08")
        # taken back in the store, but whoever did so was killed before the buckets went
        session.store.undo_load("october")
        assert kept(session.speed.aggregate(whole)) == [KEPT]
        assert days(session) == [1, 2, 30, 31]
        # outside the window as well
        session.store.undo_load("all")
        with pytest.raises(NoJobsError):
            session.speed.aggregate("2018-10-09/2018-10-11")
        assert days(session) == [30, 31]
