"""The lines of ``sacct``: which columns they have, and steps joined into their jobs."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zoneinfo import ZoneInfo

from esjobs.core.errors import InputError, UsageError
from esjobs.core.tables import columns
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats import slurm_cells as cells
from esjobs.records.ingest.formats.commands import main_program, program_of_step
from esjobs.records.ingest.reading.lines import decoded, excerpt
from esjobs.records.ingest.refusals import Refusals

BARE_COLUMNS = columns(
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed "
    "exitcode state nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
)
"""The columns of a file of 26 cells a row without a header, in which monitoring programs ask for them."""

NOT_ENDED, NOT_RUNNING = "has not ended", "is not running"
STEP_ALONE = "step without its job"

# Columns of free text, which may hold bars.
_FREE = ("jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir")

_COMMENT = "admincomment"
_ID_COLUMNS = ("jobid", "jobidraw")

# Sites choose how times are written (``SLURM_TIME_FORMAT``).
_TIME = re.compile(r"[-+:./TZ\d ]*\d[-+:./TZ\d ]*", re.ASCII)
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
# Columns whose cells are known by their shape, by which a cell of free text is found that holds a bar.
_SHAPES = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsedraw", "timelimitraw", "nnodes", "ncpus", "alloccpus", "reqcpus", "uid"), _COUNT),
    **dict.fromkeys(("elapsed", "suspended"), re.compile(r"(\d+-)?\d+:\d\d:\d\d", re.ASCII)),
    "state": re.compile(r"[A-Z_]+\+?( by \w+)?"),
}

# How a command line begins by which jobs are submitted
_SUBMITTED = re.compile(r"(\S*/)?(sbatch|srun|salloc)\b")

_ID = re.compile(r"\d+(_\S+)?(\+\d+)?(\.\S+)?", re.ASCII)

# Steps that programs were launched as; ``batch``, ``extern`` and ``interactive`` are Slurm's own.
_STEP = re.compile(r"\d+(\+\d+)?", re.ASCII)


@dataclass
class Row:
    """A line: its number, its bytes, its cells. ``program``: of a job, what its steps ran."""

    number: int
    raw: bytes
    cells: list[str]
    program: str | None = None


@dataclass
class Heading:
    """The columns of a file. ``named``: its first line says them; ``closed``: a bar ends every row, too."""

    names: tuple[str, ...]
    named: bool
    closed: bool = False

    @cached_property
    def at(self) -> dict[str, int]:
        """Positions of the columns."""
        return {name: position for position, name in enumerate(self.names)}


@dataclass
class Account:
    """Counts for the notes on a file. ``ignored``: what was, by text."""

    joined: int = 0
    continued: int = 0
    impossible: int = 0
    twice: int = 0
    of_one_task: int = 0
    attempts: int = 0
    ignored: Counter[str] = field(default_factory=Counter)


def heading_of(line: bytes, requested: object, file: str) -> Heading:
    """The columns: as the first line names them, as they are given, or those of the usual 26."""
    first = line.decode("utf-8", "replace").rstrip("\r").split("|")
    names = tuple(cell.strip().lower() for cell in first)
    if "jobid" in names or "jobidraw" in names:
        if requested is not None:
            raise UsageError(f"{file} has a header; omit columns=")
        return _named_heading(names, file)
    if requested is not None:
        return Heading(_requested_names(str(requested)), named=False)
    if _is_bare(first):
        return Heading(BARE_COLUMNS, named=False)
    raise InputError(
        f"{file}: the first line is not a header of sacct ({len(first)} cells between bars, no JobID). Run "
        "sacct with --parsable2 and without --noheader, or use --set columns=jobid,jobidraw,..."
    )


def _named_heading(names: tuple[str, ...], file: str) -> Heading:
    # --parsable ends each line with a bar, --parsable2 does not
    closed = names[-1] == ""
    names = names[:-1] if closed else names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{file}: column {twice} appears {names.count(twice)} times; keep one")
    return Heading(names, named=True, closed=closed)


def _requested_names(requested: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in requested.split(","))
    if len(set(names)) < len(names) or not {"jobid", "jobidraw"} & set(names):
        raise UsageError("columns= must list each column of sacct once, including jobid or jobidraw")
    return names


def _is_bare(first: Sequence[str]) -> bool:
    if len(first) != len(BARE_COLUMNS):
        return False
    end = first[BARE_COLUMNS.index("end")]
    return end in cells.NOTHING or cells.utc(end, ZoneInfo("UTC"))[0] != end


def rows_in(
    numbered: Sequence[tuple[int, bytes]],
    heading: Heading,
    refusals: Refusals,
    account: Account,
    begun: Sequence[Row] = (),
) -> list[Row]:
    """Split lines into cells, after ``begun``; rows of another width are rejected.

    Free text in the last column may span lines: all but the first are counted and omitted.
    """
    rows = list(begun)
    width = len(heading.names)
    before = rows[-1].number if rows else 0
    for number, line in numbered:
        raw = line.rstrip(b"\r")
        if not raw.strip():
            continue
        try:
            split = decoded(raw).split("|")
        except RowError as error:
            refusals.refuse(error, number, excerpt(raw))
            continue
        # sacct -p ends every line with a bar, -P does not
        if len(split) == width + 1 and split[-1] == "":
            del split[-1]
        if len(split) > width:
            split = _with_bars(split, heading)
        if len(split) < width and rows and before == rows[-1].number and _continues(split, heading):
            # nothing that is read stands there, and there may be no end of it
            account.continued += 1
            continue
        before = number
        if len(split) != width:
            detail = (
                f"{len(split)} cells; accepted: {width}, as in the header (print JobName and SubmitLine last)"
            )
            refusals.refuse(RowError("wrong number of columns", "", detail), number, excerpt(raw))
            continue
        rows.append(Row(number, _without_comment(raw, split, heading), split))
    return rows


def _without_comment(raw: bytes, split: Sequence[str], heading: Heading) -> bytes:
    # people write into it, too: no excerpt of a refused row may keep it
    return raw.replace(split[heading.at[_COMMENT]].encode(), b"", 1) if _COMMENT in heading.at else raw


def _continues(split: Sequence[str], heading: Heading) -> bool:
    at = heading.at.get("jobid", heading.at.get("jobidraw", 0))
    return heading.names[-1] in _FREE and not (at < len(split) and _ID.fullmatch(split[at].strip()))


def _with_bars(split: list[str], heading: Heading) -> list[str]:
    # the bar belongs to the last column, else to the only free text that gives all others their shape
    width = len(heading.names)
    parts = split[:-1] if heading.closed and split[-1] == "" else split
    more = len(parts) - width + 1
    positions = [heading.at[name] for name in _FREE if name in heading.at]
    # a candidate per column of free text: that column swallows the extra bars
    rows = {at: [*parts[:at], "|".join(parts[at : at + more]), *parts[at + more :]] for at in positions}
    possible = [at for at, row in rows.items() if all(_shaped(row, heading))]
    line = heading.at.get("submitline")
    submitted = [at for at in possible if line is not None and _SUBMITTED.match(rows[at][line].strip())]
    # a command line that begins like one is better evidence than shapes
    possible = submitted or possible
    if width - 1 in possible:
        return rows[width - 1]
    return rows[possible[0]] if len(possible) == 1 else split


def _shaped(row: Sequence[str], heading: Heading) -> Iterator[bool]:
    for name, shape in _SHAPES.items():
        at = heading.at.get(name)
        if at is not None:
            cell = row[at].strip()
            yield cell in cells.NOTHING | cells.NO_LIMIT or shape.fullmatch(cell) is not None


def last_job(rows: Sequence[Row], heading: Heading) -> list[Row]:
    """The last job with its steps and attempts so far: more of them may follow."""
    if not rows:
        return []
    job = _cell(rows[-1], heading, *_ID_COLUMNS).partition(".")[0]
    at = len(rows)
    # steps follow their job; attempts of one job follow each other
    while at > 0 and _cell(rows[at - 1], heading, *_ID_COLUMNS).partition(".")[0] == job:
        at -= 1
    return list(rows[at:])


def joined(
    rows: Sequence[Row], heading: Heading, refusals: Refusals, account: Account, running_at: str | None = None
) -> list[Row]:
    """The jobs that have ended, each with what its steps say; ``running_at``: those that run, ended then.

    An attempt after which Slurm runs a job again under its number is a job of its own, named by its start.
    The next attempt may be in another file, so its state decides, or a later start in this file.
    """
    jobs: dict[str, Row] = {}
    steps: dict[str, list[Row]] = {}
    ended: list[tuple[Row, list[Row]]] = []
    for row in rows:
        name = _cell(row, heading, *_ID_COLUMNS)
        job, dot, _ = name.partition(".")
        if not dot:
            before = jobs.get(job)
            newest = row if before is None else max(before, row, key=lambda one: _begun(one, heading))
            jobs[job] = newest
            # steps that follow are of this attempt
            steps.pop(job, None)
            if before is not None and _begun(before, heading) != _begun(row, heading):
                _name_attempt(before if newest is row else row, heading, account)
            if _refused(row, heading, refusals) if running_at is None else _idle(row, heading, refusals):
                continue
            if running_at is not None:
                row.cells[heading.at["end"]] = running_at
            steps[job] = []
            ended.append((row, steps[job]))
            if _runs_again(row, heading):
                _name_attempt(row, heading, account)
        elif job in jobs:
            account.joined += 1
            if job in steps:
                steps[job].append(row)
        else:
            detail = f"no row of job {job} precedes its step; accepted: a job, then its steps"
            refusals.refuse(RowError(STEP_ALONE, "job_id", detail), row.number, excerpt(row.raw))
    for row, its_steps in ended:
        _take(row, its_steps, heading, account)
        row.program = main_program(_programs(its_steps, heading))
    return [row for row, _ in ended]


def _begun(row: Row, heading: Heading) -> tuple[bool, str]:
    """Return the start of a job, for comparisons: one without begins last."""
    start = _cell(row, heading, "start")
    return start in cells.NOTHING, start


def _runs_again(row: Row, heading: Heading) -> bool:
    word = cells.state_word(_cell(row, heading, "state"))
    return word in cells.RUN_AGAIN and _cell(row, heading, "end") not in cells.NOTHING


def _name_attempt(row: Row, heading: Heading, account: Account) -> None:
    start = _cell(row, heading, "start")
    for name in ("jobid", "jobidraw"):
        at = heading.at.get(name)
        if at is not None and "@" not in row.cells[at] and start not in cells.NOTHING:
            row.cells[at] = f"{row.cells[at].strip()}@{start}"
            account.attempts += name == ("jobidraw" if "jobidraw" in heading.at else "jobid")


def _programs(steps: Sequence[Row], heading: Heading) -> Iterator[tuple[str | None, float]]:
    for step in steps:
        number, name = _cell(step, heading, *_ID_COLUMNS).partition(".")[2], _cell(step, heading, "jobname")
        if _STEP.fullmatch(number) and name not in cells.NOTHING:
            elapsed = _cell(step, heading, "elapsedraw", "elapsed")
            seconds = cells.integer(elapsed)
            if seconds is None:
                seconds = cells.integer((cells.seconds(elapsed) or "").partition(".")[0])
            yield program_of_step(name, _cell(step, heading, "submitline")), float(seconds or 0)


def _refused(row: Row, heading: Heading, refusals: Refusals) -> bool:
    word = cells.state_word(_cell(row, heading, "state"))
    open_end = "end" in heading.at and _cell(row, heading, "end") in cells.NOTHING
    if (word not in cells.UNFINISHED and not (open_end and not word)) or _runs_again(row, heading):
        return False
    detail = f"the job is {word or 'without an end'}; accepted: jobs that have ended. Export it again later"
    refusals.refuse(RowError(NOT_ENDED, "state", detail), row.number, excerpt(row.raw))
    return True


def _idle(row: Row, heading: Heading, refusals: Refusals) -> bool:
    word = cells.state_word(_cell(row, heading, "state"))
    if word == "RUNNING":
        return False
    detail = f"the job is {word or 'without a state'}; accepted: RUNNING"
    refusals.refuse(RowError(NOT_RUNNING, "state", detail), row.number, excerpt(row.raw))
    return True


def _take(job: Row, steps: Sequence[Row], heading: Heading, account: Account) -> None:
    # the largest memory of job and steps, and sums of what only steps have
    for at in _columns(heading, "maxrss"):
        of_steps = [_memory(row, heading) for row in (job, *steps)]
        # of a step of many tasks the memory of one says nothing of the job's
        account.of_one_task += None in of_steps
        found = [text for text in of_steps if text is not None and text not in cells.NOTHING]
        job.cells[at] = "" if None in of_steps else _largest(found) or job.cells[at]
    for at in _columns(heading, "totalcpu", "systemcpu"):
        if job.cells[at].strip() in cells.NOTHING or not job.cells[at].strip("0:. "):
            # some versions leave the CPU time of the job at 0, and have it in the steps
            job.cells[at] = _total(_filled_cells(steps, at)) or job.cells[at]
    for at in _columns(heading, "tresusageintot", "tresusageouttot"):
        if job.cells[at].strip() in cells.NOTHING:
            job.cells[at] = _disk(steps, at) or job.cells[at]


def _columns(heading: Heading, *names: str) -> list[int]:
    return [heading.at[name] for name in names if name in heading.at]


def _memory(row: Row, heading: Heading) -> str | None:
    """Return the memory of all tasks of a step as ``sacct`` writes sizes; None if that of one is all."""
    largest = _cell(row, heading, "maxrss")
    total = cells.resources(_cell(row, heading, "tresusageintot")).get("mem")
    if total is not None:
        return _largest([text for text in (total, largest) if text not in cells.NOTHING])
    n_tasks = cells.integer(_cell(row, heading, "ntasks"))
    if n_tasks is None:
        # without NTasks: a launched step on several nodes has several tasks
        nodes = cells.integer(_cell(row, heading, "nnodes", "allocnodes")) or 1
        launched = _STEP.fullmatch(_cell(row, heading, *_ID_COLUMNS).partition(".")[2])
        return None if nodes > 1 and launched and largest not in cells.NOTHING else largest
    mean = cells.bytes_of(_cell(row, heading, "averss"))
    if n_tasks > 1 and mean is not None and mean.isdigit():
        return str(int(mean) * n_tasks)
    return largest if n_tasks <= 1 or largest in cells.NOTHING else None


def _cell(row: Row, heading: Heading, *names: str) -> str:
    """Return the cell of the first of these columns that the file has; empty without any."""
    at = next((heading.at[name] for name in names if name in heading.at), None)
    return "" if at is None else row.cells[at].strip()


def _disk(steps: Sequence[Row], at: int) -> str | None:
    disk = [cells.resource_bytes(row.cells[at].strip(), "fs/disk") for row in steps]
    found = [text for text in disk if text is not None]
    if not found:
        return None
    # the first that is no size, so that it is rejected
    wrong = next((text for text in found if cells.integer(text) is None), None)
    return f"fs/disk={sum(map(int, found)) if wrong is None else wrong}"


def _filled_cells(rows: Sequence[Row], at: int) -> list[str]:
    texts = (row.cells[at].strip() for row in rows)
    return [text for text in texts if text not in cells.NOTHING]


def _largest(texts: Sequence[str]) -> str | None:
    # as it was written; the first that is no size is returned, so that it is rejected
    sizes: list[tuple[float, str]] = []
    for text in texts:
        try:
            sizes.append((cells.size(text) or 0.0, text))
        except ValueError:
            return text
    return max(sizes)[1] if sizes else None


def _total(texts: Sequence[str]) -> str | None:
    # the first that is no duration is returned, so that it is rejected
    total = 0.0
    for text in texts:
        found = cells.seconds(text)
        if found is None or not found.replace(".", "", 1).isdecimal():
            return text
        total += float(found)
    # in Slurm's own form, as the column is typed later
    return f"0:{total:06.3f}" if texts else None
