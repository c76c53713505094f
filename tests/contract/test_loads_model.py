"""Any loads in any order, put and undone, against a model in plain Python."""

import dataclasses
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esjobs.core.arrow import JOB_SCHEMA
from tests.contract.engines import Engine
from tests.contract.jobs import Row, batch, hours, job, put, selected
from tests.contract.model import Account, Loads

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
_ACTION = st.tuples(
    st.sampled_from(["put", "put", "put", "again", "undo"]),
    st.sampled_from(["a", "b", "c"]),
    st.lists(_ROW, max_size=6),
)


@given(st.lists(_ACTION, max_size=8))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_leaves_what_its_loads_imply(
    engine: Engine, actions: list[tuple[str, str, list[Row]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = engine.open(Path(folder))
        try:
            model = Loads()
            last: dict[str, list[Row]] = {}
            for action, load_id, rows in actions:
                if action == "undo":
                    assert store.undo_load(load_id) == model.undo(load_id)
                    last.pop(load_id, None)
                else:
                    incoming = last.get(load_id, rows) if action == "again" else rows
                    counts = store.put_jobs([batch(incoming)], load_id)
                    said = {item.name: getattr(counts, item.name) for item in dataclasses.fields(Account)}
                    assert Account(**said) == model.put(load_id, incoming)
                    last[load_id] = incoming
                expected = [
                    tuple(row.get(name) for name in JOB_SCHEMA.names) for row in model.visible().values()
                ]
                assert selected(store, *JOB_SCHEMA.names) == sorted(expected, key=repr)
                assert store.span().jobs == len(expected)
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
