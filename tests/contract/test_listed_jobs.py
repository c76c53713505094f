"""Lists of jobs: sorted, the first so many, equal ones by identity, alike on every engine."""

import math
from typing import Any

import pytest

from esjobs.core.errors import UsageError
from esjobs.records.jobs.streams import listed_jobs
from esjobs.store.base import JobStore
from tests.contract.jobs import Row, hours, job, put
from tests.contract.model import value


def jobs() -> list[Row]:
    """Numbers with ties, NaN, infinities and nothing; two sources with the same ids."""
    walls = [10.0, None, math.nan, 10.0, 7.5, math.inf, -math.inf, 10.0, 0.0]
    return [
        job(
            f"{number % 12:02}",
            source=["panda", "other"][number // 12],
            wall_s=walls[number % 9],
            cores=[1, 8, None, 8][number % 4],
            cpu_s=[5.0, 80.0, None][number % 3],
            user=["b", None, "a", "É", "Z"][number % 5],
            submit_time=[None, hours(-2), hours(-1.0000001)][number % 3],
            end_time=hours(number / 7),
        )
        for number in range(24)
    ]


def expected(rows: list[Row], order: str, limit: int | None) -> list[tuple[Any, ...]]:
    """Sorted in plain Python; what is missing, or NaN, last either way."""
    name = order.removeprefix("-")

    def known(row: Row) -> bool:
        number = value(row, name)
        return number is not None and number == number  # noqa: PLR0124  NaN is not itself

    by_id = sorted(rows, key=lambda row: (row["source"], row["job_id"]))
    # equal ones keep their order, also the other way round
    there = sorted(filter(known, by_id), key=lambda row: value(row, name), reverse=order[0] == "-")
    listed = there + [row for row in by_id if not known(row)]
    return [(row["source"], row["job_id"]) for row in listed[:limit]]


def at_least_0(number: float | None) -> bool:
    return number is not None and number >= 0


ORDERS = ["wall_s", "-wall_s", "cores", "-cores", "efficiency", "-efficiency", "user", "-user", "end_time"]
ORDERS += ["-end_time", "submit_time", "-submit_time", "day", "job_id", "-core_class"]


def test_lists_are_sorted_alike(store: JobStore) -> None:
    rows = jobs()
    put(store, "a", *rows)
    for order in ORDERS:
        for limit in (0, 1, 3, 7, 24, 100, None):
            table = listed_jobs(store, (), None, ("source", "job_id"), order, limit).read_all()
            found = [tuple(row.values()) for row in table.to_pylist()]
            assert found == expected(rows, order, limit), (order, limit)
    eight = [row for row in rows if row["cores"] == 8]
    for where in (["cores=8"], ["cores=8", "queue~c*"], ["cores>=8", "efficiency>=0", "cores<9"]):
        table = listed_jobs(store, where, None, ("source", "job_id"), "-end_time", 5).read_all()
        some = eight if len(where) < 3 else [row for row in eight if at_least_0(value(row, "efficiency"))]
        assert [tuple(row.values()) for row in table.to_pylist()] == expected(some, "-end_time", 5), where


def test_columns_are_any_fields_called_as_asked(store: JobStore) -> None:
    put(store, "a", *jobs())
    asked = ("queue", "cpu_model", "efficiency", "site", "day", "core_s")
    table = listed_jobs(store, ["job_id=03"], None, asked, "-wall_s", 2).read_all()
    assert tuple(table.column_names) == asked
    assert table.num_rows == 2
    assert set(table.column("cpu_model").to_pylist()) == {"Intel Xeon E5-2650 v2"}


@pytest.mark.parametrize("order", ["cpu_model", "counters", "nonsense", "-site"])
def test_what_jobs_cannot_be_sorted_by_is_refused(store: JobStore, order: str) -> None:
    with pytest.raises(UsageError):
        listed_jobs(store, (), None, ("job_id",), order, 3).read_all()
