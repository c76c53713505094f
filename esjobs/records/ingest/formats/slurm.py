"""Slurm's accounting as ``sacct`` prints it: cells between bars, with or without a header, steps joined.

Facts about the records, checked on real ones and in Slurm's manual:

- Times are local and name no zone: ``--set timezone=Europe/Berlin`` says which; without it UTC is assumed.
- A job is followed by its steps (``123.batch``, ``123.extern``, ``123.0``). What only steps have is joined
  into the job: the largest memory of a task, CPU time, bytes read and written. A job with its steps is a row.
- ``JobIDRaw`` is what other programs of the cluster know a job by; of a task of an array ``JobID``
  (``123_4``) names the array, which becomes the task: a set of similar jobs.
- ``CPUTime`` is elapsed time x cores, no CPU time that was used; ``TotalCPU`` is.
- Memory: K, M, G are powers of 1024. ``ReqMem`` is per node (``n``), per core (``c``) or for the job;
  ``ReqTRES`` is for the job, and goes first. 2147486648Mn is 2^31 + 3000 per core, printed by a program that
  did not know the bit: such a cell is left out and counted.
- ``ReqTRES`` of old versions leaves GPUs out: none among them is none asked for only where none were given.
- Job names are free text, and may hold a bar. Those of steps are their programs, unless somebody named them.
- ``ConsumedEnergyRaw`` is that of the nodes while the job ran, the job's own only where it had them alone; 0
  and all bits set say that nothing measured it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import InputError, UsageError
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.tables import column
from esjobs.core.words import COUNTER_COLUMN
from esjobs.records.errors.nodes import node_names
from esjobs.records.errors.primary import batch_error, errors_of
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.formats import jobstats
from esjobs.records.ingest.formats import slurm_cells as cells
from esjobs.records.ingest.formats.naming import Naming
from esjobs.records.ingest.formats.slurm_lines import (
    Account,
    Heading,
    Row,
    heading_of,
    joined,
    last_job,
    rows_in,
)
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.layout import Layout, Values, bind, column_of, require, time_between
from esjobs.records.ingest.reading.lines import complete_lines, excerpt
from esjobs.records.ingest.reading.opening import OfText
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block, Context, rows_of
from esjobs.records.names.applications import Applications


def _take_larger(values: dict[str, Values]) -> None:
    # both may fall short, of children and other tasks here, of the last moments there
    for name in values.keys() & _MEASURED:
        recorded = values.setdefault(_MEASURED[name], values[name])
        recorded.values = pc.max_element_wise(recorded.values, values.pop(name).values)


def _derive(applications: Applications, values: dict[str, Values]) -> None:
    _take_larger(values)
    time_between(values, "wall_s", "start_time", "end_time")
    if {"state", "wall_s"} <= values.keys():
        # cancelled while it waited: it has no wall time, and nothing to be judged by
        none = pc.equal(values["wall_s"].values, 0)
        _blank(values["wall_s"], pc.and_(pc.equal(values["state"].values, "cancelled"), none))
    time_between(values, "queue_s", "submit_time", "start_time")
    if {"requested_gpus", "gpus"} <= values.keys():
        requested = values["requested_gpus"]
        _blank(requested, pc.and_(pc.equal(requested.values, 0), pc.greater(values["gpus"].values, 0)))
    if "state" in values:
        codes = {"exit": values["exit_code"].values} if "exit_code" in values else {}
        values["error"] = Values(errors_of(values["state"].values, codes, batch_error))
    if "node" in values:
        values["node"].values = node_names(values["node"].values)
    named = {name: values[name].values for name in ("executable", "job_name") if name in values}
    if named and "application" not in values:
        values["application"] = Values(applications.of_jobs(**named))


def _blank(column: Values, rows: pa.Array) -> None:
    """Set the chosen rows of a column to null."""
    missing = pa.scalar(None, column.values.type)
    column.values = pc.if_else(rows.fill_null(False), missing, column.values)


_MEASURED = {"admincomment/cpu_s": "cpu_s", "admincomment/used_b": "max_rss_b"}

LAYOUT = Layout(
    "slurm",
    (
        column_of("source", "cluster"),
        column_of("job_id", "jobidraw", "jobid"),
        column_of("task_id", "jobid/array"),
        column_of("queue", "partition"),
        column_of("state", "state"),
        column_of("user", "user"),
        column_of("project", "account"),
        column_of("submit_time", "submit"),
        column_of("start_time", "start"),
        column_of("end_time", "end"),
        column_of("cores", "alloccpus", "ncpus", "alloctres/cpu", "admincomment/cpus"),
        column_of("cpu_s", "totalcpu"),
        column_of("wall_s", "elapsedraw", "elapsed"),
        column_of("max_rss_b", "maxrss"),
        column_of("read_b", "tresusageintot/disk"),
        column_of("written_b", "tresusageouttot/disk"),
        column_of("nodes", "allocnodes", "nnodes"),
        column_of("gpus", "alloctres/gpu", "admincomment/gpus"),
        column_of("requested_wall_s", "timelimitraw", "timelimit"),
        column_of("requested_memory_b", "reqtres/mem", "reqmem", "admincomment/limit_b"),
        column_of("requested_cores", "reqcpus", "reqtres/cpu"),
        column_of("requested_gpus", "reqtres/gpu"),
        column_of("cluster", "cluster"),
        column_of("exit_code", "exitcode"),
        column_of("node", "nodelist"),
        column_of("executable", "jobname/program"),
        column_of("job_name", "jobname"),
        column_of("energy_j", "consumedenergyraw"),
        column_of("system_s", "systemcpu"),
        *(replace(column_of(field, name), target=name, lenient=True) for name, field in _MEASURED.items()),
        column_of("counters", members=COUNTER_COLUMN),
    ),
    trim=True,
)

# By column: what a cell becomes. Every other one stays, unless it says nothing.
_PLAIN: Mapping[str, Callable[[str], str | None]] = {
    **dict.fromkeys(("elapsed", "totalcpu", "systemcpu"), cells.seconds),
    "timelimit": cells.limit,
    "timelimitraw": cells.minutes,
    "maxrss": cells.bytes_of,
    "state": cells.state,
    "consumedenergyraw": cells.joules,
}

# What is a part of a column; the column's name comes first.
_PARTS: Mapping[str, Callable[[str], str | None]] = {
    "jobid/array": cells.array_of,
    "alloctres/cpu": lambda text: cells.resources(text).get("cpu"),
    "alloctres/gpu": cells.gpus,
    "reqtres/cpu": lambda text: cells.resources(text).get("cpu"),
    "reqtres/gpu": cells.gpus,
    # --mem=0 requests all memory of the nodes, whatever that is
    "reqtres/mem": lambda text: None if (found := cells.resource_bytes(text, "mem")) == "0" else found,
    "tresusageintot/disk": lambda text: cells.resource_bytes(text, "fs/disk"),
    "tresusageouttot/disk": lambda text: cells.resource_bytes(text, "fs/disk"),
}

_TIMES = ("submit", "start", "end")


@dataclass(frozen=True)
class SlurmSource(Naming, OfText):
    """Output of ``sacct --parsable2`` (or ``--parsable``), UTF-8, plain or gzip.

    ``running_at``: jobs that run are read instead of those that ended, with this end.
    """

    running_at: datetime | None = None
    name: ClassVar[str] = "slurm"
    with_events: ClassVar[bool] = False
    default_source: ClassVar[str] = "slurm"
    settable: ClassVar[tuple[Field, ...]] = (
        *JOB_FIELDS,
        column("timezone", "keyword", "time zone of the file, such as Europe/Berlin; default: UTC"),
        column("columns", "keyword", "for a file without a header: its columns, separated by commas"),
    )

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield jobs a block of lines at a time; steps are joined to their job, across blocks too."""
        jobs_fill = {name: value for name, value in fill.items() if name not in ("timezone", "columns")}
        zone_name = str(fill.get("timezone", "UTC"))
        zone = _zone(zone_name)
        context = Context(file.name, self.default_source, jobs_fill)
        refusals, account, n_rows = Refusals(file.name), Account(), 0
        layout = replace(LAYOUT, derive=partial(_derive, self.applications))
        end = None if self.running_at is None else f"{self.running_at.astimezone(zone):%Y-%m-%dT%H:%M:%S}"
        for rows, heading in self._jobs(file, fill.get("columns"), refusals, account):
            of_jobs = joined(rows, heading, refusals, account, end)
            parsed = _parsed(of_jobs, heading, layout, zone, context, refusals, account)
            n_rows += parsed.rows_in
            yield parsed
        last = refusals.last_piece()
        notes = _notes(file.name, account, n_rows + last.rows_in, None if "timezone" in fill else zone_name)
        yield replace(last, notes=notes, repaired=account.ignored)

    def _jobs(
        self, file: Input, columns: object, refusals: Refusals, account: Account
    ) -> Iterator[tuple[list[Row], Heading]]:
        """Yield the rows of jobs with all their steps, a block of lines at a time."""
        heading: Heading | None = None
        waiting: list[Row] = []
        for lines in complete_lines(file, refusals, "the output of sacct"):
            numbered = [pair for pair in enumerate(lines.data.split(b"\n"), lines.first) if pair[1].strip()]
            if heading is None and numbered:
                # the first line with text decides
                heading = self._heading(numbered[0][1], columns, file)
                # a line that names the columns is no row
                numbered = numbered[int(heading.named) :]
            if heading is not None:
                rows = rows_in(numbered, heading, refusals, account, waiting)
                # steps of the last job may stand in the next block
                waiting = [] if lines.final else last_job(rows, heading)
                yield rows[: len(rows) - len(waiting)], heading
        if waiting and heading is not None:
            yield waiting, heading

    def _heading(self, line: bytes, columns: object, file: Input) -> Heading:
        heading = heading_of(line, columns, file.name)
        if self.running_at is not None and not {"state", "end"} <= heading.at.keys():
            raise InputError(f"{file.name}: State and End missing; add both columns")
        return heading


SLURM = SlurmSource()
"""The format ``slurm``."""


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"timezone={name} is not a time zone; use one such as UTC or Europe/Berlin"
        ) from None


def _parsed(
    jobs: Sequence[Row],
    heading: Heading,
    layout: Layout,
    zone: tzinfo,
    context: Context,
    refusals: Refusals,
    account: Account,
) -> Parsed:
    columns = {name: [row.cells[at].strip() for row in jobs] for name, at in heading.at.items()}
    made = _cells(columns, zone, account)
    if "jobname" in heading.at:
        made["jobname/program"] = [row.program for row in jobs]
    if "admincomment" in columns:
        made |= jobstats.columns(columns["admincomment"], account.ignored)
    # parts of columns, such as reqtres/mem, are columns of their own here
    header = [*dict.fromkeys((*heading.names, *made))]
    binding = bind(layout, header, context.file)
    require(binding, tuple(context.fill), context.file, header)
    block = Block(
        {name: pa.array(values, pa.string()) for name, values in made.items()},
        len(jobs),
        np.array([row.number for row in jobs], dtype=np.int64),
        # messages quote the cell of the file
        lambda row, name: columns[name.partition("/")[0]][row],
        lambda row: excerpt(jobs[row].raw),
    )
    return rows_of(block, binding, context, refusals)


def _text(text: str) -> str | None:
    return None if text in cells.NOTHING else text


def _cells(columns: Mapping[str, list[str]], zone: tzinfo, account: Account) -> dict[str, list[str | None]]:
    made: dict[str, list[str | None]] = {}
    twice: dict[str, list[bool]] = {}
    for name, texts in columns.items():
        if name in _TIMES:
            moments = {text: cells.utc(text, zone) for text in set(texts)}
            made[name] = [moments[text][0] for text in texts]
            twice[name] = [moments[text][1] for text in texts]
        elif name == "reqmem":
            made[name] = _requested(columns, account)
        else:
            made[name] = _each(texts, _PLAIN.get(name, _text))
    for name, part in _PARTS.items():
        if (texts_of := columns.get(name.partition("/")[0])) is not None:
            made[name] = _each(texts_of, part)
    # after all columns: it needs the elapsed time
    account.twice += _settled(columns, made, twice, zone)
    for name in made.keys() & {"nnodes", "allocnodes"}:
        made[name] = _of_those_that_ran(made[name], columns.get("nodelist"))
    return made


def _settled(
    columns: Mapping[str, list[str]],
    made: dict[str, list[str | None]],
    twice: Mapping[str, list[bool]],
    zone: tzinfo,
) -> int:
    """Settle times that the clock showed twice by the elapsed time; return how many it cannot settle."""
    unsettled = sum(map(sum, twice.values()))
    elapsed = made.get("elapsedraw") or made.get("elapsed")
    if not unsettled or elapsed is None or not {"start", "end"} <= made.keys():
        return unsettled
    for row, pair in enumerate(zip(twice["start"], twice["end"], strict=True)):
        if not any(pair):
            continue
        starts, ends = [made["start"][row]], [made["end"][row]]
        for name, candidates, again in zip(("start", "end"), (starts, ends), pair, strict=True):
            if again:
                candidates.append(cells.utc(columns[name][row], zone, fold=1)[0])
        # a start and an end that moved together are an elapsed time apart before and after
        fits = [(start, end) for start in starts for end in ends if cells.lasts(start, end, elapsed[row])]
        if len(fits) == 1:
            made["start"][row], made["end"][row] = fits[0]
            unsettled -= sum(pair)
    return unsettled


def _of_those_that_ran(counts: list[str | None], node_lists: list[str] | None) -> list[str | None]:
    if node_lists is None:
        return counts
    # who never ran had no nodes, whatever the record counts
    return [
        None if nodes == "None assigned" else count for nodes, count in zip(node_lists, counts, strict=True)
    ]


def _each(texts: Sequence[str], part: Callable[[str], str | None]) -> list[str | None]:
    # once per distinct cell: columns of accounting repeat few of them
    converted = {text: part(text) for text in set(texts)}
    return [converted[text] for text in texts]


def _requested(columns: Mapping[str, list[str]], account: Account) -> list[str | None]:
    texts = columns["reqmem"]
    # requested counts where recorded, else those that the job got
    nodes, cores = (
        next((columns[name] for name in names if name in columns), [""] * len(texts))
        for names in (("reqnodes", "nnodes", "allocnodes"), ("reqcpus", "ncpus", "alloccpus"))
    )
    triples = list(zip(texts, nodes, cores, strict=True))
    converted = {key: cells.requested_memory(key[0], *map(cells.integer, key[1:])) for key in set(triples)}
    account.impossible += sum(converted[key][1] for key in triples)
    return [converted[key][0] for key in triples]


def _notes(file: str, account: Account, rows: int, assumed: str | None) -> tuple[str, ...]:
    notes = []
    if not rows:
        notes.append(f"{file}: no rows")
    elif assumed is not None:
        notes.append(
            f"{file}: times have no zone; assumed {assumed}. If wrong, use --set timezone=Europe/Berlin (or "
            "another zone)"
        )
    counted = (
        (account.joined, "steps joined into their jobs: {:,}"),
        (account.continued, "continuation lines of names or commands: {:,}"),
        (account.impossible, _IMPOSSIBLE),
        (account.of_one_task, _OF_ONE_TASK),
        (account.attempts, _ATTEMPTS),
        (account.twice, _TWICE),
    )
    return (*notes, *(f"{file}: {text.format(count)}" for count, text in counted if count))


_IMPOSSIBLE = "impossible ReqMem values ignored (such as 2147486648Mn): {:,}; ReqTRES is used where present"
_OF_ONE_TASK = (
    "jobs whose memory is unknown, because MaxRSS is that of one of several tasks: {:,}; add TRESUsageInTot, "
    "or NTasks and AveRSS"
)
_ATTEMPTS = "attempts that Slurm repeats after node failure, preemption or requeue, named JOBID@START: {:,}"
_TWICE = (
    "ambiguous times at the end of summer time that the elapsed time does not settle: {:,}; the earlier one "
    "is used"
)
