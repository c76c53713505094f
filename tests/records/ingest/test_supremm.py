"""Documents of SUPReMM: three real summaries and two real plots of both generations, and broken ones."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from tests.records.ingest.monitored import jobs, read, refused, rows, series


def test_summaries_of_both_generations_are_job_records(session: Session, shared_data: Path) -> None:
    report = read(session, "supremm", *sorted((shared_data / "supremm" / "summary").glob("*.json")))
    assert (report.rows_in, report.n_dropped) == (3, 0)
    found = {job["job_id"]: job for job in jobs(session)}
    later, earlier, short = found["4824787"], found["6289289"], found["8291026"]
    facts = ("queue", "state", "nodes", "cores", "requested_cores", "requested_memory_b", "requested_wall_s")
    # wider than what it asked for
    assert [later[name] for name in facts] == [
        *("general-compute", "finished", 4, 48, 32, 4 * 24_000 * 2**20, 257_400)
    ]
    assert [short[name] for name in facts] == ["default", "finished", 2, 16, 16, 16 * 2800 * 2**20, 3600]
    assert (earlier["queue"], earlier["state"], earlier["nodes"], earlier["cores"]) == (
        "normal",
        "cancelled",
        20,
        320,
    )
    assert earlier["application"] == "namd2"
    assert "requested_memory_b" not in earlier
    assert later["wall_s"] == 255_631
    assert later["end_time"] == datetime.fromtimestamp(1_451_650_405, UTC)
    assert 0.66 < later["cpu_s"] / (later["wall_s"] * 48) < 0.68
    assert 0.97 < earlier["cpu_s"] / (earlier["wall_s"] * 320) < 0.98
    assert later["max_rss_b"] == pytest.approx(4 * 2_601_428_992)
    assert dict(later["counters"]) == {"flops": pytest.approx(48 * 7_747_190_912_385.44)}
    counters = dict(earlier["counters"])
    assert counters["CLOCKS_UNHALTED_CORE"] == pytest.approx(158_051_468.551425 * 320 * 129_978)
    # 1.21 instructions a cycle, as cpicore says
    assert counters["INSTRUCTIONS_RETIRED"] / counters["CLOCKS_UNHALTED_CORE"] == pytest.approx(
        1.21, abs=0.01
    )
    assert "intel_snb_imc.CAS_READS" in counters
    assert "CAS_READS" not in counters
    assert any("groups without data, ignored" in note for note in report.notes)


def test_plots_of_the_earlier_form(session: Session, shared_data: Path) -> None:
    read(session, "supremm", shared_data / "supremm" / "timeseries" / "1000000-1371867036.json")
    assert refused(session) == {"no data": 2}
    assert {row["field"] for row in rows(session, "rejects")} == {"simdins", "membw"}
    found = series(session, "1000000")
    assert sum(key[:2] == ("cpu_user", "core") for key in found) == 16
    assert {key[0] for key in found if key[1] == "node"} == {"cpu_user", "mem_used_b", "net_b_s", "x_lnet"}
    assert found["cpu_user", "node", "c533-601"][0] == np.float32(0.983607718373084)
    assert found["mem_used_b", "node", "c533-601"][0] == np.float32(0.865939378738403 * 2**30)
    # 49 samples every 600 s, but the last two 152 s apart, after the end that the id names
    row = next(row for row in rows(session) if row["unit"] == "c533-601/15")
    assert (row["n_samples"], row["step_s"]) == (48, 600.0)
    assert row["remark"] == "1 samples moved to regular instants, 1 samples with the time of another sample"
    assert row["end_time"] == datetime.fromtimestamp(1_371_867_036, UTC)


def test_plots_of_the_later_form(session: Session, shared_data: Path) -> None:
    read(session, "supremm", shared_data / "supremm" / "timeseries" / "4454065-1441406017.json")
    found = series(session, "4454065")
    assert len(found) == 9
    assert {len(samples) for samples in found.values()} == {10}
    host = "cpn-d09-25-02.cbls.ccr.buffalo.edu"
    assert found["cpu_user", "core", f"{host}/1"][0] == np.float32(0.684915895494676)
    assert {row["end_time"] for row in rows(session)} == {datetime.fromtimestamp(1_441_406_017, UTC)}


def document(folder: Path, name: str, content: Any) -> Path:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / name


def test_documents_that_are_none_lose_only_themselves(session: Session, tmp_path: Path) -> None:
    acct = {"id": "7", "start_time": 1_700_000_000, "end_time": 1_700_000_600, "partition": "p"}
    broken = [
        "",
        "{",
        "[1]",
        {"acct": acct},
        {"_id": "x", "acct": {}},
        {"_id": "x-1", "acct": {**acct, "end_time": 1_600_000_000}},
        {"_id": "x-1", "acct": {**acct, "end_time": "soon"}},
        {"_id": "x-1"},
        {"_id": "x"},
        {"_id": "x-1", "cpuuser": {"hosts": {"0": [1]}, "times": [1]}},
        {"_id": "x-1", "cpuuser": {"hosts": {"0": {"all": [1, 2]}}, "times": [1]}},
        {"_id": "x-1", "nodebased": {"cpuuser": {"0": ["a", None]}}, "times": {"0": ["b", None]}},
        {"_id": "x-1", "cpuuser": {"error": "no data"}},
    ]
    files = [document(tmp_path, f"{number}.json", content) for number, content in enumerate(broken)]
    good = document(
        tmp_path, "good.json", {"_id": "7-1", "acct": acct, "gpu": {"error": "no data"}, "intel_x": {}}
    )
    report = read(session, "supremm", *files, good)
    assert (report.rows_in, report.n_dropped) == (len(broken) + 1, len(broken))
    (job,) = jobs(session)
    assert (job["job_id"], job["wall_s"]) == ("7", 600)
    assert "cpu_s" not in job
    assert "counters" not in job
    assert rows(session) == []


def test_nulls_and_texts_among_samples_are_gaps(session: Session, tmp_path: Path) -> None:
    content = {
        "_id": "9-1700000100",
        "hosts": ["a", "b"],
        "times": {"0": [1_700_000_000, 1_700_000_030, 1_700_000_060]},
        "nodebased": {"cpuuser": {"0": [50, None, "x"], "1": [1, 2, 3]}},
    }
    report = read(session, "supremm", document(tmp_path, "a.json", content))
    found = series(session, "9")
    np.testing.assert_array_equal(found["cpu_user", "node", "a"], [0.5, np.nan, np.nan])
    assert report.dropped == {"no series": 1}
    assert any("stored as gaps: 2" in note for note in report.notes)


def test_a_folder_stands_for_its_documents(session: Session, shared_data: Path) -> None:
    report = read(session, "supremm", shared_data / "supremm")
    assert (report.rows_in, report.dropped) == (34, {"no data": 2})
    assert len(jobs(session)) == 3
    assert len(rows(session)) == 29
