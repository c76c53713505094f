"""Times in rows of results: microseconds are kept and compared, and the years that a date can have."""

from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.query import Count, Maximum, Minimum, Query
from esjobs.core.window import Window
from esjobs.store.base import JobStore
from tests.contract.jobs import START, table_batch
from tests.contract.made_up import MADE_UP

FINE = [START + timedelta(microseconds=count) for count in (0, 1, 999, 1000, 1001, 1999, 2000, 5000)]
YEARS = [datetime(year, 12, 31, tzinfo=UTC) for year in (1, 1677, 1969, 2018, 2262, 2263, 9999)]


def write(store: JobStore, moments: list[datetime]) -> None:
    rows = [
        dict.fromkeys(MADE_UP.column_names) | {"name": str(number), "moment": moment}
        for number, moment in enumerate(moments)
    ]
    store.publish([store.replace(MADE_UP, "p", [table_batch(MADE_UP, rows)])])


def moments(store: JobStore, **how: object) -> list[datetime]:
    found = store.read(MADE_UP, columns=["moment"], **how)  # type: ignore[arg-type]
    return [moment for batch in found for moment in batch.column("moment").to_pylist()]


@pytest.mark.parametrize("times", [FINE, YEARS], ids=["microseconds", "years"])
def test_times_come_back_in_their_order(store: JobStore, times: list[datetime]) -> None:
    write(store, [*times[::2], *times[1::2]])
    assert moments(store, order=["moment"]) == times
    assert moments(store, order=["-moment"], limit=3) == times[::-1][:3]


@pytest.mark.parametrize("times", [FINE, YEARS], ids=["microseconds", "years"])
def test_a_window_cuts_exactly(store: JobStore, times: list[datetime]) -> None:
    write(store, times)
    for place, start in enumerate(times):
        for end in times[place + 1 :]:
            query = Query((), (Count("n"),), Window(start, end), over=MADE_UP)
            inside = sum(start <= moment < end for moment in times)
            assert store.aggregate(query).table.to_pylist() == [{"n": inside}], (start, end)


def test_the_first_and_the_last_time_are_exact(store: JobStore) -> None:
    write(store, FINE)
    query = Query(("good",), (Minimum("moment", "first"), Maximum("moment", "last")), over=MADE_UP)
    assert store.aggregate(query).table.to_pylist() == [{"good": None, "first": FINE[0], "last": FINE[-1]}]
