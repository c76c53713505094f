"""States of an incident over nights: each rule, and random courses."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.schema.today import CHANGES, EVERYWHERE, STATES
from esjobs.today.findings import Finding, Range
from esjobs.today.sentences import sentence
from esjobs.today.settings import TodaySettings
from esjobs.today.states import Incident, Silence, after

SETTINGS = TodaySettings()
FIRST = date(2026, 6, 17)
RANGE = Range(0.47, 0.86, 0.84, 0.88)
FAILED = Range(0.17, 0.004, 0.001, 0.02)
BAD, MILD, QUIET = (True, True, 8.0), (True, False, 5.0), (False, False, 0.2)


def found(night: tuple[bool, bool, float], *, partial: bool = False, began: int = 0) -> Finding:
    surprising, costly, z = night
    return Finding(
        "EBONY",
        "efficiency",
        surprising,
        costly,
        z,
        z / 4,
        cost=36e6 if costly else 0.0,
        week=36e7,
        partial=partial,
        began=began,
        efficiency=RANGE,
        failed=FAILED,
        share=1.0 if surprising else None,
    )


def course(nights: Iterable[Finding | None], silence: Silence | None = None) -> list[Incident | None]:
    one: Incident | None = None
    states = []
    for number, finding in enumerate(nights):
        one = after(one, finding, FIRST + timedelta(days=number), SETTINGS, silence)
        states.append(one)
    return states


def states(*nights: tuple[bool, bool, float] | None) -> list[str | None]:
    findings = [None if night is None else found(night) for night in nights]
    return [None if one is None else one.state for one in course(findings)]


def test_an_incident_opens_lasts_and_is_over_after_two_quiet_nights() -> None:
    assert states(QUIET, BAD, BAD, QUIET, QUIET) == [None, "open", "open", "open", "closed"]
    last = course([found(each) for each in (BAD, BAD, QUIET, QUIET)])[-1]
    assert last is not None
    assert (last.since, last.until, last.nights, last.total_core_h) == (
        FIRST,
        FIRST + timedelta(days=1),
        2,
        20_000.0,
    )


def test_failures_of_one_error_end_with_it_whatever_others_cost() -> None:
    error = "failed, pilot:1137"
    bad = replace(found(BAD), metric="failed", literals=(("category", error),))
    usual = replace(found(QUIET), z=1.5, cost=36e6, followed=(0.0, 0.0))
    assert [one and one.state for one in course([bad, usual, usual])] == ["open", "open", "closed"]
    assert [one and one.total_core_h for one in course([bad, usual])] == [10_000.0, 10_000.0]
    worse = replace(usual, followed=(3.0, 7.2e6))
    assert [one and one.total_core_h for one in course([bad, worse])] == [10_000.0, 12_000.0]


def test_what_costs_little_is_noticed_and_withdrawn() -> None:
    assert states(MILD, QUIET, QUIET, QUIET) == ["noticed", "noticed", "noticed", "withdrawn"]
    assert states(MILD, BAD) == ["noticed", "open"]


def test_a_night_without_jobs_or_with_few_ends_nothing() -> None:
    assert states(BAD, None, None, None) == ["open"] * 4
    few = [found(BAD), *[found(QUIET, partial=True)] * 3]
    assert [one and one.state for one in course(few)] == ["open"] * 4


def maintained(*nights: tuple[tuple[bool, bool, float] | None, bool]) -> list[tuple[str, str | None] | None]:
    one: Incident | None = None
    found_of = [None if night is None else found(night) for night, _ in nights]
    courses: list[tuple[str, str | None] | None] = []
    for number, (finding, (_, declared)) in enumerate(zip(found_of, nights, strict=True)):
        one = after(one, finding, FIRST + timedelta(days=number), SETTINGS, declared=declared)
        courses.append(None if one is None else (one.state, one.change))
    return courses


def test_an_incident_in_a_declared_outage_is_listed_and_not_reported() -> None:
    listed = ("maintenance", None)
    assert maintained((BAD, True), (BAD, True), (None, True), (QUIET, False), (QUIET, False)) == [
        *(("maintenance", "maintenance"), listed, listed, listed),
        ("closed", None),
    ]
    assert maintained((MILD, True), (QUIET, True)) == [("noticed", "noticed"), ("noticed", None)]
    assert maintained((QUIET, True)) == [None]


def test_what_goes_on_after_a_declared_outage_is_reported() -> None:
    assert maintained((BAD, True), (BAD, False), (BAD, False)) == [
        ("maintenance", "maintenance"),
        ("open", "opened"),
        ("open", "lasting"),
    ]
    assert maintained((BAD, False), (BAD, True), (BAD, False)) == [
        ("open", "opened"),
        ("maintenance", "maintenance"),
        ("open", "opened"),
    ]


def test_what_returns_within_a_week_is_the_same_incident() -> None:
    nights = course([found(each) for each in (BAD, QUIET, QUIET, QUIET, BAD)])
    first, last = nights[0], nights[-1]
    assert first is not None
    assert last is not None
    assert (last.incident, last.change, last.since) == (first.incident, "reopened", FIRST)
    later = course([found(each) for each in (BAD, *[QUIET] * 10, BAD)])
    assert later[-1] is not None
    assert later[-1].incident != first.incident


def test_an_acknowledged_incident_is_silent_until_its_night() -> None:
    silence = Silence("ann", FIRST + timedelta(days=2))
    nights = course([found(BAD)] * 4, silence)
    assert [one and one.state for one in nights] == ["acknowledged", "acknowledged", "open", "open"]


def test_an_onset_before_the_night_counts() -> None:
    (one,) = course([found(BAD, began=2)])
    assert one is not None
    assert one.since == FIRST - timedelta(days=2)


@given(st.lists(st.sampled_from([BAD, MILD, QUIET, None]), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_every_course_keeps_its_promises(nights: list[tuple[bool, bool, float] | None]) -> None:
    before: Incident | None = None
    for one in course(None if night is None else found(night) for night in nights):
        if one is None:
            assert before is None or before.until is not None
            before = None
            continue
        assert one.state in STATES
        assert one.change is None or one.change in CHANGES
        assert (one.until is not None) == (one.state in ("closed", "withdrawn"))
        assert one.since <= one.night
        if one.change == "over":
            assert before is not None
            assert before.state in ("open", "acknowledged")
        before = one


def test_sentences() -> None:
    opened, closed = (course([found(each) for each in nights])[-1] for nights in ([BAD], [BAD, QUIET, QUIET]))
    assert opened is not None
    assert closed is not None
    assert opened.sentence == (
        "EBONY: efficiency 47 % instead of 86 % (expected 84 to 88 %), 17 % failed instead of 0.4 % since "
        "17 Jun; all queues and kinds of work; 10,000 core-hours a day, 10,000 core-hours so far"
    )
    assert closed.sentence == (
        "EBONY: efficiency 47 % instead of 86 % (expected 84 to 88 %), 17 % failed instead of 0.4 %, "
        "17 Jun; 10,000 core-hours"
    )
    wide = Incident(
        "id",
        FIRST,
        EVERYWHERE,
        "open",
        "opened",
        FIRST,
        failed=0.38,
        failed_expected=0.03,
        failed_high=0.06,
        metric="failed",
        cost_core_h=9_000.0,
        total_core_h=18_000.0,
        cause="task 4711 (pile)",
        n_sites=21,
    )
    assert sentence(wide) == (
        "Everywhere: 38 % failed instead of 3.0 % since 17 Jun; task 4711 (pile), 21 sites; sites are not to "
        "blame; 9,000 core-hours a day, 18,000 core-hours so far"
    )
