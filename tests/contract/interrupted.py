"""What a process does that is killed at a given moment of a write, for ``test_interruptions``."""

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from esjobs.schema.speed import FACTORS
from tests.contract.engines import ENGINES, variable
from tests.contract.jobs import batch, job, table_batch


def jobs(changed: int, rows: int) -> pa.RecordBatch:
    """Many jobs; ``changed`` is their number of events."""
    one = batch([job(0, events=changed)]).take(pa.array([0] * rows))
    ids = pa.array([str(number) for number in range(rows)])
    return one.set_column(one.schema.get_field_index("job_id"), "job_id", ids)


def factors(name: str) -> pa.RecordBatch:
    """Rows of a result table."""
    return table_batch(FACTORS, [{"run": "r1", "name": name}] * 10)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield first
    _die()


def live(engine: str, place: Path, moment: str, rows: int, to: Connection, server: str | None) -> None:
    """Do what ``moment`` names and be killed; ``to``: where it tells what is published."""
    if server is not None:
        os.environ[variable(engine)] = server
    store = ENGINES[engine].open(place)
    match moment:
        case "in put_jobs":
            store.put_jobs(_dying(jobs(2, rows)), "second")
        case "after put_jobs":
            store.put_jobs([jobs(2, rows)], "second")
        case "in replace":
            store.replace(FACTORS, "r1", _dying(factors("new")))
        case "before publish":
            store.replace(FACTORS, "r1", [factors("new")])
        case "after publish":
            store.publish([store.replace(FACTORS, "r1", [factors("new")])])
        case "at any time":
            for number in range(2, 1000):
                store.put_jobs([jobs(number, rows)], str(number))
                store.publish([store.replace(FACTORS, "r1", [factors(str(number))])])
                to.send(number)
    _die()
