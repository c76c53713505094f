"""Recipes of docs/sources.md that make counters of the outputs of other programs, run as they are written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from esjobs.api.session import Session
from tests.records.ingest.monitored import jobs

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"
FILL = ("queue=q", "end_time=2026-03-01T06:00:00Z")
ELIGIBLE, ACTIVE = "smsp__warps_eligible.avg.per_cycle_active", "sm__warps_active.avg.per_cycle_active"
THEORETICAL, TIME = "sm__maximum_warps_avg_per_active_cycle", "gpu__time_duration.sum"
LONG = "smsp__warps_issue_stalled_long_scoreboard.avg.per_cycle_active"
LG = "smsp__warps_issue_stalled_lg_throttle.avg.per_cycle_active"


def ran(pattern: str, text: str, *arguments: str) -> str:
    """Return the output of the awk program of the page on a text."""
    awk = shutil.which("awk")
    if awk is None:
        pytest.skip("no awk")
    (program,) = re.findall(pattern, PAGE.read_text(), re.DOTALL)
    command = [awk, *arguments[:1], program, *arguments[1:]]
    return subprocess.run(command, input=text, capture_output=True, check=True, text=True).stdout


def launch(number: int, host: str, kernel: str, **metrics: object) -> str:
    head = f'"{number}","4242","solver","{host}","{kernel}","1","7","(256, 1, 1)","(16, 1, 1)","0","9.0"'
    section = "Command line profiler metrics"
    names = {"t": TIME, "e": ELIGIBLE, "m": THEORETICAL, "a": ACTIVE, "l": LONG, "g": LG}
    return "".join(f'{head},"{section}","{names[name]}","u","{value}"\n' for name, value in metrics.items())


NCU = (
    '==PROF== Connected to process 4242\nmy program prints, "this"\n'
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    + launch(0, "h", "void gemm<128, 64>(float *)", t="3,000.00", e="0.5", m="64", a="32", l="4", g="0.5")
    + launch(1, "h", "copy", t="1,000", e="0.1", m="32", a="16", l="1", g="n/a")
    + "==PROF== Disconnected\n"
)


def test_warps_of_kernels_weigh_by_their_time(session: Session, tmp_path: Path) -> None:
    made = ran(r"""awk -F'","' '(.*?)' id=4711 ncu\.csv""", NCU, '-F","', "id=4711")
    path = tmp_path / "made.csv"
    path.write_text(made)
    session.ingest("jobs", path, fill=FILL)
    (job,) = jobs(session)
    found = dict(job["counters"])
    assert (job["job_id"], len(found)) == ("4711", 5)
    assert found[ELIGIBLE] == pytest.approx((3 * 0.5 + 0.1) / 4)
    assert found[THEORETICAL] == pytest.approx(56)
    assert found[LG] == 0.5  # of the launch that has it
    session.scores.compute("2026-03-01/2026-03-02")
    (row,) = session.tables.scores().rows.to_pylist()
    # four schedulers a multiprocessor
    assert row["score_gpu"] == pytest.approx(100 * (1 - 4 * 0.4 / 56), abs=1e-4)
    assert row["score_gpumem"] == pytest.approx(100 * 4 * (3.25 + 0.5) / 28, abs=1e-4)


DARSHAN = """# darshan log version: 3.41
# jobid: 4711
# start_time: 1490000867
# nprocs: 4
total_POSIX_OPENS: {opens}
total_POSIX_BYTES_READ: {read}
total_POSIX_BYTES_WRITTEN: 2199023259968
total_POSIX_F_OPEN_START_TIMESTAMP: 3.919141
total_MPIIO_BYTES_READ: {read}
total_MPIIO_COLL_OPENS: 4
total_STDIO_OPENS: 2
total_STDIO_BYTES_WRITTEN: 32
"""


def test_totals_of_all_programs_of_a_job_complete_its_record(session: Session, tmp_path: Path) -> None:
    text = DARSHAN.format(opens=10, read=1000) + DARSHAN.format(opens=20, read=234)
    path = tmp_path / "made.csv"
    path.write_text(ran(r"done \|\n      awk '([^']*)' \|\n      esjobs ingest jobs", text, "-F "))
    known = tmp_path / "jobs.csv"
    known.write_text("source,job_id,queue,end_time,user\nq,4711,q,2026-03-01T06:00:00Z,ann\n")
    session.ingest("jobs", known)
    session.ingest("jobs", path, fill=(*FILL, "source=q"))
    (job,) = jobs(session)
    # what MPI-IO moves goes through POSIX calls, too
    assert (job["user"], job["read_b"], job["written_b"]) == ("ann", 1234, 2 * (2199023259968 + 32))
    assert dict(job["counters"]) == {"darshan.opens": 34}


# What kp_reader prints of two processes, with a kernel named like a line of the summary
KOKKOS = """ (Type)   Total Time, Call Count, Avg. Time per Call, %Total Time in Kernels, %Total Program Time
-------------------------------------------------------------------------

Regions:

- solve: step
 (REGION)   0.496670 2 0.248335 100.035439 82.124564

-------------------------------------------------------------------------
Kernels:

- Total Calls to Kokkos Kernels: 7
 (ParFor)   0.396777 100 0.003968 79.915782 65.607236
- dot
 (ParRed)   0.099717 100 0.000997 20.084218 16.488233

-------------------------------------------------------------------------
Summary:

Total Execution Time (incl. Kokkos + non-Kokkos):                   0.60478 seconds
Total Time in Kokkos kernels:                                       0.49649 seconds
   -> Time outside Kokkos kernels:                                  0.10828 seconds
   -> Percentage in Kokkos kernels:                                   82.10 %
Total Calls to Kokkos Kernels:                                          200

-------------------------------------------------------------------------
"""


def test_times_in_kokkos_kernels_are_counters(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text(ran(r"awk -F: '(.*?)' id=4711", KOKKOS, "-F:", "id=4711"))
    session.ingest("jobs", path, fill=FILL)
    (job,) = jobs(session)
    assert job["job_id"] == "4711"
    assert dict(job["counters"]) == {
        "kokkos.program_s": 0.60478,
        "kokkos.kernel_s": 0.49649,
        "kokkos.calls": 200,
    }
