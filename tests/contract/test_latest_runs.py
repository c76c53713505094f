"""The latest run moves with the results, of every kind of run and in every store; never two, never none."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.finding import find_run, retired_results
from esjobs.publish.latest import latest_run, publish
from esjobs.publish.publication import Outcome, count_rows, read_table, rows_table
from esjobs.publish.publisher import Publisher
from esjobs.publish.question import Question
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import LATEST_RUNS, RUNS
from esjobs.schema.speed import FACTORS, FLAGS
from esjobs.store.base import JobStore
from tests.contract.engines import Engine, Latest

TRIAL = Kind("trial", (FACTORS, FLAGS))
"""Two steps, fit and flag; a row of theirs has the name of its run."""

FIRST = date(2018, 8, 1)


def asked(last: int, days: int = 7, where: Sequence[str] = ()) -> Question:
    """A question about a window of some days, the last of them so many after the first of August."""
    return asked_of(TRIAL, last, days, where)


def asked_of(kind: Kind, last: int, days: int = 7, where: Sequence[str] = ()) -> Question:
    """The same of another kind."""
    end = FIRST + timedelta(days=last)
    window = Window.of_days(end - timedelta(days=days - 1), end)
    return Question(kind, window, {}, (), tuple(where), {})


class Nights:
    """Publishes runs of the made-up kind, each at a later second."""

    def __init__(self, store: JobStore) -> None:
        seconds = itertools.count()
        self.store = store
        self._publisher = Publisher(
            store, lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(seconds))
        )

    def publish(
        self,
        question: Question,
        steps: Sequence[str] = ("fit", "flag"),
        last_data: datetime | None = None,
        outdated: Sequence[str] = (),
    ) -> str:
        """Publish these steps of a run in one switch; its id."""
        tables = {"fit": FACTORS, "flag": FLAGS}
        outcomes = [
            Outcome(
                RunReport(step, question.run, 1, 2, 0.0),
                {tables[step]: rows_table(tables[step], [{"name": f"{question.run} {n}"} for n in "ab"])},
                last_data=last_data,
            )
            for step in steps
        ]
        self._publisher.publish(question, outcomes, outdated=outdated)
        return question.run


@pytest.fixture
def nights(store: JobStore) -> Nights:
    return Nights(store)


@pytest.fixture
def shown(engine: Engine, store: JobStore, tmp_path: Path) -> Callable[..., list[str] | None]:
    """The runs behind the latest names of all tables of the kind, which must agree; of a length."""
    latest = engine.latest(store, tmp_path)
    return lambda length="": _runs(latest, length)


def _runs(latest: Latest, length: str) -> list[str] | None:
    found = []
    for table in TRIAL.tables:
        rows = latest(table, length)
        found.append(rows and sorted({row.split()[0] for row in rows}))
    assert found[0] == found[1]
    return found[0]


def test_only_complete_unrestricted_runs_of_newer_windows_move_it(
    store: JobStore, nights: Nights, shown: Callable[..., list[str] | None]
) -> None:
    alone = nights.publish(asked(10, where=["queue=X"]))
    assert latest_run(store, TRIAL) is None
    assert find_run(store, TRIAL, TRIAL.steps).run == alone
    first = nights.publish(asked(10))
    for question, steps in (
        (asked(11), ("fit",)),
        (asked(12, where=["queue=X"]), ("fit", "flag")),
        (asked(9), ("fit", "flag")),
        (asked(9, days=30), ("fit", "flag")),
    ):
        nights.publish(question, steps)
        assert shown() == shown("7d") == [first]
    assert find_run(store, TRIAL, ("fit",)).run == first
    second = nights.publish(asked(11), ["flag"])
    assert shown() == shown("7d") == [second]
    assert shown("30d") == [asked(9, days=30).run]
    assert shown("8d") is None


def test_every_length_has_its_own_and_people_see_the_newest(
    store: JobStore, nights: Nights, shown: Callable[..., list[str] | None]
) -> None:
    for last in (10, 11):
        runs = {days: nights.publish(asked(last, days)) for days in (7, 30, 90)}
        assert shown() == [runs[90]]
    assert {days: shown(f"{days}d") for days in runs} == {days: [run] for days, run in runs.items()}
    rows = read_table(store, LATEST_RUNS).to_pylist()
    assert [(row["window_days"], row["run"], row["scope"]) for row in rows if row["shown"]] == [
        (90, runs[90], "all")
    ]
    assert len(rows) == 3


def test_steps_that_no_longer_hold_take_it_back(
    store: JobStore, nights: Nights, shown: Callable[..., list[str] | None]
) -> None:
    only = nights.publish(asked(10))
    assert shown() == [only]
    nights.publish(asked(10), ["fit"], outdated=["flag"])
    assert latest_run(store, TRIAL) is None
    assert shown("7d") is None
    assert find_run(store, TRIAL, ("fit",)).run == only
    nights.publish(asked(10), ["flag"])
    second = nights.publish(asked(11))
    assert shown() == [second]
    nights.publish(asked(11), ["fit"], outdated=["flag"])
    assert shown() == shown("7d") == [only]


def test_a_publication_that_breaks_off_moves_nothing(
    store: JobStore, nights: Nights, shown: Callable[..., list[str] | None]
) -> None:
    first = nights.publish(asked(10))

    def clock() -> datetime:
        raise KeyboardInterrupt

    outcome = Outcome(RunReport("fit", asked(11).run, 1, 0, 0.0), {FACTORS: rows_table(FACTORS, [])})
    with pytest.raises(KeyboardInterrupt):
        Publisher(store, clock).publish(asked(11), [outcome])
    assert shown() == [first]


def test_what_goes_makes_room_for_the_next(
    store: JobStore, nights: Nights, shown: Callable[..., list[str] | None]
) -> None:
    runs = [nights.publish(asked(last)) for last in (10, 11, 12)]
    publish(store, TRIAL, retired_results(TRIAL, runs[1], TRIAL.steps))
    assert shown() == shown("7d") == [runs[2]]
    publish(store, TRIAL, retired_results(TRIAL, runs[2], TRIAL.steps))
    store.sweep()
    assert shown() == shown("7d") == [runs[0]]
    publish(store, TRIAL, retired_results(TRIAL, runs[0], TRIAL.steps))
    assert shown("7d") is None
    assert read_table(store, LATEST_RUNS).num_rows == 0


def test_days_to_come_make_no_run_newer(nights: Nights, shown: Callable[..., list[str] | None]) -> None:
    """Those of an endless window count to the last day with data; of equals the one made last is shown."""
    endless = Question(TRIAL, Window.parse("2018-08-01/2200-01-01"), {}, (), (), {})
    data = datetime(2018, 8, 11, 12, tzinfo=UTC)
    first = nights.publish(endless, last_data=data)
    assert shown() == [first]
    same_day = nights.publish(asked(10), last_data=data)
    assert shown() == [same_day]
    nights.publish(endless, last_data=data)
    assert shown() == [first]
    assert shown("7d") == [same_day]
    next_day = nights.publish(asked(11), last_data=data + timedelta(days=1))
    assert shown() == [next_day]
    unknown = nights.publish(Question(TRIAL, endless.window, {}, (), (), {"method": "9"}))
    assert shown() == [unknown]  # what does not say how far its data reach, reaches to the day it was made


def test_rows_are_counted_by_the_store(store: JobStore, nights: Nights) -> None:
    """Also those of a table that nothing was ever written to."""
    assert [count_rows(store, table) for table in (FACTORS, RUNS)] == [0, 0]
    runs = [nights.publish(asked(last)) for last in (1, 2)]
    assert [count_rows(store, table) for table in (FACTORS, FLAGS, RUNS)] == [4, 4, 4]
    assert count_rows(store, FACTORS, [In("run", (runs[0],))]) == 2
    nights.publish(asked(1), ["fit"], outdated=["flag"])
    assert [count_rows(store, table) for table in (FACTORS, FLAGS, RUNS)] == [4, 2, 3]


def test_who_looks_all_the_time_sees_one_run(
    store: JobStore, nights: Nights, engine: Engine, tmp_path: Path
) -> None:
    """Two lengths a night, runs repeated, old ones removed, and rows of both tables of the same run."""
    latest = engine.latest(store, tmp_path)
    for days in (7, 30):
        nights.publish(asked(0, days))
    done = threading.Event()
    seen: dict[str, set[str]] = {"": set(), "7d": set(), "30d": set()}

    def look() -> None:
        for length, table in itertools.cycle(itertools.product(seen, TRIAL.tables)):
            if done.is_set():
                return
            rows = latest(table, length)
            seen[length].add("no such name" if rows is None else " and ".join(sorted({*_names(rows)})))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for night in range(1, 7):
            for days in (7, 30):
                nights.publish(asked(night, days))
                nights.publish(asked(night, days, where=["queue=X"]))
                gone = retired_results(TRIAL, asked(night - 1, days).run, TRIAL.steps)
                publish(store, TRIAL, gone)
                store.sweep()
    finally:
        done.set()
        watcher.join()
    expected = {days: {asked(night, days).run for night in range(7)} for days in (7, 30)}
    assert seen["7d"] <= expected[7]
    assert seen["30d"] <= expected[30]
    assert seen[""] <= expected[7] | expected[30]
    assert len(seen[""]) > 1


def _names(rows: Sequence[str]) -> Iterator[str]:
    """The run of the rows; all two of them must be there."""
    for run, found in itertools.groupby(rows, key=lambda row: row.split()[0]):
        yield run if len(list(found)) == 2 else f"a part of {run}"
