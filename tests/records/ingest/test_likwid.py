"""Timelines of LIKWID by its map, and the recipe for sums of a run: planted values, lines of others."""

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.report import RunReport
from esjobs.issues.one_job import job_story
from tests.conftest import memory_session
from tests.records.ingest.monitored import refused, series

ROOT = Path(__file__).parents[3]
START = "start_time=2025-06-01T00:00:00Z"
FILL = ("unit=n1", START, "source=alpha")
FLOPS = ("Runtime (RDTSC) [s]", "Clock [MHz]", "CPI", "DP [MFLOP/s]")
MEM = ("Runtime (RDTSC) [s]", "Memory bandwidth [MBytes/s]", "Power [W]", "Operational intensity")
HEADS = {"|": ("# HWThreads: ", "|", " "), ",": ("# HWThreads,", ",", ",")}
"""As printed without -o, data separated by blanks; as written by -o FILE.csv."""


def head(form: str, threads: list[int], *groups: tuple[str, ...]) -> str:
    first, mark, _ = HEADS[form]
    lines = [first + mark.join(map(str, threads))]
    columns = ("GID", "MetricsCount", "CpuCount", "Total runtime [s]")
    lines += ["# " + mark.join((*columns, *names)) for names in groups]
    return "\n".join(lines) + "\n"


def line(form: str, group: int, moment: float, *metrics: list[object]) -> str:
    cells = [group, len(metrics), len(metrics[0]), moment, *(cell for values in metrics for cell in values)]
    return HEADS[form][2].join(map(str, cells)) + "\n"


def load(
    session: Session, folder: Path, text: str, fill: tuple[str, ...] = FILL, name: str = "likwid-4711.csv"
) -> RunReport:
    (folder / name).write_text(text)
    return session.ingest("series", folder / name, mapping="likwid", fill=fill)


def mem(form: str, moment: float, bandwidth: list[object], power: list[object]) -> str:
    ones: list[object] = [1] * len(bandwidth)
    return line(form, 1, moment, ones, bandwidth, power, ones)


@pytest.mark.parametrize("form", HEADS)
def test_what_sockets_count_is_added_up_and_units_are_scaled(
    session: Session, tmp_path: Path, form: str
) -> None:
    text = head(form, [0, 1, 36, 37], MEM)
    text += mem(form, 1.0002, [5000.5, 0, 6000, 0], [100, 0, 90.5, 0])
    text += mem(form, 2.0001, [5000, "-", "1e3", "-"], [100, "-", 90, "-"])
    text += mem(form, 3.0002, ["-", "nan", "-", "-"], ["-"] * 4)
    text += mem(form, 4.0002, [1, 1, 1, 1], [1, 1, 1, 1])
    load(session, tmp_path, text)
    found = series(session, "4711")
    assert found.keys() == {("mem_bw_b_s", "node", "n1"), ("power_w", "node", "n1")}
    np.testing.assert_allclose(found["mem_bw_b_s", "node", "n1"], [11000.5e6, 6000e6, np.nan, 4e6], rtol=1e-6)
    np.testing.assert_allclose(found["power_w", "node", "n1"], [190.5, 190, np.nan, 4], rtol=1e-6)


def test_groups_that_take_turns_have_longer_steps_and_no_gaps(session: Session, tmp_path: Path) -> None:
    text = head(",", [2, 5], FLOPS, MEM)
    for n in range(1, 9, 2):
        text += line(",", 1, n, [1, 1], [2400, 1200], [0.5, "-"], [100 * n, 50])
        text += line(",", 2, n + 1, [1, 1], [1000 * n, 0], [50, 0], [1, 1])
    load(session, tmp_path, text)
    found = series(session, "4711")
    np.testing.assert_allclose(found["flops_dp_s", "thread", "n1/2"], 1e8 * np.array([1, 3, 5, 7]), rtol=1e-6)
    np.testing.assert_allclose(found["clock_hz", "thread", "n1/5"], [1.2e9] * 4, rtol=1e-6)
    np.testing.assert_allclose(found["mem_bw_b_s", "node", "n1"], 1e9 * np.array([1, 3, 5, 7]), rtol=1e-6)
    assert ("x_cpi", "thread", "n1/5") not in found
    rows = session.tables.series().rows.to_pylist()
    assert {(row["step_s"], row["n_gaps"]) for row in rows} == {(2.0, 0)}


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(sorted(HEADS)),
    st.lists(st.integers(0, 300), min_size=1, max_size=5, unique=True),
    st.lists(st.floats(0, 1e6), min_size=20, max_size=20),
)
def test_a_written_timeline_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, form: str, threads: list[int], values: list[float]
) -> None:
    n = len(threads)
    rows = [values[at : at + n] for at in range(0, len(values) - n + 1, n)]
    text = head(form, threads, FLOPS, MEM)
    for at, row in enumerate(rows, 1):
        text += line(form, 1, at, [1] * n, list(row), [1] * n, list(row))
        text += line(form, 2, at + 0.4, [1] * n, list(row), [1] * n, [1] * n)
    with memory_session() as session:
        load(session, tmp_path_factory.mktemp("likwid"), text)
        found = series(session, "4711")
    for number, thread in enumerate(threads):
        expected = [1e6 * row[number] for row in rows]
        np.testing.assert_allclose(
            found["flops_dp_s", "thread", f"n1/{thread}"], expected, rtol=1e-5, atol=1e-30
        )
    added = [1e6 * math.fsum(row) for row in rows]
    np.testing.assert_allclose(found["mem_bw_b_s", "node", "n1"], added, rtol=1e-5, atol=1e-30)


def test_lines_of_the_program_and_of_no_group_are_counted(session: Session, tmp_path: Path) -> None:
    text = "----------\nCPU name:\tIntel\n" + head("|", [0, 1], MEM) + mem("|", 1, [1, 0], [1, 0])
    text += "hello\n0 1 2 3\n3 4 2 1.0 1 1 1 1 1 1 1 1\n1 4 2 2.0 1 1 1\n²\n" + "9" * 5000 + " 1\n"
    report = load(session, tmp_path, text + mem("|", 2, [1, 0], [1, 0]) + mem("|", 3, [1, 0], [1, 0]))
    assert [note for note in report.notes if "lines without a metric of the map, ignored: 8" in note]
    assert report.n_dropped == 0


@pytest.mark.parametrize(
    ("text", "fill", "reason"),
    [
        (head(",", [0], MEM), FILL, "damaged file"),
        (head(",", [0], ("Runtime [s]",)) + "1,1,1,1.0,1.0\n", FILL, "damaged file"),
        (
            "# HWThreads 0 1\n# GID MetricsCount CpuCount Total runtime [s] CPI\n1 1 2 1.0 1 1\n",
            FILL,
            "damaged file",
        ),
        ("# HWThreads\n", FILL, "damaged file"),
        (head(",", [0], MEM) + mem(",", 1, [1], [1]), ("unit=n1",), "damaged file"),
        (head(",", [0], MEM) + mem(",", 1, [1], [1]), (START,), "damaged file"),
        (head(",", [0], MEM) + mem(",", 1, ["-"], ["x"]), FILL, "no samples"),
    ],
)
def test_a_timeline_without_samples_is_refused(
    session: Session, tmp_path: Path, text: str, fill: tuple[str, ...], reason: str
) -> None:
    load(session, tmp_path, text, fill)
    assert refused(session).keys() == {reason}


def test_a_file_that_names_no_job_needs_its_id(session: Session, tmp_path: Path) -> None:
    text = head(",", [0], MEM) + "".join(mem(",", n, [1], [1]) for n in range(1, 5))
    load(session, tmp_path, text, name="out.csv")
    assert refused(session) == {"no job id": 1}
    load(session, tmp_path, text, (*FILL, "job_id=12"), name="out.csv")
    assert ("power_w", "node", "n1") in series(session, "12")


def test_the_page_of_a_job_has_its_footprint(session: Session, tmp_path: Path) -> None:
    job = {"source": "alpha", "job_id": "4711", "queue": "q", "cores": 2, "nodes": 1, "wall_s": 10}
    job |= {"start_time": "2025-06-01T00:00:00Z", "end_time": "2025-06-01T00:00:10Z", "state": "finished"}
    (tmp_path / "jobs.jsonl").write_text(json.dumps(job) + "\n")
    session.ingest("jobs", tmp_path / "jobs.jsonl")
    text = head(",", [0, 1], MEM) + "".join(mem(",", n, [1000, 0], [60, 0]) for n in range(1, 11))
    load(session, tmp_path, text)
    session.issues.detect("2025-06-01/2025-06-02")
    figures = {row["metric"]: row["node_mean"] for row in job_story(session.store, "4711").footprints}
    assert figures == {"mem_bw_b_s": pytest.approx(1e9), "power_w": pytest.approx(60)}


RUN = """STRUCT,Info,3,,,
CPU name:,Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz,,,,
TABLE,Group 1 Raw,Custom,4,,
Event,Counter,HWThread 0,HWThread 1,,
Runtime (RDTSC) [s],TSC,1.000000e+01,1.000000e+01,,
UOPS_RETIRED_SLOTS,PMC0,1000000000,2.500000e+09,,
TOPDOWN_SLOTS,FIXC3,3000000000,4000000000,,
CAS_COUNT_RD,MBOX0C0,123456,-,,
TABLE,Group 1 Raw STAT,Custom,3,,
Event,Counter,Sum,Min,Max,Avg
UOPS_RETIRED_SLOTS STAT,PMC0,3500000000,1000000000,2500000000,1750000000
TABLE,Group 2 Raw,Custom,1,,
Event,Counter,HWThread 0,HWThread 1,,
TOPDOWN_SLOTS,FIXC3,1,1,,
"""


def test_the_recipe_for_sums_of_a_run_makes_counters_and_a_score(session: Session, tmp_path: Path) -> None:
    awk = shutil.which("awk")
    if awk is None:
        pytest.skip("no awk")
    page = (ROOT / "docs" / "sources.md").read_text()
    (program,) = re.findall(r"awk -F, '([^']*)' likwid\.csv", page)
    (tmp_path / "likwid.csv").write_text(RUN)
    made = subprocess.run([awk, "-F,", program, "likwid.csv"], cwd=tmp_path, capture_output=True, check=True)
    (tmp_path / "stat-4711.csv").write_bytes(made.stdout)
    fill = ("queue=q", "end_time=2025-06-01T01:00:00Z", "cpu_raw=Intel Xeon Platinum 8360Y")
    report = session.ingest("perf-stat", tmp_path / "stat-4711.csv", fill=fill)
    assert [note for note in report.notes if "not counted events, ignored: 1" in note]
    session.scores.compute("2025-06-01/2025-06-02")
    (row,) = session.tables.scores().rows.to_pylist()
    assert row["score_cpu"] == pytest.approx(50)
    assert dict(job_story(session.store, "4711").record["counters"]) == {
        "UOPS_RETIRED_SLOTS": 3.5e9,
        "TOPDOWN_SLOTS": 7e9,
    }
