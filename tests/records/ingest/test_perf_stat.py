"""Output of perf stat: a real one in a French locale, every way of writing it, and files that are none."""

from pathlib import Path

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from tests.messages import raised
from tests.records.ingest.monitored import jobs, read, refused, rows

FILL = ("queue=n", "end_time=2026-01-01T00:00:00Z", "job_id=7")
TEXT = " Performance counter stats for './x':\n\n"


def counters(session: Session, folder: Path, text: str) -> dict[str, float]:
    (folder / "perf.txt").write_text(text)
    read(session, "perf-stat", folder / "perf.txt", fill=FILL)
    (job,) = jobs(session)
    return dict(job["counters"])


def test_a_real_output_gives_every_event_once(session: Session, shared_data: Path) -> None:
    file = shared_data / "perf-counters" / "intel-root-rdf" / "perf_stat.txt"
    read(session, "perf-stat", file, fill=FILL)
    (job,) = jobs(session)
    found = dict(job["counters"])
    assert (job["job_id"], job["wall_s"], job["cpu_s"]) == ("7", 53.202590594, 52.025563 + 0.952009)
    # counted all the time in the first block, a third of it in the second
    assert found["cycles"] == 190_973_918_953
    assert "cycles/running" not in found
    assert found["task-clock"] == 53065.07
    assert found["uops_retired.retire_slots"] == 373_401_307_787
    assert found["uops_retired.retire_slots/running"] == 0.3333
    assert found["inst_retired.any"] == 376_836_235_015
    assert found["inst_retired.any/running"] == 0.6667
    assert len([name for name in found if not name.endswith("/running")]) == 16


def test_top_down_tables_of_another_program_are_no_output_of_perf(
    session: Session, shared_data: Path
) -> None:
    files = sorted((shared_data / "perf-counters" / "amd-topdown").glob("*/*"))
    read(session, "perf-stat", *files, fill=FILL)
    assert refused(session) == {"damaged file": len(files)}
    assert jobs(session) == []


@pytest.mark.parametrize(
    "line",
    [
        "1,234,567      cycles",
        "1.234.567      cycles   #    3,6 GHz",
        "1 234 567      cycles",
        "1\u202f234\u202f567      cycles",
        "1'234'567      cycles",
        "1234567      cycles  # 1,1 GHz  ( +-  0,10% )",
    ],
)
def test_counts_of_any_locale(session: Session, tmp_path: Path, line: str) -> None:
    assert counters(session, tmp_path, f"{TEXT}   {line}\n") == {"cycles": 1_234_567}


@pytest.mark.parametrize(
    "text",
    [
        "CPU0,10,,cycles,100,100.00,,\nCPU1,20,,cycles,100,100.00,,\n",
        "S0-D0-C0,2,10,,cycles,100,100.00,,\nS0-D0-C1,2,20,,cycles,100,100.00,,\n",
        "     1.000102354,10,,cycles,100,100.00,,\n     2.000102354,20,,cycles,100,100.00,,\n",
        "1,000102354;10;;cycles;100;100,00;;\n2,000102354;20;;cycles;100;100,00;;\n",
        f"{TEXT}CPU0        10      cycles\nCPU1        20      cycles\n",
        f"{TEXT}S0-D0-C0      2    10      cycles\nS0-D0-C1      2    20      cycles\n",
        "#   time      counts unit events\n  1.000106391   10   cycles\n  2.000206391   20   cycles\n",
        f"{TEXT}  10  cycles\n\n  1.5 seconds time elapsed\n{TEXT}  20  cycles\n",
    ],
)
def test_cores_intervals_and_runs_are_added_up(session: Session, tmp_path: Path, text: str) -> None:
    assert counters(session, tmp_path, text) == {"cycles": 30}


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("53065.07,msec,task-clock,53065073000,100.00,1.000,CPUs utilized\n1,,cycles,1,100.00,,\n", 53065.07),
        ("53065,07,msec,task-clock,53065073000,100,00,1,000,CPUs utilized\n1,,cycles,1,100,00,,\n", 53065.07),
        ("53065,07;msec;task-clock;53065073000;100,00;1,000;CPUs utilized\n1;;cycles;1;100,00;;\n", 53065.07),
        (f"{TEXT}    1,234.50 msec task-clock\n  1 cycles\n", 1234.5),
        (f"{TEXT}    1.234,50 msec task-clock\n  1 cycles\n", 1234.5),
    ],
)
def test_fractions_of_any_locale(session: Session, tmp_path: Path, text: str, clock: float) -> None:
    found = counters(session, tmp_path, text)
    assert found["task-clock"] == clock
    assert found["cycles"] == 1


@pytest.mark.parametrize(
    ("text", "energy_j"),
    [
        ("  3,600.50 Joules power/energy-pkg/\n    400.25 Joules power/energy-ram/\n", 4000.75),
        ("  3,600.50 Joules power/energy-pkg/\n  9,000.00 Joules power/energy-psys/\n", 3600.5),
        ("  3,600.50 Joules power/energy-cores/\n", None),
    ],
)
def test_joules_are_those_of_packages_and_memory(
    session: Session, tmp_path: Path, text: str, energy_j: float | None
) -> None:
    counters(session, tmp_path, TEXT + text)
    (job,) = jobs(session)
    assert job.get("energy_j") == energy_j


def test_what_was_not_measured_is_left_out_and_counted(session: Session, tmp_path: Path) -> None:
    (tmp_path / "perf-4711.csv").write_text(
        "<not supported>,,cycles,0,100.00,,\n<not counted>,,misses,0,0.00,,\n"
        "5,,cpu/event=0x3c,umask=0x0/,100,4.99,,\n7,,cpu/event=0x3c,umask=0x1/,100,33.00,,\nnoise\n"
        "9,,faults,100,5.00,,\n"
    )
    report = read(session, "perf-stat", tmp_path / "perf-4711.csv", fill=FILL[:2])
    (job,) = jobs(session)
    assert job["job_id"] == "4711"
    assert dict(job["counters"]) == {
        "cpu/event=0x3c,umask=0x1/": 7,
        "cpu/event=0x3c,umask=0x1//running": 0.33,
        "faults": 9,
        "faults/running": 0.05,
    }
    told = " ".join(report.notes)
    for what in ("not supported", "not counted", "less than 5 % of the time", "lines without counts"):
        assert what in told


@pytest.mark.parametrize(
    "text",
    [
        f"{TEXT}  18,446,744,073,709,551,615  cycles\n  7  faults\n",
        "18446744073709551000,,cycles,100,100.00,,\n7,,faults,100,100.00,,\n",
    ],
)
def test_a_counter_below_zero_is_no_count(session: Session, tmp_path: Path, text: str) -> None:
    (tmp_path / "perf-4711.txt").write_text(text)
    report = read(session, "perf-stat", tmp_path / "perf-4711.txt", fill=FILL[:2])
    assert dict(jobs(session)[0]["counters"]) == {"faults": 7}
    assert "counts from 2^63 on (negative), ignored: 1" in " ".join(report.notes)


def test_files_that_one_id_makes_the_same_job_are_refused(session: Session, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"run{number}.txt").write_text(f"{TEXT}  {number}  cycles\n")
    both = [tmp_path / "run1.txt", tmp_path / "run2.txt"]
    with raised(UsageError):
        read(session, "perf-stat", *both, fill=FILL)
    assert jobs(session) == []
    for number, path in enumerate(both, 1):
        path.rename(tmp_path / f"perf-100{number}.txt")
    read(session, "perf-stat", *sorted(tmp_path.iterdir()), fill=FILL[:2])
    assert {job["job_id"]: dict(job["counters"])["cycles"] for job in jobs(session)} == {"1001": 1, "1002": 2}


def test_a_sum_that_lacks_a_core_is_no_sum(session: Session, tmp_path: Path) -> None:
    text = f"{TEXT}CPU0   10  cycles\nCPU1   <not counted>  cycles\nCPU0   1  faults\nCPU1   2  faults\n"
    assert counters(session, tmp_path, text) == {"faults": 3}


@pytest.mark.parametrize("text", ["", "12 monkeys\n", "a,b,c\n1,2,3\n", "\udcff", TEXT, '{"a": 1}', "1,,\n"])
def test_files_that_are_none_lose_only_themselves(session: Session, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "good.txt").write_text(f"{TEXT}  10  cycles\n")
    read(session, "perf-stat", tmp_path / "bad.txt", tmp_path / "good.txt", fill=FILL)
    assert refused(session) == {"damaged file": 1}
    assert len(jobs(session)) == 1


def test_long_lines_cost_no_more_than_their_length(session: Session, tmp_path: Path) -> None:
    lines = f" 1{' ' * 1_000_000}x\n" + (" " * 400 + "9" * 500 + "\n") * 1000
    assert counters(session, tmp_path, f"{TEXT}{lines}  5  cycles\n") == {"cycles": 5}


def test_a_job_without_id_or_end_is_refused_with_the_way_out(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{TEXT}  10  cycles\n")
    read(session, "perf-stat", tmp_path / "a.txt", fill=FILL[:2])
    read(session, "perf-stat", tmp_path / "a.txt", fill=("job_id=1", "queue=n"))
    assert refused(session) == {"no job id": 1, "missing end_time": 1}
    details = " ".join(row["detail"] for row in rows(session, "rejects"))
    assert "--set job_id=ID" in details
    assert "--set end_time=VALUE" in details


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (["'./md in.dat' (3 runs):"], "md"),
        (["'/opt/md/bin/md':", "'/opt/md/bin/md':"], "/opt/md/bin/md"),
        (["'./md':", "'./other':"], None),
        (["'mpirun -n 4 ./md':"], None),
        (["process id '4711':"], None),
        (["'system wide':"], "system"),
        (["system wide:"], None),
        (["'':"], None),
    ],
)
def test_the_program_is_the_one_of_the_command_that_perf_names(
    session: Session, tmp_path: Path, heads: list[str], expected: str | None
) -> None:
    text = "".join(f" Performance counter stats for {head}\n\n   1,000  cycles\n\n" for head in heads)
    (tmp_path / "perf.txt").write_text(text)
    read(session, "perf-stat", tmp_path / "perf.txt", fill=FILL)
    (job,) = jobs(session)
    assert job.get("executable") == expected
