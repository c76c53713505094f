"""Result tables of every type: what is kept, what queries over them answer, in which order they are read."""

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esjobs.core.arrow import table_schema
from esjobs.core.errors import UsageError
from esjobs.core.query import (
    Count,
    Days,
    DropRule,
    Either,
    Filter,
    In,
    Like,
    Maximum,
    Metric,
    Minimum,
    Missing,
    NotIn,
    NotLike,
    Present,
    Query,
    Range,
    Sum,
    SumProduct,
    SumWhere,
)
from esjobs.core.window import Window
from esjobs.schema.speed import FACTORS
from esjobs.store.base import Generation, JobStore
from tests.contract.jobs import Row, day, hours, table_batch
from tests.contract.made_up import MADE_UP
from tests.messages import raised

INF = math.inf


def row(name: str, **values: object) -> Row:
    """A row of the made-up table; what is not given is null."""
    return dict.fromkeys(MADE_UP.column_names) | {"name": name} | values


def write(store: JobStore, partition: str, rows: Sequence[Row]) -> Generation:
    """Write the rows, invisible."""
    return store.replace(MADE_UP, partition, [table_batch(MADE_UP, rows)])


def read(store: JobStore, *columns: str, **how: Any) -> list[Any]:
    """Visible rows in the order in which they come: values of one column, or tuples of several."""
    rows = [tuple(r.values()) for b in store.read(MADE_UP, columns=columns, **how) for r in b.to_pylist()]
    return [r[0] for r in rows] if len(columns) == 1 else rows


@pytest.mark.every_version
def test_maps_and_lists_come_back_as_they_were(store: JobStore) -> None:
    rows = [
        row("plain", counters=[("FP_ARITH:256", 1e18), ('say "x"', 0.1)], series=[1.0, 2.5, -0.0]),
        row("gaps", counters=[("a", None)], series=[None, 3.0, None]),
        row("strange", counters=[("日", -INF)], series=[INF, -INF, 5e-324, 1.7e308]),
        row("empty", counters=[], series=[]),
        row("missing"),
        row("long", series=[float(number) for number in range(3000)]),
    ]
    store.publish([write(store, "p", rows)])
    found = {name: (counters, series) for name, counters, series in read(store, "name", "counters", "series")}
    assert found == {r["name"]: (r["counters"], r["series"]) for r in rows}
    assert math.copysign(1, found["plain"][1][2]) == -1


def test_not_a_number_is_kept_inside_maps_and_lists(store: JobStore) -> None:
    store.publish([write(store, "p", [row("a", counters=[("n", math.nan)], series=[math.nan, 1.0])])])
    ((counters, series),) = read(store, "counters", "series")
    assert counters[0][0] == "n"
    assert math.isnan(counters[0][1])
    assert math.isnan(series[0])
    assert series[1] == 1.0


@pytest.mark.every_version
def test_names_inside_maps_are_no_fields(store: JobStore) -> None:
    """Thousands of event names, and the same name with other types of content, must not change a layout."""
    rows = [row(f"r{n}", counters=[(f"event {n} {k}", float(k)) for k in range(300)]) for n in range(10)]
    store.publish([write(store, "p", rows)])
    assert sorted(len(counters) for counters in read(store, "counters")) == [300] * 10


@pytest.mark.every_version
def test_bytes_come_back_as_they_were(store: JobStore) -> None:
    values = [bytes(range(256)), b"", b"\0", None, b'"\\\xff', np.arange(50_000, dtype="<f4").tobytes()]
    rows = [row(f"r{n}", packed=value) for n, value in enumerate(values)]
    store.publish([write(store, "p", rows), write(store, "none", [row("alone")])])
    found = dict(read(store, "name", "packed"))
    assert found == {r["name"]: r["packed"] for r in rows} | {"alone": None}


@pytest.mark.parametrize("column", ["counters", "series", "packed"])
def test_no_query_looks_into_maps_and_lists(store: JobStore, column: str) -> None:
    with pytest.raises(UsageError):
        store.aggregate(Query((column,), (Count(),), over=MADE_UP))
    with pytest.raises(UsageError):
        store.aggregate(Query((), (Sum(column, "s"),), over=MADE_UP))
    with pytest.raises(UsageError):
        list(store.read(MADE_UP, [In(column, ("x",))]))
    with pytest.raises(UsageError):
        list(store.read(MADE_UP, order=(column,)))


def _rows() -> st.SearchStrategy[list[Row]]:
    numbers = st.none() | st.sampled_from([0.0, 0.1, 1.5, -2.0, 1e9, 33.3, math.nan, INF])
    one: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["a", "b", "c%", "日"]),
            "kind": st.none() | st.sampled_from(["x", "y", "", "Z" * 9000]),
            "day": st.none() | st.sampled_from([day(0), day(1), day(5)]),
            "moment": st.none() | st.sampled_from([hours(0), hours(1.5), hours(30)]),
            "nodes": st.none() | st.sampled_from([0, 1, 2, 2**53 + 1]),
            "good": st.none() | st.booleans(),
            "score": numbers,
            "weight": numbers,
        }
    )
    return st.lists(one, max_size=25).map(lambda rows: [row(**r) for r in rows])


KEYS = [(), ("name",), ("kind", "good"), ("day",), ("nodes", "name"), ("good",)]
WHERE: list[tuple[Filter, ...]] = [
    (),
    (In("name", ("a", "日")),),
    (Range("score", ge=0.1),),
    (Either((Missing("kind"), In("kind", ("x", "Z" * 9000)))),),
    (Present("weight"), In("good", ("true",))),
    (In("day", (str(day(1)), str(day(5)))), Range("nodes", le=2)),
    (NotLike("kind", ("Z*",)),),
    (Like("kind", ("Z*", "none")), NotIn("name", ("a",))),
    (Days("day", day(1), day(5)),),
    (Days("day", date.min, date.max), Present("weight")),
]
METRICS: tuple[Metric, ...] = (
    Count("n"),
    Sum("score", "total"),
    Sum("nodes", "nodes_sum"),
    SumProduct("score", "weight", "weighted"),
    SumWhere("weight", ("score",), "weight_scored"),
)


def _expected(rows: list[Row], keys: tuple[str, ...], where: tuple[Filter, ...]) -> dict[Any, Any]:
    """The same in plain Python: a second implementation of the language."""

    def holds(item: Filter, r: Row) -> bool:
        match item:
            case Either(filters):
                return any(holds(part, r) for part in filters)
            case Missing(name):
                return r[name] is None
            case Present(name):
                return r[name] is not None
            case In(name, values):
                text = str(r[name]).lower() if isinstance(r[name], bool) else str(r[name])
                return r[name] is not None and text in values
            case Range():
                v = r[item.field]
                return (
                    v is not None and (item.ge is None or v >= item.ge) and (item.le is None or v <= item.le)
                )
            case Days(name, first, last):
                return r[name] is not None and first <= r[name] <= last
            case Like(name, _):
                return r[name] is not None and r[name].lower().startswith("z")
            case NotLike(name, _):
                return r[name] is None or not r[name].lower().startswith("z")
            case NotIn(name, values):
                return r[name] is not None and r[name] not in values
        raise AssertionError(item)

    groups: dict[Any, list[Row]] = {} if keys else {(): []}
    for r in rows:
        if all(holds(item, r) for item in where):
            groups.setdefault(tuple(r[key] for key in keys), []).append(r)

    def total(values: list[Any]) -> float | None:
        known = [v for v in values if v is not None]
        with np.errstate(all="ignore"):
            return float(np.sum(np.array(known, float))) if known else None

    def product(r: Row) -> float | None:
        both = r["score"] is not None and r["weight"] is not None
        with np.errstate(all="ignore"):
            return float(np.float64(r["score"]) * np.float64(r["weight"])) if both else None

    return {
        key: (
            len(some),
            total([r["score"] for r in some]),
            total([r["nodes"] for r in some]),
            total([product(r) for r in some]),
            total([r["weight"] for r in some if r["score"] is not None]),
        )
        for key, some in groups.items()
    }


def _same(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    return bool(np.isclose(found, expected, rtol=1e-12, atol=0.0, equal_nan=True))


@pytest.mark.every_version
@given(rows=_rows(), keys=st.sampled_from(KEYS), where=st.sampled_from(WHERE))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_queries_over_results_against_plain_python(
    store: JobStore, rows: list[Row], keys: tuple[str, ...], where: tuple[Filter, ...]
) -> None:
    store.publish([write(store, "p", rows)])
    answer = store.aggregate(Query(keys, METRICS, where=where, over=MADE_UP))
    names = [metric.name for metric in METRICS]
    found = {
        tuple(r[key] for key in keys): tuple(r[name] for name in names) for r in answer.table.to_pylist()
    }
    expected = _expected(rows, keys, where)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert all(_same(*pair) for pair in zip(found[key], values, strict=True)), (key, found[key], values)
    assert answer.books.num_rows == 0


@pytest.mark.every_version
def test_extremes_and_windows_of_results(store: JobStore) -> None:
    rows = [row("a", moment=hours(1), score=3.0), row("b", moment=hours(30), score=1.0), row("c", score=9.0)]
    store.publish([write(store, "p", rows)])
    first = Window.parse("2018-08-01/2018-08-02")
    metrics = (Minimum("score", "least"), Maximum("score", "most"), Count("n"))
    answer = store.aggregate(Query((), metrics, over=MADE_UP)).table.to_pylist()
    assert answer == [{"least": 1.0, "most": 9.0, "n": 3}]
    answer = store.aggregate(Query((), metrics, first, over=MADE_UP)).table.to_pylist()
    assert answer == [{"least": 3.0, "most": 3.0, "n": 1}]


def test_what_is_not_published_does_not_count(store: JobStore) -> None:
    count = Query((), (Count("n"),), over=MADE_UP)
    assert store.aggregate(count).table.to_pylist() == [{"n": 0}]
    store.publish([write(store, "p", [row("a")])])
    write(store, "p", [row("b"), row("c")])
    assert store.aggregate(count).table.to_pylist() == [{"n": 1}]


def test_queries_that_make_no_sense_over_results_are_refused(store: JobStore) -> None:
    with raised(UsageError):
        Query(("cpu_model",), (Count(),), over=MADE_UP)
    with raised(UsageError):
        Query(("score",), (Count(),), over=MADE_UP)
    with raised(UsageError):
        Query((), (Count(),), drops=(DropRule("why", Present("name")),), over=MADE_UP)
    with raised(UsageError):
        Query((), (Count(),), Window.parse("2018-08-01/2018-08-02"), over=_timeless())


def _timeless() -> Any:
    from dataclasses import replace

    return replace(MADE_UP, time="")


SORTED = [
    row("a", score=2.0, nodes=1, kind="x", good=True, day=day(1), moment=hours(2)),
    row("b", score=None, nodes=2, kind=None, good=False, day=day(0), moment=hours(1.000001)),
    row("c", score=-1.0, nodes=2, kind="X", good=None, day=None, moment=None),
    row("d", score=10.0, nodes=None, kind="ä", good=True, day=day(9), moment=hours(1)),
]


ORDERED = (
    (("score",), "cadb"),
    (("-score",), "dacb"),
    (("kind", "name"), "cadb"),
    (("-nodes", "-name"), "cbad"),
    (("day",), "badc"),
    (("-moment",), "abdc"),
    (("good", "name"), "badc"),
    (("-good", "-name"), "dabc"),
)
"""Orders, and the names of the rows in them."""


@pytest.mark.every_version
@pytest.mark.parametrize("odd", [False, True], ids=["indexed", "odd"])
def test_rows_are_read_in_order(store: JobStore, *, odd: bool) -> None:
    """Missing values come last either way; ``odd``: with a value that no index knows among the rows."""
    rows = [r | {"words": "w", "weight": math.nan if odd else 1.0} for r in SORTED]
    store.publish([write(store, "p", rows)])
    for order, expected in ORDERED:
        assert "".join(read(store, "name", order=order)) == expected, order
        assert "".join(read(store, "name", order=order, limit=2)) == expected[:2], order
        kept = "".join(read(store, "name", order=order, where=[Range("nodes", ge=1)]))
        assert kept == expected.replace("d", ""), order


@pytest.mark.every_version
def test_infinities_have_their_place(store: JobStore) -> None:
    store.publish(
        [write(store, "p", [row("a", score=INF), row("b", score=1.0), row("c", score=-INF), row("d")])]
    )
    assert read(store, "name", order=("score",)) == ["c", "b", "a", "d"]
    assert read(store, "name", order=("-score",), limit=1) == ["a"]


@pytest.mark.every_version
def test_a_limit_counts_rows(store: JobStore) -> None:
    many = [row(f"r{number:05}", nodes=number) for number in range(12_345)]
    store.publish([write(store, "p", many)])
    assert len(read(store, "name", limit=0)) == 0
    assert len(read(store, "name", limit=10_001)) == 10_001
    assert read(store, "nodes", order=("-nodes",), limit=10_500) == list(range(12_344, 1844, -1))
    assert len(read(store, "nodes", order=("nodes",))) == 12_345
    with raised(UsageError):
        list(store.read(MADE_UP, order=("none",)))


def test_a_query_over_factors_is_what_pandas_says(store: JobStore) -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"run": "r", "level": level, "name": f"n{n}", "k": float(k), "n_jobs": int(n), "status": "ok"}
        for level in ("queue", "cpu_model")
        for n, k in enumerate(rng.normal(1, 0.2, 40))
    ]
    store.publish([store.replace(FACTORS, "r", [table_batch(FACTORS, rows)])])
    frame = pd.DataFrame(rows)
    metrics = (Count("n"), Sum("k", "total"), SumProduct("k", "n_jobs", "weighted"))
    table = store.aggregate(Query(("level",), metrics, where=(Range("k", gt=0.9),), over=FACTORS)).table
    frame = frame[frame["k"] > 0.9].assign(weighted=lambda f: f["k"] * f["n_jobs"])
    for answer in table.to_pylist():
        mine = frame[frame["level"] == answer["level"]]
        assert answer["n"] == len(mine)
        assert answer["total"] == pytest.approx(mine["k"].sum(), rel=1e-12)
        assert answer["weighted"] == pytest.approx(mine["weighted"].sum(), rel=1e-12)


def test_the_schema_names_every_type(store: JobStore) -> None:
    store.publish([write(store, "p", [row("a")])])
    (found,) = store.read(MADE_UP)
    assert found.schema.equals(table_schema(MADE_UP))
