"""One process at a time: a lease over the named values of any store, told by clocks that tests hold."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.errors import StoreBusyError
from esjobs.store.base import JobStore
from esjobs.store.lease import Holding, Lease
from esjobs.store.process import Process
from tests.messages import raised

ELSEWHERE = Process("b0", "pid:[1]", 1, "7", "elsewhere")
KEY = "who is working"


class Time:
    """A clock and the time that passes, both standing until somebody waits or moves them."""

    def __init__(self, ahead: timedelta = timedelta(0)) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.passed = 0.0
        self.ahead = ahead
        self.meanwhile: list[object] = []

    def clock(self) -> datetime:
        return self.now + self.ahead

    def timer(self) -> float:
        return self.passed

    def pause(self, seconds: float) -> None:
        self.passed += seconds
        self.now += timedelta(seconds=seconds)
        for happens in self.meanwhile:
            happens()  # type: ignore[operator]

    def lease(self, store: JobStore, **options: float) -> Lease:
        return Lease(store, "here", self.clock, what="working", timer=self.timer, pause=self.pause, **options)


def held_by(process: Process, time: Time, lasts_s: float = 600) -> str:
    return Holding("x", str(process), time.clock().isoformat(), lasts_s).write()


def elsewhere(store: JobStore, time: Time) -> str:
    """A lease that a process of another machine holds."""
    held = held_by(ELSEWHERE, time)
    assert store.compare_and_set(KEY, None, held)
    return held


def test_named_values_are_read_back(store: JobStore) -> None:
    assert store.value("done") is None
    assert store.compare_and_set("done", None, "2018-08-01 'or' %")
    assert store.value("done") == "2018-08-01 'or' %"
    assert store.compare_and_set("done", "2018-08-01 'or' %", None)
    assert store.value("done") is None


def test_only_one_holds_it(store: JobStore) -> None:
    time = Time()
    first, second = time.lease(store), time.lease(store)
    first.take()
    assert first.is_held
    with raised(StoreBusyError):
        second.take()
    assert time.passed == 0
    first.give_back()
    second.take()
    assert second.is_held
    assert not first.is_held


@pytest.mark.parametrize("apart", [timedelta(0), timedelta(minutes=59), timedelta(minutes=-59)], ids=str)
def test_one_elsewhere_that_is_silent_is_waited_for(store: JobStore, apart: timedelta) -> None:
    """Whatever the clocks of the two machines say."""
    elsewhere(store, Time(apart))
    time = Time()
    mine = time.lease(store)
    mine.take()
    assert mine.is_held
    assert 600 < time.passed < 620


def test_one_elsewhere_that_renews_lives(store: JobStore) -> None:
    time, other = Time(), Time(timedelta(minutes=59))
    elsewhere(store, other)

    def renew() -> None:
        if 50 < time.passed < 60:
            old = store.value(KEY)
            new = replace(Holding.read(old or ""), token=f"renewed at {time.passed}")  # type: ignore[type-var]
            assert store.compare_and_set(KEY, old, new.write())  # type: ignore[union-attr]

    time.meanwhile = [renew]
    mine = time.lease(store)
    with raised(StoreBusyError):
        mine.take()
    assert time.passed < 70
    assert not mine.is_held


def test_one_elsewhere_that_ended_long_ago_is_not_waited_for(store: JobStore) -> None:
    elsewhere(store, Time(timedelta(hours=-2)))
    time = Time()
    time.lease(store).take()
    assert time.passed == 0


def test_the_same_number_in_another_container_is_another_process(store: JobStore) -> None:
    """Two containers may have the host name and the process number in common."""
    me, time = Process.current(), Time()
    held = held_by(replace(me, space="pid:[4242]"), time)
    assert store.compare_and_set(KEY, None, held)
    mine = time.lease(store)
    mine.take()
    assert time.passed > 600, "taken for one that this process left behind"


def test_what_this_process_left_behind_is_taken_at_once(store: JobStore) -> None:
    time = Time()
    assert store.compare_and_set(KEY, None, held_by(Process.current(), time))
    time.lease(store).take()
    assert time.passed == 0


def test_what_a_process_of_this_machine_left_that_has_ended(store: JobStore) -> None:
    time = Time()
    ended = replace(Process.current(), began="1")
    assert ended.is_gone
    assert store.compare_and_set(KEY, None, held_by(ended, time))
    time.lease(store).take()
    assert time.passed == 0


def test_what_is_taken_over_is_not_given_back(store: JobStore) -> None:
    time = Time()
    mine = time.lease(store)
    mine.take()
    theirs = held_by(ELSEWHERE, time)
    assert store.compare_and_set(KEY, store.value(KEY), theirs)
    mine.give_back()
    assert store.value(KEY) == theirs


def test_who_lost_it_is_told_before_the_next_write(store: JobStore) -> None:
    time = Time()
    mine = time.lease(store)
    mine.take()
    assert store.compare_and_set(KEY, store.value(KEY), held_by(ELSEWHERE, time))
    mine.keep()
    time.pause(61)
    with raised(StoreBusyError):
        mine.keep()
    assert not mine.is_held


def test_a_lease_longer_than_its_longest_request(store: JobStore) -> None:
    time = Time()
    time.lease(store, request_s=3600).take()
    assert json.loads(store.value(KEY) or "")["lasts_s"] > 1.5 * 3600


@pytest.mark.parametrize("value", ["9999999999 1 - x elsewhere", "{}", "nonsense"])
def test_what_another_version_wrote_is_waited_for(store: JobStore, value: str) -> None:
    assert store.compare_and_set(KEY, None, value)
    time = Time()
    time.lease(store).take()
    assert 600 < time.passed < 620


def test_turns_are_waited_for(store: JobStore) -> None:
    time = Time()
    first, second = time.lease(store), time.lease(store)
    first.take()
    with raised(StoreBusyError), second.turn():
        pass
    assert 60 <= time.passed < 70
    time.meanwhile = [first.give_back]
    with second.turn():
        assert second.is_held
    assert not second.is_held
    assert store.value(KEY) is None
