"""Reports as they come: every version, the traps seen in real ones, and hostile ones."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session
from esjobs.records.ingest.formats.talp_names import OURS, report_name
from tests.pop.reports import as_report, minimal, put_job, real_reports, written

Row = dict[str, Any]


def rows(session: Session, table: str = "pop", **filters: Any) -> list[Row]:
    found: list[Row] = session.tables.read(table, **filters).rows.to_pylist()
    return found


def of_application(session: Session) -> list[Row]:
    return [row for row in rows(session) if row["level"] == "application"]


def books_balance(report: Any) -> None:
    counts = report.counts
    assert report.rows_in == counts["stored"] + counts["updated"] + report.n_dropped


def test_every_real_report_is_read_and_the_invalid_one_refused(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    reports = real_reports(shared_data)
    put_job(session.store)
    files = [as_report(tmp_path, path, pid=number) for number, path in enumerate(reports)]
    report = session.ingest("talp", files)
    books_balance(report)
    assert report.dropped == {"damaged file": 1}
    assert len({row["report"] for row in rows(session, "pop_reports")}) == len(reports) - 1
    (refused,) = rows(session, "rejects")
    assert "does not escape quotes" in refused["detail"]


def test_a_region_that_was_never_entered_has_no_data_which_is_not_0(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    put_job(session.store)
    real = shared_data / "talp/3.7.0/regions-np4-2nodes-pop.json"
    session.ingest("talp", [as_report(tmp_path, real)])
    found = {row["region"]: row for row in of_application(session)}
    never = found["Never started"]
    assert never["status"] == "no_data"
    assert never["parallel_efficiency"] is None
    assert never["worst"] is None
    assert found["Global"]["main"]
    assert not found["Solver"]["main"]
    # entered by one rank of four
    assert (found["Rank0 only"]["ranks"], found["Rank0 only"]["cpus"]) == (4, 1)
    assert "1 CPUs by an application of 4 ranks" in found["Rank0 only"]["remark"]


def test_a_report_with_nothing_selected_is_empty_and_not_perfect(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    put_job(session.store)
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/region-exclude-all.json")])
    assert {row["status"] for row in of_application(session)} == {"no_data"}


def test_without_counters_there_is_no_ipc(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/hwc-unavailable-np2.json")])
    (row,) = of_application(session)
    assert (row["ipc"], row["ipc_status"], row["gigacycles"]) == (None, "no_counters", None)


def test_negative_counters_are_left_out_and_said(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    real = shared_data / "talp/upstream-talp-pages/talp.4x56.json"
    negative = {
        name
        for name, given in json.loads(real.read_text())["Application"].items()
        if given["instructions"] < 0
    }
    assert negative
    report = session.ingest("talp", [as_report(tmp_path, real)])
    assert any("negative counters" in note for note in report.notes)
    for row in of_application(session):
        assert (row["ipc_status"] == "bad_counters") == (row["region"] in negative)
        assert (row["ipc"] is None) == (row["region"] in negative)


def test_parts_of_a_report_are_put_together(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    parts = sorted((shared_data / "talp/3.7.0").glob("regions-np4-2nodes_*.partial.json"))
    names = [path.name.replace("regions-np4-2nodes", "talp.4711.0.node01.7") for path in parts]
    for path, name in zip(parts, names, strict=True):
        shutil.copyfile(path, tmp_path / name)
    session.ingest("talp", [tmp_path / name for name in names[:2]])
    session.ingest("talp", [tmp_path / name for name in names[2:]])
    found = {row["region"]: row for row in of_application(session)}
    regions = [json.loads(path.read_text())["Application"]["Global"] for path in parts]
    everything = found["Global"]
    assert everything["ranks"] == everything["cpus"] == 4
    assert everything["nodes"] == 2
    assert everything["useful_s"] == pytest.approx(sum(each["usefulTime"] for each in regions) / 1e9)
    assert everything["elapsed_s"] == pytest.approx(max(each["elapsedTime"] for each in regions) / 1e9)
    least = min(each["mpiTime"] for each in regions)
    assert everything["min_mpi_process_s"] == pytest.approx(least / 1e9)
    assert found["Never started"]["status"] == "no_data"


@pytest.mark.parametrize("version", ["3.6.2", "3.7.0", "3.7.0+63-main"])
def test_what_is_added_up_from_processes_is_what_dlb_adds_up(
    session: Session, shared_data: Path, tmp_path: Path, version: str
) -> None:
    """The application's rows of a report, and those made from its processes alone."""
    real = shared_data / "talp" / version / "regions-np4-2nodes-pop+process.json"
    document = json.loads(real.read_text())
    put_job(session.store)
    put_job(session.store, "4712")
    session.ingest("talp", [as_report(tmp_path, real)])
    del document["Application"]
    session.ingest("talp", [written(tmp_path, document, "talp.4712.0.node01.1.json")])
    by_dlb, added = (
        {row["region"]: row for row in of_application(session) if row["job_id"] == job}
        for job in ("4711", "4712")
    )
    assert by_dlb.keys() == added.keys()
    for region, row in added.items():
        for name in ("useful_s", "mpi_s", "elapsed_s", "cpus", "min_mpi_process_s", "min_mpi_node_s"):
            assert (row[name] or 0) == pytest.approx(by_dlb[region][name], abs=2e-9), (region, name)
        for name in ("parallel_efficiency", "mpi_load_balance_out", "mpi_communication_efficiency"):
            assert row[name] == pytest.approx(by_dlb[region][name], abs=1e-6), (region, name)


def test_the_same_report_twice_is_one(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    real = shared_data / "talp/3.3.1/regions-np4-2nodes-popraw.json"
    session.ingest("talp", [as_report(tmp_path, real)])
    before = rows(session)
    # another load, another process id in the name, and no time in the report: the copy is of another day
    copy = as_report(tmp_path, real, pid=2)
    os.utime(copy, (1_900_000_000, 1_900_000_000))
    session.ingest("talp", [copy])
    again = rows(session)
    assert [row["report"] for row in again] == [row["report"] for row in before]
    assert again == [
        {**row, "fingerprint": other["fingerprint"]} for row, other in zip(before, again, strict=True)
    ]


def test_two_launches_of_a_job_are_two(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    real = shared_data / "talp/3.7.0/balanced-np2.json"
    session.ingest("talp", [as_report(tmp_path, real, step="0"), as_report(tmp_path, real, step="1")])
    assert sorted(row["step"] for row in of_application(session)) == ["0", "1"]


def test_a_report_without_a_job_is_kept_aside_and_joined_when_its_record_comes(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    report = session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/balanced-np2.json")])
    assert "esjobs show pop_orphans" in " ".join(report.notes)
    (orphan,) = rows(session, "pop_orphans")
    assert (orphan["job_id"], orphan["reason"]) == ("4711", "no record of this job is stored")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,queue,end_time,user\n4711,batch,2026-11-20T23:00:00Z,ada\n")
    session.ingest("jobs", [jobs])
    assert not rows(session, "pop_orphans")
    assert [(row["user"], row["queue"]) for row in of_application(session)] == [("ada", "batch")]


def test_two_sources_with_a_job_of_one_id_need_a_word(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    put_job(session.store, source="north")
    put_job(session.store, source="south")
    path = as_report(tmp_path, shared_data / "talp/3.7.0/balanced-np2.json")
    session.ingest("talp", [path])
    (orphan,) = rows(session, "pop_orphans")
    assert "north, south" in orphan["reason"]
    session.ingest("talp", [path], fill={"source": "south"})
    assert not rows(session, "pop_orphans")
    assert [row["source"] for row in of_application(session)] == ["south"]


def test_a_load_that_is_taken_back_takes_its_efficiencies_along(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    put_job(session.store)
    report = session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/balanced-np2.json")])
    assert rows(session)
    session.undo(report.run)
    assert not rows(session)


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "negative time": ({"usefulTime": -1}, "negative"),
    "1e308 ns": ({"usefulTime": 1e308}, "out of range"),
    "hundreds of digits": ({"usefulTime": 10**400}, "out of range"),
    "a text": ({"mpiTime": "much"}, "not a number"),
    "a truth": ({"mpiTime": True}, "not a number"),
    "half a CPU": ({"numCpus": 0.5}, "out of range"),
    "10^30 CPUs": ({"numCpus": 10**30}, "out of range"),
    "no time": ({"elapsedTime": None}, "missing value"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_region_that_cannot_be_is_refused_and_the_others_stay(
    session: Session, tmp_path: Path, what: str
) -> None:
    members, reason = HOSTILE[what]
    document = minimal()
    document["Application"]["Bad"] = minimal(**members)["Application"]["Global"]
    put_job(session.store)
    report = session.ingest("talp", [written(tmp_path, document)])
    books_balance(report)
    assert report.dropped == {reason: 1}
    assert [row["region"] for row in of_application(session)] == ["Global"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"Application": {"A": {}, "A": {}}}',
        '{"Application": {"A": {"elapsedTime": NaN}}}',
        '{"a":' * 100_000,
        '{"timestamp": "2026-11-20T22:00:00", "Application": {"A": ',
        "\udcff",
    ],
)
def test_what_is_no_report_is_refused_and_the_next_file_read(
    session: Session, tmp_path: Path, text: str
) -> None:
    put_job(session.store)
    bad = tmp_path / "talp.4711.0.node01.9.json"
    bad.write_bytes(text.encode(errors="surrogateescape"))
    report = session.ingest("talp", [bad, written(tmp_path, minimal())])
    books_balance(report)
    assert report.dropped == {"damaged file": 1}
    assert len(of_application(session)) == 1


def test_names_of_regions_may_be_anything_that_json_can_say(session: Session, tmp_path: Path) -> None:
    names = ["", "a\nb", '"quoted"', "<script>", "\x1b[31m", "Ω", "x" * 1000]
    document = minimal()
    inner = document["Application"]["Global"]
    document["Application"] |= dict.fromkeys([*names, "y" * 1001, "\ud800", "nul\0"], inner)
    put_job(session.store)
    report = session.ingest("talp", [written(tmp_path, document)])
    books_balance(report)
    assert report.n_dropped == 3
    assert {row["region"] for row in of_application(session)} == {"Global", *names}


def test_ten_thousand_regions_are_rows_like_any_other(session: Session, tmp_path: Path) -> None:
    document = minimal()
    inner = document["Application"]["Global"]
    document["Application"] |= {f"region {number}": inner for number in range(10_000)}
    put_job(session.store)
    report = session.ingest("talp", [written(tmp_path, document)])
    assert report.counts["stored"] == 10_001
    assert len(of_application(session)) == 10_001


def test_a_file_that_does_not_say_its_job_is_refused_unless_told(session: Session, tmp_path: Path) -> None:
    path = written(tmp_path, minimal(), "report.json")
    report = session.ingest("talp", [path])
    assert report.dropped == {"no job id": 1}
    session.ingest("talp", [path], fill={"job_id": "12", "step": "3"})
    assert [(row["job_id"], row["step"]) for row in rows(session, "pop_orphans")] == [("12", "3")]


@pytest.mark.parametrize("application", [None, [1], {}, "x"])
def test_a_report_without_a_region_is_refused_with_a_reason(
    session: Session, tmp_path: Path, application: object
) -> None:
    report = session.ingest("talp", [written(tmp_path, {"Application": application})])
    assert report.dropped == {"damaged file": 1}
    (reject,) = session.tables.rejects().to_pandas().to_dict("records")
    assert "has no region" in str(reject)


def test_additional_members_are_ignored(session: Session, tmp_path: Path) -> None:
    put_job(session.store)
    session.ingest("talp", [written(tmp_path, {**minimal(novelty=[1]), "metadata": {"gitCommit": "x"}})])
    assert len(of_application(session)) == 1


@pytest.mark.parametrize(
    ("name", "job", "step"),
    [
        ("talp.4711.0.node01.12.json", "4711", "0"),
        ("talp.1234.pbs.example.org.2.node01.12.json", "1234.pbs.example.org", "2"),
        ("talp.77_3.batch.n-1.5.json.gz", "77_3", "batch"),
        ("4711.node01.12.json", "4711", ""),
        ("regions-np4_node01_22927.partial.json", None, ""),
        ("talp.4711.0.node01.12_node02_99.partial.json", "4711", "0"),
        ("report.json", None, ""),
    ],
)
def test_names(name: str, job: str | None, step: str) -> None:
    named = report_name(name)
    assert (named.job_id, named.step) == (job, step)


@pytest.mark.parametrize(
    "name",
    ["talp.4711.0.node01.12.json.tmp", ".talp.4711.0.node01.12.json", "talp..0.n.1.json", "talp.1.0.n.json"],
)
def test_names_that_are_not_ours(name: str) -> None:
    assert not OURS.fullmatch(name)
