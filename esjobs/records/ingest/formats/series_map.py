"""Maps of monitoring data in long form: the columns of a file, and its metrics in ours.

A map is TOML; all of it is optional::

    source = "alpha"          # source of the jobs; without it --set source=NAME, or series
    time_unit = "ms"          # of times that are numbers: s, ms, us or ns since 1970
    columns.job_id = "jobid"  # their name of a column
    columns.unit = ["host", "minor_number"]   # joined by /
    wide = "-"                # a column a metric: its name ends before this text, the rest is its unit

    [metrics.nvidia_gpu_duty_cycle]
    name = "gpu_load"         # docs/fields.md, or a name that begins with x_
    factor = 0.01             # into the unit of that metric
    scope = "accelerator"
    kind = "gauge"            # counter: since its start; delta: since the sample before
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from esjobs.core.errors import InputError, UsageError
from esjobs.core.metrics import OTHER, SCOPES, metric

COLUMNS = ("job_id", "metric", "time", "value", "scope", "unit", "source")
"""Columns of the long form."""

REQUIRED = COLUMNS[:4]
"""Columns without which there is no series."""

SHIPPED = ("dcgm", "jobstats", "likwid")
"""Names of maps that come with the package."""

_FOLDER = Path(__file__).with_name("maps")
_LARGEST_FILE = 1 << 20
_NAMES = frozenset(COLUMNS)


class MappedMetric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric of a monitoring system in ours.

    ``kind``: how its values count; a counter and a delta become rates, ``factor`` is applied first.
    """

    name: str
    factor: float = 1.0
    kind: Literal["gauge", "counter", "delta"] = "gauge"
    scope: str | None = None


class SeriesMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns and metrics of files. ``metrics`` without entries: the names are ours.

    ``wide``: separator of metric and unit in the names of columns, where a file has one for each metric.
    """

    source: str | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    wide: str | None = None
    columns: dict[str, str | list[str]] = {}
    metrics: dict[str, MappedMetric] = {}

    def names(self, column: str) -> list[str]:
        """Return the columns of a file that make a column of the long form."""
        named = self.columns.get(column, column)
        return [named] if isinstance(named, str) else named

    def mapped(self, name: str) -> MappedMetric | None:
        """Return the metric for a name in a file; None for an unknown one.

        >>> SeriesMap().mapped("cpu_load").factor, SeriesMap().mapped("cpu")
        (1.0, None)
        """
        found = self.metrics.get(name)
        return found or (MappedMetric(name) if _is_ours(name) else None)


def read_map(path: Path) -> SeriesMap:
    """Read a map: a file, or a shipped one by its name. Raises :class:`InputError` for what is not one."""
    # a file of that name in the folder is meant first
    if str(path) in SHIPPED and not path.exists():
        path = _FOLDER / f"{path}.toml"
    try:
        data = path.read_bytes()[: _LARGEST_FILE + 1]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; use an existing file") from error
    if len(data) > _LARGEST_FILE:
        raise InputError(f"{path} is larger than 1 MiB; use a map of metrics (docs/sources.md)")
    try:
        found = msgspec.convert(tomllib.loads(data.decode()), SeriesMap)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"{path} is not a map of metrics: {reason}; see docs/sources.md") from error
    if wrong := _wrong(found):
        raise InputError(f"{path} is not a map of metrics: {wrong}; see docs/sources.md")
    return found


def _wrong(found: SeriesMap) -> str | None:
    for column in found.columns:
        if column not in _NAMES:
            return f"columns.{column} is unknown; use {', '.join(COLUMNS)}"
        if not found.names(column) or (column != "unit" and len(found.names(column)) > 1):
            return f"columns.{column} requires one name" + (" or more" if column == "unit" else "")
    for name, one in found.metrics.items():
        wrong = _wrong_metric(one)
        if wrong:
            return f"metrics.{name}: {wrong}"
    return None


def _wrong_metric(one: MappedMetric) -> str:
    if not _is_ours(one.name):
        return f"unknown metric '{one.name}'"
    if one.scope is not None and one.scope not in SCOPES:
        return f"unknown scope '{one.scope}'; use {', '.join(SCOPES)}"
    if not 0 < abs(one.factor) < 1e18:
        return f"factor {one.factor:g} is out of range"
    return ""


def _is_ours(name: str) -> bool:
    if name.startswith(OTHER):
        return True
    try:
        metric(name)
    except UsageError:
        return False
    return True
