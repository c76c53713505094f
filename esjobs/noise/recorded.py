"""Reads recorded times: CSV with ``level`` (%), ``seconds``, and perhaps how long the slowest rank waited."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esjobs.core.errors import InputError, UsageError

COLUMNS = ("level", "seconds", "run_delay_s", "involuntary_switches", "collective", "bytes", "count", "ranks")
"""What a file of runs has; ``level`` and ``seconds`` are enough."""
GATE = 0.015
"""Share of the time that the slowest rank of a run may have waited for a core."""
_LARGEST_FILE = 64 << 20
_LARGEST = 1e9


@dataclass(frozen=True)
class Run:
    """One run: the noise level in per cent, the time of the slowest rank, the share of it waited for a core.

    ``delay``: None where it was not recorded. ``configuration``: collective, bytes, count and ranks.
    """

    level: float
    seconds: float
    delay: float | None
    configuration: tuple[str, ...]


def read_runs(files: Iterable[Path]) -> list[Run]:
    """The runs of some files; all or none.

    Raises :class:`InputError` with file and line for what cannot be read, has no runs, or mixes
    configurations, whose times do not compare.
    """
    return alike([run for path in files for run in _runs(path)])


def alike(runs: list[Run]) -> list[Run]:
    """The runs themselves; :class:`InputError` for none, or for those of several configurations."""
    if not runs:
        raise InputError("the files have no runs; esjobs noise run makes them")
    known = sorted({run.configuration for run in runs})
    if len(known) > 1:
        listed = " and ".join(" ".join(filter(None, each)) or "unnamed" for each in known[:2])
        raise InputError(f"times of different configurations do not compare: {listed}; analyse them apart")
    return runs


def sound(runs: Sequence[Run], gate: float) -> tuple[list[Run], int]:
    """The runs whose slowest rank waited for a core for no more than a share of the time, and how many did.

    The limit is the same for every level: one of its own for each would make differences of its own. Runs
    that recorded no waiting stay. Raises :class:`UsageError` for a gate that is no share.
    """
    if not gate >= 0:
        raise UsageError(f"the gate is a share of the time from 0 on, not {gate:g}")
    kept = [run for run in runs if run.delay is None or run.delay <= gate]
    return kept, len(runs) - len(kept)


def _runs(path: Path) -> list[Run]:
    try:
        with path.open("rb") as stream:
            # a pipe or a device has no size to look at before
            data = stream.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise InputError(f"{path} is larger than {_LARGEST_FILE >> 20} MiB; name a file of runs")
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        for name in COLUMNS[:2]:
            if name not in (reader.fieldnames or ()):
                raise InputError(f"{path} has no column {name}; a file of runs has {', '.join(COLUMNS)}")
        return [_run(row, f"{path}, line {reader.line_num}") for row in reader]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV in UTF-8: {error}") from error


def _run(row: Mapping[str, str | None], place: str) -> Run:
    level = _number(row, "level", place, 0.0, 100.0)
    seconds = _number(row, "seconds", place, 0.0, _LARGEST)
    if seconds == 0:
        raise InputError(f"{place}: seconds is 0; a run takes time")
    waited = _number(row, "run_delay_s", place, 0.0, _LARGEST) if row.get("run_delay_s") else None
    names = tuple((row.get(name) or "") for name in ("collective", "bytes", "count", "ranks"))
    return Run(level, seconds, None if waited is None else waited / seconds, names)


def _number(row: Mapping[str, str | None], name: str, place: str, least: float, most: float) -> float:
    text = row.get(name) or ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise InputError(f"{place}: {name} is a number from {least:g} to {most:g}, not '{text:.40}'")
    return value
