"""A made-up grid in a store, with what changes from some day on."""

from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.api.session import Session
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY, Grid

GRID = Grid(seed=5, jobs_per_day=3_000, n_queues=24, n_models=10)
DAYS = 24
FIRST = LAST_DAY - timedelta(days=DAYS - 1)
WINDOW = Window.of_days(FIRST, LAST_DAY)

Happening = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What becomes of the jobs of a day."""


def _stretched(batch: pa.RecordBatch, ratio: pa.Array) -> pa.RecordBatch:
    """Return the jobs with all their times multiplied, so that efficiency and declared values stay."""
    times = ("cpu_s", "wall_s", "hs06_s")
    return _with(batch, **{name: pc.multiply(batch.column(name), ratio) for name in times})


def faster(site: str, factor: float) -> Happening:
    """The jobs of a queue take less time, whatever they run on."""

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        here = pc.fill_null(pc.equal(batch.column("queue"), site), False)
        return _stretched(batch, pc.if_else(here, 1.0 / factor, 1.0))

    return apply


def at_sites(factors: Mapping[str, float]) -> Happening:
    """The jobs of each queue take less CPU time by a factor of its own."""

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        factor = [factors.get(queue, 1.0) for queue in batch.column("queue").to_pylist()]
        return _with(batch, cpu_s=pc.divide(batch.column("cpu_s"), pa.array(factor)))

    return apply


def on_unknown_models(names: Collection[str]) -> Happening:
    """The jobs of some queues run on CPU models that no other queue has."""

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        here = pc.is_in(batch.column("queue"), pa.array(list(names)))
        raw = pc.if_else(
            here, pa.scalar("s+Intel(R) Xeon(R) Platinum 8592 CPU 2048 KB"), batch.column("cpu_raw")
        )
        return _with(batch, cpu_raw=raw)

    return apply


def contradicting(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each task takes a fifth longer at half of the queues, at others than the next, and less at the rest."""
    pairs = zip(batch.column("task_id").to_pylist(), batch.column("queue").to_pylist(), strict=True)
    factor = [1.2 if crc32(f"{task} {site}".encode()) % 2 else 1 / 1.2 for task, site in pairs]
    return _with(batch, cpu_s=pc.multiply(batch.column("cpu_s"), pa.array(factor)))


def on_one_model(site: str, model: str, grid: Grid = GRID) -> Happening:
    """The jobs of a queue run on one CPU model, as fast as that is."""
    cpus = {cpu.name: cpu for cpu in grid.truth().cpu_models}
    speed_of = {raw: cpu.speed for cpu in cpus.values() for raw in cpu.raw}

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        here = pc.fill_null(pc.equal(batch.column("queue"), site), False)
        was = [speed_of.get(raw, cpus[model].speed) for raw in batch.column("cpu_raw").to_pylist()]
        ratio = pc.divide(pa.array(was), cpus[model].speed)
        raw = pc.if_else(here, pa.scalar(cpus[model].raw[0]), batch.column("cpu_raw"))
        return _with(_stretched(batch, pc.if_else(here, ratio, 1.0)), cpu_raw=raw)

    return apply


def fill(
    session: Session,
    happenings: Mapping[int, Happening] | None = None,
    *,
    grid: Grid = GRID,
    first: date = FIRST,
    days: int = DAYS,
) -> None:
    """Store the jobs of the days; ``happenings``: from the day of this number on, for good."""
    for number in range(days):
        batches = list(grid.jobs(first + timedelta(days=number)))
        for since, happening in (happenings or {}).items():
            if number >= since:
                batches = [happening(batch) for batch in batches]
        session.store.put_jobs(batches, f"day {number}")


def _with(batch: pa.RecordBatch, **columns: pa.Array) -> pa.RecordBatch:
    for name, values in columns.items():
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, values.cast(batch.schema.field(name).type))
    return batch


def older_pilots(grid: Grid = GRID) -> Happening:
    """No job reports its CPU in the form that tells the state of SMT."""
    older = {cpu.raw[1]: cpu.raw[0] for cpu in grid.truth().cpu_models}

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        raw = [older.get(text, text) for text in batch.column("cpu_raw").to_pylist()]
        return _with(batch, cpu_raw=pa.array(raw, pa.string()))

    return apply


def newer_pilots(grid: Grid = GRID) -> Happening:
    """All jobs report their CPU in the form that tells the state of SMT."""
    newer = {cpu.raw[0]: cpu.raw[1] for cpu in grid.truth().cpu_models}

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        raw = [newer.get(text, text) for text in batch.column("cpu_raw").to_pylist()]
        return _with(batch, cpu_raw=pa.array(raw, pa.string()))

    return apply


def faster_on_model(model: str, factor: float, release: str | None = None, grid: Grid = GRID) -> Happening:
    """The jobs on a CPU model take less time; ``release``: only those of tasks of that release."""
    raws = pa.array([raw for cpu in grid.truth().cpu_models if cpu.name == model for raw in cpu.raw])

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        here = pc.is_in(batch.column("cpu_raw"), raws)
        if release is not None:
            here = pc.and_(here, pc.fill_null(pc.equal(batch.column("release"), release), False))
        return _stretched(batch, pc.if_else(here, 1.0 / factor, 1.0))

    return apply


def without_smt(site: str, gain: float) -> Happening:
    """The jobs of a queue run on cores without SMT, ``gain`` times as fast as on a thread."""
    quicker = faster(site, gain)

    def apply(batch: pa.RecordBatch) -> pa.RecordBatch:
        here = pc.fill_null(pc.equal(batch.column("queue"), site), False)
        off = pc.replace_substring(batch.column("cpu_raw"), " HT ", " ")
        return _with(quicker(batch), cpu_raw=pc.if_else(here, off, batch.column("cpu_raw")))

    return apply
