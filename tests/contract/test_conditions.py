"""Conditions as people write them, on every engine, against what plain Python makes of the same words."""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from esjobs.core.conditions import quoted
from esjobs.core.errors import UsageError
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.query import query_jobs
from esjobs.store.base import JobStore
from esjobs.testing.filters import HOSTILE
from tests.contract.jobs import Row, hours, job, put, selected
from tests.contract.model import value
from tests.messages import raised

RESOLVED = {
    "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz": "Intel Xeon E5-2650 v2",
    "AMD EPYC 7302 16-Core Processor": "AMD EPYC 7302",
}


def jobs() -> list[Row]:
    """Numbers of every kind, times with and without, texts that differ in case alone."""
    users = [None, "Ann", "ann", "bob", "ANNA", "%", "a,b", 'q"uote', "É"]
    walls = [None, math.nan, math.inf, 0.0, 10.0, 7200.0, 7199.999, 1e9]
    return [
        job(
            number,
            user=users[number % 9],
            wall_s=walls[number % 8],
            cores=[None, 1, 8, 16][number % 4],
            events=[0, 100, 2**53 + 1, None, 7][number % 5],
            cpu_s=[None, 0.0, 5.0, 80.0, 57600.0, 1e7][number % 6],
            max_rss_b=[None, 2e9, 2 * 1024.0**3, 1.0][number // 3 % 4],
            smt=[None, True, False][number % 3],
            cpu_raw=[None, *RESOLVED, "s+UNKNOWN"][number % 4],
            submit_time=[None, hours(-24), hours(-0.000001), hours(0), hours(30)][number % 5],
            end_time=hours(number),
        )
        for number in range(72)
    ]


Test = Callable[[Row], bool]


def compared(name: str, test: Callable[[Any], bool]) -> Test:
    """A missing value and NaN meet no comparison."""

    def holds(row: Row) -> bool:
        known = value(row, name)
        return known is not None and known == known and test(known)  # noqa: PLR0124  NaN is not itself

    return holds


def model(row: Row) -> str | None:
    return RESOLVED.get(row["cpu_raw"])


def any_of(*tests: Test) -> Test:
    return lambda row: any(test(row) for test in tests)


def all_of(*tests: Test) -> Test:
    return lambda row: all(test(row) for test in tests)


def missing(name: str) -> Test:
    return lambda row: value(row, name) is None


EFFICIENCY_BELOW = compared("efficiency", lambda number: number < 0.1)


def day_start(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


CASES: list[tuple[list[str], Test]] = [
    (["user=Ann"], compared("user", lambda text: text == "Ann")),
    (["user=Ann,bob"], compared("user", lambda text: text in ("Ann", "bob"))),
    (["user = Ann , bob"], compared("user", lambda text: text in ("Ann", "bob"))),
    (['user="a,b",bob'], compared("user", lambda text: text in ("a,b", "bob"))),
    (['user="q""uote"'], compared("user", lambda text: text == 'q"uote')),
    (['user=q"uote'], compared("user", lambda text: text == 'q"uote')),
    (["user!=Ann"], compared("user", lambda text: text != "Ann")),
    (["user!=Ann,bob", "user!=%"], compared("user", lambda text: text not in ("Ann", "bob", "%"))),
    (["user~ann*"], compared("user", lambda text: text in ("Ann", "ann", "ANNA"))),
    (["user~*N,b*"], compared("user", lambda text: text in ("Ann", "ann", "bob"))),
    (["user~é"], compared("user", lambda text: text == "É")),
    (["user~%"], compared("user", lambda text: text == "%")),
    (["user!~ann*"], compared("user", lambda text: not text.lower().startswith("ann"))),
    (["user is missing"], missing("user")),
    (["user="], missing("user")),
    (["user is present"], compared("user", lambda _: True)),
    (["user is missing", "user=bob"], any_of(missing("user"), compared("user", lambda t: t == "bob"))),
    (["user=bob", "user~*a", "user!=ANNA"], compared("user", lambda text: text == "bob")),
    (["wall_s<10"], compared("wall_s", lambda number: number < 10)),
    (["wall_s<=10"], compared("wall_s", lambda number: number <= 10)),
    (["wall_s>10"], compared("wall_s", lambda number: number > 10)),
    (["wall_s>=2h"], compared("wall_s", lambda number: number >= 7200)),
    (["wall_s!=10"], compared("wall_s", lambda number: number != 10)),
    (["wall_s=10,0"], compared("wall_s", lambda number: number in (0, 10))),
    (["wall_s<inf"], compared("wall_s", lambda number: number < math.inf)),
    (["wall_s>=10s", "wall_s<=120 min"], compared("wall_s", lambda number: 10 <= number <= 7200)),
    (["cores>=2", "cores<=8"], compared("cores", lambda number: number == 8)),
    (["cores=1", "cores=16"], compared("cores", lambda number: number in (1, 16))),
    (["cores=1", "cores=16", "cores>2"], compared("cores", lambda number: number == 16)),
    (["cores<1.5"], compared("cores", lambda number: number == 1)),
    (["cores=8.0"], compared("cores", lambda number: number == 8)),
    (["cores=8.5"], lambda _: False),
    (["cores!=8"], compared("cores", lambda number: number != 8)),
    ([f"events={2**53 + 1}"], compared("events", lambda number: number == 2**53 + 1)),
    ([f"events!={2**53 + 1}"], compared("events", lambda number: number != 2**53 + 1)),
    (["events>1e400"], lambda _: False),
    (["max_rss_b>=2GB"], compared("max_rss_b", lambda number: number >= 2e9)),
    (["max_rss_b>2GB"], compared("max_rss_b", lambda number: number > 2e9)),
    (["max_rss_b=2gib"], compared("max_rss_b", lambda number: number == 2 * 1024**3)),
    (["efficiency<10%"], EFFICIENCY_BELOW),
    (["efficiency<0.1", "user=Ann"], all_of(EFFICIENCY_BELOW, compared("user", lambda t: t == "Ann"))),
    (["efficiency>=1"], compared("efficiency", lambda number: number >= 1)),
    (["efficiency!=1"], compared("efficiency", lambda number: number != 1)),
    (["efficiency is missing"], missing("efficiency")),
    (["cpu_s_per_event>0.05"], compared("cpu_s_per_event", lambda number: number > 0.05)),
    (["cpu_s_per_event=0.05"], compared("cpu_s_per_event", lambda number: number == 0.05)),
    (["core_s>16h"], compared("core_s", lambda number: number > 57600)),
    (["core_class~S*"], compared("core_class", lambda text: text == "single")),
    (["core_class!=single"], compared("core_class", lambda text: text == "multi")),
    (["smt=yes"], compared("smt", lambda flag: flag)),
    (["smt!=true"], compared("smt", lambda flag: not flag)),
    (["smt is missing", "smt=no"], lambda row: row["smt"] is not True),
    (["day=2018-08-02"], compared("day", lambda day: day == date(2018, 8, 2))),
    (["day>2018-08-01", "day<=2018-08-02"], compared("day", lambda day: day == date(2018, 8, 2))),
    (["day=2018-W31"], compared("day", lambda day: day <= date(2018, 8, 5))),
    (["day!=2018-08-02"], compared("day", lambda day: day != date(2018, 8, 2))),
    (["day<2018-08"], lambda _: False),
    (["day>=0001", "day<9999"], lambda _: True),
    (["submit_time=2018-07-31"], compared("submit_time", lambda t: t.date() == date(2018, 7, 31))),
    (["submit_time<2018-08"], compared("submit_time", lambda t: t < day_start("2018-08-01"))),
    (["submit_time<=2018-08-01"], compared("submit_time", lambda t: t < day_start("2018-08-02"))),
    (["submit_time>2018-08-01"], compared("submit_time", lambda t: t >= day_start("2018-08-02"))),
    (["submit_time=2018-08-01T00:00"], compared("submit_time", lambda t: t == day_start("2018-08-01"))),
    (["submit_time!=2018-08-01T00:00Z"], compared("submit_time", lambda t: t != day_start("2018-08-01"))),
    (["submit_time>=2018-07-31T23:59:59.999999"], compared("submit_time", lambda t: t >= hours(-1e-9))),
    (["submit_time is missing"], missing("submit_time")),
    (["end_time>2018-08-01T05:00", "end_time<2018-08-01T07:00"], lambda row: row["job_id"] == "6"),
    (["cpu_model=AMD EPYC 7302"], lambda row: model(row) == "AMD EPYC 7302"),
    (["cpu_model!=AMD EPYC 7302"], lambda row: model(row) not in (None, "AMD EPYC 7302")),
    (["cpu_model~intel*"], lambda row: model(row) == "Intel Xeon E5-2650 v2"),
    (["cpu_model!~*epyc*"], lambda row: model(row) == "Intel Xeon E5-2650 v2"),
    (["cpu_model is missing"], lambda row: model(row) is None),
    (["cpu_model is missing", "cpu_model~amd*"], lambda row: model(row) in (None, "AMD EPYC 7302")),
    (["cpu_model is present"], lambda row: model(row) is not None),
    (["site~cern*"], lambda _: True),
    (["queue!~CERN"], lambda _: False),
    (["job_id=3,30"], lambda row: row["job_id"] in ("3", "30")),
    (["counters is missing"], lambda _: True),
]  # fmt: skip


def test_conditions_mean_what_a_second_implementation_says(store: JobStore) -> None:
    rows = jobs()
    put(store, "a", *rows)
    for where, test in CASES:
        expected = sorted(row["job_id"] for row in rows if test(row))
        filters = job_filters(store, where)
        assert sorted(selected(store, "job_id", where=filters)) == expected, where
        if expected:
            counted = query_jobs(store, [], ["jobs"], where=where).column("jobs").to_pylist()
            assert counted == [len(expected)], where


def test_hostile_values_are_values_whatever_the_operator(store: JobStore) -> None:
    names = [name for name in HOSTILE if name] + ["a,b", '"a"', "=x", "x is missing", "<1", "~", "İ"]
    names = list(dict.fromkeys(names))
    put(store, "a", *(job(number, queue=name) for number, name in enumerate(names)))

    def sites(where: str) -> list[str]:
        found: list[str] = selected(store, "queue", where=job_filters(store, [where]))
        return found

    for name in names:
        assert sites(f"queue={quoted(name)}") == [name]
        others = sorted((other for other in names if other != name), key=repr)
        assert sites(f"queue!={quoted(name)}") == others
    listed = ",".join(map(quoted, names))
    assert sites(f"queue={listed}") == sorted(names, key=repr)
    assert sites(f"queue!={listed}") == []
    for pattern in ("%", "_", "\\*", "*%*", "?", "[a-z]*", ".*"):
        literal = re.compile(".*".join(map(re.escape, pattern.lower().split("*"))), re.DOTALL)
        expected = [name for name in names if literal.fullmatch(name.lower())]
        assert sites(f"queue~{pattern}") == sorted(expected, key=repr), pattern


REFUSED = [
    "queue",
    "",
    "=CERN",
    "1=1",
    "site; DROP TABLE jobs=1",
    "site is gone",
    "sites=CERN",
    "site==CERN",
    "cores=>8",
    "queue=CERN,",
    "queue=,",
    'queue="CERN',
    'queue="CERN"x',
    "queue~",
    "cores<",
    "cores<1,2",
    "site<CERN",
    "cpu_model>a",
    "cores=many",
    "cores=1_0",
    "wall_s<nan",
    "wall_s>2GB",
    "max_rss_b>2h",
    "cores>50%",
    "cores~8*",
    "smt=maybe",
    "smt<true",
    "day=yesterday",
    "day=2018-13",
    "day=2018-08-01T12:00",
    "end_time>noon",
    "end_time=9999",
    "end_time=9999-12-31T23:59:59.999999",
    "counters=1",
    "counters>1",
    "counters~a*",
]


@pytest.mark.parametrize("condition", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_line(condition: str) -> None:
    from esjobs.records.jobs.conditions import parse_conditions

    with raised(UsageError):
        parse_conditions([condition])
