"""Any loads in any order, put and undone, against a model in plain Python."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.engines import Engine
from tests.contract.jobs import Row, hours, job, put, selected
from tests.contract.model import Loads

_ROW = st.builds(
    lambda job_id, source, hour, events: job(job_id, source=source, end_time=hours(hour), events=events),
    st.integers(1, 4),
    st.sampled_from(["panda", "panda", "batch", None]),
    st.sampled_from([0, 1, 2, 30]),
    st.integers(0, 1000),
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
                    assert put(store, load_id, *incoming) == model.put(load_id, incoming)
                    last[load_id] = incoming
                expected = [
                    (row["source"], row["job_id"], row["end_time"], row["events"])
                    for row in model.visible().values()
                ]
                found = selected(store, "source", "job_id", "end_time", "events")
                assert found == sorted(expected, key=repr)
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
