"""Quantiles on every engine: exactly those of the embedded one, whatever the numbers are like."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from esjobs.core.keys import MadeKey, Named, TimePart
from esjobs.core.query import Count, Filter, In, Maximum, Metric, Minimum, Quantile, Query, Range, Sum
from esjobs.core.rules import CleaningRules
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from esjobs.store.elastic.asking import partitions, quantiles
from tests.contract.jobs import Row, groups, hours, job, put
from tests.contract.model import answer

METRICS: tuple[Metric, ...] = (
    Count("jobs"),
    *(Quantile("queue_s", fraction, f"waiting {fraction}") for fraction in (0.0, 0.5, 0.95, 1.0)),
    Quantile("events", 0.5, "events"),
    Quantile("wall_s", 0.25, "wall"),
    Quantile("mem_per_core_b", 0.95, "memory"),
    Quantile("core_s", 0.5, "core time"),
    Sum("cpu_s", "cpu"),
)
WAITING: tuple[Metric, ...] = METRICS[:5]
WEEK: tuple[MadeKey, ...] = (TimePart("week", "week"),)
OWNED: tuple[MadeKey, ...] = (
    TimePart("month", "month"),
    Named("owner", "queue", (("CERN", "CH"), ("RAL", "UK"), ("QMUL", "UK"))),
)
CLEAN = CleaningRules().drops()

_LAWS: dict[str, Callable[[random.Random], float | None]] = {
    "CERN": lambda chance: float(round(chance.lognormvariate(7, 1.1))),
    "RAL": lambda chance: chance.choice([60.0, 60.0, 60.0, chance.uniform(0, 100)]),
    "QMUL": lambda _: 86_400.0,
    "BNL": lambda chance: chance.choice([1e15, 1e-9, 0.1, 1.0, None]),
    "TRIUMF": lambda _: None,
    "UKI": lambda chance: chance.uniform(-1e6, 1e6),
}
"""Waiting times of a site: usual, often the same, always the same, absurd, unknown, impossible."""


def made_up(count: int) -> list[Row]:
    chance = random.Random(11)
    rows = [job("alone", queue="alone", queue_s=17.25, end_time=hours(9))]
    for number in range(count):
        site = chance.choice(list(_LAWS))
        row = job(
            number,
            queue=site,
            user=chance.choice(["me", "you", None]),
            end_time=hours(chance.uniform(0, 24 * 40)),
            cores=chance.choice([1, 8, 8, 0, None]),
            events=chance.choice([None, 0, 10, 10, 1000, 2**60]),
            wall_s=chance.choice([1000.0, chance.uniform(1, 1e4), None]),
            queue_s=_LAWS[site](chance),
            max_rss_b=chance.choice([None, chance.uniform(1e9, 1e11), 2e9]),
        )
        rows.append(row)
    return rows


@pytest.fixture(params=["listed", "counted", "counted in pages"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a cluster goes about it with many jobs, with few."""
    if request.param != "listed":
        monkeypatch.setattr(quantiles, "FEW_JOBS", 20)
        monkeypatch.setattr(quantiles, "_FEW", 30)
    if request.param == "counted in pages":
        monkeypatch.setattr(partitions, "PAGE", 25)
        monkeypatch.setattr(partitions, "SLICE", 40)


@pytest.mark.usefixtures("small")
def test_quantiles_are_those_of_the_embedded_engine(store: JobStore) -> None:
    rows = made_up(900)
    put(store, "a", *rows)
    embedded = DuckStore(None, tables=())
    put(embedded, "a", *rows)
    for keys, metrics, made, where, drops in (
        ((), METRICS, (), (), ()),
        (("queue",), METRICS, (), (), ()),
        (("queue", "week"), METRICS, WEEK, (), ()),
        (("owner", "month", "core_class"), METRICS, OWNED, (), ()),
        (("user", "day"), WAITING, (), (), ()),
        (("cores",), METRICS, (), (Range("mem_per_core_b", gt=2e9),), ()),
        (("queue",), WAITING, (), (In("queue", ("alone", "RAL")),), ()),
        (("queue",), METRICS, (), (), CLEAN),
        ((), METRICS, (), (In("queue", ("nobody",)),), ()),
    ):
        filters: tuple[Filter, ...] = where
        query = Query(keys, metrics, where=filters, drops=drops, made=made, books=False)
        expected = groups(embedded, query)
        exactly, about = groups(store, query), {}
        for key, values in exactly.items():
            about[key] = {"cpu": values.pop("cpu", None)}
            other = expected[key].pop("cpu", None)
            assert about[key]["cpu"] == pytest.approx(other)
        assert exactly == expected
    embedded.close()


def test_quantiles_of_no_job_are_missing(store: JobStore) -> None:
    query = Query((), WAITING)
    nothing = {metric.name: None for metric in WAITING} | {"jobs": 0}
    assert groups(store, query) == {(): nothing}
    put(store, "a", job(1, queue_s=None))
    assert groups(store, query) == {(): nothing | {"jobs": 1}}
    put(store, "b", job(2, queue_s=3.0))
    found = groups(store, query)[()]
    assert {found[metric.name] for metric in WAITING[1:]} == {3.0}


@pytest.mark.usefixtures("small")
def test_what_the_index_does_not_know_counts_too(store: JobStore) -> None:
    """Infinities and NaN, which no JSON can write, among the others."""
    odd = [float("inf"), float("-inf"), float("nan"), 5.5]
    rows = made_up(300)
    rows += [job(f"odd {number}", queue="RAL", queue_s=value) for number, value in enumerate(odd)]
    put(store, "a", *rows)
    query = Query(("queue",), (Quantile("queue_s", 0.5, "median"), Quantile("queue_s", 0.25, "first")))
    expected, _ = answer(rows, query)
    assert groups(store, query) == {key: pytest.approx(values) for key, values in expected.items()}


@pytest.mark.usefixtures("small")
def test_smallest_and_largest_are_those_of_the_embedded_engine(store: JobStore) -> None:
    rows = made_up(300)
    odd = {"nan": float("nan"), "inf": float("-inf")}
    rows += [job(name, queue=site, queue_s=value) for name, value in odd.items() for site in ("RAL", name)]
    rows = [row | {"job_id": str(number)} for number, row in enumerate(rows)]
    put(store, "a", *rows)
    embedded = DuckStore(None, tables=())
    put(embedded, "a", *rows)
    metrics = tuple(
        kind(name, f"{kind.__name__} of {name}")
        for kind in (Minimum, Maximum)
        for name in ("queue_s", "wall_s", "cores", "events", "mem_per_core_b")
    )
    for keys in ((), ("queue",), ("user", "core_class")):
        query = Query(keys, metrics, books=False)
        # as texts, in which NaN is NaN
        assert _told(groups(store, query)) == _told(groups(embedded, query))
        large = Query(keys, metrics, where=(In("queue", ("CERN", "QMUL")),), books=False)
        assert groups(store, large) == groups(embedded, large)
    embedded.close()


def _told(answer: dict[tuple[Any, ...], Row]) -> dict[tuple[Any, ...], str]:
    return {key: str(values) for key, values in answer.items()}
