"""What prmon writes: both real forms, the summary, and files that are broken."""

import json
from pathlib import Path

import numpy as np

from esjobs.api.session import Session
from tests.records.ingest.monitored import jobs, known, read, refused, rows, series

HEADER = "Time\tnprocs\trss\tutime\tstime\trchar\n"


def write(folder: Path, text: str, name: str = "prmon_4711.txt") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_form_of_today(session: Session, shared_data: Path) -> None:
    file = shared_data / "prmon" / "memory_monitor_output-prmon.txt"
    report = read(session, "prmon", file, fill=("job_id=2",))
    assert (report.rows_in, report.n_dropped) == (15, 0)
    found = {
        name: one for (name, scope, unit), one in series(session).items() if (scope, unit) == ("job", "")
    }
    assert len(found) == 15
    assert {row["n_samples"] for row in rows(session)} == {60}
    assert {row["step_s"] for row in rows(session)} == {61.0}
    # one core busy, as utime and stime say
    load = known(found["cpu_load"])
    assert len(load) == 59
    assert 0.96 < float(np.mean(load)) < 0.97
    assert max(known(found["mem_used_b"])) == np.float32(1605120 * 1024)
    # at the end the payload is gone: memory is 0 and the counters of its I/O fall
    assert found["mem_used_b"][-1] == 0
    assert np.isnan(found["read_b_s"][-1])
    assert np.isfinite(found["net_b_s"][-1])
    assert sum("decreases of the counters" in note for note in report.notes) == 4


def test_the_form_before_it(session: Session, shared_data: Path) -> None:
    report = read(session, "prmon", shared_data / "prmon" / "memory_monitor_output.txt", fill=("job_id=1",))
    assert (report.rows_in, report.n_dropped) == (8, 0)
    found = {name: one for (name, _, _), one in series(session).items()}
    assert set(found) == {
        *("mem_virtual_b", "mem_pss_b", "mem_used_b", "swap_used_b"),
        *("read_b_s", "write_b_s", "disk_read_b_s", "disk_write_b_s"),
    }
    assert {row["n_samples"] for row in rows(session)} == {451}
    assert found["mem_used_b"][-1] == np.float32(3199152 * 1024)
    assert found["read_b_s"][1] == np.float32((1272873736 - 796580169) / 61)


def test_counters_become_rates_and_where_they_fall_there_is_a_gap(session: Session, tmp_path: Path) -> None:
    text = HEADER + "".join(
        f"{1_700_000_000 + 10 * n}\t1\t5\t{user}\t{system}\t{read_}\n"
        for n, (user, system, read_) in enumerate([(0, 0, 0), (5, 5, 100), (3, 6, 50), (13, 6, 50)])
    )
    report = read(session, "prmon", write(tmp_path, text))
    found = {name: one for (name, _, _), one in series(session, "4711").items()}
    np.testing.assert_array_equal(found["cpu_load"], [np.nan, 1, np.nan, 1])
    np.testing.assert_array_equal(found["read_b_s"], [np.nan, 10, np.nan, 0])
    assert any("decreases of the counters of cpu_load, stored as gaps: 1" in note for note in report.notes)


def test_time_that_goes_back_lines_that_repeat_and_cells_that_are_none(
    session: Session, tmp_path: Path
) -> None:
    lines = [
        "0 1 5 0 0 0",
        "20 1 7 2 0 0",
        "10 1 6 1 0 0",
        "10 1 9 1 0 0",
        "30 1 x 3 0 -4",
        "short",
        "x 1 1 1 1 1",
    ]
    text = HEADER + "\n".join(
        line.replace(line.split()[0], f"17000{line.split()[0]:0>5}", 1) for line in lines[:5]
    )
    report = read(session, "prmon", write(tmp_path, text + "\n" + "\n".join(lines[5:]) + "\n"))
    found = {name: one for (name, _, _), one in series(session).items()}
    np.testing.assert_array_equal(
        found["mem_used_b"], np.float32(1024) * np.array([5, 9, 7, np.nan], np.float32)
    )
    np.testing.assert_array_equal(found["cpu_load"], np.array([np.nan, 0.1, 0.1, 0.1], np.float32))
    told = " ".join(report.notes)
    for what in (
        "go back, sorted: 1",
        "another one has, left out: 1",
        "another number of cells, ignored: 2",
    ):
        assert what in told


def test_a_summary_is_a_job_record(session: Session, tmp_path: Path) -> None:
    summary = {
        "Max": {
            "rss": 100,
            "pss": 90,
            "vmem": 200,
            "utime": 30,
            "stime": 5,
            "wtime": 40,
            "rchar": 7,
            "wchar": 8,
        },
        "Avg": {"rss": 50, "pss": 40},
        "HW": {"cpu": {"ModelName": "AMD EPYC 7702", "CPUs": 64}},
    }
    file = write(tmp_path, json.dumps(summary), "prmon.4711.json")
    read(session, "prmon", file, fill=("queue=CERN", "end_time=2026-01-01T00:00:00Z"))
    (job,) = jobs(session)
    wanted = ("job_id", "cpu_s", "wall_s", "max_rss_b", "avg_pss_b", "read_b")
    assert {name: job[name] for name in wanted} == {
        "job_id": "4711", "cpu_s": 35, "wall_s": 40, "max_rss_b": 102_400, "avg_pss_b": 40_960, "read_b": 7,
    }  # fmt: skip
    assert job["cpu_raw"] == "AMD EPYC 7702"
    read(session, "prmon", file, fill=("queue=CERN",))
    assert refused(session) == {"missing end_time": 1}


def test_damaged_files_lose_only_themselves(session: Session, tmp_path: Path) -> None:
    good = write(tmp_path, HEADER + "1700000000 1 5 0 0 0\n1700000060 1 5 0 0 0\n")
    broken = ["", "Time x\n1 2\n", HEADER, "{", '{"Max": 3}', "[]", HEADER + "5 1\n", "Time rss rss\n1 1 1\n"]
    files = [write(tmp_path, text, f"prmon_{900 + number}.txt") for number, text in enumerate(broken)]
    far = write(
        tmp_path, HEADER + "1 1 5 0 0 0\n2 1 5 0 0 0\n3 1 5 0 0 0\n1700000060 1 5 0 0 0\n", "prmon_999.txt"
    )
    nameless = write(tmp_path, HEADER + "1700000000 1 5 0 0 0\n", "a.txt")
    report = read(session, "prmon", good, far, nameless, *files)
    assert report.dropped == {"damaged file": len(broken) + 1, "no job id": 1}
    assert {row["job_id"] for row in rows(session)} == {"4711"}


def test_an_archive_of_many_files_is_named_by_some(session: Session, tmp_path: Path) -> None:
    text = HEADER + "1700000000 1 5 0 0 0\n1700000060 1 5 0 0 0\n"
    read(session, "prmon", *(write(tmp_path, text, f"prmon_{1000 + number}.txt") for number in range(103)))
    (load,) = rows(session, "loads")
    assert load["files"].endswith("prmon_1099.txt and 3 more")
    assert len({row["job_id"] for row in rows(session)}) == 103


def test_a_folder_stands_for_its_files(session: Session, tmp_path: Path) -> None:
    for job in ("4711", "4712"):
        (tmp_path / job).mkdir()
        (tmp_path / job / f"prmon-{job}.txt").write_text(HEADER + "1700000000\t1\t5\t0\t0\t0\n" * 2)
    (tmp_path / "notes.txt").write_text("not prmon")
    read(session, "prmon", tmp_path)
    assert {row["job_id"] for row in rows(session)} == {"4711", "4712"}
