"""``--set``: typed by the catalogue, never overwriting, refused when it makes no sense."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from esjobs.core.errors import UsageError
from esjobs.records.ingest.base import Reject, parse_fill
from esjobs.records.ingest.formats.sources import SOURCES, source
from tests.messages import raised

Read = Callable[..., tuple[list[dict[str, object]], list[Reject]]]


def test_values_are_typed_by_the_catalogue() -> None:
    pairs = ["queue=A=B", "cores=8.0", "cpu_s=1.5", "end_time=2018-08-15T14:00:00+02:00", "source=cern"]
    assert parse_fill(pairs) == {
        "queue": "A=B",
        "cores": 8,
        "cpu_s": 1.5,
        "end_time": datetime(2018, 8, 15, 12, tzinfo=UTC),
        "source": "cern",
    }


@pytest.mark.parametrize(
    "pair",
    [
        "cores",
        "=8",
        "cores=",
        "core=8",
        "day=2018-08-15",
        "cpu_model=x",
        "job_id=1",
        "processing_type=all",
        "cores=eight",
        "cores=1.5",
        "cores=-1",
        "cores=1e300",
        "cpu_s=nan",
        "cpu_s=inf",
        "end_time=noon",
        "end_time=1066-10-14",
    ],
)
def test_refused(pair: str) -> None:
    with raised(UsageError):
        parse_fill([pair])


def test_set_twice_is_refused() -> None:
    with raised(UsageError):
        parse_fill(["cores=1", "cores=2"])


def test_fill_fills_what_is_missing_and_nothing_else(read: Read) -> None:
    data = b"pandaid,computingsite,endtime,processingtype,nevents\n"
    data += b"1,A,2018-08-15,,\n2,,2018-08-15,evgen,x\n3,C,,evgen,7\n"
    fill = parse_fill(["processing_type=simul", "queue=Z", "end_time=2018-08-16", "events=5", "cores=8"])
    rows, rejects = read("a.csv", data, **fill)
    assert [(row["queue"], row["processing_type"], row["events"], row["cores"]) for row in rows] == [
        ("A", "simul", 5, 8),
        ("C", "evgen", 7, 8),
    ]
    assert rows[1]["end_time"] == datetime(2018, 8, 16, tzinfo=UTC)
    assert [(reject.line, reject.reason) for reject in rejects] == [(3, "not a number")]


def test_a_filled_end_may_lie_before_a_recorded_start(read: Read) -> None:
    data = b"pandaid,computingsite,endtime,starttime\n1,A,,2018-08-15\n"
    rows, rejects = read("a.csv", data, **parse_fill(["end_time=2018-08-14"]))
    assert rows == []
    assert [reject.reason for reject in rejects] == ["end before start"]


def test_source_is_the_record_s_own_then_the_fill_then_the_format(read: Read) -> None:
    csv = b"job_id,queue,end_time,source\n1,A,2018-08-15,mine\n2,A,2018-08-15,\n"
    assert [row["source"] for row in read("a.csv", csv, "jobs")[0]] == ["mine", "jobs"]
    assert [row["source"] for row in read("a.csv", csv, "jobs", source="x")[0]] == ["mine", "x"]
    line = json.dumps({"pandaid": 1, "computingsite": "A", "endtime": "2018-08-15"}).encode()
    assert read("a.jsonl", line)[0][0]["source"] == "panda"


def test_formats_are_found_by_name() -> None:
    assert [source(known.name) for known in SOURCES] == list(SOURCES)
    with raised(UsageError):
        source("lsf")
