"""Groups by composite aggregation and groups from documents that are read: the same, and the truth."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from esjobs.core.query import Count, DropRule, Filter, In, Missing, NotLike, Query, Range, Sum, SumWhere
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.store.elastic.asking import aggregation, composite, partitions
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.scan import PointInTime
from tests.contract import model
from tests.contract.jobs import hours, job
from tests.elastic.answers import counted, require_same, rows
from tests.elastic.foreign import CATALOGUE, make_index, plain, write
from tests.properties.jobs_of_all_kinds import FIRST, JOBS, N_DAYS
from tests.servers.server import Server

WHOLE = Window(FIRST, FIRST.replace(day=FIRST.day + N_DAYS))
RULES = CleaningRules().drops()
FILTERS: tuple[Filter, ...] = (
    In("queue", ("CERN", "RAL")),
    In("cores", (1, 8)),
    In("core_class", ("multi",)),
    In("day", ("2018-08-10", "2018-08-12")),
    Missing("task_id"),
    NotLike("user", ("M*", "you")),
    Range("cpu_s", gt=10.0, le=1e5),
)
METRICS = (
    Count(),
    Sum("events", "events"),
    Sum("core_s", "core_s"),
    SumWhere("cpu_s", ("cpu_s", "wall_s", "cores"), "over"),
    SumWhere("core_s", ("cpu_s", "wall_s", "cores"), "under"),
    SumWhere("cpu_s", ("cpu_s", "events"), "per_event"),
)


QUESTIONS: st.SearchStrategy[tuple[tuple[str, ...], bool, bool, list[Filter]]] = st.tuples(
    st.lists(
        st.sampled_from(["day", "task_id", "queue", "cpu_raw", "user", "cores", "core_class", "state"]),
        max_size=4,
        unique=True,
    ).map(tuple),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(FILTERS), max_size=2, unique=True),
)


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example makes an index
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    jobs=st.lists(JOBS, min_size=30, max_size=120),
    questions=st.lists(QUESTIONS, min_size=4, max_size=6),
    cut=st.sampled_from([7, 20_000]),
    page=st.sampled_from([3, 60_000]),
    nearly_all=st.sampled_from([-1.0, 0.75, 2.0]),
    least=st.sampled_from([1, 4, 2_500]),
)
def test_both_ways_give_the_truth(
    server: Server,
    index_prefix: str,
    whole_reads: list[Query],
    monkeypatch: pytest.MonkeyPatch,
    jobs: list[dict[str, Any]],
    questions: list[tuple[tuple[str, ...], bool, bool, list[Filter]]],
    cut: int,
    page: int,
    nearly_all: float,
    least: int,
) -> None:
    monkeypatch.setattr(partitions, "SLICE", cut)
    monkeypatch.setattr(composite, "_NEARLY_ALL", nearly_all)
    monkeypatch.setattr(partitions, "PAGE", page)
    monkeypatch.setattr(partitions, "LEAST_CELL", least)
    monkeypatch.setattr(partitions, "LONG_KEY", 1)
    name = f"{index_prefix}{uuid.uuid4().hex[:8]}"
    numbered = [{**row, "job_id": str(number)} for number, row in enumerate(jobs)]
    make_index(server, name, CATALOGUE, map(plain, numbered), shards=2)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    wanted = [Query(BUCKET_KEYS, BUCKET_METRICS, WHOLE, drops=RULES)]
    for keys, windowed, clean, where in questions:
        drops: tuple[DropRule, ...] = RULES if clean else ()
        wanted.append(Query(keys, METRICS, WHOLE if windowed else None, tuple(where), drops))
    for query in wanted:
        whole_reads.clear()
        composed = aggregation.aggregate(cluster, found, query)
        assert whole_reads == []
        read = aggregation.aggregate(cluster, found, query, by_reading=True)
        truth, books = model.answer(numbered, query)
        if not query.keys:
            truth = truth or {(): {metric.name: model.measure([], metric) for metric in query.metrics}}
        require_same(
            query,
            (truth, books),
            (rows(composed, query), counted(composed)),
            (rows(read, query), counted(read)),
        )
    cluster.close()


def test_a_long_key_is_not_asked_for_where_all_jobs_share_it(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a processor took a third of the answers of a day; frequent, rare and missing ones."""
    monkeypatch.setattr(partitions, "SLICE", 20)
    monkeypatch.setattr(partitions, "PAGE", 50)
    monkeypatch.setattr(partitions, "LEAST_CELL", 15)
    monkeypatch.setattr(composite, "_NEARLY_ALL", -1.0)
    frequent = ("AMD EPYC 7763 64-Core Processor", 'Intel "Xeon" \\ 🐘')
    names = [*(frequent[0] for _ in range(120)), *(frequent[1] for _ in range(30)), "rare", None, None]
    jobs = [
        job(number, end_time=hours(1), cpu_raw=name, task_id=str(number % 7), cpu_s=100.0 + number)
        for number, name in enumerate(names)
    ]
    name = f"{index_prefix}jobs"
    make_index(server, name, CATALOGUE, map(plain, jobs))
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    query = Query(BUCKET_KEYS, BUCKET_METRICS, None, drops=RULES)
    fixed: list[Any] = []
    of_part = composite._of_part

    def recorded(at: PointInTime, asked: Any, part: partitions.Part, decoder: Any) -> Any:
        fixed.extend(part.fixed.values())
        return of_part(at, asked, part, decoder)

    monkeypatch.setattr(composite, "_of_part", recorded)
    answer = aggregation.aggregate(cluster, found, query)
    assert set(fixed) == set(frequent)
    require_same(query, model.answer(jobs, query), (rows(answer, query), counted(answer)))
    cluster.close()


def test_what_the_index_cannot_judge_is_read(
    server: Server, index_prefix: str, whole_reads: list[Query]
) -> None:
    """Near the limit of a quotient, beyond it, and documents that are no jobs."""
    jobs = [
        job(1),
        job(2, cpu_s=15_999.999),  # 8 x 1000 s x 2
        job(3, cpu_s=16_000.0),
        job(4, cpu_s=16_000.001),
        job(5, cpu_s=1e9),
        job(6, cores=1, wall_s=61.0, cpu_s=121.999),
        job(7, cpu_s=-1.0),
        job(8, events=-3),
        job(9, end_time=hours(30)),
    ]
    name = f"{index_prefix}jobs"
    documents = [plain(row) for row in jobs]
    documents.append({key: value for key, value in plain(job(10)).items() if key != "queue"})
    make_index(server, name, CATALOGUE, documents)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    query = Query(("core_class",), (Count(), Sum("cpu_s", "cpu_s")), None, drops=RULES)
    for by_reading in (False, True):
        answer = aggregation.aggregate(cluster, found, query, by_reading=by_reading)
        assert rows(answer, query) == {
            ("multi",): {"n_jobs": 3, "cpu_s": 4000.0 + 15_999.999 + 4000.0},
            ("single",): {"n_jobs": 1, "cpu_s": 121.999},
        }
        first, second = hours(1).date(), hours(30).date()
        assert counted(answer) == {
            (first, "binned", "binned"): 3,
            (first, "efficiency out of range", "dropped"): 3,
            (first, "invalid record", "dropped"): 3,
            (second, "binned", "binned"): 1,
        }
        assert len(whole_reads) == int(by_reading)
    cluster.close()


def test_steps_of_a_divisor_that_nothing_reaches_the_limit_in_cost_no_clause(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some two hundred clauses for every job of a day took a fifth of the time that its buckets took."""
    name = f"{index_prefix}jobs"
    one_in_doubt = plain(job(100, cpu_s=15_999.0))  # 8 x 1000 s x 2
    jobs = [plain(job(number, wall_s=61.0 * 2**number, cpu_s=100.0)) for number in range(12)]
    make_index(server, name, CATALOGUE, jobs)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    query = Query(("core_class",), (Count(),), None, drops=RULES)
    asked: list[Any] = []
    search = PointInTime.search

    def recorded(at: PointInTime, body: Mapping[str, Any]) -> Any:
        asked.extend([body["aggs"]["doubted"]] if "doubted" in body.get("aggs", {}) else [])
        return search(at, body)

    monkeypatch.setattr(PointInTime, "search", recorded)
    aggregation.aggregate(cluster, found, query)
    assert "gte" not in json.dumps(asked.pop())
    write(server, name, [one_in_doubt])
    answer = aggregation.aggregate(cluster, found, query)
    in_doubt = json.dumps(asked.pop())
    assert (in_doubt.count('"cpu_s": {"gte"'), in_doubt.count('"wall_s": {"gte"')) == (1, 1)
    assert rows(answer, query) == {("multi",): {"n_jobs": 13}}
    cluster.close()
