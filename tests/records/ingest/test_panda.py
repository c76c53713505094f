"""What is particular about PanDA records: names, units, sentinels, hits, what follows from other fields."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.formats.panda import task_in
from esjobs.records.ingest.formats.sources import source

Read = Callable[..., tuple[list[dict[str, object]], list[Reject]]]

RECORD: dict[str, object] = {
    "pandaid": 4051899481,
    "computingsite": "CERN-PROD",
    "endtime": "2018-08-15T12:00:00",
}


def one(read: Read, **columns: object) -> dict[str, object]:
    """The one row that a record becomes."""
    rows, rejects = read("jobs.jsonl", json.dumps(RECORD | columns).encode())
    assert rejects == []
    return rows[0]


def test_names_of_the_jobs_index(read: Read) -> None:
    row = one(
        read,
        jeditaskid=15350577,
        cpuconsumptionunit="s+Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz 20480 KB",
        processingtype="simul",
        transformation="Sim_tf.py",
        jobstatus="FINISHED",
        produsername="ann",
        workinggroup="AP_SUSY",
        creationtime="2018-08-15T09:00:00",
        starttime="2018-08-15T10:00:00",
        corecount=8,
        nevents=100,
        cpuconsumptiontime=3600,
        hs06sec=1000,
        timeStageIn=1,
        timeExe=2,
        timeStageOut=3,
        maxrss=1,
        minramcount=16000,
        inputfilebytes=5,
        outputfilebytes=6,
        failedattempt=1,
    )
    del row["origin_file"], row["origin_line"]
    assert {name: value for name, value in row.items() if value is not None} == {
        "source": "panda",
        "job_id": "4051899481",
        "task_id": "15350577",
        "queue": "CERN-PROD",
        "cpu_raw": "s+Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz 20480 KB",
        "processing_type": "simul",
        "transformation": "Sim_tf.py",
        "state": "finished",
        "user": "ann",
        "project": "AP_SUSY",
        "submit_time": datetime(2018, 8, 15, 9, tzinfo=UTC),
        "start_time": datetime(2018, 8, 15, 10, tzinfo=UTC),
        "end_time": datetime(2018, 8, 15, 12, tzinfo=UTC),
        "cores": 8,
        "events": 100,
        "cpu_s": 3600.0,
        "wall_s": 7200.0,
        "hs06_s": 1000.0,
        "queue_s": 3600.0,
        "stagein_s": 1.0,
        "exe_s": 2.0,
        "stageout_s": 3.0,
        "max_rss_b": 1024.0,
        "requested_memory_b": 16000.0 * 2**20,
        "input_b": 5.0,
        "output_b": 6.0,
        "failed_attempts": 1,
    }


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2018-08-15 12:00:00", datetime(2018, 8, 15, 12, tzinfo=UTC)),
        ("2018-08-15T12:00:00.25", datetime(2018, 8, 15, 12, 0, 0, 250_000, UTC)),
        ("2018-08-15T12:00:00Z", datetime(2018, 8, 15, 12, tzinfo=UTC)),
        ("2018-08-15T14:00:00+02:00", datetime(2018, 8, 15, 12, tzinfo=UTC)),
        ("2018-08-15T14:00:00.123456789+0200", datetime(2018, 8, 15, 12, 0, 0, 123_456, UTC)),
        ("1534334400", datetime(2018, 8, 15, 12, tzinfo=UTC)),
        ("1534334400000", datetime(2018, 8, 15, 12, tzinfo=UTC)),
        (1534334400, datetime(2018, 8, 15, 12, tzinfo=UTC)),
        (1534334400250, datetime(2018, 8, 15, 12, 0, 0, 250_000, UTC)),
        (1534334400.25, datetime(2018, 8, 15, 12, 0, 0, 250_000, UTC)),
        ("2018-08-15", datetime(2018, 8, 15, tzinfo=UTC)),
    ],
)
def test_times(read: Read, text: object, moment: datetime) -> None:
    assert one(read, endtime=text)["end_time"] == moment


def test_times_of_many_forms_in_one_column(read: Read) -> None:
    texts = [
        "2018-08-15 12:00:00",
        "1534334400",
        "2018-08-15T12:00:00Z",
        "2018-08-15T14:00:00+02:00",
        "x",
        "1534334400000",
    ]
    data = "pandaid,computingsite,endtime\n" + "".join(f"1,A,{text}\n" for text in texts)
    rows, rejects = read("a.csv", data.encode())
    assert {row["end_time"] for row in rows} == {datetime(2018, 8, 15, 12, tzinfo=UTC)}
    assert [(reject.line, reject.reason) for reject in rejects] == [(6, "bad time")]


def test_durations_follow_from_times_only_where_they_are_missing(read: Read) -> None:
    times = {"creationtime": "2018-08-15T09:00:00", "starttime": "2018-08-15T10:00:00"}
    row = one(read, **times)
    assert (row["wall_s"], row["queue_s"]) == (7200.0, 3600.0)
    row = one(read, **times, wall_time=5, queue_time=6)
    assert (row["wall_s"], row["queue_s"]) == (5.0, 6.0)
    row = one(read, creationtime="2018-08-15T11:00:00", starttime="2018-08-15T10:00:00")
    assert (row["wall_s"], row["queue_s"]) == (7200.0, None)


def test_cores_given_win_over_cores_asked(read: Read) -> None:
    data = b"pandaid,computingsite,endtime,corecount,actualcorecount\n1,A,2018-08-15,8,4\n2,A,2018-08-15,8,\n"
    data += b"3,A,2018-08-15,x,4\n4,A,2018-08-15,8,x\n5,A,2018-08-15,x,\n"
    rows, rejects = read("a.csv", data)
    assert [(row["job_id"], row["cores"]) for row in rows] == [("1", 4), ("2", 8), ("3", 4)]
    assert [(reject.line, reject.detail[:26]) for reject in rejects] == [
        (5, "column actualcorecount con"),
        (6, "column corecount contains "),
    ]


def test_minus_one_is_not_measured_for_memory_and_io_and_negative_elsewhere(read: Read) -> None:
    assert one(read, minramcount=0)["requested_memory_b"] is None
    row = one(read, maxrss=-1, avgpss=-1, IObytesRead=-1)
    assert (row["max_rss_b"], row["avg_pss_b"], row["read_b"]) == (None, None, None)
    _, rejects = read("a.jsonl", json.dumps(RECORD | {"cpuconsumptiontime": -1}).encode())
    assert [reject.reason for reject in rejects] == ["negative"]


@pytest.mark.parametrize(
    ("columns", "read_b"),
    [
        ({"IObytesRead": 5323252}, 5323252 * 1024.0),
        ({"IObytesRead": 5323252, "IObytesReadRate": 2139328, "wall_time": 2943}, 5323252 * 1024.0),
        ({"IObytesRead": 5323252 * 1024, "IObytesReadRate": 2139328, "wall_time": 2943}, 5323252 * 1024.0),
        ({"IObytesRead": 7, "IObytesReadRate": 0, "wall_time": 2943}, 7 * 1024.0),
        ({"IObytesRead": 7, "IObytesReadRate": "x", "wall_time": 2943}, 7 * 1024.0),
        ({"IObytesRead": 0, "IObytesReadRate": 0, "wall_time": 0}, 0.0),
    ],
)
def test_the_rate_tells_kilobytes_from_bytes(read: Read, columns: dict[str, object], read_b: float) -> None:
    assert one(read, **columns)["read_b"] == read_b


def test_the_task_comes_from_the_column_then_the_file_name_then_the_fill(read: Read) -> None:
    data = b"pandaid,computingsite,endtime,jeditaskid\n1,A,2018-08-15,111111\n2,A,2018-08-15,\n"
    for name, second in (("job_records_222222.csv", "222222"), ("jobs.csv", "333333")):
        rows, _ = read(name, data, task_id="333333")
        assert [row["task_id"] for row in rows] == ["111111", second]


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("job_records_13332803.csv.gz", "13332803"),
        ("job_records_10k_15350577.csv.gz", "15350577"),
        ("job_records_a.b_123456", "123456"),
        ("job_records_123456_7654321.csv", "7654321"),
        ("job_records_12345.csv", None),
        ("job_records_123456x.csv", None),
        ("job_records_123456-2.csv", None),
        ("my_job_records_123456.csv", None),
        ("jobs_123456.csv", None),
        ("2018080112.csv", None),
    ],
)
def test_task_in_a_file_name(name: str, task: str | None) -> None:
    assert task_in(name) == task


def test_elasticsearch_hits(read: Read) -> None:
    hits = [
        {
            "_index": "jobs",
            "_id": "1",
            "_source": {"PandaID": "1"} | {k: RECORD[k] for k in ("computingsite", "endtime")},
        },
        {"_index": "jobs", "_id": "2", "_source": {k: RECORD[k] for k in ("computingsite", "endtime")}},
        RECORD | {"pandaid": "3"},
    ]
    for chosen in (hits, hits[:1], hits[1:2], hits[:2]):
        rows, rejects = read("hits.json", "\n".join(map(json.dumps, chosen)).encode())
        assert [row["job_id"] for row in rows] == [str(hits.index(hit) + 1) for hit in chosen]
        assert rejects == []


def test_column_names_in_any_case(read: Read) -> None:
    rows, _ = read("a.csv", b"PANDAID,ComputingSite,ENDTIME, TimeExe \n1,A,2018-08-15,5\n")
    assert rows[0]["exe_s"] == 5.0


@pytest.mark.parametrize("name", ["pandaid", "jeditaskid"])
@pytest.mark.parametrize(
    ("ids", "refused", "kept"),
    [
        (pa.array([-0.0, 0.0, 7.0]), [1], ["0", "7"]),
        (pa.array([-0.0, 7.0, 8.0], pa.float32()), [1], ["7", "8"]),
        (pa.array(["7", "+7", "-0"]), [2, 3], ["7"]),
        (pa.array(["7", "+7", "7.0"]).dictionary_encode(), [2], ["7", "7"]),
        (pa.array([0, 7, 8]), [], ["0", "7", "8"]),
    ],
    ids=["doubles", "floats", "text", "dictionary", "integers"],
)
def test_signed_ids_in_parquet_are_refused(
    tmp_path: Path, name: str, ids: pa.Array, refused: list[int], kept: list[str]
) -> None:
    columns = {"pandaid": pa.array([1, 2, 3]), "computingsite": ["A"] * 3, "endtime": ["2018-08-15"] * 3}
    pyarrow.parquet.write_table(pa.table(columns | {name: ids}), tmp_path / "a.parquet")
    (piece,) = source("panda").parse(tmp_path / "a.parquet", {})
    assert [(reject.reason, reject.line) for reject in piece.rejects] == [("signed id", n) for n in refused]
    assert piece.batch.column("job_id" if name == "pandaid" else "task_id").to_pylist() == kept


@pytest.mark.parametrize("text", ["1.0", "1.", "1.000", "1"])
def test_a_fraction_of_zeros_is_no_part_of_an_id(read: Read, text: str) -> None:
    rows, _ = read(
        "a.csv", f"pandaid,jeditaskid,computingsite,endtime\n{text},{text},A,2018-08-15\n".encode()
    )
    assert [(row["job_id"], row["task_id"]) for row in rows] == [("1", "1")]
