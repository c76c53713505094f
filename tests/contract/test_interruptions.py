"""``kill -9`` at the worst moments: what was committed is there, the rest is not, a rerun completes."""

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from esjobs.core.query import Count, Query, Select
from esjobs.schema.speed import FACTORS
from esjobs.store.base import JobStore
from tests.contract import interrupted
from tests.contract.engines import Engine, variable
from tests.contract.interrupted import factors, jobs
from tests.contract.jobs import groups, visible
from tests.forked import FORKED

FEW = 500
"""Rows where the kill does not come while jobs are written; else so many as the engine writes in pieces."""


def start(engine: Engine, place: Path, moment: str, rows: int) -> tuple[BaseProcess, Connection]:
    """The process that is to die, and what it tells."""
    ear, mouth = FORKED.Pipe(duplex=False)
    server = None if engine.server is None else os.environ[variable(engine.server)]
    process = FORKED.Process(
        target=interrupted.live, args=(engine.name, place, moment, rows, mouth, server), daemon=True
    )
    process.start()
    mouth.close()
    return process, ear


def before(engine: Engine, place: Path, rows: int) -> None:
    """Jobs with one event each, and one published partition."""
    store = engine.open(place)
    store.put_jobs([jobs(1, rows)], "first")
    store.publish([store.replace(FACTORS, "r1", [factors("old")])])
    store.close()


def state(store: JobStore) -> tuple[dict[int, int], set[str]]:
    """Jobs by their number of events, and the names in the published partition."""
    found = groups(store, Query(("day", "queue"), (Count(),)))
    assert sum(row["n_jobs"] for row in found.values()) == store.span().jobs
    events: Counter[int] = Counter()
    for batch in store.select(Select(("events",))):
        events.update(batch.column("events").to_pylist())
    rows = visible(store, FACTORS, columns=("name",))
    assert len(rows) == 10
    return dict(events), {row["name"] for row in rows}


@pytest.mark.parametrize(
    ("moment", "events", "name"),
    [
        ("in put_jobs", 1, "old"),
        ("after put_jobs", 2, "old"),
        ("in replace", 1, "old"),
        ("before publish", 1, "old"),
        ("after publish", 1, "new"),
    ],
)
def test_a_kill_leaves_all_or_nothing(
    durable: Engine, tmp_path: Path, moment: str, events: int, name: str
) -> None:
    rows = durable.rows if "put_jobs" in moment else FEW
    before(durable, tmp_path, rows)
    process, _ = start(durable, tmp_path, moment, rows)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    store = durable.open(tmp_path)
    assert state(store) == ({events: rows}, {name})
    counts = store.put_jobs([jobs(2, rows)], "second")
    assert (counts.stored, counts.updated, counts.superseded) == (0, rows, 0)
    store.publish([store.replace(FACTORS, "r1", [factors("rerun")])])
    store.sweep()
    assert state(store) == ({2: rows}, {"rerun"})
    store.undo_load("second")
    assert state(store) == ({1: rows}, {"rerun"})
    store.close()


def test_a_kill_at_any_time_leaves_a_state_that_once_was(durable: Engine, tmp_path: Path) -> None:
    before(durable, tmp_path, durable.rows)
    process, ear = start(durable, tmp_path, "at any time", durable.rows)
    reached = ear.recv()
    time.sleep(0.37)
    process.kill()
    with suppress(EOFError):
        while True:
            reached = ear.recv()
    process.join(60)
    store = durable.open(tmp_path)
    ((events, count),) = state(store)[0].items()
    (name,) = state(store)[1]
    assert count == durable.rows
    assert events in (reached, reached + 1)
    assert name in (str(reached), str(reached + 1))
    store.close()
