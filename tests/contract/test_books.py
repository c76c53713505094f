"""The books: every job is binned or dropped, under the first rule that it fails, whatever it looks like."""

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esjobs.core.query import Count, DropRule, In, NotLike, Present, Query, Range, Select, Sum, SumProduct
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.store.base import JobStore
from tests.contract.engines import Engine
from tests.contract.jobs import Row, books, day, groups, hours, job, put
from tests.contract.model import answer

CLEAN = CleaningRules().drops()
QUERY = Query(
    ("day", "task_id", "core_class", "queue", "cpu_raw", "processing_type"),
    (
        Count(),
        Sum("events", "events"),
        SumProduct("cpu_s", "cpu_s", "cpu_s_sq"),
        SumProduct("cpu_s_per_event", "cpu_s_per_event", "cpe_sq"),
    ),
    drops=CLEAN,
)


FIRST_FAILURE: list[tuple[Row, str]] = [
    ({}, "binned"),
    ({"state": "failed", "events": 0}, "not finished"),
    ({"state": ""}, "not finished"),
    ({"state": "Finished"}, "not finished"),
    ({"events": 0, "cores": 0}, "no events"),
    ({"events": None}, "no events"),
    ({"cores": None}, "no cores"),
    ({"cores": 0, "wall_s": 0.0}, "no cores"),
    ({"wall_s": 60.0}, "wall time out of range"),
    ({"wall_s": None}, "wall time out of range"),
    ({"wall_s": math.nan}, "wall time out of range"),
    ({"wall_s": 30 * 86400.0}, "wall time out of range"),
    ({"cpu_s": 0.0}, "efficiency out of range"),
    ({"cpu_s": None}, "efficiency out of range"),
    ({"cpu_s": math.nan}, "efficiency out of range"),
    ({"cpu_s": math.inf}, "efficiency out of range"),
    ({"cpu_s": 16000.0}, "efficiency out of range"),
    ({"processing_type": "PMerge"}, "excluded processing type"),
    ({"processing_type": "panda-client-1.5"}, "excluded processing type"),
    ({"processing_type": "merged"}, "binned"),
    ({"processing_type": "a panda"}, "binned"),
    ({"processing_type": None}, "binned"),
    ({"task_id": None, "processing_type": "merge"}, "excluded processing type"),
    ({"task_id": None}, "no task"),
    ({"task_id": ""}, "binned"),
]


def test_a_job_counts_under_the_first_rule_it_fails(store: JobStore) -> None:
    put(store, "a", *(job(n, queue=str(n), **change) for n, (change, _) in enumerate(FIRST_FAILURE)))
    for n, (change, expected) in enumerate(FIRST_FAILURE):
        query = replace(QUERY, where=(In("queue", (str(n),)),))
        kind = "binned" if expected == "binned" else "dropped"
        assert books(store, query) == {(day(0), expected, kind): 1}, change
        assert len(groups(store, query)) == (expected == "binned"), change


def test_an_unknown_state_is_binned_and_noted(store: JobStore) -> None:
    put(store, "a", job(1, state=None), job(2, state=None, events=0), job(3))
    assert books(store, QUERY) == {
        (day(0), "binned", "binned"): 2,
        (day(0), "no events", "dropped"): 1,
        (day(0), "state unknown", "note"): 1,
    }


def test_the_books_are_by_day_also_when_the_groups_are_not(store: JobStore) -> None:
    put(store, "a", *(job(n, end_time=hours(10 * n), events=n % 2) for n in range(5)))
    query = Query((), (Count(),), Window(hours(0), hours(40)), (In("queue", ("CERN",)),), CLEAN)
    assert books(store, query) == {
        (day(0), "binned", "binned"): 1,
        (day(0), "no events", "dropped"): 2,
        (day(1), "binned", "binned"): 1,
    }


def test_without_rules_every_job_is_binned(store: JobStore) -> None:
    put(store, "a", job(1, state=None), job(2, events=None))
    assert books(store, Query(("queue",), (Count(),))) == {(day(0), "binned", "binned"): 2}


@pytest.mark.parametrize("missing", ["drop", "pass"])
@pytest.mark.parametrize(
    "keep",
    [In("user", ("a",)), NotLike("user", ("b*",)), Present("user"), Range("efficiency", lt=1)],
    ids=repr,
)
def test_what_a_rule_does_with_a_missing_field(
    store: JobStore, keep: In | NotLike | Present | Range, missing: str
) -> None:
    rule = DropRule("reason", keep, missing=missing, unknown="unknown")  # type: ignore[arg-type]
    put(store, "a", job(1, user=None, cpu_s=None))
    passed = {(day(0), "binned", "binned"): 1, (day(0), "unknown", "note"): 1}
    dropped = {(day(0), "reason", "dropped"): 1}
    assert books(store, Query((), (Count(),), drops=(rule,))) == (passed if missing == "pass" else dropped)


_NUMBERS = st.sampled_from(
    [None, 0.0, -0.0, 1.0, 59.9, 60.0, 60.1, 3600.0, 2592000.0, 1e308, -5.0, math.nan, math.inf, -math.inf]
)
_TEXT = st.sampled_from(
    [None, "", "finished", "FINISHED", "failed", "merge", "Panda1", "simul", "' OR 1=1 --", "%"]
)
_DIRTY = st.fixed_dictionaries(
    {
        "end_time": st.sampled_from([hours(0), hours(1), hours(25)]),
        "state": st.sampled_from([None, "finished", "finished", "finished", "failed"]),
        "task_id": st.sampled_from([None, "", "1", "2"]),
        "queue": st.sampled_from(["a", "b"]),
        "cpu_raw": st.sampled_from([None, "", "cpu"]),
        "processing_type": _TEXT,
        "cores": st.sampled_from([None, -1, 0, 1, 8, 2**40]),
        "events": st.sampled_from([None, -1, 0, 1, 1000, 2**62]),
        "cpu_s": _NUMBERS,
        "wall_s": st.one_of(_NUMBERS, st.just(3600.0)),
    }
)


def test_selecting_with_rules_yields_the_jobs_that_they_keep(store: JobStore) -> None:
    rows = [job(number, **changes) for number, (changes, _) in enumerate(FIRST_FAILURE)]
    put(store, "a", *rows)
    kept = [str(number) for number, (_, outcome) in enumerate(FIRST_FAILURE) if outcome == "binned"]
    batches = store.select(Select(("job_id",), drops=CLEAN))
    assert sorted(row["job_id"] for batch in batches for row in batch.to_pylist()) == sorted(kept)


@given(st.lists(_DIRTY, max_size=25))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_dirty_jobs_balance_and_agree_with_the_model(engine: Engine, dirty: list[Row]) -> None:
    rows = [job(number, **changes) for number, changes in enumerate(dirty)]
    with tempfile.TemporaryDirectory() as folder:
        store = engine.open(Path(folder))
        try:
            put(store, "a", *rows)
            expected_groups, expected_books = answer(rows, QUERY)
            found_books = books(store, QUERY)
            assert found_books == expected_books
            assert sum(n for (_, _, kind), n in found_books.items() if kind != "note") == len(rows)
            kept = store.select(Select(("job_id",), drops=CLEAN))
            binned = [row["job_id"] for batch in kept for row in batch.to_pylist()]
            assert len(set(binned)) == len(binned)
            assert len(binned) == sum(n for (_, _, kind), n in expected_books.items() if kind == "binned")
            found_groups = groups(store, QUERY)
            assert found_groups.keys() == expected_groups.keys()
            for key, row in found_groups.items():
                for name, value in row.items():
                    assert value == pytest.approx(expected_groups[key][name], rel=1e-12, nan_ok=True), name
        finally:
            store.close()
