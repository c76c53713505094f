"""Counters of a job by ``perf stat``, as text or as cells (``-x,``, ``-x;``): a job record.

Values are read as any locale writes them (1,234 and 1.234 and 1 234 and 1'234; 0,98 and 0.98). Lines of
single cores (``-A``, ``--per-core``) and of intervals (``-I``) are added up, if all of them counted. An event
that several groups counted is taken from the group that counted longest; blocks with the same events
(``--append``) are added up. Of an event that shared its counter with others ``EVENT/running`` keeps the share
of the time that it was counted; below 5 % perf's extrapolation is no measurement, and the event is left out,
counted, as is what was ``<not supported>`` or ``<not counted>``.

The job's id comes from the digits in the file's name or from ``--set job_id=ID``, its queue and end from
``--set``. The program is that of the command that perf names, if it is one and starts no other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from esjobs.core.errors import InputError
from esjobs.core.fields import Field
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.commands import quoted_program
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.reading.inputs import Input

LEAST_SHARE = 0.05
"""Share of the time that an event must have been counted."""

_BLANKS = " \u00a0\u202f\u2009"
_SEPARATORS = _BLANKS + ",.'’"
_UNIT = r"(?:msec|ms|ns|us|Joules|J|MiB|MB|GB|KB|C|Watts|W|%)"
_CORE = r"(?:(?:S\d+)?(?:-?D\d+)?(?:-?L\d+)?(?:-?C\d+)?|CPU\d+|N\d+)"
_ID = re.compile(rf"(?=.){_CORE}")
_LINE = re.compile(
    rf"(?:(?P<core>(?=[SCND]){_CORE})\s+(?:\d+\s{{2,}})?)?"
    rf"(?:(?P<time>\d+[.,]\d{{6,9}})\s+)?"
    rf"(?P<value><not supported>|<not counted>|\d[\d{_SEPARATORS}]*?)\s+"
    rf"(?:(?P<unit>{_UNIT})\s+)?(?P<event>[A-Za-z_][^\s#]*)\s*(?P<rest>(?:#|\().*)?"
)
_SHARE = re.compile(r"\(\s*(\d+(?:[.,]\d+)?)\s*%\)\s*$")
_ELAPSED = re.compile(rf"([\d{_SEPARATORS}]+?)\s+(?:\+-.*)?seconds\s+(time elapsed|user|sys)\b")
_BEGIN = "Performance counter stats for"
_PERF = re.compile(rf"{_BEGIN}|seconds time elapsed|counts\s+unit\s+events")
# A counter of 64 bits that fell below 0 is printed as what is missing to 2^64; none counts that far.
_NEGATIVE = 2.0**63
# Letters of a line of perf; what is longer is none of it.
_LONGEST = 1000

_LACKING = ("<not supported>", "<not counted>")
# Packages and main memory of a node (-a); that of cores lies inside the package.
_ENERGY = ("power/energy-pkg/", "power/energy-ram/")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


@dataclass
class _Count:
    """Count of an event; ``share`` of the time that it was counted, the least of lines added up."""

    value: float
    share: float
    added: bool


@dataclass
class _Block:
    counts: dict[str, _Count] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)

    def add(self, event: str, value: float, share: float, *, part: bool) -> None:
        """Take a line in; ``part``: it is of one core or interval, which are added up."""
        existing = self.counts.get(event)
        if existing is None:
            self.counts[event] = _Count(value, share, part)
        elif part and existing.added:
            existing.value += value
            existing.share = min(existing.share, share)
        # several groups counted it: the longest measurement is the best one
        elif share > existing.share:
            self.counts[event] = _Count(value, share, part)

    def time(self, name: str, seconds: float | None) -> None:
        """Keep a time that is a number."""
        if seconds is not None:
            self.seconds[name] = seconds

    def merge(self, other: "_Block") -> None:
        """Take in another run: what both have counted is added up where they counted the same events."""
        # the same command measured again, else the same run with other events
        same_events = set(self.counts) == set(other.counts)
        for event, count in other.counts.items():
            if same_events:
                self.counts[event].value += count.value
                self.counts[event].share = min(self.counts[event].share, count.share)
            else:
                self.add(event, count.value, count.share, part=False)
        for name, seconds in other.seconds.items():
            self.seconds[name] = seconds + (self.seconds.get(name, 0.0) if same_events else 0.0)


class PerfStat:
    """The format ``perf-stat``."""

    name = "perf-stat"
    default_source = "perf-stat"
    with_events = False
    settable: ClassVar[tuple[Field, ...]] = job_files.OF_ONE_JOB

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield one job with the sums of all measurements in the file, or the file as damaged."""
        try:
            text = job_files.text_of(job_files.content(file), file)
            books = Books(file.name)
            block = _counted(text, books)
            job_id = job_files.job_id_of(file, fill)
            job = {**_job(job_id, block), "executable": quoted_program(text.split(_BEGIN)[1:])}
            yield job_files.job_piece(job, file, fill, self.default_source, books)
        except InputError as error:
            yield job_files.damaged(file, error, None)


def _job(job_id: str, block: _Block) -> dict[str, Any]:
    counters: dict[str, float] = {}
    for event, count in block.counts.items():
        counters[event] = count.value
        if count.share < 1:
            counters[f"{event}/running"] = count.share
    cpu = [block.seconds[name] for name in ("user", "sys") if name in block.seconds]
    clock = block.counts.get("task-clock")
    return {
        "job_id": job_id,
        "wall_s": block.seconds.get("time elapsed"),
        # task-clock is in ms
        "cpu_s": sum(cpu) if len(cpu) == 2 else None if clock is None else clock.value / 1000,
        "system_s": block.seconds.get("sys"),
        "energy_j": sum(counters.get(event, 0.0) for event in _ENERGY) if _ENERGY[0] in counters else None,
        "counters": counters,
    }


def _by_events(blocks: Iterable[_Block], books: Books) -> Iterable[_Block]:
    """Return blocks with different events; those with the same ones are merged."""
    merged: dict[frozenset[str], _Block] = {}
    for block in blocks:
        for event in block.incomplete & set(block.counts):
            del block.counts[event]
            books.repair("events that some cores or intervals did not count, ignored")
        twin = merged.setdefault(frozenset(block.counts), block)
        if twin is not block:
            twin.merge(block)
    return merged.values()


def _counted(text: str, books: Books) -> _Block:
    separator = _separator(text)
    if not separator and not _PERF.search(text):
        raise InputError(f"{books.file} is not an output of perf stat or perf stat -x,")
    blocks = _of_cells(text, separator, books) if separator else _of_text(text, books)
    joined = _Block()
    for block in _by_events(blocks, books):
        joined.merge(block)
    if not joined.counts:
        raise InputError(f"{books.file} has no counts; expected the output of perf stat or perf stat -x,")
    return joined


def _take(
    block: _Block, event: str, value: str, unit: str, share: float, books: Books, *, part: bool
) -> None:
    number = number_in(value, fraction=bool(unit))
    if value in _LACKING:
        what = f"{value.strip('<>')} events, ignored"
    elif number is None:
        what = "values that are not numbers, ignored"
    elif number >= _NEGATIVE:
        what = "counts from 2^63 on (negative), ignored"
    elif share < LEAST_SHARE:
        what = "events counted less than 5 % of the time, ignored"
    else:
        block.add(event, number, share, part=part)
        return
    books.repair(what)
    # a sum over cores or intervals that lacks one of them is not a sum
    if part:
        block.incomplete.add(event)


# -- text ------------------------------------------------------------------------------------------------


def _of_text(text: str, books: Books) -> Iterator[_Block]:
    for part in text.split(_BEGIN):
        block = _Block()
        lines = part.splitlines()
        for number, line in enumerate(lines):
            stripped = line.strip(_BLANKS + "\t")
            if len(stripped) > _LONGEST:
                continue
            if seconds := _ELAPSED.match(stripped):
                block.time(seconds[2], number_in(seconds[1], fraction=True))
            elif match := _LINE.fullmatch(stripped):
                share = _share(match["rest"] or "", lines, number + 1)
                of_part = bool(match["core"] or match["time"])
                _take(block, match["event"], match["value"], match["unit"] or "", share, books, part=of_part)
        if block.counts:
            yield block


def _share(rest: str, lines: list[str], following: int) -> float:
    # the share stands at the end of a line, or of the remarks below it
    for text in (rest, *_remarks(lines, following)):
        if match := _SHARE.search(text):
            return round(float(match[1].replace(",", ".")) / 100, 6)
    return 1.0


def _remarks(lines: list[str], at: int) -> Iterator[str]:
    while at < len(lines) and len(lines[at]) <= _LONGEST and lines[at].strip().startswith("#"):
        yield lines[at]
        at += 1


# -- cells -----------------------------------------------------------------------------------------------


def _separator(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")][:20]
    for separator in (";", ",", "\t", "|"):
        events = sum(_event_at(line.split(separator)) is not None for line in lines)
        # a stray line may have the separator: most must read as cells
        if 2 * events > len(lines):
            return separator
    return ""


def _event_at(cells: list[str]) -> int | None:
    # the event is the first cell that is no number, unit or core, behind value and unit
    for position, cell in enumerate(cells[:7]):
        word = cell.strip()
        if position >= 2 and re.fullmatch(r"[A-Za-z_]\S*", word) and not re.fullmatch(_UNIT, word):
            return position
        skipped = not word or word in _LACKING or _NUMBER.fullmatch(word) or re.fullmatch(_UNIT, word)
        if not (skipped or _ID.fullmatch(word)):
            return None
    return None


def _of_cells(text: str, separator: str, books: Books) -> Iterator[_Block]:
    block = _Block()
    uncounted = 0
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cells = _joined_events(line.split(separator), separator)
        position = _event_at(cells)
        if position is None:
            uncounted += 1
            continue
        value, unit = cells[position - 2].strip(), cells[position - 1].strip()
        before = position - 2
        integral = cells[before - 1] if before else ""
        if separator == "," and unit and integral.isdigit() and re.fullmatch(r"\d\d", value):
            # the comma of a fraction is a separator, too
            before -= 1
            value = f"{cells[before]}.{value}"
        fraction = _share_in(cells, position + 2)
        _take(block, cells[position].strip(), value, unit, fraction, books, part=before > 0)
    books.repair("lines without counts, ignored", uncounted)
    yield block


def _share_in(cells: list[str], at: int) -> float:
    """Return the share of the time that an event was counted; 1 where the cell does not say."""
    share = cells[at].strip().replace(",", ".") if len(cells) > at else ""
    return round(float(share) / 100, 6) if _NUMBER.fullmatch(share) else 1.0


def _joined_events(cells: list[str], separator: str) -> list[str]:
    # an event may hold the separator: cpu/event=0x3c,umask=0x0/
    joined: list[str] = []
    for cell in cells:
        if joined and re.fullmatch(r"[a-z_0-9]+/[^/]*", joined[-1]):
            joined[-1] += separator + cell
        else:
            joined.append(cell)
    return joined


def number_in(text: str, *, fraction: bool) -> float | None:
    """A number as some locale writes it; ``fraction``: it may have a fraction, which counts have not.

    >>> number_in("190 973 918 953", fraction=False), number_in("1.234.567", fraction=False)
    (190973918953.0, 1234567.0)
    >>> number_in("53 065,07", fraction=True), number_in("1,234.50", fraction=True)
    (53065.07, 1234.5)
    """
    text = text.strip(_SEPARATORS)
    if not text or text.strip(_SEPARATORS + "0123456789"):
        return None
    parts = re.split(f"[{_SEPARATORS}]", text)
    grouped = all(len(part) == 3 for part in parts[1:])
    marks = [mark for mark in text if mark in _SEPARATORS]
    # a mark that occurs twice is none of a fraction, nor one before groups of three in a count
    if (fraction or not grouped) and marks[-1:] in ([","], ["."]) and marks.count(marks[-1]) == 1:
        return float("".join(parts[:-1]) + "." + parts[-1])
    # 1,23,45 is a number of no locale that perf knows
    return float("".join(parts)) if grouped or len(parts) == 1 else None
