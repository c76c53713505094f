"""Filters: matches, and hostile values."""

import math
import re

import pytest

from esjobs.core.errors import UsageError
from esjobs.core.query import Count, Either, Filter, In, Missing, NotLike, Present, Query, Range, Sum
from esjobs.core.window import Window
from esjobs.store.base import JobStore
from esjobs.testing.engine import every_version
from esjobs.testing.rows import groups, hours, job, put, selected

HOSTILE = (
    # ends of literals, comments, wildcards, placeholders, and letters whose lower case is longer
    "' OR 1=1 --",
    "'; DROP TABLE jobs; --",
    '"',
    "%",
    "_",
    "\\",
    "!",
    "*",
    "$1",
    "?",
    "null",
    "",
    " ",
    "日本",
    "İ",
    "a\nb",
)


@pytest.fixture
def hostile(store: JobStore) -> JobStore:
    """A store with one job per hostile site name, and a decent one."""
    put(store, "a", *(job(n, queue=name) for n, name in enumerate(("CERN", *HOSTILE))))
    return store


@every_version
def test_a_hostile_value_matches_itself_only(hostile: JobStore) -> None:
    for name in HOSTILE:
        assert selected(hostile, "queue", where=[In("queue", (name,))]) == [name]
    assert len(selected(hostile, "queue", where=[In("queue", HOSTILE)])) == len(HOSTILE)


@every_version
def test_a_hostile_value_is_a_group_of_its_own(hostile: JobStore) -> None:
    found = groups(hostile, Query(("queue",), (Count(),)))
    assert found == {(name,): {"n_jobs": 1} for name in ("CERN", *HOSTILE)}


@every_version
def test_a_hostile_pattern_is_taken_literally_but_for_the_star(hostile: JobStore) -> None:
    names = ("CERN", *HOSTILE)
    # overlapping ends and several wildcards, too
    for pattern in (*HOSTILE, "c*", "*R*", "*n", "*", "c*r*n", "CE*ERN", "%*", "_*_", "\\*", "!*"):
        kept = selected(hostile, "queue", where=[NotLike("queue", (pattern,))])
        expected = [name for name in names if not _like(name, pattern)]
        assert kept == sorted(expected, key=repr), pattern


def _like(text: str, pattern: str) -> bool:
    """True if a text matches a pattern in which * stands for any text, in any case."""
    parts = map(re.escape, pattern.lower().split("*"))
    return re.fullmatch(".*".join(parts), text.lower(), re.DOTALL) is not None


@pytest.mark.parametrize(
    "name", ["site; DROP TABLE jobs", 'site"', "1=1", "rowid", "row_mark", "load_number"]
)
def test_a_name_that_is_not_in_the_catalogue_is_refused(store: JobStore, name: str) -> None:
    with pytest.raises(UsageError):
        selected(store, name)
    with pytest.raises(UsageError):
        selected(store, "queue", where=[In(name, ("1",))])


@every_version
def test_a_hostile_name_of_a_metric_is_only_a_name(store: JobStore) -> None:
    put(store, "a", job(1))
    name = 'n"; DROP TABLE jobs; --'
    assert groups(store, Query(("queue",), (Count(name),))) == {("CERN",): {name: 1}}


def ids(store: JobStore, *where: Filter) -> list[str]:
    """The ids of the jobs that match."""
    return [str(name) for name in selected(store, "job_id", where=where)]


@pytest.fixture
def filled(store: JobStore) -> JobStore:
    """Jobs with numbers, without, and with what is not a number."""
    put(
        store,
        "a",
        job("null", wall_s=None, max_rss_b=None, cores=None, events=None, user=None),
        # NaN is a value, but in no range; infinities are in half-open ones
        job("nan", wall_s=math.nan, max_rss_b=math.nan, cores=1, events=0, user="Ann"),
        job("inf", wall_s=math.inf, max_rss_b=math.inf, cores=1, events=1, user="ann"),
        job("minus inf", wall_s=-math.inf, max_rss_b=-math.inf, cores=8, events=2, user="bob"),
        job("zero", wall_s=0.0, max_rss_b=0.0, cores=8, events=3, user="ANNA"),
        # 2**53 + 1 is no double: an engine that compares as doubles takes it for its neighbour
        job("ten", wall_s=10.0, max_rss_b=10.0, cores=16, events=2**53 + 1, user="%"),
    )
    return store


MATCHES: list[tuple[Filter, list[str]]] = [
    (Range("wall_s", gt=0), ["inf", "ten"]),
    (Range("wall_s", ge=0), ["inf", "ten", "zero"]),
    (Range("wall_s", lt=10), ["minus inf", "zero"]),
    (Range("wall_s", le=10), ["minus inf", "ten", "zero"]),
    (Range("wall_s", gt=0, lt=math.inf), ["ten"]),
    (Range("wall_s", gt=0, le=math.inf), ["inf", "ten"]),
    (Range("wall_s", ge=-math.inf), ["inf", "minus inf", "ten", "zero"]),
    # no number is above, below or equal to NaN
    (Range("wall_s", gt=math.nan), []),
    (Range("wall_s", le=math.nan), []),
    (Range("wall_s"), ["inf", "minus inf", "ten", "zero"]),
    (Range("events", ge=1, le=2), ["inf", "minus inf"]),
    (Range("events", gt=1.5, lt=2.5), ["minus inf"]),
    (Range("events", gt=2**53), ["ten"]),
    (Range("efficiency", gt=0, lt=100), ["ten"]),
    (In("cores", (1, 16)), ["inf", "nan", "ten"]),
    (In("cores", ("8",)), ["minus inf", "zero"]),
    # a fraction equals no integer, however an engine would round it
    (In("cores", (1.5,)), []),
    (In("cores", (8.0,)), ["minus inf", "zero"]),
    (In("events", (2**53 + 1,)), ["ten"]),
    # beyond 64 bits: nothing matches, and nothing overflows
    (In("events", (2**70,)), []),
    (In("wall_s", (math.nan,)), []),
    (In("wall_s", (10, 0)), ["ten", "zero"]),
    (In("user", ("ann",)), ["inf"]),
    (In("user", ()), []),
    (In("core_class", ("single",)), ["inf", "nan"]),
    (In("day", ("2018-08-01",)), ["inf", "minus inf", "nan", "null", "ten", "zero"]),
    (In("day", ("2018-08-02",)), []),
    (In("end_time", ("2018-08-01T01:00:00Z",)), ["inf", "minus inf", "nan", "null", "ten", "zero"]),
    (Missing("wall_s"), ["null"]),
    (Present("wall_s"), ["inf", "minus inf", "nan", "ten", "zero"]),
    # a quotient is null if a factor is missing or the divisor is 0
    (Missing("efficiency"), ["null", "zero"]),
    (Missing("core_class"), ["null"]),
    # the one filter that a missing value passes
    (NotLike("user", ("ann*",)), ["minus inf", "null", "ten"]),
    (NotLike("user", ()), ["inf", "minus inf", "nan", "null", "ten", "zero"]),
    (Either((In("user", ("bob",)), Missing("user"))), ["minus inf", "null"]),
    (Either(()), []),
    (Either((Range("wall_s", gt=5), Range("wall_s", lt=-5))), ["inf", "minus inf", "ten"]),
    (Range("mem_per_core_b", gt=0), ["inf", "ten"]),
    (Range("mem_per_core_b", ge=0), ["inf", "ten", "zero"]),
    (Range("mem_per_core_b", gt=0, lt=math.inf), ["ten"]),
    (Range("mem_per_core_b", lt=0.7), ["minus inf", "ten", "zero"]),
    (Range("core_s", ge=0), ["inf", "ten", "zero"]),
    (Range("efficiency", gt=0), ["ten"]),
]


@every_version
def test_what_a_filter_matches(filled: JobStore) -> None:
    for condition, expected in MATCHES:
        assert ids(filled, condition) == expected, condition


@every_version
def test_filters_are_combined_with_and(filled: JobStore) -> None:
    assert ids(filled, Present("user"), Range("wall_s", gt=0), In("cores", (1,))) == ["inf"]


@every_version
def test_a_filter_of_many_values(store: JobStore) -> None:
    put(store, "a", *(job(n) for n in range(50)))
    # more values than some engines take in one expression
    wanted = tuple(str(n) for n in range(0, 10_000, 2))
    assert len(ids(store, In("job_id", wanted))) == 25


@pytest.mark.parametrize(
    "condition",
    [
        In("cores", ("many",)),
        In("wall_s", ("long",)),
        In("day", ("yesterday",)),
        In("end_time", ("noon",)),
        # a resolved field: stores filter by the raw string
        In("cpu_model", ("x",)),
        Range("queue", gt=1),
        Range("end_time", gt=1),
        NotLike("cores", ("1*",)),
    ],
    ids=repr,
)
def test_a_filter_that_makes_no_sense_is_refused(store: JobStore, condition: Filter) -> None:
    with pytest.raises(UsageError):
        ids(store, condition)


@every_version
def test_a_window_is_half_open(store: JobStore) -> None:
    put(store, "a", *(job(n, end_time=hours(n)) for n in range(4)))
    assert selected(store, "job_id", window=Window(hours(1), hours(3))) == ["1", "2"]
    # a few milliseconds later: ends are compared to the microsecond
    assert selected(store, "job_id", window=Window(hours(1 + 1e-6), hours(3 + 1e-6))) == ["2", "3"]
    found = groups(store, Query((), (Count(), Sum("events", "events")), Window(hours(1), hours(3))))
    assert found == {(): {"n_jobs": 2, "events": 200.0}}
    assert store.day_fingerprints(Window(hours(1), hours(3)))["n_jobs"].to_pylist() == [2]
