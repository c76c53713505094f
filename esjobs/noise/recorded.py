"""Recorded runs: CSV with ``level`` (%), ``seconds``, and optional waiting of the slowest rank."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esjobs.core.errors import InputError, UsageError

COLUMNS = ("level", "seconds", "run_delay_s", "involuntary_switches", "collective", "bytes", "count", "ranks")
"""Columns of a file of runs; ``level`` and ``seconds`` are required."""
GATE = 0.015
"""Accepted share of the time that the slowest rank waits for a core."""
_LARGEST_FILE = 64 << 20
_LARGEST = 1e9  # Seconds: thirty years


@dataclass(frozen=True)
class Run:
    """Run: noise level in per cent, time of the slowest rank.

    ``delay``: share of the time waited for a core, None if not recorded. ``configuration``: collective,
    bytes, count and ranks.
    """

    level: float
    seconds: float
    delay: float | None
    configuration: tuple[str, ...]


def read_runs(files: Iterable[Path]) -> list[Run]:
    """Read the runs of files; all or none.

    Raises :class:`InputError` with file and line for unreadable files, no runs, or different configurations.
    """
    return same_configuration([run for path in files for run in _runs(path)])


def same_configuration(runs: list[Run]) -> list[Run]:
    """Return the runs; raises :class:`InputError` for none, or for different configurations."""
    if not runs:
        raise InputError("the files contain no runs; record runs: esjobs noise run")
    configurations = sorted({run.configuration for run in runs})
    if len(configurations) > 1:
        listed = " and ".join(" ".join(filter(None, each)) or "unnamed" for each in configurations[:2])
        raise InputError(
            f"times of different configurations cannot be compared: {listed}; analyse them separately"
        )
    return runs


def ungated(runs: Sequence[Run], gate: float) -> tuple[list[Run], int]:
    """Return the runs whose slowest rank waited no longer than the gate, and the number of others.

    All levels share one gate: separate ones would cause differences. Runs without recorded waiting are kept.
    Raises :class:`UsageError` for an invalid gate.
    """
    if not gate >= 0:
        raise UsageError(f"the gate must be a share of the time from 0; got {gate:g}")
    kept = [run for run in runs if run.delay is None or run.delay <= gate]
    return kept, len(runs) - len(kept)


def _runs(path: Path) -> list[Run]:
    try:
        with path.open("rb") as stream:
            # a pipe or a device has no size to look at before
            data = stream.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise InputError(f"{path} is larger than {_LARGEST_FILE >> 20} MiB; use a file of runs")
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        for name in COLUMNS[:2]:
            if name not in (reader.fieldnames or ()):
                raise InputError(f"{path} has no column {name}; a file of runs has {', '.join(COLUMNS)}")
        return [_run(row, f"{path}, line {reader.line_num}") for row in reader]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a UTF-8 CSV file: {error}") from error


def _run(row: Mapping[str, str | None], position: str) -> Run:
    level = _number(row, "level", position, 0.0, 100.0)
    seconds = _number(row, "seconds", position, 0.0, _LARGEST)
    if seconds == 0:
        raise InputError(f"{position}: seconds is 0; it must be positive")
    waited = _number(row, "run_delay_s", position, 0.0, _LARGEST) if row.get("run_delay_s") else None
    names = tuple((row.get(name) or "") for name in ("collective", "bytes", "count", "ranks"))
    return Run(level, seconds, None if waited is None else waited / seconds, names)


def _number(row: Mapping[str, str | None], name: str, position: str, least: float, most: float) -> float:
    text = row.get(name) or ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:  # NaN is in no range
        raise InputError(f"{position}: {name} must be a number from {least:g} to {most:g}; got '{text:.40}'")
    return value
