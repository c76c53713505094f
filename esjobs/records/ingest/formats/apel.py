"""APEL's summaries: jobs of a month summed up per site, VO, user and cores, in blocks of ``Key: value``.

They are sums over jobs, no jobs: they become rows of the table ``accounting``. Facts about the messages,
checked on real ones:

- ``WallDuration`` is not multiplied by ``Processors``, ``CpuDuration`` is summed over cores: the efficiency
  is CPU / (wall x processors), and HS06 x core x s are ``NormalisedWallDuration`` x ``Processors``.
- ``NormalisedWallDuration / WallDuration`` is the declared score per core itself; no factor of 4.
- 12.0, to two digits, means that a site never declared one (:data:`UNDECLARED`).
- Some months multiplied the wall time of multi-core jobs by cores (February 2015 of OSG at every site: CPU /
  wall 0.64, in later months 5 to 7 of 8): nothing in a record tells, so it is said of the file.
- Of very short sums the score is rounded: seconds are whole. The corepower of a site is that of its sums.
- Version 0.4 names the benchmark: ``{hepspec: 11.4, HEPscore23: 15.3}``. Before, it is HS06.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar

from esjobs.core.errors import InputError
from esjobs.core.fields import Field
from esjobs.core.tables import column
from esjobs.records.ingest.base import (
    EXCERPT,
    FIRST_YEAR,
    LAST_YEAR,
    MAX_INTEGER,
    MAX_NUMBER,
    Parsed,
    RowError,
)
from esjobs.records.ingest.formats import entered_tables as tables
from esjobs.records.ingest.reading.delimited import is_utf8
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.lines import LineFeed
from esjobs.records.ingest.reading.opening import OfText, opened
from esjobs.records.ingest.refusals import Refusals
from esjobs.schema.accounting import ABOVE_WALL, ACCOUNTING, NO_CORES, NO_WALL, REMARKS, UNDECLARED
from esjobs.schema.declared import COREPOWER

SUMMARY, NORMALISED = "apel-summary-job-message", "apel-normalised-summary-message"
"""The kinds of messages that are read, as their first line names them."""

_OF_OTHERS = re.compile(r"(apel-[a-z-]+message)\s*:\s*v?[\d.]+", re.IGNORECASE)
_END = "%%"
# rows of a piece: some 20 MB of Python objects
_ROWS = 50_000
# Names of benchmarks in lower case; any other one is left out, and said.
_BENCHMARKS = {"hepspec": "hs06", "hepspec06": "hs06", "hs06": "hs06", "hepscore23": "hs23", "hs23": "hs23"}

_NOTHING = frozenset({"", "none", "null"})
NO_SITE = "no site"
# What is counted of a file beside what is left out, and what people read.
_COUNTED = {**REMARKS, NO_SITE: "no site (their jobs could not be assigned)"}

# Benchmarks of before, whose scores are no HS06.
_OLD = frozenset({"si2k"})
_FIRST_S, _LAST_S = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (FIRST_YEAR, LAST_YEAR + 1))


@dataclass
class _Record:
    """The lines of one record: keys in lower case, number of the first line, start of the text."""

    first: int
    values: dict[str, str]
    text: str
    wrong: str = ""


@dataclass
class _Used:
    """CPU time and wall-clock time x cores, of jobs of one core and of several."""

    single: tuple[float, float] = (0.0, 0.0)
    several: tuple[float, float] = (0.0, 0.0)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row of ``accounting`` that has cores."""
        if row["core_s"] is None:
            return
        kind = "single" if row["processors"] == 1 else "several"
        cpu, core = getattr(self, kind)
        setattr(self, kind, (cpu + row["cpu_s"], core + row["core_s"]))

    def notes(self, file: str) -> tuple[str, ...]:
        """Say it where the wall time of jobs of several cores looks multiplied by cores already."""
        if not self.single[1] or not self.several[1]:
            return ()
        one, more = (cpu / core for cpu, core in (self.single, self.several))
        if more >= _DOUBTFUL * one:
            return ()
        return (
            f"{file}: efficiency is {more:.3f} for multi-core jobs and {one:.3f} for single-core jobs. "
            "Wall-clock times seem to be multiplied by cores already, so these efficiencies are too low",
        )


# Normalised and plain wall time (s) by site, benchmark and month
_Declared = dict[tuple[str, str, date], tuple[float, float]]
# Jobs of several cores are less efficient, but by up to a fifth in the months looked at.
_DOUBTFUL = 0.25


@dataclass(frozen=True)
class ApelSource(OfText):
    """APEL summary messages, versions 0.2 to 0.4, and normalised ones; UTF-8, plain or gzip."""

    name: str = "apel"
    default_source: str = "apel"
    settable: ClassVar[tuple[Field, ...]] = (
        column("corepower", "boolean", "true: import the scores that sites declare as corepower, too"),
    )

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the sums of months, then the values that they declare."""
        refusals = Refusals(file.name)
        declared: _Declared = defaultdict(lambda: (0.0, 0.0))
        remarks: Counter[str] = Counter()
        undeclared = n_rows = 0
        used = _Used()
        rows: list[dict[str, Any]] = []
        for record in _records(file):
            try:
                row = _row(record, file.name, remarks)
            except RowError as error:
                refusals.refuse(error, record.first, record.text)
                continue
            rows.append(row)
            n_rows += 1
            undeclared += row["declared"] is False
            used.add(row)
            _add_declared(row, declared)
            if len(rows) >= _ROWS:
                yield Parsed.of(rows, refusals.take(), table=ACCOUNTING)
                rows = []
        yield Parsed.of(rows, refusals.take(), table=ACCOUNTING)
        notes = (*_notes(file.name, n_rows, undeclared, remarks), *used.notes(file.name))
        yield refusals.last_piece(notes, ACCOUNTING)
        if fill.get("corepower"):
            yield from _corepower(declared, file.name)


APEL = ApelSource()
"""The format ``apel``."""


def _notes(file: str, n_rows: int, undeclared: int, remarks: Counter[str]) -> tuple[str, ...]:
    notes = [] if n_rows else [f"{file}: no rows"]
    if undeclared:
        notes.append(
            f"{file}: {undeclared:,} of {n_rows:,} sums use {UNDECLARED:g} HS06 per core, the default for "
            "undeclared sites; they count as undeclared"
        )
    for remark, count in remarks.most_common():
        # other remarks are names of benchmarks, listed below
        if remark in _COUNTED:
            notes.append(f"{file}: sums with {_COUNTED[remark]}: {count:,}")
    if others := [name for name in remarks if name not in _COUNTED]:
        notes.append(
            f"{file}: ignored scores of {', '.join(sorted(others))}; only HS06 and HEPscore23 are read"
        )
    return tuple(notes)


def _add_declared(row: Mapping[str, Any], declared: _Declared) -> None:
    if not (row["declared"] and row["site"] and row["wall_s"]):
        return
    for benchmark in ("hs06", "hs23"):
        if (work := row[f"{benchmark}_wall_s"]) is not None:
            key = row["site"], benchmark.upper(), row["month"]
            normalised, wall = declared[key]
            declared[key] = normalised + work, wall + row["wall_s"]


def _corepower(declared: _Declared, file: str) -> Iterator[Parsed]:
    # a value that stays is declared once, by the month of its first appearance
    rows: list[dict[str, Any]] = []
    latest: dict[tuple[str, str], float] = {}
    for (site, benchmark, month), (normalised, wall) in sorted(declared.items()):
        value = round(normalised / wall, 4)
        if latest.get((site, benchmark)) == value:
            continue
        latest[site, benchmark] = value
        rows.append(
            {
                "level": "queue",
                "name": site,
                "corepower": value,
                "benchmark": benchmark,
                "valid_from": datetime(month.year, month.month, 1, tzinfo=UTC),
                "site": site,
                "source": f"APEL, {file}",
            }
        )
    note = (
        f"{file}: corepower of {len({row['name'] for row in rows})} sites; queues whose names differ from "
        "the site do not use it"
    )
    yield Parsed.of(rows, notes=(note,), table=COREPOWER)


# -- lines -----------------------------------------------------------------------------------------------


def _records(file: Input) -> Iterator[_Record]:
    """Yield the records of a file; :class:`InputError` if it does not begin like a summary."""
    with opened(file) as source:
        if source.container != "csv":
            raise InputError(f"{file.name} is {source.container}, not an APEL message")
        record: _Record | None = None
        begun = False
        for lines in LineFeed(source.stream, file):
            if lines.overlong:
                record = _with_line(record, lines.first, "", "a line is too long")
                continue
            physical = lines.data.split(b"\n")
            for number, raw in enumerate(physical, lines.first):
                line = raw.decode("utf-8", "replace").strip()
                if not line:
                    continue
                if _OF_OTHERS.fullmatch(line):
                    _require_summary(line, file.name)
                    begun = True
                    continue
                if not begun:
                    _require_key(line, file.name)
                    begun = True
                if line.startswith(_END):
                    if record is not None:
                        yield record
                    record = None
                    continue
                wrong = "" if is_utf8(raw) else f"line {number} is not UTF-8"
                record = _with_line(record, number, line, wrong)
        if record is not None:
            yield record


def _with_line(record: _Record | None, number: int, line: str, wrong: str) -> _Record:
    record = record or _Record(number, {}, "")
    key, colon, value = line.partition(":")
    name = key.strip().lower()
    if not wrong and line and (not colon or not name):
        wrong = f"line {number} is not 'Key: value'"
    if not wrong and name in record.values:
        wrong = f"line {number} repeats the key {key.strip()}"
    record.wrong = record.wrong or wrong
    if line:
        record.values[name] = value.strip()
    # an excerpt needs no more, and a record may have any length
    record.text = (record.text + line + " ")[: 2 * EXCERPT]
    return record


def _require_summary(line: str, file: str) -> None:
    kind = line.partition(":")[0].strip().lower()
    if kind not in (SUMMARY, NORMALISED):
        raise InputError(
            f"{file} is an APEL message of type {kind}; only the summaries of ssmsend are read ({SUMMARY}, "
            f"{NORMALISED})"
        )


def _require_key(line: str, file: str) -> None:
    if not re.match(r"[A-Za-z]+\s*:", line):
        raise InputError(
            f"{file} does not begin like an APEL message; expected 'APEL-summary-job-message: v0.3', or "
            "records of 'Key: value' lines separated by %%"
        )


# -- values ----------------------------------------------------------------------------------------------


def _row(record: _Record, file: str, remarks: Counter[str]) -> dict[str, Any]:
    if record.wrong:
        raise RowError("bad record", "", f"{record.wrong}; accepted: 'Key: value' lines, each key once")
    values = {name: text for name, text in record.values.items() if text.lower() not in _NOTHING}
    wall, cpu = _number(values, "wallduration"), _number(values, "cpuduration")
    cores = tables.whole_in(values, "processors", 0, MAX_INTEGER)
    _number(values, "numberofjobs")
    normalised = _normalised(values, wall, cpu, remarks)
    row: dict[str, Any] = {
        "month": _month(values),
        "site": _site(record.values, remarks),
        "submit_host": values.get("submithost"),
        "infrastructure": values.get("infrastructure") or values.get("infrastructuretype"),
        "vo": values.get("vo"),
        "vo_group": values.get("vogroup"),
        "vo_role": values.get("vorole"),
        "user": values.get("globalusername"),
        # APEL writes 0 where a batch system does not tell
        "processors": cores or None,
        "nodes": tables.whole_in(values, "nodecount", 0, MAX_INTEGER) or None,
        "n_jobs": tables.whole_in(values, "numberofjobs", 0, MAX_INTEGER),
        "first_end": _time(values, "earliestendtime"),
        "last_end": _time(values, "latestendtime"),
        "wall_s": wall,
        "cpu_s": cpu,
        "core_s": wall * cores if cores else None,
        **normalised,
        "source": file,
        "line": record.first,
    }
    for benchmark in ("hs06", "hs23"):
        row[f"{benchmark}_per_core"] = _ratio(normalised[f"{benchmark}_wall_s"], wall)
    row["declared"] = _is_declared(row["hs06_per_core"], row["hs23_per_core"])
    row["efficiency"], row["remark"] = _efficiency(wall, cpu, row["core_s"])
    if row["remark"] is not None:
        remarks[row["remark"]] += 1
    return row


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if under and over is not None else None


def _is_declared(hs06: float | None, hs23: float | None) -> bool | None:
    if hs06 is None or hs23 is not None:
        return None if hs06 is None and hs23 is None else True
    # sums of whole seconds are off by a few in the eighth digit
    return round(hs06, 2) != UNDECLARED


def _efficiency(wall: float, cpu: float, core_s: float | None) -> tuple[float | None, str | None]:
    if not wall:
        return None, NO_WALL
    if core_s is None:
        return None, NO_CORES
    return (None, ABOVE_WALL) if cpu > core_s else (cpu / core_s, None)


def _normalised(
    values: Mapping[str, str], wall: float, cpu: float, remarks: Counter[str]
) -> dict[str, float | None]:
    # normalised times as they are, else by the score per core of the record
    sums: dict[str, float | None] = dict.fromkeys(("hs06_wall_s", "hs06_cpu_s", "hs23_wall_s", "hs23_cpu_s"))
    for key, part in (("normalisedwallduration", "wall_s"), ("normalisedcpuduration", "cpu_s")):
        for benchmark, number in _scores(values, key, remarks):
            sums[f"{benchmark}_{part}"] = number
    old = values.get("serviceleveltype", "").lower() in _OLD
    if old and "servicelevel" in values:
        remarks[values["serviceleveltype"]] += 1
    for benchmark, score in () if old else _scores(values, "servicelevel", remarks):
        for part, seconds in (("wall_s", wall), ("cpu_s", cpu)):
            if sums[f"{benchmark}_{part}"] is None:
                # version 0.2 has a score and no normalised times
                sums[f"{benchmark}_{part}"] = score * seconds
    return sums


def _scores(values: Mapping[str, str], key: str, remarks: Counter[str]) -> Iterator[tuple[str, float]]:
    # a plain number is HS06
    text = values.get(key)
    if text is None:
        return
    if not text.startswith("{"):
        yield "hs06", _number(values, key)
        return
    if not text.endswith("}"):
        raise RowError(
            "not a number", key, f"{key} contains '{text[:60]}'; accepted: a number, or {{hepspec: 10.0}}"
        )
    for item in text[1:-1].split(","):
        name, _, number = item.partition(":")
        benchmark = _BENCHMARKS.get(name.strip().strip("\"'").lower())
        if benchmark is None:
            remarks[name.strip()[:60]] += 1
        else:
            yield benchmark, _number({key: number}, key)


def _site(values: Mapping[str, str], remarks: Counter[str]) -> str | None:
    # "None" stands for jobs that nobody could place
    site = values.get("site")
    if not site:
        raise _missing("site")
    if site.lower() not in _NOTHING:
        return site
    remarks[NO_SITE] += 1
    return None


def _missing(key: str) -> RowError:
    return RowError(f"missing {key}", key, f"{key} is missing or empty; accepted: a value")


def _number(values: Mapping[str, str], key: str) -> float:
    number = tables.amount_in(values, key, MAX_NUMBER)
    if number is None:
        raise _missing(key)
    return number


def _month(values: Mapping[str, str]) -> date:
    _number(values, "month")
    return date(tables.year_in(values), tables.whole_in(values, "month", 1, 12) or 1, 1)


def _time(values: Mapping[str, str], key: str) -> datetime | None:
    seconds = tables.amount_in(values, key, _LAST_S)
    if not seconds:
        return None
    if seconds < _FIRST_S:
        raise RowError("bad time", key, f"{key} contains '{values[key][:60]}'; accepted: seconds since 1970")
    return datetime.fromtimestamp(seconds, UTC)
