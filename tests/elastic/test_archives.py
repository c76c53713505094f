"""Archives as they are: cut by month, mapped by whatever came first, behind aliases, beside other indices."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

import esjobs
from esjobs import Settings
from esjobs.cli.main import main
from esjobs.core.errors import StoreError
from esjobs.core.query import Count, Filter, In, Maximum, NotLike, Query, Range, Select, Sum, SumWhere
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.records.jobs.field_check import check_fields
from esjobs.settings import ClusterSettings
from esjobs.store.elastic.asking import aggregation, composite, partitions, reading
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.jobs import foreign_jobs
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster, Request
from esjobs.store.elastic.transport.connect import connect
from tests.contract import model
from tests.contract.jobs import Row, books, groups, job, selected
from tests.elastic.answers import counted, require_same, rows
from tests.elastic.foreign import CATALOGUE, make_index, plain, reader, write
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

ONE_OF_EACH_VENDOR = pytest.mark.parametrize(
    "server", server_params("elasticsearch8", "opensearch3"), indirect=True
)
"""For tests of which indices we ask, and when; what they answer to one question is asked of all versions."""

MAP = load_field_map("esjobs")
RULES = CleaningRules().drops()
FIRST = datetime(2018, 8, 1, tzinfo=UTC)

_BESIDE = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_RAW = {"type": "text", "fields": {"raw": {"type": "keyword"}}}
MONTHS: dict[str, dict[str, Any]] = {
    "2018-08": {**CATALOGUE, "cpu_s": {"type": "float"}, "end_time": {"type": "date"}},
    "2018-09": {
        **CATALOGUE,
        "queue": _BESIDE,
        "task_id": {"type": "long"},
        "cpu_s": {"type": "long"},
        "wall_s": {"type": "integer"},
        "cores": {"type": "double"},
        "events": {"type": "double"},
    },
    "2018-10": {**CATALOGUE, "queue": _RAW, "wall_s": {"type": "float"}, "events": {"type": "integer"}},
}
"""Every month with types of its own; the third one has neither users nor benchmark seconds."""
del MONTHS["2018-10"]["user"], MONTHS["2018-10"]["hs06_s"]


def month_of(row: Row) -> str:
    return f"{row['end_time']:%Y-%m}"


def archive(n_jobs: int, seed: int) -> list[Row]:
    """Jobs of three months; numbers that each of the types can hold."""
    chance = random.Random(seed)
    made = []
    for number in range(n_jobs):
        end = FIRST + timedelta(
            days=chance.choice([0, 1, 29, 31, 32, 61, 62]), seconds=chance.randrange(86_400)
        )
        row = job(
            number,
            task_id=str(chance.choice([7, 8, 13_332_803])),
            queue=chance.choice(["CERN", "RAL", "IN2P3-CC_CL7"]),
            user=chance.choice(["me", "you", None]),
            state=chance.choice(["finished", "finished", "finished", "failed", None]),
            processing_type=chance.choice(["simul", "pile", "merge", None]),
            end_time=end,
            cores=chance.choice([1, 1, 8, 0, None]),
            events=chance.choice([0, 1, 100, 2000, None]),
            cpu_s=float(chance.randrange(0, 4000)),
            wall_s=float(chance.choice([0, 60, 61, 900, 1000, 2047])),
            hs06_s=float(chance.randrange(0, 10_000)),
        )
        if month_of(row) == "2018-10":
            row |= {"user": None, "hs06_s": None}
        made.append(row)
    return made


def write_archive(server: Server, prefix: str, jobs: list[Row]) -> str:
    """Monthly indices of these jobs, of which some lie in the month before; the pattern of their names."""
    for number, (month, mapping) in enumerate(MONTHS.items()):
        mine = [row for row in jobs if month_of(row) == month]
        if not number:
            first = mine
            mine = [row for row in first if row not in first[::3]]
        else:
            late = mine[::7] if number == 1 else []
            write(server, f"{prefix}jobs-2018-08", [plain(row) for row in late])
            mine = [row for row in mine if row not in late]
        make_index(server, f"{prefix}jobs-{month}", mapping, map(plain, mine), shards=1 + number % 2)
    # in the same way as the first month, but for the types of numbers that are summed
    other = {**MONTHS["2018-08"], "cpu_s": {"type": "double"}, "wall_s": {"type": "long"}}
    make_index(server, f"{prefix}jobs-2018-08-b", other, map(plain, first[::3]))
    return f"{prefix}jobs-*"


METRICS = (
    Count(),
    Sum("events", "events"),
    Sum("core_s", "core_s"),
    SumWhere("cpu_s", ("cpu_s", "hs06_s"), "with_hs06"),
    Sum("hs06_s", "hs06_s"),
)
QUESTIONS: tuple[tuple[tuple[str, ...], tuple[Filter, ...]], ...] = (
    (("day", "queue"), ()),
    (("queue", "user", "cores"), (In("queue", ("CERN", "RAL")), Range("cpu_s", gt=10.0))),
    (("core_class",), (NotLike("user", ("m*",)),)),
    (("task_id",), (In("task_id", ("7", "13332803")),)),
    ((), (In("cores", (8,)),)),
)
WINDOWS = (
    None,
    Window(FIRST, FIRST + timedelta(days=92)),
    Window(FIRST, FIRST + timedelta(days=1)),
    Window(FIRST + timedelta(days=31), FIRST + timedelta(days=32)),
    Window(FIRST + timedelta(days=62), FIRST + timedelta(days=63)),
)


@pytest.mark.parametrize(("cut", "nearly_all"), [(7, -1.0), (7, 2.0), (10_000, 0.75)])
def test_months_that_differ_are_asked_apart(
    server: Server,
    index_prefix: str,
    whole_reads: list[Query],
    monkeypatch: pytest.MonkeyPatch,
    cut: int,
    nearly_all: float,
) -> None:
    monkeypatch.setattr(partitions, "SLICE", cut)
    monkeypatch.setattr(composite, "_NEARLY_ALL", nearly_all)
    jobs = archive(300, seed=cut)
    pattern = write_archive(server, index_prefix, jobs)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, pattern, MAP)
    asked = [Query(BUCKET_KEYS, BUCKET_METRICS, window, drops=RULES) for window in WINDOWS]
    asked += [Query(keys, METRICS, WINDOWS[1], where) for keys, where in QUESTIONS]
    for query in asked:
        composed = aggregation.aggregate(cluster, found, query)
        assert whole_reads == []
        truth = model.answer(jobs, query)
        require_same(query, truth, (rows(composed, query), counted(composed)))
    read = aggregation.aggregate(cluster, found, asked[1], by_reading=True)
    require_same(asked[1], model.answer(jobs, asked[1]), (rows(read, asked[1]), counted(read)))
    cluster.close()
    with_store = reader(server, index_prefix, pattern, MAP)
    expected = sorted(row["job_id"] for row in jobs if row["queue"] == "RAL" and row["cores"] == 8)
    assert selected(with_store, "job_id", where=[In("queue", ("RAL",)), In("cores", (8,))]) == expected
    largest = Query(("queue",), (Maximum("cpu_s", "cpu_s"),))
    assert groups(with_store, largest) == model.answer(jobs, largest)[0]
    states = {item.field: (item.state, item.type) for item in with_store.check_fields()}
    assert states["cpu_s"] == ("present", "double, float, long")
    assert states["queue"] == ("present", "keyword, text")
    assert states["end_time"] == ("present", "date, date_nanos")
    with_store.close()


@ONE_OF_EACH_VENDOR
def test_months_that_differ_are_asked_side_by_side(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them answers first, the answer is the same to the bit; an error of one is the answer."""
    pattern = write_archive(server, index_prefix, archive(200, seed=5))
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, pattern, MAP)
    query = Query(("queue",), METRICS, Window(FIRST, FIRST + timedelta(days=60)))
    undisturbed = aggregation.aggregate(cluster, found, query)
    inner = aggregation._answer_of_part
    for slow in (0, 1):
        both = threading.Barrier(2, timeout=60)
        order: list[str] = []

        def met(at: Any, part: Any, query: Query) -> Any:
            place = both.wait()  # noqa: B023  called before the next turn
            answer = inner(at, part, query)
            if place == slow:  # noqa: B023
                time.sleep(0.2)
            order.append(part.index)  # noqa: B023
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(aggregation, "_answer_of_part", met)
            answer = aggregation.aggregate(cluster, found, query)
        assert len(order) == 2
        assert answer.table.equals(undisturbed.table)
        assert answer.books.equals(undisturbed.books)

    def refused(at: Any, part: Any, query: Query) -> Any:
        if "2018-09" in part.index:
            raise StoreError("no")
        return inner(at, part, query)

    monkeypatch.setattr(aggregation, "_answer_of_part", refused)
    with raised(StoreError):
        aggregation.aggregate(cluster, found, query)
    cluster.close()


def test_only_the_index_that_cannot_group_is_read(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = archive(200, seed=3)
    pattern = write_archive(server, index_prefix, jobs)
    # a day of its own, in which events are texts
    last = [job(f"t{number}", end_time=FIRST + timedelta(days=63), events=number) for number in range(9)]
    changed = {**CATALOGUE, "events": {"type": "keyword"}, "queue": {"type": "text"}}
    make_index(server, f"{index_prefix}jobs-texts", changed, map(plain, last))
    read: list[Row] = []
    inner = reading.documents_of

    def noted(unread: Any, query: Query) -> Any:
        read.extend(unread)
        return inner(unread, query)

    monkeypatch.setattr(aggregation, "documents_of", noted)
    cluster = connect(Access(server.url))
    query = Query(("day", "queue"), METRICS)
    found = aggregation.aggregate(cluster, ForeignJobs(cluster, pattern, MAP), query)
    require_same(query, model.answer([*jobs, *last], query), (rows(found, query), counted(found)))
    assert [some.jobs.index for some in read] == [f"{index_prefix}jobs-texts"]  # type: ignore[attr-defined]
    cluster.close()


@contextmanager
def requests_of(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The addresses that are asked meanwhile."""
    asked: list[str] = []
    inner = cluster._send

    def noted(request: Request) -> bytes | str:
        asked.append(f"{request.method} {request.path}")
        return inner(request)

    with monkeypatch.context() as patch:
        patch.setattr(cluster, "_send", noted)
        yield asked


@ONE_OF_EACH_VENDOR
def test_a_day_is_asked_of_its_index_alone(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = archive(100, seed=5)
    pattern = write_archive(server, index_prefix, jobs)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, pattern, MAP)
    searched = f"{pattern},-esjobs-*"
    day = Window(FIRST + timedelta(days=62), FIRST + timedelta(days=63))
    query = Query(BUCKET_KEYS, BUCKET_METRICS, day, drops=RULES)
    for ask in (lambda: aggregation.aggregate(cluster, found, query), lambda: found.day_fingerprints(day)):
        with requests_of(cluster, monkeypatch) as asked:
            ask()
        of_index = {path.split("/")[1] for path in asked if path.split("/")[1][0] != "_"}
        assert of_index == {searched, f"{index_prefix}jobs-2018-10"}
        # the pattern itself is asked once, and only for which indices have such jobs
        assert [path for path in asked if searched in path] == [f"POST /{searched}/_search"]
    with requests_of(cluster, monkeypatch) as asked:
        span = found.span()
    assert set(asked) == {f"POST /{searched}/_search"}
    ends = [row["end_time"] for row in jobs]
    assert (span.jobs, span.first, span.last) == (100, min(ends), max(ends))
    cluster.close()


def test_jobs_that_arrive_in_an_index_that_nobody_searched(server: Server, index_prefix: str) -> None:
    """It is refreshed by the next search, and by nothing else."""
    for month, mapping in MONTHS.items():
        make_index(server, f"{index_prefix}jobs-{month}", mapping)
        server.json("PUT", f"{index_prefix}jobs-{month}/_settings", {"index.search.idle.after": "2s"})
    store = reader(server, index_prefix, f"{index_prefix}jobs-*", MAP)
    window = Window(FIRST, FIRST + timedelta(days=92))
    query = Query(("queue",), (Count(),), window)
    assert groups(store, query) == {}
    time.sleep(3)
    for number, day in enumerate((0, 31, 62)):
        end = FIRST + timedelta(days=day)
        server.json("POST", f"{index_prefix}jobs-{end:%Y-%m}/_doc", plain(job(number, end_time=end)))
    time.sleep(1.5)  # the index refreshes itself each second, unless nobody searches it
    assert groups(store, query) == {("CERN",): {"n_jobs": 3}}
    assert store.day_fingerprints(window).column("n_jobs").to_pylist() == [1, 1, 1]
    store.close()


def test_what_an_alias_filters_stays_out(server: Server, index_prefix: str, whole_reads: list[Query]) -> None:
    """Its indices have names of their own, under which they would show more."""
    jobs = archive(200, seed=7)
    pattern = write_archive(server, index_prefix, jobs)
    plainly, filtered = f"{index_prefix}all", f"{index_prefix}cern"
    for alias, more in ((plainly, {}), (filtered, {"filter": {"term": {"state": "finished"}}})):
        server.json("POST", "_aliases", {"actions": [{"add": {"index": pattern, "alias": alias, **more}}]})
    query = Query(BUCKET_KEYS, BUCKET_METRICS, WINDOWS[1], drops=RULES)
    kept = [row for row in jobs if row["state"] == "finished"]
    cluster = connect(Access(server.url))
    for alias, expected, n_read in ((plainly, jobs, 0), (filtered, kept, 1)):
        found = aggregation.aggregate(cluster, ForeignJobs(cluster, alias, MAP), query)
        require_same(query, model.answer(expected, query), (rows(found, query), counted(found)))
        assert len(whole_reads) == n_read
    cluster.close()


@ONE_OF_EACH_VENDOR
def test_a_pattern_never_stands_for_our_own_indices(server: Server, index_prefix: str) -> None:
    make_index(server, f"{index_prefix}jobs", CATALOGUE, [plain(job(1))])
    make_index(server, f"{index_prefix}x", CATALOGUE, [plain(job(2))])
    make_index(server, f"{index_prefix}own-jobs-1", CATALOGUE, [plain(job(3, queue="RAL"))])
    for pattern in (f"{index_prefix}*,-{index_prefix}x", f"{index_prefix}*s,{index_prefix}jobs"):
        store = reader(server, index_prefix, pattern, MAP)
        assert store.span().jobs == 1
        for window in (None, WINDOWS[1]):
            assert groups(store, Query(("queue",), (Count(),), window)) == {("CERN",): {"n_jobs": 1}}
        assert selected(store, "job_id") == ["1"]
        assert store.day_fingerprints(None).column("n_jobs").to_pylist() == [1]
        store.close()
    with raised(StoreError):
        reader(server, index_prefix, f"{index_prefix}own*", MAP)
    named = reader(server, index_prefix, f"{index_prefix}own-jobs-1", MAP)
    assert selected(named, "job_id") == ["3"]
    named.close()


@ONE_OF_EACH_VENDOR
def test_marks_do_not_depend_on_which_indices_are_asked_together(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = archive(200, seed=11)
    pattern = write_archive(server, index_prefix, jobs)
    store = reader(server, index_prefix, pattern, MAP)

    def marks(window: Window | None) -> dict[date, tuple[int, str]]:
        found = store.day_fingerprints(window).to_pylist()
        return {row["day"]: (row["n_jobs"], row["fingerprint"]) for row in found}

    together = marks(None)
    assert sum(n_jobs for n_jobs, _ in together.values()) == len(jobs)
    for day in together:
        assert marks(Window.of_days(day, day)) == {day: together[day]}
    monkeypatch.setattr(foreign_jobs, "_LONGEST", 1)
    assert marks(WINDOWS[1]) == together
    assert {key: row["n_jobs"] for key, row in groups(store, Query(("queue",), (Count(),))).items()} == {
        (site,): sum(row["queue"] == site for row in jobs) for site in ("CERN", "RAL", "IN2P3-CC_CL7")
    }
    store.close()


@ONE_OF_EACH_VENDOR
def test_documents_without_a_time_and_without_any_index(server: Server, index_prefix: str) -> None:
    make_index(server, f"{index_prefix}jobs-1", CATALOGUE, [plain(job(1)), {"queue": "CERN"}])
    make_index(server, f"{index_prefix}jobs-2", {"other": {"type": "keyword"}}, [{"other": "x"}])
    store = reader(server, index_prefix, f"{index_prefix}jobs-*", MAP)
    assert (store.span().jobs, store.span().first) == (1, job(1)["end_time"])
    assert selected(store, "job_id") == ["1"]
    assert list(store.select(Select(("job_id",), WINDOWS[4]))) == []
    assert groups(store, Query(("queue",), (Count(),), WINDOWS[4])) == {}
    assert groups(store, Query((), (Count(),), WINDOWS[4])) == {(): {"n_jobs": 0}}
    server.json("DELETE", f"{index_prefix}jobs-1,{index_prefix}jobs-2")
    assert store.span().jobs == 0
    assert groups(store, Query(("queue",), (Count(),), WINDOWS[1])) == {}
    assert store.day_fingerprints(WINDOWS[1]).num_rows == 0
    store.close()


@ONE_OF_EACH_VENDOR
def test_a_job_is_one_or_none_for_all_questions_of_a_run(server: Server, index_prefix: str) -> None:
    """Whatever they read of it; a value that no job has, of what buckets do not know, is a missing one."""
    documents = [
        plain(job(1, hs06_s=10.0, user="me")),
        plain(job(2, hs06_s=-10.0, user="me")),
        {**plain(job(3, hs06_s=10.0)), "user": ["me", "you"]},
        plain(job(4, hs06_s=10.0, user="me", events=-1)),
        {**plain(job(5, hs06_s=10.0, user="me")), "task_id": ["1", "2"]},
        {**plain(job(6, hs06_s=10.0, user="me", wall_s=-0.5)), "cpu_raw": "other"},
    ]
    names = [f"{index_prefix}jobs-{number}" for number in range(3)]
    # the first index has neither lists nor negative numbers, the second no lists
    for name, mine in zip(
        names, (documents[:1], [*documents[1:2], documents[3]], documents[2:]), strict=True
    ):
        make_index(
            server, name, CATALOGUE, [row for row in mine if row is not documents[3] or name == names[1]]
        )
    store = reader(server, index_prefix, f"{index_prefix}jobs-*", MAP)
    day = job(1)["end_time"].date()
    for keys in BUCKET_KEYS, ("queue",), ("queue", "user"), ("user",), ():
        query = Query(keys, (Count("jobs"), Sum("hs06_s", "hs06_s")))
        assert sum(row["jobs"] for row in groups(store, query).values()) == 3, query
        counts = {(day, "binned", "binned"): 3, (day, "invalid record", "dropped"): 3}
        assert books(store, query) == counts, query
    query = Query(("user",), (Count(), Sum("hs06_s", "hs06_s")))
    assert groups(store, query) == {
        ("me",): {"n_jobs": 2, "hs06_s": 10.0},
        (None,): {"n_jobs": 1, "hs06_s": 10.0},
    }
    assert selected(store, "job_id") == ["1", "2", "3"]
    assert selected(store, "job_id", "hs06_s", where=[In("job_id", ("2",))]) == [("2", None)]
    store.close()


def settings_of(server: Server, prefix: str, **given: Any) -> Settings:
    cluster = ClusterSettings(
        prefix=f"{prefix}own", jobs_index=f"{prefix}jobs-*", field_map="esjobs", **given
    )
    return Settings(store=server.url, cluster=cluster)


@ONE_OF_EACH_VENDOR
def test_documents_without_an_end_time_are_counted(server: Server, index_prefix: str) -> None:
    lost = [{"queue": "CERN"}, {"queue": "RAL", "job_id": "9"}]
    make_index(server, f"{index_prefix}jobs-1", CATALOGUE, [plain(job(1)), *lost])
    with esjobs.open(settings=settings_of(server, index_prefix)) as session:
        report = session.speed.aggregate("2018-08-01/2018-08-02")
        assert report.rows_in == 1
        assert report.notes[0] == "2 documents have no end time; they belong to no day and are not counted"
        (row,) = [item for item in check_fields(session.store) if item.field == "end_time"]
        assert (row.note, row.effect) == (
            "2 documents have no value",
            "these documents belong to no day and are not counted",
        )
    make_index(server, f"{index_prefix}jobs-2", CATALOGUE, [plain(job(2))])
    server.json("DELETE", f"{index_prefix}jobs-1")
    with esjobs.open(settings=settings_of(server, index_prefix)) as session:
        assert session.speed.aggregate("2018-08-01/2018-08-02", rebuild=True).notes == ()
        assert not any(item.effect for item in check_fields(session.store) if item.field == "end_time")


@ONE_OF_EACH_VENDOR
def test_reading_many_documents_wants_a_word(
    server: Server, index_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    days = [datetime(2018, 8, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    texts = {**CATALOGUE, "queue": {"type": "text"}}
    make_index(server, f"{index_prefix}jobs-1", CATALOGUE, [plain(job(1, end_time=days[0]))] * 5)
    for number, day in enumerate(days[1:], start=2):
        rows = [plain(job(f"{number}{row}", end_time=day)) for row in range(3)]
        make_index(server, f"{index_prefix}jobs-{number}", texts, rows)
    window = "2018-08-01/2018-08-04"
    with esjobs.open(settings=settings_of(server, index_prefix, read_at_most=5)) as session:
        # each day alone could be read, all of them not
        with raised(StoreError):
            session.speed.aggregate(window)
        with raised(StoreError):
            session.query("queue").to_pandas()
        with raised(StoreError):
            session.jobs().to_pandas()
        assert session.query("state").to_pandas()["jobs"].sum() == 11
        assert session.speed.aggregate("2018-08-01/2018-08-03").rows_out == 8
    with esjobs.open(settings=settings_of(server, index_prefix, read_at_most=6)) as session:
        with caplog.at_level("INFO"):
            assert session.speed.aggregate(window).rows_out == 11
        told = [record.message for record in caplog.records]
        assert f"{index_prefix}jobs-*: the cluster groups 0 documents" in " ".join(told)
    given = ["--store", server.url, "--jobs-index", f"{index_prefix}jobs-*", "--field-map", "esjobs"]
    environment = {"ESJOBS_CLUSTER__PREFIX": f"{index_prefix}own", "ESJOBS_CLUSTER__READ_AT_MOST": "5"}
    for more, code in (((), 1), (("--yes",), 0)):
        asked = [*given, *more, "query", "--by", "queue"]
        assert CliRunner(env=environment).invoke(main, asked).exit_code == code
