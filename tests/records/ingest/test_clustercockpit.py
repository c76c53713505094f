"""The job archive of ClusterCockpit: two real jobs, and files that are broken in many ways."""

import gzip
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.clustercockpit import _unit
from tests.messages import raised
from tests.records.ingest.monitored import jobs, read, refused, rows, series

META = {"jobId": 7, "cluster": "alex", "startTime": 1_700_000_000, "duration": 120, "numNodes": 1}
OF_FRITZ = ("job_id=99", "start_time=2024-01-01T00:00:00Z", "source=fritz")


def metric(*values: Any, unit: Any = None, scope: str = "node", ids: Any = None, step: float = 60) -> Any:
    """One metric of one scope: a series per tuple of values."""
    data = [
        {"hostname": "n1", "data": list(one)} | ({} if ids is None else {"id": ids[number]})
        for number, one in enumerate(values)
    ]
    return {scope: {"unit": unit or {"base": ""}, "timestep": step, "series": data}}


def archive(folder: Path, data: Any, meta: Any = META) -> Path:
    """A folder with the two files of a job."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(meta if isinstance(meta, str) else json.dumps(meta))
    (folder / "data.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return folder


def test_emmy_gives_a_job_and_nine_metrics_of_32_nodes(session: Session, shared_data: Path) -> None:
    report = read(session, "clustercockpit", shared_data / "job-archive" / "emmy")
    assert (report.rows_in, report.n_dropped) == (289, 0)
    (job,) = jobs(session)
    assert job["job_id"] == "1403244"
    assert (job["source"], job["queue"], job["cluster"], job["subcluster"]) == (
        "emmy",
        "work",
        "emmy",
        "haswell",
    )
    assert (job["state"], job["nodes"], job["wall_s"], job["requested_wall_s"]) == ("finished", 32, 86486, 10)
    assert job["end_time"] == datetime(2020, 12, 26, 19, 6, 2, tzinfo=UTC)
    assert "smt" not in job
    assert any("twice their walltime limit" in note for note in report.notes)
    assert any("in bytes per second, read as bytes: 32" in note for note in report.notes)
    found = rows(session)
    assert len(found) == 288
    assert {(row["n_samples"], row["step_s"]) for row in found} == {(1441, 60.0)}
    assert {row["end_time"] for row in found} == {job["end_time"]}
    gaps: dict[str, int] = {}
    for row in found:
        gaps[row["metric"]] = gaps.get(row["metric"], 0) + row["n_gaps"]
    assert gaps == dict.fromkeys(
        (
            "clock_hz",
            "cpu_load",
            "flops_dp_s",
            "flops_s",
            "flops_sp_s",
            "ipc",
            "mem_bw_b_s",
            "mem_used_b",
            "power_w",
        ),
        4221,
    )
    of_node = {name: samples for (name, _, unit), samples in series(session).items() if unit == "e0102"}
    assert of_node["cpu_load"][:3].tolist() == [np.float32(value) for value in (4.01, 14.37, 16.29)]
    assert of_node["mem_bw_b_s"][0] == np.float32(31.19e9)
    assert of_node["mem_used_b"][0] == np.float32(6.44e9)
    assert of_node["clock_hz"][0] == np.float32(2199.3e6)


def test_fritz_gives_cores_sockets_and_nodes(session: Session, shared_data: Path) -> None:
    file = shared_data / "job-archive" / "fritz" / "data-core-level.json"
    report = read(session, "clustercockpit", file, fill=OF_FRITZ)
    # 529 series of theirs, and the sum of what InfiniBand received and sent
    assert (report.rows_in, report.n_dropped) == (530, 0)
    assert any("ids repeat on their node, numbered by their order: 6" in note for note in report.notes)
    found = series(session)
    scopes: dict[str, set[str]] = {}
    for name, scope, _ in found:
        scopes.setdefault(name, set()).add(scope)
    assert scopes["mem_bw_b_s"] == {"node", "socket"}
    assert scopes["ipc"] == {"node", "core"}
    assert scopes["cpu_load"] == {"node"}
    assert sum(key[:2] == ("ipc", "core") for key in found) == 72
    # both sockets carry the id 0 in the file
    assert found["mem_bw_b_s", "socket", "f0720/0"][4] == np.float32(59.48e9)
    assert found["mem_bw_b_s", "socket", "f0720/1"][4] == np.float32(56.54e9)
    assert found["cpu_user", "core", "f0720/1"][0] == np.float32(0.9668)
    assert found["net_b_s", "node", "f0720"][0] == np.float32(138.8)
    assert found["x_nfs4_read", "node", "f0720"][1] == np.float32(1272e6)
    assert jobs(session) == []


def test_series_without_a_job_are_refused_with_the_way_out(session: Session, shared_data: Path) -> None:
    read(session, "clustercockpit", shared_data / "job-archive" / "fritz" / "data-core-level.json")
    (reject,) = rows(session, "rejects")
    assert reject["reason"] == "damaged file"
    assert "meta.json beside it, or add --set job_id=ID --set start_time=TIME" in reject["detail"]


def test_a_damaged_file_loses_only_itself(session: Session, shared_data: Path, tmp_path: Path) -> None:
    good = tmp_path / "a" / "good"
    shutil.copytree(shared_data / "job-archive" / "emmy" / "1403244", good)
    whole = (good / "data.json.gz").read_bytes()
    for number, data in enumerate(
        (whole[:-400_000], b"", b"\x1f\x8b\x08" + b"x" * 50, b"[1, 2]", b"\xff\xfe")
    ):
        folder = archive(tmp_path / f"b{number}", "", META | {"jobId": number})
        (folder / "data.json").write_bytes(data)
    archive(tmp_path / "c", {"cpu_load": metric([1.0])}, "{")
    report = read(session, "clustercockpit", tmp_path)
    # the job without a record takes its series with it
    assert report.dropped == {"damaged file": 7}
    assert len(rows(session)) == 288
    assert sorted(job["job_id"] for job in jobs(session)) == ["0", "1", "1403244", "2", "3", "4"]


def test_what_is_repaired_is_added_up_and_files_are_told_apart(session: Session, tmp_path: Path) -> None:
    wrong = {"mem_used": metric([1.0], unit="GB/s")}
    for job in range(3):
        archive(tmp_path / "fritz" / "1" / str(job), wrong, META | {"jobId": job})
    archive(tmp_path / "fritz" / "2" / "9", "{")
    report = read(session, "clustercockpit", tmp_path / "fritz")
    assert "series of used memory in bytes per second, read as bytes: 3" in report.notes
    (reject,) = rows(session, "rejects")
    assert reject["file"] == "fritz/2/9/data.json"


def test_a_file_that_unpacks_to_more_than_it_may_is_refused(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_files, "LARGEST", 1 << 20)
    folder = archive(tmp_path / "a", {})
    (folder / "data.json.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    (folder / "data.json").unlink()
    report = read(session, "clustercockpit", folder)
    assert report.dropped == {"damaged file": 1}
    assert "larger than 1 MiB unpacked" in rows(session, "rejects")[0]["detail"]


def test_prefixes_beyond_what_a_node_can_do_are_repaired_and_counted(
    session: Session, tmp_path: Path
) -> None:
    giga = {"base": "B/s", "prefix": "G"}
    data = {
        "mem_bw": metric([183.0, None], [554_803.0, 100_000.0], unit=giga, scope="socket", ids=["0", "1"]),
        "flops_any": metric([1e9], unit="GF/s"),
        "clock": metric([1e30], unit="MHz"),
        "mem_used": metric([12.5], unit="GB"),
        "acc_utilization": metric([50.0], scope="accelerator", ids=["00:07.0"]),
    }
    report = read(session, "clustercockpit", archive(tmp_path / "a", data))
    found = series(session)
    assert found["mem_bw_b_s", "socket", "n1/0"][0] == np.float32(183e9)
    assert found["mem_bw_b_s", "socket", "n1/1"].tolist() == [np.float32(554_803e6), np.float32(1e11)]
    assert found["flops_s", "node", "n1"][0] == np.float32(1e15)
    assert found["mem_used_b", "node", "n1"][0] == np.float32(12.5e9)
    # no prefix makes sense of it
    assert found["clock_hz", "node", "n1"][0] == np.float32(1e36)
    assert found["gpu_load", "accelerator", "n1/00:07.0"][0] == 0.5
    assert sum("with a unit prefix that is too large: 1" in note for note in report.notes) == 2
    remarks = {row["unit"]: row["remark"] for row in rows(session) if row["metric"] == "mem_bw_b_s"}
    assert remarks == {"n1/0": None, "n1/1": "GB/s read as MB/s: more than a node can do"}


def test_series_that_are_none_are_refused_one_by_one(session: Session, tmp_path: Path) -> None:
    data = {
        "cpu_load": metric([1.0, None, 2.0], ["x"], [], ids=["0", "1", "2"], scope="hwthread"),
        "ipc": metric([1.0, 2.0], step=0),
        "clock": {"galaxy": {"series": []}},
        "mem_bw": metric([1.0], scope="socket") | metric([1.0], scope="memoryDomain"),
        "power": 5,
        "cpu_power": {"node": {"timestep": 60, "series": [5, {"hostname": "n1"}, {"data": [1]}]}},
        "odd name!": metric([1e300, 1.0, -3.0]),
        "flops_dp": metric([1.0], [2.0]),
    }
    read(session, "clustercockpit", archive(tmp_path / "a", data))
    assert refused(session) == {"not a number": 1, "no series": 6, "unknown scope": 1, "repeated": 2}
    found = series(session)
    np.testing.assert_array_equal(found["cpu_load", "thread", "n1/0"], [1, np.nan, 2])
    np.testing.assert_array_equal(found["x_odd_name", "node", "n1"], [np.nan, 1, -3])


def test_the_record_of_a_job_with_gpus_and_smt(session: Session, tmp_path: Path) -> None:
    meta = META | {
        "numAcc": 8, "numHwthreads": 256, "smt": 1, "user": "u", "project": "p", "jobState": "timeout",
        "walltime": 120, "partition": "a100", "subCluster": "a100",
    }  # fmt: skip
    read(session, "clustercockpit", archive(tmp_path / "a", {"cpu_load": metric([1.0])}, meta))
    (job,) = jobs(session)
    assert {name: job[name] for name in ("gpus", "cores", "smt", "user", "project", "state", "queue")} == {
        "gpus": 8, "cores": 128, "smt": True, "user": "u", "project": "p", "state": "timeout",
        "queue": "a100",
    }  # fmt: skip
    assert job["end_time"] == datetime.fromtimestamp(1_700_000_120, UTC)
    assert rows(session)[0]["end_time"] == job["end_time"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"jobId": None}, "missing job_id"),
        ({"jobId": [1]}, "missing job_id"),
        ({"startTime": "soon"}, "damaged file"),
        ({"startTime": 1e300}, "damaged file"),
        ({"duration": -5}, "end before start"),
        ({"duration": "long"}, "missing end_time"),
        ({"user": "a\0b"}, "NUL in text"),
        ({"cluster": {"a": 1}}, "damaged file"),
        ({"resources": 5, "numNodes": None}, "damaged file"),
        ({"walltime": -1}, "negative"),
    ],
)
def test_records_that_are_none_are_refused(
    session: Session, tmp_path: Path, wrong: dict[str, Any], reason: str
) -> None:
    (tmp_path / "meta.json").write_text(json.dumps(META | wrong))
    read(session, "clustercockpit", tmp_path)
    assert refused(session) == {reason: 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps(META | {"startTime": 1e300}), "outside the years 1 to 9999"),
        (json.dumps(META | {"startTime": 9e11}), "outside the years 1 to 9999"),
        ('{"jobId": 1, "startTime": 1, "tags": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_in_our_words(session: Session, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "meta.json").write_text(text)
    read(session, "clustercockpit", tmp_path)
    (reject,) = rows(session, "rejects")
    assert told in reject["detail"]
    assert not re.search("recursion|out of range|Error|timestamp", reject["detail"])


def test_a_folder_without_an_archive_is_said_to_be_none(session: Session, tmp_path: Path) -> None:
    with raised(InputError):
        read(session, "clustercockpit", tmp_path)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("GB/s", ("B/s", "G")),
        ("MHz", ("Hz", "M")),
        ("%", ("%", "")),
        ("load", ("load", "")),
        ("W", ("W", "")),
    ],
)
def test_units_written_as_one_word(written: str, meant: tuple[str, str]) -> None:
    assert _unit(written) == meant


@pytest.mark.parametrize(("state", "told"), [(3, "3"), (None, None), ("", None), ("COMPLETED", "finished")])
def test_a_state_may_be_written_as_anything(session: Session, tmp_path: Path, state: Any, told: Any) -> None:
    read(session, "clustercockpit", archive(tmp_path / "a", {}, META | {"jobState": state}))
    assert [job.get("state") for job in jobs(session)] == [told]


def test_names_scripts_and_energy_of_a_job(session: Session, tmp_path: Path) -> None:
    named = {"jobName": "night-7", "jobScript": "#!/bin/bash\n# gmx\nmodule load x\nsrun /sw/lmp_gpu -in a"}
    read(session, "clustercockpit", archive(tmp_path / "a", {}, {**META, "energy": 1.25, "metaData": named}))
    (job,) = jobs(session)
    assert (job["job_name"], job["application"], job["energy_j"]) == ("night-7", "lammps", 4.5e6)
