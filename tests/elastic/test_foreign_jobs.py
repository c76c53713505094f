"""Jobs in indices of others: read where they are, through field maps, and never written to."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.core.errors import SettingsError, StoreError, UsageError
from esjobs.core.query import Count, In, Query, Select, Sum
from esjobs.core.rules import CleaningRules
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.settings import ClusterSettings
from esjobs.store.elastic.asking import aggregation
from esjobs.store.elastic.fields.field_map import bundled, load_field_map
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import groups, hours, job
from tests.elastic.foreign import CATALOGUE, make_index, plain, reader, write
from tests.messages import compare_text, raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

ONE_OF_EACH_VENDOR = pytest.mark.parametrize(
    "server", server_params("elasticsearch8", "opensearch3"), indirect=True
)
"""For tests of what we make of the documents; what fields there are is asked of all versions."""

WINDOW = "2018-08-01/2018-09-01"
FILL = {"processing_type": "simul", "end_time": "2018-08-15T12:00:00Z"}

_KEYWORD = {"type": "keyword", "ignore_above": 256}
_TEXT = {"type": "text", "fields": {"keyword": _KEYWORD}}
_LONG, _DOUBLE = {"type": "long"}, {"type": "double"}
PANDA: dict[str, Any] = {
    "pandaid": _LONG,
    "jeditaskid": _LONG,
    "computingsite": _KEYWORD,
    "cpuconsumptionunit": _KEYWORD,
    "processingtype": _KEYWORD,
    "jobstatus": _KEYWORD,
    "endtime": {"type": "date", "format": "yyyy-MM-dd HH:mm:ss||epoch_millis"},
    "actualcorecount": _LONG,
    "corecount": _LONG,
    "nevents": _LONG,
    "cpuconsumptiontime": _LONG,
    "wall_time": _LONG,
    "hs06sec": _LONG,
}
"""The jobs' index of ATLAS, as far as the main job reads it."""


def panda_documents(files: list[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        frame = pd.read_csv(path, na_values=["NULL"], low_memory=False)
        (task,) = re.findall(r"(\d{6,})", path.name)
        kept = [name for name in frame.columns if name in PANDA]
        for row in frame[kept].to_dict("records"):
            found: dict[str, Any] = {
                str(name): _plain(value) for name, value in row.items() if not pd.isna(value)
            }
            yield {
                **found,
                "jeditaskid": int(task),
                "processingtype": "simul",
                "endtime": "2018-08-15 12:00:00",
                "_id": str(found["pandaid"]),
            }


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int | float | np.number) else value


def settings_of(server: Server, prefix: str, index: str, field_map: str) -> Settings:
    cluster = ClusterSettings(prefix=f"{prefix}own", jobs_index=index, field_map=field_map)
    return Settings(store=server.url, cluster=cluster)


def rows(session: Session, what: str, *key: str) -> pd.DataFrame:
    return session.tables.read(what).to_pandas().set_index(list(key)).sort_index()


@ONE_OF_EACH_VENDOR
def test_the_main_job_on_the_index_of_panda(
    server: Server, index_prefix: str, panda_files: list[Path]
) -> None:
    """Two indices of two shards each; the same numbers as from the files, and nothing written to them."""
    documents = list(panda_documents(panda_files))
    half = len(documents) // 2
    names = [f"{index_prefix}jobs_archive_2018-08-{day}" for day in (14, 15)]
    for name, part in zip(names, (documents[:half], documents[half:]), strict=True):
        make_index(server, name, PANDA, part, shards=2)
    pattern = f"{index_prefix}jobs_archive_*"
    with (
        esjobs.open("duckdb::memory:") as embedded,
        esjobs.open(settings=settings_of(server, index_prefix, pattern, "atlas-panda")) as session,
    ):
        embedded.ingest("panda", panda_files, fill=FILL)
        for each in (embedded, session):
            each.run(WINDOW)
        parts = ("day", "task_id", "core_class", "queue", "cpu_model", "processing_type")
        ours, theirs = (rows(each, "buckets", *parts) for each in (session, embedded))
        assert (ours["n_jobs"] == theirs["n_jobs"]).all()
        for name in theirs.select_dtypes("number").columns:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12, err_msg=name)
        key = ("level", "name", "processing_type", "method")
        ours, theirs = (rows(each, "factors", *key) for each in (session, embedded))
        np.testing.assert_allclose(ours["k"], theirs["k"], rtol=1e-9)
        flags = [rows(each, "flags", *key) for each in (session, embedded)]
        for name in ("verdict", "origin", "stable", "sentence"):
            pd.testing.assert_series_equal(flags[0][name], flags[1][name])
        books = [rows(each, "day_books", "day", "kind", "outcome")["n_jobs"] for each in (session, embedded)]
        pd.testing.assert_series_equal(books[0], books[1])
        assert session.run(WINDOW)[-1].run == embedded.run(WINDOW)[-1].run
        with raised(StoreError):
            session.ingest("panda", panda_files, fill=FILL)
    server.json("POST", f"{pattern}/_refresh")
    found = server.json("GET", f"{pattern}/_search?size=0&track_total_hits=true")
    assert found["hits"]["total"]["value"] == len(documents)
    stats = [server.json("GET", f"{name}/_stats/indexing")["_all"]["primaries"]["indexing"] for name in names]
    assert sum(each["index_total"] for each in stats) == len(documents)


@ONE_OF_EACH_VENDOR
def test_a_night_makes_only_what_changed(server: Server, index_prefix: str) -> None:
    name = f"{index_prefix}jobs"
    days = [f"2018-08-{day:02}" for day in range(1, 6)]
    documents = [{**_cms(number, day), "_id": f"{day}-{number}"} for day in days for number in range(3)]
    make_index(server, name, CMS, documents)
    with esjobs.open(settings=settings_of(server, index_prefix, name, "cms-htcondor")) as session:
        window = "2018-08-01/2018-08-06"
        assert session.speed.aggregate(window).counts["days recomputed"] == 5
        assert session.speed.aggregate(window).counts["days recomputed"] == 0
        write(server, name, [{**_cms(0, days[2]), "CpuTimeHr": 1.5, "_id": f"{days[2]}-0"}])
        assert session.speed.aggregate(window).counts["days recomputed"] == 1
        write(server, name, [{**_cms(9, days[4]), "_id": "late"}])
        assert session.speed.aggregate(window).counts["days recomputed"] == 1
        server.json("DELETE", f"{name}/_doc/late?refresh=true")
        assert session.speed.aggregate(window).counts["days recomputed"] == 1
        assert session.speed.aggregate(window, rebuild=True).counts["days recomputed"] == 5
        assert session.tables.buckets().to_pandas()["cpu_s"].sum() == pytest.approx((14 * 2.0 + 1.5) * 3600)


@ONE_OF_EACH_VENDOR
def test_an_index_that_was_deleted_and_loaded_again_in_the_same_order(
    server: Server, index_prefix: str
) -> None:
    """Its documents have the sequence numbers that they had."""
    name = f"{index_prefix}jobs"
    days = [f"2018-08-{day:02}" for day in range(1, 4)]
    documents = [{**_cms(number, day), "_id": f"{day}-{number}"} for day in days for number in range(3)]
    make_index(server, name, CMS, documents)
    with esjobs.open(settings=settings_of(server, index_prefix, name, "cms-htcondor")) as session:
        window = "2018-08-01/2018-08-04"
        assert session.speed.aggregate(window).counts["days recomputed"] == 3
        server.json("DELETE", name)
        make_index(server, name, CMS, [{**one, "CpuTimeHr": 2.2} for one in documents])
        assert session.speed.aggregate(window).counts["days recomputed"] == 3
        assert session.tables.buckets().to_pandas()["cpu_s"].sum() == pytest.approx(9 * 2.2 * 3600)
        assert session.speed.aggregate(window).counts["days recomputed"] == 0


@ONE_OF_EACH_VENDOR
def test_marks_tell_documents_apart_without_the_right_to_ask_for_an_index(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForeignJobs, "_identities", lambda *_: {})
    name = f"{index_prefix}jobs"
    documents = [{**_cms(number), "_id": f"{number}"} for number in range(3)]
    make_index(server, name, CMS, documents)
    store = reader(server, index_prefix, name, load_field_map("cms-htcondor"))
    (before,) = store.day_fingerprints(None).column("fingerprint").to_pylist()
    server.json("DELETE", name)
    make_index(server, name, CMS, documents)
    assert store.day_fingerprints(None).column("fingerprint").to_pylist() == [before]
    for field in ("CpuTimeHr", "WallClockHr", "KEvents", "RequestCpus"):
        server.json("DELETE", name)
        make_index(server, name, CMS, [{**documents[0], field: 8}, *documents[1:]])
        assert store.day_fingerprints(None).column("fingerprint").to_pylist() != [before], field
    store.close()


CMS: dict[str, Any] = {
    "GlobalJobId": _KEYWORD,
    "WMAgent_SubTaskName": _KEYWORD,
    "Workflow": _KEYWORD,
    "Site": _KEYWORD,
    "TaskType": _KEYWORD,
    "Status": _KEYWORD,
    "CPUModelName": _KEYWORD,
    "CompletionDate": {"type": "date", "format": "epoch_second"},
    "RequestCpus": _LONG,
    "KEvents": _DOUBLE,
    "CpuTimeHr": _DOUBLE,
    "WallClockHr": _DOUBLE,
    "QueueHrs": _DOUBLE,
}


def _cms(number: int, day: str = "2018-08-01", **values: Any) -> dict[str, Any]:
    return {
        "GlobalJobId": f"crab#{day}.{number}",
        "WMAgent_SubTaskName": "/task/one",
        "Site": "T2_CH_CERN",
        "TaskType": "Production",
        "Status": "Completed",
        "CPUModelName": "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz",
        "CompletionDate": int(pd.Timestamp(f"{day}T12:00:00Z").timestamp()),
        "RequestCpus": 4,
        "KEvents": 1.234,
        "CpuTimeHr": 2.0,
        "WallClockHr": 0.6,
        **values,
    }


@ONE_OF_EACH_VENDOR
def test_units_states_and_fields_that_stand_in_for_others(server: Server, index_prefix: str) -> None:
    name = f"{index_prefix}jobs"
    documents = [
        _cms(1),
        _cms(2, Status="Removed"),
        _cms(3, WMAgent_SubTaskName=None, Workflow="other"),
        _cms(4, KEvents=0.001),
        _cms(5, KEvents=0.0),
        _cms(6, KEvents=0.0004),  # less than half an event
        _cms(7, WallClockHr=60 / 3600),  # not longer than the limit
        _cms(8, WallClockHr=0.6, CpuTimeHr=4.8),  # exactly twice what the cores could give
        _cms(9, QueueHrs=0.5),
    ]
    make_index(server, name, CMS, documents)
    held = load_field_map("cms-htcondor")
    store = reader(server, index_prefix, name, held)
    (first,) = [
        row
        for batch in store.select(Select((), None, (In("job_id", ("crab#2018-08-01.9",)),)))
        for row in batch.to_pylist()
    ]
    assert {name: value for name, value in first.items() if value is not None} == {
        "source": "cms",
        "job_id": "crab#2018-08-01.9",
        "task_id": "/task/one",
        "queue": "T2_CH_CERN",
        "cpu_raw": "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz",
        "processing_type": "Production",
        "state": "finished",
        "end_time": pd.Timestamp("2018-08-01T12:00:00Z").to_pydatetime(),
        "cores": 4,
        "events": 1234,
        "cpu_s": 7200.0,
        "wall_s": 2160.0,
        "queue_s": 1800.0,
    }
    assert groups(store, Query(("state",), (Count(),))) == {
        ("finished",): {"n_jobs": 8},
        ("cancelled",): {"n_jobs": 1},
    }
    # what is the same for all jobs, and what the index does not have
    assert groups(store, Query(("source",), (Count(),))) == {("cms",): {"n_jobs": 9}}
    assert groups(store, Query(("project", "source"), (Count(),))) == {(None, "cms"): {"n_jobs": 9}}
    assert groups(store, Query(("user", "day"), (Count(), Sum("hs06_s", "hs06_s")))) == {
        (None, hours(0).date()): {"n_jobs": 9, "hs06_s": None}
    }
    assert groups(store, Query(("core_class",), (Count(),), None, (In("user", ("me",)),))) == {}
    query = Query(BUCKET_KEYS, BUCKET_METRICS, None, drops=CleaningRules().drops())
    cluster = connect(Access(server.url))
    jobs = ForeignJobs(cluster, name, held)
    answers = [aggregation.aggregate(cluster, jobs, query, by_reading=way) for way in (False, True)]
    for found in answers:
        account = {row["outcome"]: row["n_jobs"] for row in found.books.to_pylist()}
        assert account == {
            "binned": 4,
            "not finished": 1,
            "no events": 2,
            "wall time out of range": 1,
            "efficiency out of range": 1,
        }
        by_task = {row["task_id"]: row for row in found.table.to_pylist()}
        assert by_task["other"]["n_jobs"] == 1
        assert by_task["/task/one"]["events"] == 2 * 1234 + 1
        assert by_task["/task/one"]["cpe_sum"] == pytest.approx(2 * 7200 / 1234 + 7200, rel=1e-12)
        assert by_task["/task/one"]["core_s"] == pytest.approx(3 * 2160 * 4, rel=1e-12)
    cluster.close()
    store.close()


def test_texts_with_keywords_beside_them_in_monthly_indices(server: Server, index_prefix: str) -> None:
    """As Rubin's PanDA keeps them."""
    texts = ("computingsite", "jobstatus", "processingtype", "cpuconsumptionunit")
    monthly = {**PANDA, **dict.fromkeys(texts, _TEXT)}
    document = {
        "pandaid": 1,
        "jeditaskid": 7,
        "computingsite": "SLAC Rubin/main",
        "cpuconsumptionunit": "AMD EPYC 7302 16-Core Processor",
        "processingtype": "pipeline",
        "jobstatus": "finished",
        "nevents": 10,
        "corecount": 1,
        "cpuconsumptiontime": 90,
        "wall_time": 100,
    }
    for month in ("2026-01", "2026-02"):
        day = {"endtime": f"{month}-03 00:00:00"}
        make_index(server, f"{index_prefix}panda_prod-{month}", monthly, [document | day])
    store = reader(server, index_prefix, f"{index_prefix}panda_prod-*", load_field_map("rubin-panda"))
    query = Query(("queue", "day"), (Count(), Sum("core_s", "core_s")), drops=CleaningRules().drops())
    found = groups(store, query)
    assert {site for site, _ in found} == {"SLAC Rubin/main"}
    assert [row for _, row in sorted(found.items())] == [{"n_jobs": 1, "core_s": 100.0}] * 2
    assert found == groups(
        store, Query(query.keys, query.metrics, None, (In("queue", ("SLAC Rubin/main",)),))
    )
    store.close()


def run(server: Server, prefix: str, *arguments: str) -> Result:
    environment = {"ESJOBS_CLUSTER__PREFIX": f"{prefix}own"}
    return CliRunner(env=environment).invoke(
        main, ["--store", server.url, *arguments], catch_exceptions=False
    )


@ONE_OF_EACH_VENDOR
def test_a_map_is_held_against_the_index(server: Server, index_prefix: str) -> None:
    changed = {**CATALOGUE, "cpu_raw": {"type": "text"}, "cpu_s": {"type": "keyword"}}
    del changed["hs06_s"], changed["user"]
    name = f"{index_prefix}jobs"
    make_index(server, name, changed)
    given = ("--jobs-index", name, "--field-map", "esjobs")
    found = run(server, index_prefix, *given, "fields", "check", "--format", "csv")
    assert found.exit_code == 0, found.output
    frame = pd.read_csv(io.StringIO(found.stdout)).set_index("field")
    assert frame.loc[["queue", "cpu_raw", "cpu_s", "hs06_s"], "state"].tolist() == [
        "present",
        "wrong type",
        "wrong type",
        "absent",
    ]
    effect = frame["effect"].fillna("").to_dict()
    assert "text without a keyword" in str(frame.loc["cpu_raw", "note"])
    assert "reads all documents" in effect["cpu_s"]
    assert "declared corepower" in effect["hs06_s"]
    assert effect["queue"] == ""
    states = frame["check"].tolist()
    assert states == sorted(states, key=["failed", "missing", "ok"].index)
    assert frame.index[:4].tolist() == ["cpu_raw", "transformation", "cpu_s", "hs06_s"]
    assert frame.index[4] == "user"  # costs questions only
    assert found.stderr == f"{states.count('ok')} of {len(states)} ok\n"
    other = run(server, index_prefix, *given[:2], "--field-map", "atlas-panda", "fields", "check")
    assert other.exit_code == 1
    assert "nothing works" in other.stdout.splitlines()[2]
    refused = run(server, index_prefix, *given[:2], "--field-map", "atlas-panda", "query", "--by", "queue")
    assert refused.exit_code == 1
    assert re.fullmatch(r"esjobs: .*pandaid.*fields check.*\n", refused.stderr)
    examined = run(server, index_prefix, *given, "doctor")
    assert "wrong type" in examined.stdout
    assert "hs06_s" in examined.stdout
    assert found.stderr.strip() in examined.stdout


def test_text_without_keyword_gives_the_same_numbers(server: Server, index_prefix: str) -> None:
    changed = {**CATALOGUE, "queue": {"type": "text"}, "events": {"type": "keyword"}}
    make_index(
        server,
        f"{index_prefix}a",
        changed,
        [plain(job(number, queue=f"S {number % 3}")) for number in range(9)],
    )
    make_index(server, f"{index_prefix}b", changed, [{**plain(job(10)), "events": "many"}])
    store = reader(server, index_prefix, f"{index_prefix}*", load_field_map("esjobs"))
    found = groups(store, Query(("queue",), (Count(), Sum("events", "events"))))
    assert found == {(f"S {n}",): {"n_jobs": 3, "events": 300.0} for n in range(3)}
    store.close()


def test_every_bundled_map_can_be_read() -> None:
    for name in bundled():
        held = load_field_map(name)
        assert held.description
        assert held.time


@pytest.mark.parametrize(
    "text",
    [
        "time = ",
        "[fields]",
        'time = "t"\nother = 1',
        'time = "t"\n[fields]\njob_id = "i"',
        'time = "t"\n[fields]\nsight = "s"',
        'time = "t"\n[fields]\nsite = {field = "s", factor = 2}',
        'time = "t"\n[fields]\ncpu_s = {field = "s", factor = 0}',
        'time = "t"\n[fields]\ncpu_s = {field = "s", unit = "h"}',
        'time = "t"\n[fields]\nsite = {field = "s", constant = "x"}',
        'time = "t"\n[fields]\nstate = {field = "s", values = {a = 1}}',
        'time = "t"\n[fields]\nsite = 3',
        'time = "t"\n[fields]\nend_time = "x"',
    ],
)
def test_a_map_that_is_none_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with raised(SettingsError):
        load_field_map(str(path))
    with raised(UsageError):
        load_field_map("atlas")
    with raised(SettingsError):
        load_field_map(str(tmp_path / "none.toml"))


def test_an_index_needs_a_cluster(tmp_path: Path) -> None:
    found = CliRunner().invoke(
        main,
        ["--store", f"duckdb:{tmp_path / 'jobs.duckdb'}", "--jobs-index", "jobs", "query", "--by", "queue"],
    )
    assert found.exit_code == 2
    compare_text(found.stderr)
