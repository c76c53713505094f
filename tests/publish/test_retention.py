"""What a rule keeps: the newest runs and one of each period, of every length and scope on its own."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.publish.account import entry, record
from esjobs.publish.latest import latest_run, publish
from esjobs.publish.publication import Outcome, read_table
from esjobs.publish.retention import Keep, prune
from esjobs.publish.stored import COLUMNS, entries_of, runs_of, stored_runs
from esjobs.schema.catalogue import TABLES
from esjobs.schema.runs import RUN_COUNTS, RUNS
from esjobs.schema.speed import FACTORS, FLAGS
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from tests.contract.test_latest_runs import TRIAL, Nights, asked
from tests.messages import raised


@pytest.fixture
def store() -> Iterator[JobStore]:
    opened = DuckStore(tables=TABLES)
    yield opened
    opened.close()


@pytest.fixture
def nights(store: JobStore) -> Nights:
    return Nights(store)


def lasts(store: JobStore, days: int = 7, scope: str = "all") -> list[int]:
    """How many days after the first of August the windows end that are left, newest first."""
    first = asked(0, days).window.end
    runs = [run for run in stored_runs(store, TRIAL) if run.window.days == days and run.scope == scope]
    return sorted(((run.window.end - first).days for run in runs), reverse=True)


def account(store: JobStore, run: str, step: str, question: object) -> None:
    """An entry of a step that leaves no results of its run."""
    report = RunReport(step, run, 1, 1, 0.0)
    row = entry(question, Outcome(report), dt.datetime(2026, 1, 1, tzinfo=dt.UTC))  # type: ignore[arg-type]
    publish(store, TRIAL, record(store, row, report), [row])


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (Keep(newest=3), [40, 39, 38]),
        (Keep(daily=2), [40, 39]),
        # 2018-09-10, a Monday; before it Sundays end the weeks
        (Keep(weekly=3), [40, 39, 32]),
        (Keep(monthly=1), [40]),
        (Keep(monthly=9), [40, 30]),
        (Keep(newest=1, weekly=2, monthly=2), [40, 39, 30]),
        (Keep(), [40]),
        (Keep(newest=1000), list(range(40, -1, -1))),
    ],
    ids=str,
)
def test_what_a_rule_keeps(store: JobStore, nights: Nights, keep: Keep, kept: list[int]) -> None:
    for last in range(41):
        nights.publish(asked(last))
    report = prune(store, [TRIAL], keep)
    assert lasts(store) == kept
    assert (report.rows_in, report.rows_out) == (41, len(kept))
    assert {row["name"].split()[0] for row in read_table(store, FACTORS).to_pylist()} == {
        asked(last).run for last in kept
    }


def test_every_length_and_scope_has_its_own(store: JobStore, nights: Nights) -> None:
    for last in range(5):
        for days in (7, 30):
            for where in ([], ["queue=X"]):
                nights.publish(asked(last, days, where))
    prune(store, [TRIAL], Keep(newest=2))
    assert [lasts(store, days, scope) for days in (7, 30) for scope in ("all", "queue=X")] == [[4, 3]] * 4
    prune(store, [TRIAL], 3)
    assert len(stored_runs(store, TRIAL)) == 3


def test_the_latest_stays_and_a_period_keeps_a_run_that_can_be_shown(store: JobStore, nights: Nights) -> None:
    nights.publish(asked(3))
    for last in (4, 5):
        nights.publish(asked(last), ["fit"])
    nights.publish(replace(asked(3), versions={"again": "1"}), ["fit"])
    prune(store, [TRIAL], Keep(newest=1))
    assert lasts(store) == [5, 3]
    nights.publish(replace(asked(3), versions={"again": "1"}), ["fit"])
    prune(store, [TRIAL], Keep(daily=2))
    assert lasts(store) == [5, 3]
    found = latest_run(store, TRIAL)
    assert found is not None
    assert (found.run, found.complete) == (asked(3).run, True)


def test_accounts_of_steps_without_results_go_by_the_same_rule(store: JobStore, nights: Nights) -> None:
    """What ``aggregate`` alone tells of a night would else stay for ever, one entry a night."""
    for last in range(6):
        account(store, asked(last).run, "aggregate", asked(last))
    nights.publish(asked(0))
    report = prune(store, [TRIAL], Keep(newest=2))
    left = {(row["run"], row["step"]) for row in read_table(store, RUNS).to_pylist()}
    assert left == {
        *((asked(0).run, step) for step in ("aggregate", "fit", "flag")),
        *((asked(last).run, "aggregate") for last in (4, 5)),
    }
    assert report.counts["accounts without results"] == 3
    nights.publish(asked(1))
    prune(store, [TRIAL], Keep(newest=1))
    steps = {(row["run"], row["step"]) for row in read_table(store, RUNS).to_pylist()}
    assert steps == {
        *((asked(1).run, step) for step in ("fit", "flag")),
        (asked(5).run, "aggregate"),
    }


def test_a_dry_run_says_what_would_go_and_why(store: JobStore, nights: Nights) -> None:
    runs = [nights.publish(asked(last)) for last in range(3)]
    report = prune(store, [TRIAL], Keep(newest=1, monthly=12), dry_run=True)
    assert len(stored_runs(store, TRIAL)) == 3
    assert report.dropped == {"would be removed": 2}
    assert report.notes == tuple(
        f"would be removed: run {run} [2018-07-{26 + last}/2018-08-0{2 + last}], fit, flag, created "
        f"2026-01-01T00:00:0{2 * last + 1}Z: "
        "1 newest, 12 monthly of 7 days are kept, but not this one"
        for last, run in enumerate(runs[:2])
    )
    assert prune(store, [TRIAL], Keep(newest=1, monthly=12)).notes == ()
    assert [run.run for run in stored_runs(store, TRIAL)] == [runs[2]]


def test_a_rule_that_counts_nothing_keeps_the_latest_of_every_length_and_scope(
    store: JobStore, nights: Nights
) -> None:
    for last in range(3):
        for days in (7, 30):
            nights.publish(asked(last, days))
        nights.publish(asked(last, where=["queue=X"]), ["fit"])
    report = prune(store, [TRIAL], Keep(), dry_run=True)
    assert all("only the latest of " in note for note in report.notes)
    assert prune(store, [TRIAL], Keep()).rows_out == 3
    assert [lasts(store), lasts(store, 30), lasts(store, scope="queue=X")] == [[2], [2], [2]]


@pytest.mark.parametrize("none", [0, -1])
def test_not_even_one_is_refused(store: JobStore, none: int) -> None:
    with raised(UsageError):
        prune(store, [TRIAL], none)


def test_what_is_visible_stops_growing(store: JobStore) -> None:
    sizes = nightly(store, 60, Keep(newest=2, daily=5, weekly=2, monthly=1), lambda: visible(store))
    assert max(sizes[30:]) <= max(sizes[:30])


def visible(store: JobStore) -> int:
    """The partitions of runs that readers see, in all tables: the length of what filters list."""
    of_runs = {FACTORS: "run", FLAGS: "run", RUNS: "run_step", RUN_COUNTS: "run_step"}
    listed = [read_table(store, table, columns=[name]).column(name) for table, name in of_runs.items()]
    return sum(len(set(partitions.to_pylist())) for partitions in listed)


def nightly(store: JobStore, number: int, keep: Keep, size: Callable[[], int]) -> list[int]:
    """Publish a run and prune, night after night; the size after each."""
    nights, sizes = Nights(store), []
    for night in range(number):
        nights.publish(asked(night))
        prune(store, [TRIAL], keep)
        sizes.append(size())
    return sizes


def test_runs_of_a_kind_are_known_without_the_entries_of_others(store: JobStore, nights: Nights) -> None:
    for last in range(5):
        nights.publish(asked(last))
        account(store, f"other {last}", "aggregate", asked(last))
    every = read_table(store, RUNS, columns=COLUMNS).to_pylist()
    mine = entries_of(store, TRIAL)
    assert {row["step"] for row in mine} == set(TRIAL.steps)
    assert len(mine) == len(every) - 5
    assert stored_runs(store, TRIAL) == runs_of(every, TRIAL)
    (one,) = stored_runs(store, TRIAL, mine[0]["run"])
    assert one in runs_of(every, TRIAL)
    assert {tuple(run.steps) for run in runs_of(reversed(every), TRIAL)} == {TRIAL.steps}
