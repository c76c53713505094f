"""CMS records of HTCondor: states and errors by exit and hold codes, units, broken rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session

DAY = 1_748_779_200


def record(number: int, **values: Any) -> dict[str, Any]:
    """A job as the spider writes it."""
    return {
        "GlobalJobId": f"crab3@vocms.cern.ch#{number}.0#1",
        "WMAgent_SubTaskName": "/task/one",
        "Site": "T2_CH_CERN",
        "TaskType": "Production",
        "Status": "Completed",
        "CPUModelName": "AMD EPYC 7302 16-Core Processor",
        "QDate": DAY - 7200,
        "JobCurrentStartDate": DAY - 3600,
        "CompletionDate": DAY,
        "RequestCpus": 4,
        "KEvents": 1.234,
        "CpuTimeHr": 2.0,
        "WallClockHr": 0.6,
        "MemoryMB": 2000,
        "LastRemoteHost": "slot1_3@B6D1.cern.ch",
        **values,
    }


CASES: list[tuple[dict[str, Any], str | None, str | None, str | None]] = [
    ({"ExitCode": 0}, "finished", None, None),
    ({}, "finished", None, None),
    ({"JobExitCode": 8021, "ExitCode": 1}, "failed", "cms:8021", "input"),
    ({"Chirp_CRAB3_Job_ExitCode": "50660"}, "failed", "cms:50660", "memory"),
    ({"ExitCode": 139}, "failed", "cms:139", "payload"),
    ({"Status": "Removed"}, "cancelled", "state:cancelled", "killed"),
    (
        {"Status": "Removed", "HoldReasonCode": 34, "HoldReasonSubCode": 102},
        "cancelled",
        "hold:34.102",
        "memory",
    ),
    (
        {"Status": "Removed", "LastHoldReasonCode": 34, "LastHoldReasonSubCode": 104},
        "cancelled",
        "hold:34.104",
        "disk",
    ),
    ({"Status": "Removed", "HoldReasonCode": 13}, "cancelled", "hold:13", "input"),
    ({"Status": "Removed", "VacateReasonCode": 1011}, "cancelled", "hold:1011", "preempted"),
    ({"JobExitCode": "n/a"}, "failed", "cms:unparsed", "unknown"),
]


@pytest.fixture
def filled(session: Session, tmp_path: Path) -> Session:
    """Every case, a job without an end, and one that is held."""
    rows = [record(number, **values) for number, (values, *_) in enumerate(CASES)]
    rows.append({name: value for name, value in record(99).items() if name != "CompletionDate"})
    rows.append(record(98, Status="Held", RecordTime=DAY, HoldReasonCode=34))
    rows[5] |= {"CompletionDate": 0, "RecordTime": DAY}
    file = tmp_path / "jobs.json"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    report = session.ingest("cms-htcondor", file)
    assert (report.rows_in, report.rows_out) == (len(CASES) + 2, len(CASES))
    return session


def test_states_and_errors(filled: Session) -> None:
    columns = ["job_id", "state", "error", "error_category"]
    found = filled.jobs(columns=columns, sort="job_id").rows.to_pylist()
    by_id = {row["job_id"]: [row[name] for name in columns[1:]] for row in found}
    for number, (values, state, error, category) in enumerate(CASES):
        assert by_id[f"crab3@vocms.cern.ch#{number}.0#1"] == [state, error, category], values


def test_units_and_nodes(filled: Session) -> None:
    (row,) = [row for row in filled.jobs().rows.to_pylist() if "#0.0#" in row["job_id"]]
    assert (row["source"], row["cores"], row["events"], row["cpu_s"]) == ("cms", 4, 1234, 7200.0)
    assert row["wall_s"] == pytest.approx(2160)
    assert (row["max_rss_b"], row["node"], row["queue_s"]) == (2000 * 2**20, "b6d1.cern.ch", 3600.0)
    lost = filled.errors.lost("error").rows.to_pylist()
    assert {row["error"] for row in lost} == {error for _, _, error, _ in CASES if error}
