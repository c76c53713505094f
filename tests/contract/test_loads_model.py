"""Any loads in any order, put and undone, against a model in plain Python."""

import dataclasses
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esjobs.core.arrow import JOB_SCHEMA
from esjobs.core.errors import StoreError
from esjobs.store.base import JobStore
from tests.contract.engines import Engine
from tests.contract.jobs import Row, batch, hours, job, put, selected
from tests.contract.model import Account, Loads
from tests.messages import raised

_ROW = st.builds(
    lambda job_id, source, hour, values: job(job_id, source=source, end_time=hours(hour), **values),
    st.integers(1, 3),
    st.sampled_from(["panda", "panda", "panda", "batch", None]),
    # some in other months
    st.sampled_from([0, 1, 1, 1, 30, -30, 1000]),
    st.fixed_dictionaries(
        {
            "task_id": st.sampled_from([None, "1001", "1002"]),
            "events": st.sampled_from([None, None, 0, 1000]),
            "cpu_s": st.sampled_from([None, 0.0, 2.5]),
            "start_time": st.sampled_from([None, hours(-1), hours(-2)]),
        }
    ),
)
_NAME = st.sampled_from(["a", "b", "c"])
_ACTION = st.one_of(
    *(st.tuples(st.just("put"), _NAME, st.lists(_ROW, max_size=6)) for _ in range(3)),
    st.tuples(st.sampled_from(["again", "undo"]), _NAME, st.just([])),
    # each letter a load
    st.tuples(st.just("prune"), st.sampled_from(["a", "ab", "ac", "bc", "abc"]), st.just([])),
)
Actions = list[tuple[str, str, list[Row]]]
HISTORIES = st.lists(_ACTION, max_size=8)
"""Loads put, put again and undone, and their versions pruned."""


def play(store: JobStore, actions: Actions) -> None:
    """Do the same to a store and to the model, and compare what they say and what readers see."""
    model = Loads()
    last: dict[str, list[Row]] = {}
    for action, load_id, rows in actions:
        if action == "prune":
            removed = model.prune(load_id)
            assert store.prune_versions(load_id, dry_run=True) == removed
            assert store.prune_versions(load_id) == removed
        elif action == "undo":
            undone = model.undo(load_id)
            if undone is None:
                with raised(StoreError):
                    store.undo_load(load_id)
            else:
                assert store.undo_load(load_id) == undone
                last.pop(load_id, None)
        else:
            incoming = last.get(load_id, rows) if action == "again" else rows
            before = store.day_fingerprints(None)
            counts = store.put_jobs([batch(incoming)], load_id)
            said = {item.name: getattr(counts, item.name) for item in dataclasses.fields(Account)}
            assert Account(**said) == model.put(load_id, incoming)
            assert (store.day_fingerprints(None) == before) == (counts.stored + counts.jobs_changed == 0)
            last[load_id] = incoming
        expected = [tuple(row.get(name) for name in JOB_SCHEMA.names) for row in model.visible().values()]
        assert selected(store, *JOB_SCHEMA.names) == sorted(expected, key=repr)
        assert store.span().jobs == len(expected)


@given(HISTORIES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_leaves_what_its_loads_imply(engine: Engine, actions: Actions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = engine.open(Path(folder))
        try:
            play(store, actions)
        finally:
            store.close()


@given(st.permutations(range(5)))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_loads_of_different_end_times_may_come_in_any_order(engine: Engine, order: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = engine.open(Path(folder))
        try:
            superseded = 0
            for number in order:
                superseded += put(store, str(number), job(1, end_time=hours(number), events=number))[2]
            assert selected(store, "events") == [4]
            assert superseded == sum(
                number < max(order[:place]) for place, number in enumerate(order) if place
            )
            for number in (4, 2, 3, 1):
                store.undo_load(str(number))
            assert selected(store, "events") == [0]
        finally:
            store.close()
