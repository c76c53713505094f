"""The formulas of the scores by hand, by a second implementation, and by what must hold of any numbers."""

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esjobs.scores import formulas
from esjobs.scores.families import FAMILIES, WANTED, event_name, family_of
from esjobs.scores.reasons import Reasons
from esjobs.scores.scoring import score_counters
from tests.scores.per_job import scores_of_job

HSW, SKX, ICX = "Intel Xeon E5-2697 v3", "Intel Xeon Gold 6126", "Intel Xeon Platinum 8360Y"
SPR, ZEN4, ZEN3 = "Intel Xeon Platinum 8480+", "AMD EPYC 9654", "AMD EPYC 7763"

COUNTED = pa.map_(pa.string(), pa.float64())


def score(counters: dict[str, float] | None, model: str | None, smt: bool | None = None) -> dict[str, Any]:
    """The scores of one job and their reasons, and its variant."""
    return scores([(counters, model, smt)])[0]


def scores(jobs: list[tuple[dict[str, float] | None, str | None, bool | None]]) -> list[dict[str, Any]]:
    """The same of several jobs at once."""
    reasons = Reasons()
    counters = pa.array([None if given is None else list(given.items()) for given, _, _ in jobs], COUNTED)
    models = pa.array([model for _, model, _ in jobs], pa.string())
    made = score_counters(counters, models, pa.array([smt for _, _, smt in jobs], pa.bool_()), reasons)
    rows: list[dict[str, Any]] = [{"variant": name} for name in made.variant.to_pylist()]
    for name, scored in made.scores.items():
        why = reasons.column(scored.codes).to_pylist()
        for number, row in enumerate(rows):
            value = None if math.isnan(scored.value[number]) else float(scored.value[number])
            row[name] = value
            row[f"{name}_unclipped"] = None if value is None else float(scored.unclipped[number])
            row[f"{name}_reason"] = why[number]
    return rows


HASWELL = {
    "UOPS_RETIRED.RETIRE_SLOTS": 1.2e12,
    "CPU_CLK_UNHALTED.THREAD_ANY": 2.0e12,
    "CPU_CLK_UNHALTED.THREAD": 1.4e12,
    "CYCLE_ACTIVITY.STALLS_LDM_PENDING": 0.42e12,
    "RESOURCE_STALLS.SB": 0.14e12,
}


def test_the_paper_with_both_threads_of_a_core() -> None:
    """(1) is 100 - 100 x 1.2 / (2 x 2.0) = 70, (2) 100 x (0.42 + 0.14) / 1.4 = 40."""
    row = score(HASWELL, HSW, smt=True)
    assert row["score_cpu"] == pytest.approx(70.0, rel=1e-12)
    assert row["score_mem"] == pytest.approx(40.0, rel=1e-12)
    assert row["variant"] == "hsw"


def test_without_smt_the_width_is_four() -> None:
    """THREAD_ANY is then the cycles of the core: 100 - 100 x 1.2 / (4 x 2.0) = 85, not 70."""
    assert score(HASWELL, HSW, smt=False)["score_cpu"] == pytest.approx(85.0, rel=1e-12)
    thread = {name: value for name, value in HASWELL.items() if name != "CPU_CLK_UNHALTED.THREAD_ANY"}
    assert score(thread, HSW, smt=False)["score_cpu"] == pytest.approx(100 - 100 * 1.2 / 5.6, rel=1e-12)


def test_without_knowing_smt_there_is_no_score_of_the_pipeline() -> None:
    row = score(HASWELL, HSW)
    assert row["score_cpu"] is None
    assert row["score_cpu_reason"] == "smt unknown"
    assert row["score_mem"] == pytest.approx(40.0)


def test_later_cpus_need_no_word_on_smt() -> None:
    slots = {"topdown.slots": 6e12, "uops_retired.slots": 1.5e12, "topdown.memory_bound_slots": 1.8e12}
    row = score(slots, SPR)
    assert (row["score_cpu"], row["score_mem"], row["variant"]) == (75.0, pytest.approx(30.0), "spr")
    cycles = {"cpu_clk_unhalted.distributed": 1e12, "topdown-retiring": 2e12}
    assert score(cycles, ICX)["score_cpu"] == pytest.approx(100 * (1 - 2 / 5))
    zen = {"ex_ret_ops": 1.5e12, "ls_not_halted_cyc": 1e12}
    assert score(zen, ZEN4)["score_cpu"] == 75.0
    assert score(zen, "AMD EPYC 9755")["score_cpu"] == pytest.approx(100 * (1 - 1.5 / 8))


def test_an_event_may_be_spelled_as_any_tool_does() -> None:
    spelled = {
        "hsw_ep::UOPS_RETIRED:RETIRE_SLOTS:u=1:k=1": HASWELL["UOPS_RETIRED.RETIRE_SLOTS"],
        "CPU_CLK_UNHALTED_THREAD_ANY": HASWELL["CPU_CLK_UNHALTED.THREAD_ANY"],
        "cpu_clk_unhalted.thread:u": HASWELL["CPU_CLK_UNHALTED.THREAD"],
        "cycle_activity_stalls_ldm_pending": HASWELL["CYCLE_ACTIVITY.STALLS_LDM_PENDING"],
        "cpu/resource-stalls.sb/": HASWELL["RESOURCE_STALLS.SB"],
    }
    assert score(spelled, HSW, smt=True) == score(HASWELL, HSW, smt=True)


def test_stores_by_another_event_are_a_variant_of_their_own() -> None:
    counts = {**HASWELL, "CYCLE_ACTIVITY.STALLS_MEM_ANY": 0.42e12}
    assert score(counts, SKX, smt=True)["variant"] == "skx"
    counts["EXE_ACTIVITY.BOUND_ON_STORES"] = counts.pop("RESOURCE_STALLS.SB")
    row = score(counts, SKX, smt=True)
    assert (row["variant"], row["score_mem"]) == ("skx-bound_on_stores", pytest.approx(40.0))


@pytest.mark.parametrize(
    ("counters", "model", "cpu", "mem"),
    [
        (None, HSW, "no counters", "no counters"),
        ({}, HSW, "no counters", "no counters"),
        (HASWELL, None, "the record has no CPU model", "the record has no CPU model"),
        (HASWELL, "VIA Nano 3000", "unknown CPU: VIA Nano 3000", "unknown CPU: VIA Nano 3000"),
        (HASWELL, ZEN3, "no slot events on AMD Zen 1 to 3", "no slot events on AMD Zen 1 to 3"),
        (
            {"CPU_CLK_UNHALTED.THREAD_ANY": 1.0, "cycles": 1.0},
            HSW,
            "missing event: uops_retired.retire_slots",
            "missing event: cycle_activity.stalls_ldm_pending",
        ),
        (
            HASWELL | {"UOPS_RETIRED.RETIRE_SLOTS": -1.0, "RESOURCE_STALLS.SB": math.inf},
            HSW,
            "impossible count: uops_retired.retire_slots",
            "impossible count: resource_stalls.sb",
        ),
        (
            HASWELL | {"CPU_CLK_UNHALTED.THREAD_ANY": 0.0, "CPU_CLK_UNHALTED.THREAD": 0.0},
            HSW,
            "no cycles counted",
            "no cycles counted",
        ),
        (
            HASWELL | {"UOPS_RETIRED.RETIRE_SLOTS": math.nan},
            HSW,
            "missing event: uops_retired.retire_slots",
            None,
        ),
    ],
)
def test_what_cannot_be_assessed_says_why(
    counters: dict[str, float] | None, model: str | None, cpu: str, mem: str | None
) -> None:
    row = score(counters, model, smt=True)
    assert (row["score_cpu"], row["score_cpu_reason"]) == (None, cpu)
    assert (row["score_mem"] is None, row["score_mem_reason"]) == (mem is not None, mem)


def test_a_score_outside_is_clipped_kept_and_flagged() -> None:
    overlapping = HASWELL | {"CYCLE_ACTIVITY.STALLS_LDM_PENDING": 9e12}
    row = score(overlapping, HSW, smt=True)
    assert row["score_mem"] == 100.0
    assert row["score_mem_unclipped"] == pytest.approx(110.0)
    assert row["score_mem_reason"] == "outside 0 to 100, clipped: inconsistent counters"
    nearly = HASWELL | {"UOPS_RETIRED.RETIRE_SLOTS": 4.02e12}
    row = score(nearly, HSW, smt=True)
    assert (row["score_cpu"], row["score_cpu_reason"]) == (0.0, None)
    assert row["score_cpu_unclipped"] == pytest.approx(-0.5)


def test_warps_are_no_shares() -> None:
    warps = {"gpu.eligible_warps": 8.0, "gpu.theoretical_warps": 64.0}
    assert score(warps, None)["score_gpu"] == 87.5
    nsight = {
        "smsp__warps_eligible.avg.per_cycle_active": 2.0,
        "sm__maximum_warps_avg_per_active_cycle": 64.0,
        "smsp__warps_active.avg.per_cycle_active": 8.0,
        "smsp__warps_issue_stalled_long_scoreboard.avg.per_cycle_active": 3.0,
        "smsp__warps_issue_stalled_lg_throttle.avg.per_cycle_active": 1.0,
    }
    row = score(nsight, None)
    assert (row["score_gpu"], row["score_gpumem"]) == (87.5, 50.0)
    trap = score({"gpu.eligible_warps": 8.0, "theoretical_occupancy": 100.0}, None)
    assert trap["score_gpu"] is None
    assert trap["score_gpu_reason"] == "occupancy is a share, not a number of warps: theoretical warps"
    assert score(HASWELL, HSW, smt=True)["score_gpu_reason"] == "no counters and no activity of GPUs"


@pytest.mark.parametrize(
    ("counters", "value", "reason"),
    [
        ({"achieved_occupancy": -1.0, "eligible_warps_per_cycle": 0.0}, 100.0, None),
        ({"eligible_warps_per_cycle": -1.0}, None, "impossible count: eligible_warps_per_cycle"),
        (
            {"eligible_warps_per_cycle": 0.0, "gpu_theoretical_warps": -1.0},
            None,
            "impossible count: gpu.theoretical_warps",
        ),
        (
            {"eligible_warps_per_cycle": 0.0, "gpu_theoretical_warps": math.nan, "achieved_occupancy": -1.0},
            None,
            "occupancy is a share, not a number of warps: theoretical warps",
        ),
    ],
)
def test_an_impossible_counter_is_unknown_and_spoils_only_what_it_enters(
    counters: dict[str, float], value: float | None, reason: str | None
) -> None:
    """No score uses an occupancy, whatever its value."""
    row = score({"gpu_theoretical_warps": 1.0} | counters, None)
    assert (row["score_gpu"], row["score_gpu_reason"]) == (value, reason)


def test_issues_add_up_in_two_ways() -> None:
    weights, shares = np.array([1.0, 0.6, 0.3]), np.array([0.5, 0.5, 1.0])
    of_job = np.array([0, 0, 2])
    product = formulas.score_issues(weights, shares, of_job, 3, "product")
    assert product.tolist() == pytest.approx([100 * (1 - 0.5 * 0.7), 0.0, 30.0])
    total = formulas.score_issues(weights, shares, of_job, 3, "sum")
    assert total.tolist() == pytest.approx([80.0, 0.0, 30.0])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12), st.randoms())
def test_issues_are_bounded_grow_and_have_no_order(
    issues: list[tuple[float, float]], chance: random.Random
) -> None:
    def made(listed: list[tuple[float, float]], mode: str) -> float:
        weights, shares = np.array(listed, np.float64).reshape(-1, 2).T
        return float(formulas.score_issues(weights, shares, np.zeros(len(listed), np.int64), 1, mode)[0])

    shuffled = chance.sample(issues, len(issues))
    for mode in ("product", "sum"):
        value = made(issues, mode)
        assert 0 <= value <= 100
        assert made(shuffled, mode) == pytest.approx(value, abs=1e-9)
        assert made([*issues, (0.5, 0.5)], mode) >= value - 1e-9
    assert made(issues, "product") <= made(issues, "sum") + 1e-9


_COUNTS = (
    st.none() | st.floats(0, 1e18, allow_nan=False) | st.sampled_from([0.0, -1.0, math.nan, math.inf, 1e12])
)
_JOBS = st.lists(
    st.tuples(
        st.none() | st.dictionaries(st.sampled_from(sorted(WANTED)), _COUNTS.filter(lambda v: v is not None)),
        st.sampled_from([HSW, SKX, ICX, SPR, ZEN4, ZEN3, "AMD EPYC 9755", "VIA Nano 3000", None]),
        st.sampled_from([True, False, None]),
    ),
    max_size=20,
)


@given(_JOBS)
@example(
    [
        (
            {"gpu_theoretical_warps": 1.0, "eligible_warps_per_cycle": 0.0, "achieved_occupancy": -1.0},
            None,
            None,
        )
    ]
)
def test_columns_say_what_a_loop_over_jobs_says(jobs: list[tuple[Any, str | None, bool | None]]) -> None:
    for row, (counters, model, smt) in zip(scores(jobs), jobs, strict=True):
        expected = scores_of_job(counters, model, smt)
        for name, value in expected.items():
            assert row[name] == (pytest.approx(value, rel=1e-9, abs=1e-9) if value is not None else None), (
                name
            )
            assert (row[name] is not None) or row[f"{name}_reason"], name
            assert row[name] is None or 0 <= row[name] <= 100


@given(st.floats(1, 1e15), st.floats(0, 1), st.floats(0, 1), st.integers(1, 64), st.randoms())
def test_splitting_a_job_over_cores_changes_nothing(
    cycles: float, retiring: float, stalled: float, cores: int, chance: random.Random
) -> None:
    """Counts are summed over cores before they are divided: a mean of the scores of cores would differ."""
    whole = {
        "uops_retired.retire_slots": 4 * cycles * retiring,
        "cpu_clk_unhalted.thread": cycles,
        "cycle_activity.stalls_ldm_pending": cycles * stalled,
        "resource_stalls.sb": 0.0,
    }
    cuts = {name: sorted(chance.random() for _ in range(cores - 1)) for name in whole}
    parts = [
        {
            name: value * (high - low)
            for name, value in whole.items()
            for low, high in [_part(cuts[name], place)]
        }
        for place in range(cores)
    ]
    summed = {name: math.fsum(part[name] for part in parts) for name in whole}
    once, again = score(whole, HSW, smt=False), score(summed, HSW, smt=False)
    for name in ("score_cpu", "score_mem"):
        assert again[name] == pytest.approx(once[name], abs=1e-6)


def _part(cuts: list[float], place: int) -> tuple[float, float]:
    edges = [0.0, *cuts, 1.0]
    return edges[place], edges[place + 1]


@given(st.floats(1e3, 1e15), st.floats(0, 4), st.floats(0, 4))
def test_more_work_in_the_same_cycles_is_never_worse(cycles: float, some: float, more: float) -> None:
    low, high = sorted((some, more))
    scored = scores(
        [({"uops_retired.retire_slots": part * cycles, "cycles": cycles}, HSW, False) for part in (low, high)]
    )
    assert scored[0]["score_cpu"] >= scored[1]["score_cpu"]


def test_every_family_names_its_source_and_what_its_scores_need() -> None:
    for family in FAMILIES:
        assert family.source
        if family.undefined:
            continue
        assert family.width >= 4
        assert family.events["retired"]
        by_cycles = {"cycles", "load_stalls", "store_stalls"} <= set(family.events)
        assert by_cycles or {"memory_slots"} <= set(family.events) or "backend_slots" in family.events
        for names in family.events.values():
            assert all(name == event_name(name) for name in names)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("Intel Xeon E5-2680 v4", "hsw"),
        ("Intel Xeon E7-8890 v3", "hsw"),
        ("Intel Xeon E5-2650 v2", None),
        ("Intel Xeon Silver 4114", "skx"),
        ("Intel Xeon Gold 6242R", "skx"),
        ("Intel Xeon Platinum 8380H", "skx"),
        ("Intel Xeon Platinum 8380", "icx"),
        ("Intel Xeon Gold 6330N", "icx"),
        ("Intel Xeon Platinum 8592+", "spr"),
        ("Intel Xeon Max 9480", "spr"),
        ("AMD EPYC 7452", "zen123"),
        ("AMD EPYC 7H12", "zen123"),
        ("AMD EPYC 9684X", "zen4"),
        ("AMD EPYC 9575F", "zen5"),
        ("AMD Opteron 6274", None),
        ("Intel Core i7-4790", "hsw"),
        ("Intel Core i7-4930K", None),
        ("Intel Core i7-6950X", "hsw"),
        ("Intel Core i7-6700", "skx"),
        ("Intel Core i7-8650U", "skx"),
        ("Intel Core i9-10900K", "skx"),
        ("Intel Core i7-1065G7", "icx"),
        ("Intel Core i7-11700K", "icx"),
        ("Intel Core i7-1165G7", "icx"),
        ("Intel Core i7-12700K", None),
        ("Intel Xeon W-2145", "skx"),
        ("Intel Xeon W-3375", "icx"),
        ("Intel Xeon E3-1245 v5", "skx"),
        ("AMD Ryzen 7 5800X", "zen123"),
        ("AMD Ryzen 9 7950X3D", "zen4"),
        ("AMD Ryzen 7 7735HS", None),
        ("AMD Ryzen 9 9950X", "zen5"),
    ],
)
def test_models_belong_to_families(model: str, family: str | None) -> None:
    known = family_of(model)
    assert (None if known is None else known.name) == family


DESKTOPS = ("Intel Core i7-6800K", "Intel Core i7-1065G7", "Intel Core i9-10900", "Intel Xeon W-3375")


def test_no_model_belongs_to_two_families() -> None:
    for model in (HSW, SKX, ICX, SPR, ZEN4, ZEN3, "Intel Xeon Platinum 8380H", "AMD EPYC 4564P", *DESKTOPS):
        assert sum(bool(family.models.fullmatch(model)) for family in FAMILIES) == 1


def test_the_page_about_scores_names_every_family_and_its_events() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
    spelled = {event_name(word) for word in re.findall(r"[a-z][a-z0-9_.]+", page)}
    for family in FAMILIES:
        assert family.title in page
        if family.undefined:
            assert family.undefined in page
            continue
        assert f"`{family.name}` | {family.width:.0f} |" in page
        for what in (
            "retired",
            "load_stalls",
            "store_stalls",
            "memory_slots",
            "backend_slots",
            "not_complete",
        ):
            assert {*family.events.get(what, ())[:1]} <= spelled, (family.name, what)


def test_a_part_of_a_batch_is_scored_as_in_the_batch() -> None:
    """Arrow's slices share the pairs of the whole batch."""
    jobs: list[list[tuple[str, float]] | None] = [
        [("uops_retired.retire_slots", 1e9 * number), ("cycles", 1e9 * (number + 1))] if number % 3 else None
        for number in range(12)
    ]
    counters = pa.array(jobs, COUNTED)
    models, smt = pa.array([HSW] * 12), pa.array([False] * 12)
    whole = score_counters(counters, models, smt, Reasons()).scores["score_cpu"].value
    part = score_counters(counters[4:9], models[4:9], smt[4:9], Reasons()).scores["score_cpu"].value
    assert np.array_equal(part, whole[4:9], equal_nan=True)
    assert np.isfinite(part).tolist() == [True, True, False, True, True]


def test_thousands_of_other_events_do_not_matter() -> None:
    many = {f"event {number}": float(number) for number in range(5000)}
    assert score({**many, **HASWELL}, HSW, smt=True) == score(HASWELL, HSW, smt=True)
