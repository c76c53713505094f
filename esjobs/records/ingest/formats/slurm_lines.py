"""The lines of ``sacct``: which columns they have, and steps joined into their jobs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

from esjobs.core.errors import InputError, UsageError
from esjobs.core.tables import columns
from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.formats import slurm_cells as cells
from esjobs.records.ingest.formats.commands import main_program, program_of_step
from esjobs.records.ingest.reading.lines import excerpt
from esjobs.records.ingest.refusals import Refusals

BARE_COLUMNS = columns(
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed "
    "exitcode state nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
)
"""The columns of a file of 26 cells a row without a header, in which monitoring programs ask for them."""

NOT_ENDED = "has not ended"
STEP_ALONE = "step without its job"

_FREE = ("jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir")
"""Columns of free text, which may hold bars."""

_TIME = re.compile(r"[-+:./TZ\d ]*\d[-+:./TZ\d ]*", re.ASCII)
"""Sites choose how times are written (``SLURM_TIME_FORMAT``)."""
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_SHAPES = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsedraw", "timelimitraw", "nnodes", "ncpus", "alloccpus", "reqcpus", "uid"), _COUNT),
    **dict.fromkeys(("elapsed", "suspended"), re.compile(r"(\d+-)?\d+:\d\d:\d\d", re.ASCII)),
    "state": re.compile(r"[A-Z_]+\+?( by \w+)?"),
}
"""Columns whose cells are known by their shape, by which a cell of free text is found that holds a bar."""

_ID = re.compile(r"\d+(_\S+)?(\+\d+)?(\.\S+)?", re.ASCII)

_STEP = re.compile(r"\d+(\+\d+)?", re.ASCII)
"""Steps that programs were launched as; ``batch``, ``extern`` and ``interactive`` are Slurm's own."""


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
        """Where a column is."""
        return {name: position for position, name in enumerate(self.names)}


@dataclass
class Account:
    """What a reader should know of a file, counted."""

    joined: int = 0
    continued: int = 0
    impossible: int = 0
    twice: int = 0


def heading_of(line: bytes, given: object, file: str) -> Heading:
    """The columns: as the first line names them, as they are given, or those of the usual 26."""
    first = line.decode("utf-8", "replace").rstrip("\r").split("|")
    names = tuple(cell.strip().lower() for cell in first)
    if "jobid" in names or "jobidraw" in names:
        if given is not None:
            raise UsageError(f"{file} has a header; leave columns= out")
        closed = names[-1] == ""
        names = names[:-1] if closed else names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"{file}: column {twice} appears {names.count(twice)} times; keep one")
        return Heading(names, named=True, closed=closed)
    if given is not None:
        named = tuple(name.strip().lower() for name in str(given).split(","))
        if len(set(named)) < len(named) or not {"jobid", "jobidraw"} & set(named):
            raise UsageError("columns= names each column of sacct once, jobid or jobidraw among them")
        return Heading(named, named=False)
    if _is_bare(first):
        return Heading(BARE_COLUMNS, named=False)
    raise InputError(
        f"{file}: the first line is no header of sacct (it has {len(first)} cells between bars and "
        "no JobID); print it with sacct --parsable2, without --noheader, or name the columns with "
        "--set columns=jobid,jobidraw,..."
    )


def _is_bare(first: Sequence[str]) -> bool:
    """Whether a line has the usual columns: as many, and a time where the job ends."""
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
    """Lines as cells, behind those of ``begun``; those that have another number of them are refused.

    Free text may have several lines: where it is the last column, all but the first are counted and left out.
    """
    rows = list(begun)
    width = len(heading.names)
    before = rows[-1].number if rows else 0
    for number, line in numbered:
        raw = line.rstrip(b"\r")
        if not raw.strip():
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            detail = f"byte {raw[error.start]:#04x} at position {error.start + 1}; accepted: UTF-8"
            refusals.add(Reject("not UTF-8", refusals.file, number, "", detail, excerpt(raw)))
            continue
        split = text.split("|")
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
                f"{len(split)} cells; accepted: {width}, as in the header (ask for JobName, SubmitLine last)"
            )
            refusals.add(Reject("wrong number of columns", refusals.file, number, "", detail, excerpt(raw)))
            continue
        rows.append(Row(number, raw, split))
    return rows


def _continues(split: Sequence[str], heading: Heading) -> bool:
    """Whether a line of too few cells can be more of the last one, and is no row that was cut off."""
    at = heading.at.get("jobid", heading.at.get("jobidraw", 0))
    return heading.names[-1] in _FREE and not (at < len(split) and _ID.fullmatch(split[at].strip()))


def _with_bars(split: list[str], heading: Heading) -> list[str]:
    """A row of too many cells, put together where free text holds bars; as it was where that is not told.

    Taken is the last column where it can be that, else the only one with which all others have their shape.
    """
    width = len(heading.names)
    given = split[:-1] if heading.closed and split[-1] == "" else split
    more = len(given) - width + 1
    places = [heading.at[name] for name in _FREE if name in heading.at]
    rows = {at: [*given[:at], "|".join(given[at : at + more]), *given[at + more :]] for at in places}
    possible = [at for at, row in rows.items() if all(_shaped(row, heading))]
    if width - 1 in possible:
        return rows[width - 1]
    return rows[possible[0]] if len(possible) == 1 else split


def _shaped(row: Sequence[str], heading: Heading) -> Iterator[bool]:
    for name, shape in _SHAPES.items():
        at = heading.at.get(name)
        if at is not None:
            cell = row[at].strip()
            yield cell in cells.NOTHING | cells.NO_LIMIT or shape.fullmatch(cell) is not None


def _job_id(row: Row, heading: Heading) -> str:
    position = heading.at.get("jobid", heading.at.get("jobidraw", 0))
    return row.cells[position].strip()


def last_job(rows: Sequence[Row], heading: Heading) -> list[Row]:
    """The last job with its steps so far: more of them may follow."""
    at = len(rows) - 1
    while at > 0 and "." in _job_id(rows[at], heading):
        at -= 1
    return list(rows[max(at, 0) :])


def joined(rows: Sequence[Row], heading: Heading, refusals: Refusals, account: Account) -> list[Row]:
    """The jobs that have ended, each with what its steps say."""
    jobs: dict[str, Row] = {}
    steps: dict[str, list[Row]] = {}
    ended: list[Row] = []
    for row in rows:
        name = _job_id(row, heading)
        job, dot, _ = name.partition(".")
        if not dot:
            jobs[job] = row
            if _refused(row, heading, refusals):
                continue
            ended.append(row)
            steps[job] = []
        elif job in jobs:
            account.joined += 1
            if job in steps:
                steps[job].append(row)
        else:
            detail = f"no row of job {job} stands before its step; accepted: a job, then its steps"
            refusals.add(Reject(STEP_ALONE, refusals.file, row.number, "job_id", detail, excerpt(row.raw)))
    for row in ended:
        _take(row, steps[_job_id(row, heading)], heading)
        row.program = main_program(_programs(steps[_job_id(row, heading)], heading))
    return ended


def _programs(steps: Sequence[Row], heading: Heading) -> Iterator[tuple[str | None, float]]:
    """What the steps of a job ran, and for how long in s; without a column of it no time."""
    at, of_line = heading.at.get("jobname"), heading.at.get("submitline")
    elapsed = heading.at.get("elapsedraw", heading.at.get("elapsed"))
    if at is None:
        return
    for step in steps:
        number = _job_id(step, heading).partition(".")[2]
        name = step.cells[at].strip()
        if _STEP.fullmatch(number) and name not in cells.NOTHING:
            line = None if of_line is None else step.cells[of_line].strip()
            text = "" if elapsed is None else step.cells[elapsed].strip()
            seconds = cells.whole(text)
            if seconds is None:
                seconds = cells.whole((cells.seconds(text) or "").partition(".")[0])
            yield program_of_step(name, line), float(seconds or 0)


def _refused(row: Row, heading: Heading, refusals: Refusals) -> bool:
    """Whether a job has not ended."""
    state = heading.at.get("state")
    end = heading.at.get("end")
    word = "" if state is None else cells.state_word(row.cells[state].strip())
    open_end = end is not None and row.cells[end].strip() in cells.NOTHING
    if word not in cells.UNFINISHED and not (open_end and not word):
        return False
    detail = f"the job is {word or 'without an end'}; accepted: jobs that have ended, ask again when it has"
    refusals.add(Reject(NOT_ENDED, refusals.file, row.number, "state", detail, excerpt(row.raw)))
    return True


def _take(job: Row, steps: Sequence[Row], heading: Heading) -> None:
    """Put into a job the largest memory of its own row and its steps, and sums of what only they say."""
    at = heading.at.get("maxrss")
    if at is not None:
        job.cells[at] = _largest(_known((job, *steps), at)) or job.cells[at]
    at = heading.at.get("totalcpu")
    if at is not None and (job.cells[at].strip() in cells.NOTHING or not job.cells[at].strip("0:. ")):
        job.cells[at] = _total(_known(steps, at)) or job.cells[at]
    for name in ("tresusageintot", "tresusageouttot"):
        at = heading.at.get(name)
        if at is not None and job.cells[at].strip() in cells.NOTHING:
            disk = [cells.resource_bytes(row.cells[at].strip(), "fs/disk") for row in steps]
            known = [text for text in disk if text is not None]
            if known:
                # the first that is no size, so that it is refused
                wrong = next((text for text in known if cells.whole(text) is None), None)
                job.cells[at] = f"fs/disk={sum(map(int, known)) if wrong is None else wrong}"


def _known(rows: Sequence[Row], at: int) -> list[str]:
    """What the rows say in a column, without the cells that say nothing."""
    texts = (row.cells[at].strip() for row in rows)
    return [text for text in texts if text not in cells.NOTHING]


def _largest(texts: Sequence[str]) -> str | None:
    """The largest of some sizes, as it was written; the first that is none, so that it is refused."""
    sizes: list[tuple[float, str]] = []
    for text in texts:
        try:
            sizes.append((cells.size(text) or 0.0, text))
        except ValueError:
            return text
    return max(sizes)[1] if sizes else None


def _total(texts: Sequence[str]) -> str | None:
    """The sum of some durations, as minutes and seconds; the first that is none, so that it is refused."""
    total = 0.0
    for text in texts:
        known = cells.seconds(text)
        if known is None or not known.replace(".", "", 1).isdecimal():
            return text
        total += float(known)
    return f"0:{total:06.3f}" if texts else None
