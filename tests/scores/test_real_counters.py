"""Scores of real runs beside what the tools that counted them said."""

import re
from pathlib import Path

import pytest

from tests.scores.test_formulas import SKX, ZEN4, score

RUNS = ("502.gcc_r", "505.mcf_r", "508.namd_r", "519.lbm_r", "527.cam4_r", "557.xz_r")
"""SPEC CPU2017 on an AMD machine."""

_LINE = re.compile(r"^(?:-- )?([\w-]+)\s+(\d+)\s+#\s*([\d.]+)?%?", re.MULTILINE)


@pytest.mark.parametrize("run", RUNS)
def test_amd_runs_are_scored_as_their_tool_says(run: str, shared_data: Path) -> None:
    """wspy prints retiring and memory-bound slots in percent of all slots, with one decimal.

    Its slots are those of the passes in which operations were counted, so they stand there and not the
    cycles, which it counted all the time. The model is not stated; slots need no width.
    """
    text = (shared_data / "perf-counters" / "amd-topdown" / run / "ipc.topdown.txt").read_text()
    said = {name: (float(count), share) for name, count, share in _LINE.findall(text)}
    backend, memory = said["backend"][0], said["memory"][0]
    counters = {
        "slots": said["slots"][0],
        "retiring": said["retiring"][0],
        "backend": backend,
        "ex_no_retire.load_not_complete": memory,
        "ex_no_retire.not_complete": backend,
    }
    row = score(counters, ZEN4)
    assert 100 - row["score_cpu"] == pytest.approx(float(said["retiring"][1]), abs=0.06)
    assert row["score_mem"] == pytest.approx(float(said["memory"][1]), abs=0.06)
    assert row["score_cpu_reason"] is None


def test_the_intel_run_retires_what_perf_says(shared_data: Path) -> None:
    """perf: 0.49 of four slots a cycle retire, SMT left out; the counters ran a third of the time each."""
    text = (shared_data / "perf-counters" / "intel-root-rdf" / "perf_stat.txt").read_text()
    counters = {
        name: float(re.sub(r"\D", "", count))
        for count, name in re.findall(
            r"^\s*([\d\s\u00a0\u202f]+?)\s+([a-z_]+\.[a-z_]+)\b", text, re.MULTILINE
        )
    }
    assert counters["uops_retired.retire_slots"] == 373_401_307_787
    row = score(counters, SKX, smt=False)
    assert 1 - row["score_cpu"] / 100 == pytest.approx(0.49, abs=0.005)
    assert row["score_cpu"] == pytest.approx(100 - 100 * 373_401_307_787 / (4 * 191_017_221_261), rel=1e-12)
    assert row["score_mem_reason"] == "missing event: cycle_activity.stalls_mem_any"
    # with SMT the cycles of one thread do not tell those of its core
    assert score(counters, SKX, smt=True)["score_cpu_reason"] == "missing event: cpu_clk_unhalted.thread_any"


def test_counters_of_several_passes_give_nearly_the_same() -> None:
    """Multiplexed counts are estimates: two of the same cycles differ by 0.1 %, the score by less."""
    retired = 373_401_307_787.0
    first, second = (
        score({"uops_retired.retire_slots": retired, "cycles": cycles}, SKX, smt=False)["score_cpu"]
        for cycles in (191_218_334_772.0, 191_049_315_819.0)
    )
    assert first == pytest.approx(second, abs=0.1)
