"""A queue with two speeds, a start-up time of its own, contradicting tasks: what a confirmation survives."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.grids import Grid
from benchmarks.honesty import run_grid
from benchmarks.two_speeds import count
from esjobs.core.words import Verdict
from esjobs.speed.judging.checks import SEPARATOR, checks_of, refuted_by
from esjobs.speed.judging.stability import Change, unstable_under
from esjobs.speed.judging.verdicts import Estimate, Evidence
from tests.speed.test_verdicts import GOOD

# k is 1.5 at a deviation of +50 %
FAST = replace(GOOD, k=1.5, deviation=0.5, deviation_raw=0.5, n_buckets=12, n_rejected=0)


def under(evidence: Evidence, *changes: Change, verdict: Verdict = "deviates") -> str | None:
    return unstable_under(evidence, verdict, changes, 0.2)


def change(kind: str, low: float, high: float) -> Change:
    return Change(kind, low, f"{kind} low", high, f"{kind} high", None)


@pytest.mark.parametrize(
    ("n_rejected", "n_buckets", "confirmed"),
    [(1, 4, True), (2, 9, True), (2, 8, False), (3, 12, False), (3, 13, True)],
)
def test_a_fifth_of_the_buckets_and_two_at_least_are_two_speeds(
    n_rejected: int, n_buckets: int, confirmed: bool
) -> None:
    evidence = replace(FAST, n_rejected=n_rejected, n_buckets=n_buckets)
    assert (under(evidence) is None) is confirmed
    assert under(evidence, verdict="ok") is None


def test_with_strays_put_back_the_whole_limit_survives() -> None:
    assert under(FAST, change("strays put back", 1.25, 1.25)) is None
    assert under(FAST, change("strays put back", 1.15, 1.15)) is not None
    good = replace(GOOD, k=1.0, deviation=0.05)
    assert under(good, change("strays put back", 1.1, 1.1), verdict="ok") is None
    assert under(good, change("strays put back", 1.2, 1.2), verdict="ok") is not None


def test_of_half_of_the_tasks_the_sign_is_asked_and_of_an_own_start_up_time_half_the_limit() -> None:
    assert under(FAST, change("half of the tasks", 1.02, 1.9)) is None
    assert under(FAST, change("half of the tasks", 0.98, 1.9)) is not None
    assert under(FAST, change("own start-up time", 1.12, 1.12)) is None
    assert under(FAST, change("own start-up time", 1.08, 1.08)) is not None
    slow = replace(FAST, k=0.6, deviation=-0.4, deviation_raw=-0.4)
    assert under(slow, change("own start-up time", 0.88, 0.88)) is None
    assert under(slow, change("own start-up time", 0.95, 0.95)) is not None


def test_of_halves_that_differ_half_the_limit_is_asked() -> None:
    assert under(FAST, change("half of the time", 1.02, 1.9)) is None
    assert under(FAST, change("halves that differ", 1.12, 1.9)) is None
    assert under(FAST, change("halves that differ", 1.02, 1.9)) is not None


def test_nothing_is_confirmed_against_an_imported_value_that_replaced_another() -> None:
    assert under(replace(FAST, declared=replace(FAST.declared, before=6.0))) is not None


def test_every_check_has_its_number_and_the_deviation_says_what_refutes_it() -> None:
    evidence = replace(
        FAST,
        n_units=12,
        n_cut=3,
        core_use=0.92,
        n_rejected=1,
        estimate=Estimate(15.0, 0.5, 14.2, 15.8, "HS06"),
    )
    found = list(checks_of(evidence, [change("half of the tasks", 1.4, 1.6)]))
    assert [(check.low, check.high) for check in found if check.low is not None] == [
        (0.5, 0.5),
        (pytest.approx(0.4), pytest.approx(0.6)),
    ]
    counted = " ".join(check.counted for check in found)
    assert all(number in counted for number in ("3 of 15", "0.92", "1 of 13"))
    assert not any(SEPARATOR in check.text for check in found)
    assert "14.2" in refuted_by(evidence)
    assert "15.8" in refuted_by(replace(evidence, deviation=-0.3))


@pytest.mark.slow
def test_queues_with_two_speeds_are_not_accused_and_true_confirmations_stay() -> None:
    """Two grids in which strays alone had honest queues confirmed before."""
    grid = Grid(misdeclared=0.15, tasks=20).but(
        two_speeds=12, speeds_part=(0.3, 0.7), speeds_ratio=(1.3, 2.5), speeds_by_nodes=True
    )
    false_before = false = kept = true = 0
    for seed in (51_000, 51_001, 51_002):
        truth, found = run_grid(grid, seed, {})
        two, _ = count(truth, found, truth.two_speeds)
        one, _ = count(truth, found, ~truth.two_speeds)
        false_before, false = false_before + two.false_before, false + two.false + one.false
        kept, true = kept + one.true, true + one.true_before
    assert false_before >= 2
    assert false == 0
    assert kept == true >= 9


def test_where_start_up_times_are_corrected_by_name_a_deviation_is_also_checked_without() -> None:
    """Start-up times of queues scatter by e^0.6."""
    _, found = run_grid(Grid(rho=1.0, lengths=3.0, rho_scatter=0.6, sites=20, tasks=40), 7, {})
    factors = found["factors"]
    chosen = (factors.level == "queue") & (factors.processing_type == "all")
    assert (np.abs(np.log(factors[chosen].cost_factor.dropna().to_numpy(float))) > 0.2).any()
    flags = found["flags"]
    checked = flags[(flags.level == "queue") & (flags.verdict == "deviates")].checks.dropna()
    assert len(checked)
    assert checked.str.contains("f = 1").any()
