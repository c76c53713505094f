"""``kill -9`` at the worst moments: what was committed is there, the rest is not, a rerun completes."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from esjobs.core.query import Count, Query, Select
from esjobs.schema.speed import FACTORS
from esjobs.store.base import JobStore
from tests.contract import interrupted
from tests.contract.engines import Engine
from tests.contract.interrupted import factors, jobs
from tests.contract.jobs import groups, visible

ROOT = Path(__file__).parents[2]


def start(engine: Engine, place: Path, moment: str) -> "subprocess.Popen[str]":
    """The process that is to die."""
    return subprocess.Popen(
        [sys.executable, interrupted.__file__, engine.name, str(place), moment],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def before(engine: Engine, place: Path) -> None:
    """Jobs with one event each, and one published partition."""
    store = engine.open(place)
    store.put_jobs([jobs(1, engine.rows)], "first")
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
    before(durable, tmp_path)
    with start(durable, tmp_path, moment) as process:
        assert process.wait(60) == -signal.SIGKILL
    store = durable.open(tmp_path)
    assert state(store) == ({events: durable.rows}, {name})
    counts = store.put_jobs([jobs(2, durable.rows)], "second")
    assert (counts.stored, counts.updated, counts.superseded) == (0, durable.rows, 0)
    store.publish([store.replace(FACTORS, "r1", [factors("rerun")])])
    store.sweep()
    assert state(store) == ({2: durable.rows}, {"rerun"})
    store.undo_load("second")
    assert state(store) == ({1: durable.rows}, {"rerun"})
    store.close()


def test_a_kill_at_any_time_leaves_a_state_that_once_was(durable: Engine, tmp_path: Path) -> None:
    before(durable, tmp_path)
    reached = 1
    with start(durable, tmp_path, "at any time") as process:
        assert process.stdout is not None
        reached = int(process.stdout.readline())
        time.sleep(0.37)
        process.kill()
        for line in process.stdout:
            reached = int(line)
    store = durable.open(tmp_path)
    ((events, count),) = state(store)[0].items()
    (name,) = state(store)[1]
    assert count == durable.rows
    assert events in (reached, reached + 1)
    assert name in (str(reached), str(reached + 1))
    store.close()
