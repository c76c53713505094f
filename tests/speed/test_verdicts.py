"""The cascade of verdicts, proposals and the wording that may be sent."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.words import VERDICTS
from esjobs.records.declared.origin import Declared
from esjobs.speed.judging.proposals import Proposal, propose, share_among_siblings
from esjobs.speed.judging.sentences import VerdictText, describe_verdict
from esjobs.speed.judging.verdicts import Estimate, Evidence, compare, decide, is_confirmed
from tests.messages import compare_text

DECLARED = Declared("Q", 10.5, "HS06", "own", "Q", site_guessed=True)
GOOD = Evidence(
    name="Q",
    status="ok",
    reason="",
    k=1.5,
    n_jobs=500,
    n_units=5,
    n_tasks=5,
    in_main_component=True,
    declared=DECLARED,
    deviation=0.5,
    deviation_err=0.05,
    p_off=0.972,
    median_k=1.0,
    n_line_sites=20,
    line_reason=None,
    estimate=Estimate(15.75, 0.525, 14.9, 16.6, "HS06"),
)


def sent(evidence: Evidence, proposal: Proposal, level: str = "queue") -> VerdictText:
    """What is said of a confirmed deviation."""
    return describe_verdict(evidence, "deviates", "", proposal, level=level, stable=True)


def changed(**values: object) -> Evidence:
    return dataclasses.replace(GOOD, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (changed(mixed=True), "mixed"),
        (changed(k=None, status="too few jobs"), "too few"),
        (changed(k=None, status="no common task"), "not comparable"),
        (changed(in_main_component=False), "not comparable"),
        (changed(in_main_component=False, via_models=True), "via CPU models"),
        (changed(in_main_component=False, via_models=True, mixed=True), "mixed"),
        (changed(n_jobs=49), "too few"),
        (changed(sole_link="few jobs"), "not comparable"),
        (changed(sole_link="few jobs", n_jobs=49), "too few"),
        (changed(sole_link="OTHER"), "deviates"),
        (changed(k=3.1), "implausible"),
        (changed(k=0.32), "implausible"),
        (changed(declared=dataclasses.replace(DECLARED, origin="none", corepower=None)), "undeclared"),
        (changed(declared=dataclasses.replace(DECLARED, origin="default")), "undeclared"),
        (changed(line_reason="9 sites"), "too few"),
        (GOOD, "deviates"),
    ],
)
def test_the_first_rule_that_applies_decides(evidence: Evidence, verdict: str) -> None:
    found, why = decide(evidence, "deviates", 50)
    assert found == verdict
    assert bool(why) == (verdict != "deviates") or evidence.mixed or evidence.k is None


@given(st.floats(0, 1))
def test_nobody_is_cleared_by_the_honesty_of_others(p_off: float) -> None:
    for inside in (True, False):
        assert (compare(p_off, inside=inside) == "deviates") == (p_off > 0.95)
        assert (compare(p_off, inside=inside) == "ok") == (inside and p_off < 1 - 0.95)


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (changed(n_tasks=1), "one task"),
        (changed(n_jobs=49), "too few jobs"),
        (changed(declared=dataclasses.replace(DECLARED, origin="inherited")), "inherited"),
        (changed(declared=dataclasses.replace(DECLARED, origin="changed")), "changed"),
    ],
)
def test_nothing_is_proposed_without_full_evidence(evidence: Evidence, why: str) -> None:
    proposal = propose(evidence, "deviates", 50, confirmed=True)
    assert proposal.corepower is None
    assert proposal.corepower_err is None
    assert why in proposal.reason
    assert proposal.reason in sent(evidence, proposal).sentence


@pytest.mark.parametrize("confirmed", [False, None])
def test_nothing_is_proposed_for_a_candidate(confirmed: bool | None) -> None:
    proposal = propose(GOOD, "deviates", 50, confirmed=confirmed)
    assert proposal == Proposal(None, None, "the deviation is not confirmed")


def test_only_what_is_significant_and_stable_is_confirmed() -> None:
    known = (True, False, None)
    cases = [(verdict, one, other) for verdict in VERDICTS for one in known for other in known]
    assert [case for case in cases if is_confirmed(*case)] == [("deviates", True, True)]
    judged = {verdict for verdict, one, other in cases if is_confirmed(verdict, one, other) is not None}
    assert judged == {"deviates", "ok", "undecided"}


def test_a_proposal_and_its_wording() -> None:
    proposal = propose(GOOD, "deviates", 50, confirmed=True)
    assert proposal == Proposal(15.75, 0.525, low=14.9, high=16.6)
    compare_text(sent(GOOD, proposal).sentence)
    of_model = describe_verdict(GOOD, "deviates", "", proposal, level="cpu_model", stable=True)
    compare_text(of_model.sentence)


def test_what_is_asked_can_be_had_apart_from_what_was_found() -> None:
    noted = Proposal(15.75, 0.8, "", "Its queues agree.")
    words = sent(changed(sole_link="S_B"), noted)
    compare_text(words.advice)
    compare_text(words.finding)
    assert words.advice not in words.finding
    before, after = words.sentence.split(words.advice)
    assert f"{before.strip()} {after.strip()}" == words.finding


@pytest.mark.parametrize(
    ("doubt", "stable", "unstable_under", "tasks", "why"),
    [
        ("two groups", True, None, 5, "two groups disagree, and either may declare wrong"),
        ("", None, None, 5, "stability is tested for the default method only"),
        ("", False, "evgen only: +3 %", 5, "evgen only: +3 %"),
        (
            "two groups",
            False,
            "without task 7: no factor",
            1,
            "without task 7: no factor",
        ),
    ],
)
def test_a_candidate_says_that_it_is_not_to_be_sent_and_why(
    doubt: str, stable: bool | None, unstable_under: str | None, tasks: int, why: str
) -> None:
    evidence = changed(n_tasks=tasks)
    proposal = propose(evidence, "deviates", 50, confirmed=False)
    tested: dict[str, Any] = {"doubt": doubt, "stable": stable, "unstable_under": unstable_under}
    words = describe_verdict(evidence, "deviates", "", proposal, **tested)
    said = words.sentence
    assert (words.advice, words.finding) == ("", said)
    assert why in said
    assert "run the benchmark" not in said
    compare_text(said)


@given(st.sampled_from(["too few", "not comparable", "undeclared"]), st.text())
def test_every_other_verdict_says_why(verdict: str, why: str) -> None:
    proposal = propose(GOOD, "ok", 50, confirmed=None)
    text = describe_verdict(GOOD, verdict, why, proposal).sentence  # type: ignore[arg-type]
    assert why in text


def of_queue(name: str, site: str = "S") -> Evidence:
    return changed(name=name, declared=dataclasses.replace(DECLARED, name=name, site=site))


def test_queues_of_a_site_that_agree_get_one_proposal() -> None:
    names = [of_queue("S_A"), of_queue("S_B"), of_queue("T", "T"), of_queue("S_C")]
    found = share_among_siblings(
        names,
        [
            Proposal(8.0, 0.8, low=6.8, high=9.4),
            Proposal(9.0, 0.4, low=8.3, high=9.9),
            Proposal(20.0, 1.0),
            Proposal(None, None, "one task"),
        ],
    )
    assert (
        found[0].corepower
        == found[1].corepower
        == pytest.approx((8 / 0.64 + 9 / 0.16) / (1 / 0.64 + 1 / 0.16))
    )
    assert found[0].corepower_err == pytest.approx(0.4 / 9.0 * 8.8)
    assert [found[0].low, found[0].high] == pytest.approx([8.8 / 1.1, 8.8 * 1.1])
    said = sent(names[0], found[0]).sentence
    assert "8.8 (8.0 to 9.7)" in said
    compare_text(said)
    assert found[2:] == [Proposal(20.0, 1.0), Proposal(None, None, "one task")]


def test_queues_of_a_site_that_differ_keep_their_own_proposals() -> None:
    names = [of_queue("S_A"), of_queue("S_B")]
    found = share_among_siblings(names, [Proposal(8.0, 0.5), Proposal(12.0, 0.6)])
    assert [each.corepower for each in found] == [8.0, 12.0]
    assert all("compare their CPU models" in sent(GOOD, each).finding for each in found)
