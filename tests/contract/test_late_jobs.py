"""Late jobs of a large day get rows of their own; sums over all rows are those of the day made at once."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from esjobs.core.query import Count, Query, Select, Sum
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.demo import Grid
from esjobs.records.jobs import late_jobs
from esjobs.schema.issues import ISSUE_DAYS, ISSUES
from esjobs.schema.jobs import BUCKETS, DAYS
from esjobs.schema.scores import SCORES
from esjobs.schema.speed import FACTORS
from esjobs.schema.today import DAY_SUMS
from esjobs.store.base import Adding, Hide, JobStore
from esjobs.testing.rows import table_batch
from esjobs.today.sums import make_sums
from tests.contract.jobs import Row, batch, day, hours, job, put, selected, visible

FIRST, SECOND = date(2025, 6, 1), date(2025, 6, 2)
WINDOW = Window.of_days(FIRST, SECOND)
_NUMBERS = ("integer", "number")


def adding(store: JobStore) -> Adding:
    assert isinstance(store, Adding)
    return store


def bucket(number: int, queue: str) -> Row:
    return {"day": day(number), "queue": queue, "n_jobs": 1}


def queues(store: JobStore) -> list[str]:
    return sorted(row["queue"] for row in visible(store, BUCKETS))


def test_a_fingerprint_by_load_is_that_of_the_day_at_that_time(store: JobStore) -> None:
    marks = []
    for load, numbers in {"a": (1, 2, 3), "b": (4, 5), "c": (6,)}.items():
        put(store, load, *(job(number, end_time=hours(number)) for number in numbers))
        marks += store.day_fingerprints(None)["fingerprint"].to_pylist()
    found = adding(store).load_fingerprints(Window.of_days(day(0), day(0))).to_pylist()
    assert [row["n_jobs"] for row in found] == [3, 2, 1]
    assert [row["fingerprint"] for row in found] == marks
    # a corrected job is one of the last load, and the marks of before are gone
    put(store, "d", job(1, end_time=hours(1), cpu_s=1.0))
    after = adding(store).load_fingerprints(Window.of_days(day(0), day(0)))
    assert after["fingerprint"].to_pylist()[-1] == store.day_fingerprints(None)["fingerprint"][0].as_py()
    assert not set(marks) & set(after["fingerprint"].to_pylist())


def test_a_store_may_have_the_jobs_of_some_loads_alone(store: JobStore) -> None:
    put(store, "a", *(job(number, events=1) for number in range(5)))
    put(store, "b", *(job(number, events=7) for number in range(5, 8)))
    put(store, "c", job(8, events=9))
    first, second, last = adding(store).load_fingerprints(Window.of_days(day(0), day(0)))["load"].to_pylist()
    assert sorted(selected(adding(store).jobs_of_loads(first, last), "events")) == [7, 7, 7, 9]
    assert selected(adding(store).jobs_of_loads(0, first), "events") == [1] * 5
    later = adding(store).jobs_of_loads(second, last)
    answer = later.aggregate(Query(("queue",), (Count("n"), Sum("events", "events"))))
    assert answer.table.select(["n", "events"]).to_pylist() == [{"n": 1, "events": 9.0}]
    assert answer.books["n_jobs"].to_pylist() == [1]
    # results are those of the store
    store.publish([store.replace(BUCKETS, str(day(0)), [table_batch(BUCKETS, [bucket(0, "A")])])])
    assert queues(later) == ["A"]


def test_rows_are_added_to_a_day_and_go_with_it(store: JobStore) -> None:
    def of(number: int, *names: str) -> list[pa.RecordBatch]:
        return [table_batch(BUCKETS, [bucket(number, name) for name in names])]

    store.publish([store.replace(BUCKETS, str(day(n)), of(n, f"day {n}")) for n in (0, 1)])
    added = adding(store).add(BUCKETS, str(day(0)), of(0, "late", "later"))
    assert queues(store) == ["day 0", "day 1"]
    store.publish([added])
    store.publish([adding(store).add(BUCKETS, str(day(0)), of(0, "latest")) for _ in range(2)])
    assert queues(store) == ["day 0", "day 1", "late", "later", "latest", "latest"]
    assert store.aggregate(Query((), (Count("n"),), over=BUCKETS)).table["n"].to_pylist() == [6]
    assert store.sweep() == 0
    store.publish([store.replace(BUCKETS, str(day(0)), of(0, "again"))])
    assert queues(store) == ["again", "day 1"]
    assert store.sweep() == 5
    store.publish([adding(store).add(BUCKETS, str(day(1)), of(1, "late"))])
    store.publish([Hide(BUCKETS, str(day(1)))])
    assert queues(store) == ["again"]
    with pytest.raises(UsageError):
        adding(store).add(FACTORS, "run", [])


def grid_jobs(seed: int, jobs: int, on: date) -> list[pa.RecordBatch]:
    return list(Grid(seed=seed, jobs_per_day=jobs, n_queues=20, n_models=8).jobs(on))


def make_days(session: Session) -> int:
    """All that is made of days; returns the jobs that were read for it."""
    before = session.store.work().jobs_read
    session.speed.aggregate(WINDOW)
    session.issues.detect(WINDOW)
    session.scores.compute(WINDOW)
    session.store.publish(make_sums(session.store, WINDOW))
    return session.store.work().jobs_read - before


def summed(store: JobStore, table: Table, left_out: tuple[str, ...] = ("fingerprint",)) -> dict[Any, Any]:
    """Numbers of the rows of a table, added up by everything else."""
    keys = [each.name for each in table.columns if each.type not in (*_NUMBERS, "time")]
    keys = [name for name in keys if name not in left_out]
    numbers = [each.name for each in table.columns if each.type in _NUMBERS]
    sums: dict[Any, list[float]] = {}
    for row in read_table(store, table).to_pylist():
        of_key = sums.setdefault(tuple(row[name] for name in keys), [0.0] * len(numbers))
        for place, name in enumerate(numbers):
            of_key[place] += row[name] or 0
    return sums


def of_large_days(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(late_jobs, "LARGE_DAY", 300)
    return Session(store, Settings())


def test_days_with_late_jobs_sum_to_days_made_at_once(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = (BUCKETS, SCORES, ISSUES, DAY_SUMS)
    session = of_large_days(store, monkeypatch)
    for on in (FIRST, SECOND):
        store.put_jobs(grid_jobs(1, 400, on), f"{on}")
    whole = make_days(session)
    for number, jobs in enumerate((10, 20)):
        store.put_jobs(grid_jobs(7 + number, jobs, FIRST), f"late {number}")
        late = make_days(session)
        assert 0 < late < whole / 10
    prints = {row["fingerprint"] for row in visible(store, DAYS) if row["day"] == FIRST}
    assert len(prints) == 3
    assert [row["day"] for row in visible(store, ISSUE_DAYS)].count(FIRST) == 3
    assert make_days(session) < whole / 10
    added = {table.name: summed(store, table) for table in tables}
    counted = sum(row["n_jobs"] for row in visible(store, DAYS) if row["kind"] != "note")
    assert counted == store.span().jobs
    session.speed.aggregate(WINDOW, rebuild=True)
    session.issues.detect(WINDOW, rebuild=True)
    session.scores.compute(WINDOW, rebuild=True)
    store.publish([Hide(DAY_SUMS, str(on)) for on in (FIRST, SECOND)])
    store.publish(make_sums(store, WINDOW))
    assert {row["fingerprint"] for row in visible(store, DAYS) if row["day"] == FIRST} <= prints
    assert len(visible(store, ISSUE_DAYS)) == 2
    for table in tables:
        made_at_once = summed(store, table)
        assert made_at_once.keys() == added[table.name].keys()
        for key, numbers in made_at_once.items():
            assert added[table.name][key] == pytest.approx(numbers, rel=1e-9, abs=1e-9)


def test_late_jobs_that_are_withdrawn_take_their_rows_along(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = of_large_days(store, monkeypatch)
    store.put_jobs(grid_jobs(1, 400, FIRST), "first")
    make_days(session)
    tables = (BUCKETS, SCORES, ISSUES, DAY_SUMS, DAYS)
    before = {table.name: summed(store, table) for table in tables}
    store.put_jobs(grid_jobs(7, 10, FIRST), "late")
    make_days(session)
    assert summed(store, DAYS) != before["day_books"]
    # the day has its first fingerprint again, which its rows name, too
    store.undo_load("late")
    make_days(session)
    for table in tables:
        for key, numbers in summed(store, table).items():
            assert before[table.name][key] == pytest.approx(numbers, rel=1e-9, abs=1e-9)
        assert summed(store, table).keys() == before[table.name].keys()


def test_a_load_that_comes_meanwhile_waits_for_the_next_time(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = of_large_days(store, monkeypatch)
    store.put_jobs(grid_jobs(1, 400, FIRST), "first")
    make_days(session)
    store.put_jobs(grid_jobs(7, 10, FIRST), "late")
    asked = adding(store).load_fingerprints

    def and_then(window: Window) -> pa.Table:
        answer = asked(window)
        store.put_jobs(grid_jobs(answer.num_rows + 30, 5, FIRST), f"meanwhile {answer.num_rows}")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(store, "load_fingerprints", and_then)
        make_days(session)
    make_days(session)
    counted = sum(row["n_jobs"] for row in visible(store, DAYS) if row["kind"] != "note")
    scored = sum(row["n_jobs"] for row in visible(store, SCORES))
    assert counted == scored == sum(row["n_jobs"] for row in visible(store, ISSUE_DAYS)) == store.span().jobs


@pytest.mark.parametrize("change", ["correct", "withdraw", "many"])
def test_a_day_on_which_anything_else_changed_is_made_again(
    store: JobStore, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    session = of_large_days(store, monkeypatch)
    first = grid_jobs(1, 400, FIRST)
    store.put_jobs(first, "first")
    store.put_jobs(grid_jobs(3, 10, FIRST), "second")
    whole = make_days(session)
    store.put_jobs(grid_jobs(7, 100 if change == "many" else 10, FIRST), "late")
    if change == "withdraw":
        store.undo_load("second")
    elif change == "correct":
        row: Row = next(store.select(Select(where=()))).slice(0, 1).to_pylist()[0]
        store.put_jobs([batch([{**row, "cpu_s": (row["cpu_s"] or 0.0) + 1.0}])], "correction")
    assert make_days(session) > whole / 2
    assert len({row["fingerprint"] for row in visible(store, DAYS)}) == 1
    assert {row["fingerprint"] for row in visible(store, DAYS)} == set(
        store.day_fingerprints(None)["fingerprint"].to_pylist()
    )


def test_small_days_are_made_again(store: JobStore) -> None:
    session = Session(store, Settings())
    store.put_jobs(grid_jobs(1, 400, FIRST), "first")
    make_days(session)
    store.put_jobs(grid_jobs(7, 10, FIRST), "late")
    make_days(session)
    assert len({row["fingerprint"] for row in visible(store, DAYS)}) == 1
    assert len(visible(store, ISSUE_DAYS)) == 1
