"""One process at a time: a lease over the named values of any store, told by a clock that tests hold."""

from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.errors import StoreBusyError
from esjobs.store.base import JobStore
from esjobs.store.lease import Lease


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def elsewhere(store: JobStore, clock: Clock, seconds: float) -> str:
    """A lease that a process of another machine holds."""
    held = f"{clock.now.timestamp() + seconds:.0f} 1 - x elsewhere"
    assert store.compare_and_set("who is working", None, held)
    return held


def test_named_values_are_read_back(store: JobStore) -> None:
    assert store.value("done") is None
    assert store.compare_and_set("done", None, "2018-08-01 'or' %")
    assert store.value("done") == "2018-08-01 'or' %"
    assert store.compare_and_set("done", "2018-08-01 'or' %", None)
    assert store.value("done") is None


def test_only_one_holds_it(store: JobStore) -> None:
    clock = Clock()
    first, second = (Lease(store, "here", clock, what="working") for _ in range(2))
    first.take()
    assert first.held
    with pytest.raises(StoreBusyError, match=r"process \d+ on .* is working to here"):
        second.take()
    first.give_back()
    second.take()
    assert second.held
    assert not first.held


def test_a_lease_of_another_machine_ends_by_the_clock(store: JobStore) -> None:
    clock = Clock()
    elsewhere(store, clock, seconds=600)
    mine = Lease(store, "here", clock, what="working")
    clock.move(599)
    with pytest.raises(StoreBusyError, match="process 1 on elsewhere"):
        mine.take()
    clock.move(2)
    mine.take()
    assert mine.held


def test_what_is_taken_over_is_not_given_back(store: JobStore) -> None:
    clock = Clock()
    mine = Lease(store, "here", clock, what="working")
    mine.take()
    held = store.value("who is working")
    assert store.compare_and_set("who is working", held, "9999999999 1 - x elsewhere")
    mine.give_back()
    assert store.value("who is working") == "9999999999 1 - x elsewhere"


def test_a_lease_longer_than_its_longest_request(store: JobStore) -> None:
    clock = Clock()
    Lease(store, "here", clock, what="working", request_s=3600).take()
    ends = float((store.value("who is working") or "0").split()[0])
    assert ends - clock.now.timestamp() > 1.5 * 3600


def test_turns_are_waited_for(store: JobStore) -> None:
    clock = Clock()
    elsewhere(store, clock, seconds=600)
    mine = Lease(store, "here", clock, what="working")
    with pytest.raises(StoreBusyError, match="process 1 on elsewhere"), mine.turn(wait_s=0.3):
        pass
    clock.move(601)
    with mine.turn():
        assert mine.held
    assert not mine.held
    assert store.value("who is working") is None
