"""The standard workload format of the Parallel Workloads Archive: 18 numbers a line under comments.

Facts of the format, and of real logs:

- -1 is a missing value. Times are seconds after ``UnixStartTime``, which the header names.
- CPU time and memory are means over the processors of a job: both are multiplied by them. Memory is in kB
  of 1024 B.
- The end of a job is submission + waiting + run time. Some logs know no waiting time (-1): their jobs are
  placed as if they had begun when they were submitted, without a start time, and counted.
- Status 1 is finished, 0 failed, 5 cancelled. 2, 3 and 4 are parts of a job that another line has as a whole:
  they are refused, or each such job would count twice.
- Users, groups and programs are numbers; partitions and queues, too, unless the header names them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import InputError
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.tables import column, columns
from esjobs.records.ingest.base import Parsed, RowError
from esjobs.records.ingest.convert import UTC_TIME
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.layout import Column, Layout, Values, bind, column_of
from esjobs.records.ingest.reading.lines import complete_lines, excerpt
from esjobs.records.ingest.reading.opening import OfText
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block, Context, rows_of

COLUMNS = columns(
    "job_number submit wait run processors mean_cpu mean_memory requested_processors requested_time "
    "requested_memory status user group program queue partition preceding_job think_time"
)
"""The 18 numbers of a line, in the order of the format."""

_END = "submit + wait + run"
PART = "part of a job"
STATES = {"0": "failed", "1": "finished", "5": "cancelled"}
# Partial executions of a job with checkpoints, whose line of status 0 or 1 says all.
_PARTS = frozenset({"2", "3", "4"})
_KB = 1024.0
_LAST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
# Numbers that a header may name, by the word with which its line begins.
_NAMED = {"partition": "partition", "queue": "queue", "user": "user", "group": "group"}


def _derive(values: dict[str, Values]) -> None:
    processors = _numbers(values, "cores")
    # the format has means per processor; jobs have sums
    for name in ("cpu_s", "avg_rss_b"):
        values[name].values = pc.multiply(values[name].values, processors)
    for name in ("avg_rss_b", "requested_memory_b"):
        values[name].values = pc.multiply(values[name].values, _KB)
    requested_cores = pc.coalesce(_numbers(values, "requested_cores"), processors)
    # per processor, too
    values["requested_memory_b"].values = pc.multiply(values["requested_memory_b"].values, requested_cores)
    wait, run = (values[name].values for name in ("queue_s", "wall_s"))
    submit, never = values["after_start_s"].values, values["never_ran"].values
    started = pc.add(submit, wait)
    # cancelled while it waited: it ended then
    length = pc.if_else(pc.and_kleene(never, run.is_null()).fill_null(False), 0.0, run)
    ended = pc.add(pc.add(submit, pc.fill_null(wait, 0.0)), length)
    values["submit_time"] = Values(_moments(values, submit))
    values["start_time"] = Values(pc.if_else(never.fill_null(False), None, _moments(values, started)))
    values["end_time"] = Values(_moments(values, ended))


def _numbers(values: Mapping[str, Values], name: str) -> pa.Array:
    return values[name].values.cast(pa.float64())


def _moments(values: Mapping[str, Values], seconds: pa.Array) -> pa.Array:
    since = pc.add(seconds, values["log_start"].values)
    # beyond what microseconds hold any time will do: it is refused as one outside of the years accepted
    since = pc.max_element_wise(pc.min_element_wise(since, _LAST_S, skip_nulls=False), 0.0, skip_nulls=False)
    return pc.round(pc.multiply(since, 1e6)).cast(pa.int64()).cast(UTC_TIME)


LAYOUT = Layout(
    "swf",
    (
        column_of("job_id", "job_number", unset=-1),
        column_of("queue", "partition", "queue", unset=-1),
        column_of("state", "status", unset=-1),
        column_of("user", "user", unset=-1),
        column_of("project", "group", unset=-1),
        column_of("application", "program", unset=-1),
        column_of("cores", "processors", unset=-1),
        column_of("cpu_s", "mean_cpu", unset=-1),
        column_of("wall_s", "run", unset=-1),
        column_of("queue_s", "wait", unset=-1),
        column_of("avg_rss_b", "mean_memory", unset=-1),
        column_of("requested_wall_s", "requested_time", unset=-1),
        column_of("requested_memory_b", "requested_memory", unset=-1),
        column_of("requested_cores", "requested_processors", unset=-1),
        Column("after_start_s", ("submit",), "number", bounded=True, lenient=True),
        Column("log_start", ("log_start",), "number", lenient=True),
        Column("never_ran", ("never_ran",), "boolean", lenient=True),
        # no column of the file: messages about it name what it follows from
        Column("end_time", (_END,), "time"),
    ),
    nulls=("-1",),
    trim=True,
    derive=_derive,
)


@dataclass
class _Header:
    """Contents of the comments: names of numbers by their kind, start of the log (s since 1970)."""

    start: float | None = None
    names: dict[str, dict[str, str]] = field(default_factory=lambda: {kind: {} for kind in _NAMED.values()})

    def read(self, comment: str) -> None:
        """A line without its semicolon; what is no entry is a remark."""
        label, colon, text = comment.partition(":")
        label, text = label.strip().lower(), text.strip()
        if not colon:
            return
        # the first one: a second would move jobs that are already read
        if label == "unixstarttime" and self.start is None:
            number = text.split()[0] if text else ""
            self.start = float(number) if number.isdecimal() else None
        elif label in _NAMED:
            number, _, name = text.partition(" ")
            if number.isdecimal() and name.strip():
                self.names[_NAMED[label]][number] = name.strip()


@dataclass(frozen=True)
class SwfSource(OfText):
    """Logs of the Parallel Workloads Archive, version 2, plain or gzip."""

    name: str = "swf"
    with_events: ClassVar[bool] = False
    default_source: str = "swf"
    settable: ClassVar[tuple[Field, ...]] = (
        *JOB_FIELDS,
        column("log_start", "number", "start of the log, if its header does not contain it", "s since 1970"),
    )

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield jobs a block of lines at a time; times count from the start of the log."""
        jobs_fill = {name: value for name, value in fill.items() if name != "log_start"}
        context = Context(file.name, self.default_source, jobs_fill)
        refusals, header, n_rows, unplaced = Refusals(file.name), _Header(), 0, 0
        log_start = fill.get("log_start")
        supplied = float(log_start) if isinstance(log_start, int | float) else None
        for lines in complete_lines(file, refusals, "a log of the Parallel Workloads Archive"):
            numbers, raw, rows = _rows(lines.data, lines.first, header, refusals)
            start = header.start if supplied is None else supplied
            if rows and start is None:
                raise InputError(
                    f"{file.name}: no header line '; UnixStartTime: SECONDS' before the first job, so jobs "
                    "have no date; add --set log_start=SECONDS (since 1970, UTC)"
                )
            parsed, without = _parsed(rows, numbers, raw, header, start or 0.0, context, refusals)
            n_rows += parsed.rows_in
            unplaced += without
            yield parsed
        last = refusals.last_piece()
        notes = _notes(file.name, n_rows + last.rows_in, unplaced)
        yield replace(last, notes=tuple(notes))


SWF = SwfSource()
"""The format ``swf``."""


def _notes(name: str, n_rows: int, unplaced: int) -> Iterator[str]:
    if not n_rows:
        yield f"{name}: no rows"
    if unplaced:
        yield (
            f"{name}: {unplaced:,} jobs have no waiting time; they are stored without a start time, as if "
            "they began at submission"
        )


def _rows(
    data: bytes, first: int, header: _Header, refusals: Refusals
) -> tuple[list[int], list[bytes], list[list[bytes]]]:
    numbers: list[int] = []
    raw: list[bytes] = []
    rows: list[list[bytes]] = []
    for number, line in enumerate(data.split(b"\n"), first):
        split = line.split()
        if len(split) == len(COLUMNS) and split[0][:1] != b";" and line.isascii():
            if split[10].decode() in _PARTS:  # the status
                detail = "status 2, 3 or 4: part of a job that another line contains completely"
                refusals.refuse(RowError(PART, "state", detail), number, excerpt(line))
                continue
            numbers.append(number)
            raw.append(line)
            rows.append(split)
        elif not split:
            continue
        elif line.lstrip()[:1] == b";":
            header.read(line.decode("utf-8", "replace").strip().lstrip(";"))
        else:
            detail = f"{len(split)} numbers; accepted: {len(COLUMNS)}, separated by blanks"
            refusals.refuse(RowError("wrong number of columns", "", detail), number, excerpt(line))
    return numbers, raw, rows


def _parsed(
    rows: Sequence[Sequence[bytes]],
    numbers: Sequence[int],
    raw: Sequence[bytes],
    header: _Header,
    start: float,
    context: Context,
    refusals: Refusals,
) -> tuple[Parsed, int]:
    by_column = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    cells = {
        name: pa.array(values, pa.binary()).cast(pa.string())
        for name, values in zip(COLUMNS, by_column, strict=True)
    }
    for kind, names in header.names.items():
        cells[kind] = _replaced(cells[kind], names)
    cells["status"] = _replaced(cells["status"], STATES)
    cells["log_start"] = pa.repeat(pa.scalar(start), len(rows))
    # after the codes are replaced by words
    cells["never_ran"] = pc.and_(pc.equal(cells["status"], "cancelled"), pc.is_in(cells["run"], _NO_TIME))
    cells[_END] = pa.nulls(len(rows), pa.string())
    # the file has no header: its columns are known by position
    binding = bind(LAYOUT, list(cells), context.file)
    block = Block(
        cells,
        len(rows),
        np.array(numbers, dtype=np.int64),
        lambda row, name: str(cells[name][row]),
        lambda row: excerpt(raw[row]),
    )
    parsed = rows_of(block, binding, context, refusals)
    ran = pc.greater(parsed.batch.column("wall_s"), 0.0)
    without = pc.and_(parsed.batch.column("queue_s").is_null(), ran.fill_null(False))
    return parsed, int(pc.sum(without).as_py() or 0)


_NO_TIME = pa.array(["-1", "0"])


def _replaced(cells: pa.Array, names: Mapping[str, str]) -> pa.Array:
    if not names:
        return cells
    codes = pa.array(names.keys(), pa.string())
    found = pa.array(names.values(), pa.string()).take(pc.index_in(cells, codes))
    return pc.coalesce(found, cells)
