"""Writes what the store benchmark reads: the made-up grid as canonical Parquet and as PanDA records in CSV.

The CSV has the names, units and column order of an export of the ATLAS jobs index, columns that esjobs does
not read included, and one dirty row in ``DIRTY_EVERY``, of every kind in turn.
"""

import argparse
import io
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from esjobs.records.demo import Grid
from esjobs.records.export.jobs import write_jobs

DIRTY_EVERY = 1000

_KB = 1024
_PANDA: tuple[tuple[str, str | None, int], ...] = (
    ("pandaid", "job_id", 1),
    ("jeditaskid", "task_id", 1),
    ("attemptnr", None, 1),
    ("produsername", "user", 1),
    ("workinggroup", "project", 1),
    ("cloud", None, 1),
    ("prodsourcelabel", None, 1),
    ("processingtype", "processing_type", 1),
    ("transformation", "transformation", 1),
    ("resource_type", None, 1),
    ("computingsite", "queue", 1),
    ("cpuconsumptionunit", "cpu_raw", 1),
    ("jobstatus", "state", 1),
    ("creationtime", "submit_time", 1),
    ("starttime", "start_time", 1),
    ("endtime", "end_time", 1),
    ("actualcorecount", "cores", 1),
    ("corecount", "cores", 1),
    ("currentpriority", None, 1),
    ("nevents", "events", 1),
    ("cpuconsumptiontime", "cpu_s", 1),
    ("wall_time", "wall_s", 1),
    ("hs06sec", "hs06_s", 1),
    ("queue_time", "queue_s", 1),
    ("timeStageIn", "stagein_s", 1),
    ("timeExe", "exe_s", 1),
    ("timeStageOut", "stageout_s", 1),
    ("maxrss", "max_rss_b", _KB),
    ("avgrss", "avg_rss_b", _KB),
    ("maxpss", "max_pss_b", _KB),
    ("avgpss", "avg_pss_b", _KB),
    ("maxvmem", "max_vmem_b", _KB),
    ("IObytesRead", "read_b", _KB),
    ("IObytesWritten", "written_b", _KB),
    ("inputfilebytes", "input_b", 1),
    ("outputfilebytes", "output_b", 1),
    ("failedattempt", "failed_attempts", 1),
)
"""Column of the CSV, field it is made from (None: esjobs does not read it), bytes per unit."""

_NAMES = [name for name, _, _ in _PANDA]
_CONSTANT = pa.array([1], pa.int64())

Cells = list[bytes]


def _cell(name: str, value: bytes) -> Callable[[Cells, Cells], Cells]:
    """Spoil one cell."""
    at = _NAMES.index(name)
    return lambda cells, _: [*cells[:at], value, *cells[at + 1 :]]


def _swapped(cells: Cells, _: Cells) -> Cells:
    start, end = _NAMES.index("starttime"), _NAMES.index("endtime")
    spoiled = list(cells)
    spoiled[start], spoiled[end] = cells[end], cells[start]
    return spoiled


def _older(_: Cells, before: Cells) -> Cells:
    """The job of the row before, as it was while it still ran."""
    spoiled = list(before)
    spoiled[_NAMES.index("endtime")] = before[_NAMES.index("starttime")]
    return spoiled


DIRTY: tuple[tuple[str, Callable[[Cells, Cells], Cells]], ...] = (
    ("not a number", _cell("nevents", b"many")),
    ("negative", _cell("cpuconsumptiontime", b"-5")),
    ("not a whole number", _cell("actualcorecount", b"7.5")),
    ("bad time", _cell("endtime", b"yesterday")),
    ("end before start", _swapped),
    ("missing site", _cell("computingsite", b"")),
    ("not UTF-8", _cell("produsername", b"J\xfcrgen")),
    ("wrong number of columns", lambda cells, _: cells[:-1]),
    ("superseded", _older),
    ("updated", lambda _, before: list(before)),
)
"""Kinds of dirty rows: how the ingest must count the row (``updated`` is no reject), and how to spoil one."""


@dataclass(frozen=True)
class Inputs:
    """What was written; ``dirty``: rows of the CSV that must be counted under each name."""

    first_day: str
    last_day: str
    jobs: int
    panda_rows: int
    dirty: dict[str, int]


def write_inputs(folder: Path, jobs: int, panda_rows: int, seed: int) -> Inputs:
    """Write ``jobs.parquet`` and ``panda.csv``. Memory: a batch of 65 536 jobs."""
    grid = Grid.of_size(jobs, seed=seed)
    days = grid.days(jobs)

    def batches() -> Iterator[pa.RecordBatch]:
        return itertools.chain.from_iterable(map(grid.jobs, days))

    with (folder / "jobs.parquet").open("wb") as stream:
        written = write_jobs(batches(), stream, "parquet")
    rows, dirty = _write_panda(batches(), folder / "panda.csv", panda_rows)
    return Inputs(str(days[0]), str(days[-1]), written, rows, dict(dirty))


def _write_panda(batches: Iterator[pa.RecordBatch], path: Path, wanted: int) -> tuple[int, Counter[str]]:
    kinds = itertools.cycle(DIRTY)
    dirty: Counter[str] = Counter()
    rows = 0
    with path.open("wb") as stream:
        stream.write(",".join(_NAMES).encode() + b"\n")
        for batch in batches:
            lines = _lines(batch.slice(0, wanted - rows))
            for at in range(DIRTY_EVERY // 2, len(lines), DIRTY_EVERY):
                kind, spoil = next(kinds)
                lines[at] = b",".join(spoil(lines[at].split(b","), lines[at - 1].split(b",")))
                dirty[kind] += 1
            stream.write(b"\n".join(lines) + b"\n")
            rows += len(lines)
            if rows >= wanted:
                break
    return rows, dirty


def _lines(batch: pa.RecordBatch) -> list[bytes]:
    columns = [
        pa.repeat(_CONSTANT[0], batch.num_rows) if field is None else _written(batch.column(field), unit)
        for _, field, unit in _PANDA
    ]
    text = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    pyarrow.csv.write_csv(pa.table(columns, names=_NAMES), text, options)
    return text.getvalue().splitlines()


def _written(column: pa.Array, unit: int) -> pa.Array:
    """Times to the second and without a zone, numbers whole, as the index has them."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("s", "UTC")).view(pa.timestamp("s"))
    if pa.types.is_floating(column.type):
        return pc.round(pc.divide(column, float(unit))).cast(pa.int64())
    return column


def main() -> None:
    """Write the inputs and say what they are, as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--panda-rows", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(json.dumps(asdict(write_inputs(args.folder, args.jobs, args.panda_rows, args.seed))))


if __name__ == "__main__":
    main()
