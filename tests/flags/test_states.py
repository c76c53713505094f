"""What moves a flag, rule by rule, without a store."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from esjobs.flags.states import Evidence, Flag, NewDeclaration, Note, Sighting, after
from tests.flags.verdict_nights import SETTINGS, folded, night

AGAIN, CALM = "confirmed apart", "within the limit later"


def seen(
    number: int,
    deviation: float | None = -0.3,
    *,
    again: int | None = None,
    calm: int | None = None,
    **more: Any,
) -> Sighting:
    """What a night says; ``again``, ``calm``: first day of jobs that confirm it, or are within the limit."""
    size = None if deviation is None else abs(deviation)
    verdict = (
        "too few" if size is None else "deviates" if size > 0.25 else "ok" if size < 0.15 else "undecided"
    )
    end = datetime.combine(night(number + 1), time(0), UTC)
    return Sighting(
        verdict=more.pop("verdict", verdict),
        confirmed=more.pop("confirmed", None if deviation is None else verdict == "deviates"),
        sentence="It ran.",
        run=f"run{number}",
        window_start=end - timedelta(days=9),
        window_end=end,
        window_days=9,
        deviation=deviation,
        deviation_low=None if deviation is None else deviation - 0.03,
        deviation_high=None if deviation is None else deviation + 0.03,
        corepower=more.pop("corepower", 10.4),
        again=() if again is None else (Evidence(night(again), AGAIN),),
        calm=() if calm is None else (Evidence(night(calm), CALM),),
        **more,
    )


def note(number: int, until: int | None = None, kind: str = "ack", order: int = 0) -> Note:
    at = datetime.combine(night(number + 1), time(9, 0, order), UTC)
    ends = None if until is None else night(until)
    return Note(f"n{number}.{order}", "queue", None, "A", kind, "ann", ends, "known", at, night(number))


class Course:
    """One flag through nights, with all that happened."""

    def __init__(self) -> None:
        self.flag = Flag("queue", "all", "A")
        self.events: list[dict[str, Any]] = []

    def go(self, number: int, sighting: Sighting | None, notes: Sequence[Note] = ()) -> list[str]:
        """A night; the kinds of what happened."""
        self.flag, events = after(self.flag, sighting, notes, night(number), SETTINGS)
        self.events += events
        return [event["kind"] for event in events]


@pytest.fixture
def course() -> Course:
    return Course()


@pytest.fixture
def opened(course: Course) -> Course:
    """A flag that opened on night 10."""
    assert course.go(10, seen(10, again=1)) == ["opened"]
    return course


def test_who_never_deviates_is_never_flagged(course: Course) -> None:
    for number, deviation in enumerate((0.0, 0.2, None, -0.1)):
        assert course.go(number, seen(number, deviation)) == []
    assert course.go(5, None) == []
    assert course.flag == Flag("queue", "all", "A")


def test_nights_of_one_window_are_one_test(course: Course) -> None:
    assert course.go(0, seen(0)) == ["noticed"]
    assert [course.go(number, seen(number)) for number in (1, 2, 3, 4)] == [[]] * 4
    assert (course.flag.state, course.flag.since, course.flag.nights) == ("new", night(0), 5)
    assert course.go(5, seen(5, again=-9)) == ["opened"]
    assert (course.flag.state, course.flag.since, course.flag.nights) == ("open", night(0), 6)
    assert course.flag.evidence == AGAIN
    assert [event["confirmed"] for event in course.events] == [False, True]


def test_what_is_not_confirmed_does_not_open(course: Course) -> None:
    assert course.go(0, seen(0, confirmed=False, again=-9)) == ["noticed"]
    assert course.flag.evidence == "not confirmed"
    assert course.go(1, seen(1)) == []
    assert course.flag.evidence is not None
    assert course.flag.evidence.startswith("confirmed once")


@pytest.mark.parametrize(
    ("deviations", "kinds"),
    [
        ([0.0], ["withdrawn"]),
        ([0.2, 0.2], []),
        ([0.2, 0.2, 0.2], ["withdrawn"]),
        ([0.2, 0.2, -0.3, 0.2, 0.2], []),
        ([0.2, 0.2, None, 0.2], ["withdrawn"]),
        ([None, None, None], ["withdrawn"]),
    ],
)
def test_a_candidate_is_withdrawn_when_it_is_quiet(
    course: Course, deviations: list[float | None], kinds: list[str]
) -> None:
    course.go(0, seen(0))
    happened = [course.go(number, seen(number, d)) for number, d in enumerate(deviations, 1)]
    assert [kind for night_kinds in happened for kind in night_kinds] == kinds
    assert course.flag.state == ("resolved" if kinds else "new")
    assert not any(event["confirmed"] for event in course.events)


def test_it_closes_by_later_jobs_only(opened: Course) -> None:
    assert opened.go(11, seen(11, 0.0, calm=3)) == []
    assert opened.go(12, seen(12, 0.0, calm=10)) == []
    assert opened.go(13, seen(13, 0.0, calm=11)) == ["closed"]
    flag = opened.flag
    assert (flag.state, flag.since, flag.until, flag.nights) == ("resolved", night(10), night(13), 1)
    assert opened.events[-1]["evidence"] == CALM
    assert opened.events[-1]["confirmed"] is True


def test_it_does_not_close_without_the_margin(opened: Course) -> None:
    for number in range(11, 40):
        assert opened.go(number, seen(number, 0.1)) == []
    assert opened.flag.state == "open"


def test_it_opens_again_by_jobs_after_it_was_closed(opened: Course) -> None:
    opened.go(13, seen(13, 0.0, calm=11))
    assert opened.go(14, seen(14, again=5)) == ["noticed"]
    assert opened.go(20, seen(20, again=13)) == []
    assert opened.go(21, seen(21, again=14)) == ["reopened"]
    assert (opened.flag.since, opened.flag.nights, opened.flag.until) == (night(14), 3, None)


def test_what_vanishes_neither_opens_nor_closes_and_says_so_once(opened: Course) -> None:
    gone = [opened.go(number, None if number % 2 else seen(number, None)) for number in range(11, 20)]
    assert gone == [[], [], ["vanished"], *([[]] * 6)]
    assert (opened.flag.state, opened.flag.verdict, opened.flag.deviation) == (
        "open",
        None,
        -0.3,
    )
    assert opened.flag.compared_on == night(10)
    assert "not compared since" in str(opened.flag.sentence)
    assert opened.go(20, seen(20)) == ["returned"]
    assert opened.flag.absent_nights == 0
    assert opened.go(21, None) == []


def test_the_other_side_is_another_deviation(opened: Course) -> None:
    ack = [note(10, until=30)]
    assert opened.go(11, seen(11), ack) == ["acknowledged"]
    assert opened.go(12, seen(12, 0.4), ack) == []
    assert opened.go(13, seen(13, 0.4, again=5), ack) == ["opened"]
    assert "The deviation before was" in str(opened.events[-1]["sentence"])
    assert (opened.flag.state, opened.flag.since, opened.flag.nights) == ("open", night(13), 1)
    assert opened.flag.acknowledged_by is None
    assert opened.go(14, seen(14, 0.4, again=6), ack) == []
    assert opened.go(15, seen(15, 0.4), [*ack, note(13, until=30)]) == ["acknowledged"]


def test_an_acknowledgement_holds_until_its_night(opened: Course) -> None:
    notes = [note(10, until=13)]
    assert opened.go(11, seen(11), notes) == ["acknowledged"]
    flag = opened.flag
    assert (flag.state, flag.acknowledged_by, flag.acknowledged_until, flag.note) == (
        "acknowledged", "ann", night(13), "known",
    )  # fmt: skip
    assert opened.go(12, seen(12), notes) == []
    assert opened.go(13, seen(13), notes) == ["expired"]
    assert (opened.flag.state, opened.flag.acknowledged_by) == ("open", None)
    assert opened.go(14, seen(14), notes) == []
    assert opened.go(15, seen(15), [*notes, note(14, until=20)]) == ["acknowledged"]
    assert opened.go(16, seen(16), [*notes, note(14, until=20), note(15, until=40)]) == ["acknowledged"]
    assert opened.flag.acknowledged_until == night(40)


def test_a_later_note_may_end_an_acknowledgement_sooner(opened: Course) -> None:
    long, short = note(10, until=40), note(10, until=12, order=1)
    opened.go(11, seen(11), [short, long])
    assert opened.flag.acknowledged_until == night(12)
    assert opened.go(12, seen(12), [long, short]) == ["expired"]


def test_closing_ends_an_acknowledgement(opened: Course) -> None:
    notes = [note(10, until=90)]
    opened.go(11, seen(11), notes)
    assert opened.go(20, seen(20, 0.0, calm=11), notes) == ["closed"]
    assert opened.flag.acknowledged_by is None
    opened.go(21, seen(21), notes)
    assert opened.go(31, seen(31, again=21), notes) == ["reopened"]
    assert opened.flag.state == "open"


def test_an_acknowledgement_waits_for_a_flag_that_opens_later(course: Course) -> None:
    course.go(0, seen(0), [note(0, until=9)])
    assert course.go(5, seen(5, again=-5), [note(0, until=9)]) == ["opened", "acknowledged"]


def test_answers_change_no_state(opened: Course) -> None:
    answers = [note(11, kind="answer", order=1), note(11, kind="answer")]
    assert opened.go(11, seen(11), answers) == ["answered"]
    assert opened.events[-1]["text"] == "known\nknown"
    assert opened.go(12, seen(12), answers) == []
    assert opened.flag.state == "open"


def test_a_declaration_that_changed_stands_beside_the_flag(opened: Course) -> None:
    new = NewDeclaration(12.3, night(9))
    assert opened.go(11, seen(11, 0.0, corepower=12.3, declared=new)) == ["declaration_changed"]
    event = opened.events[-1]
    assert (event["corepower_before"], event["corepower"], event["changed_on"]) == (10.4, 12.3, night(9))
    assert opened.flag.state == "open"
    assert opened.go(12, seen(12, 0.0, corepower=12.3, calm=11)) == ["closed"]


def test_states_follow_from_events(opened: Course) -> None:
    key = ("queue", "all", "A")
    notes = [note(11, until=14)]
    for number, sighting in enumerate(
        (seen(11), seen(12), None, seen(14), seen(15, 0.0, calm=11), seen(16)), 11
    ):
        opened.go(number, sighting, notes)
        assert folded(opened.events[::-1])[key] == opened.flag.state
        assert opened.flag.last_event == opened.events[-1]["event"]
    assert len({event["event"] for event in opened.events}) == len(opened.events)
