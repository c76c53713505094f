"""Questionnaires: inputs of an index, entered or measured, and weights."""

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError, UsageError
from esjobs.core.window import Window
from esjobs.provisioning.measures import require_measure
from esjobs.schema.provisioning_names import AREAS, PRIORITY_WEIGHTS

_LARGEST_FILE = 256 << 10
_MOST_INPUTS = 500
_LONGEST_TEXT = 200
_LARGEST_WEIGHT = 1e6
_KEYS = ("centre", "period", "where", "weights", "input")
_INPUT_KEYS = ("area", "name", "value", "measure", "worst", "best", "weight")


@dataclass(frozen=True)
class Input:
    """Input of an index.

    ``value``: as entered, None if unknown. ``measure``: taken from records instead. ``worst``, ``best``:
    values worth 0 and 100 points.
    """

    area: str
    name: str
    worst: float
    best: float
    value: float | None = None
    measure: str | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Questionnaire:
    """Inputs of a centre in a period; ``where``: conditions that select its jobs."""

    centre: str
    period: Window
    weights: Mapping[str, float]
    inputs: tuple[Input, ...]
    where: tuple[str, ...] = ()


def read_questionnaire(path: Path, now: datetime) -> Questionnaire:
    """Read a questionnaire (TOML); ``now``: reference of periods such as ``last-month``.

    Raises :class:`InputError` in one line with file, position and what is accepted.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read questionnaire {path}: {error.strerror or error}") from error
    if len(content) > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE >> 10} KiB; use a questionnaire")
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError as error:  # tomllib recurses
        raise InputError(f"{path} is nested too deeply; an input must be a table of keys") from error
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from error
    try:
        return _questionnaire(table, now)
    except UsageError as error:
        raise InputError(f"{path}: {error}; a valid example: esjobs provision questions") from error


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _questionnaire(table: Mapping[str, Any], now: datetime) -> Questionnaire:
    _refuse_unknown(table, _KEYS, "")
    listed = table.get("input", [])
    if not listed or not _is_list_of(dict, listed):
        raise UsageError("no inputs; each must be a table [[input]]")
    if len(listed) > _MOST_INPUTS:
        raise UsageError(f"{len(listed):,} inputs are too many; at most {_MOST_INPUTS} are accepted")
    inputs = tuple(_input(each, f"input {number}: ") for number, each in enumerate(listed, 1))
    (area, name), times = Counter((each.area, each.name) for each in inputs).most_common(1)[0]
    if times > 1:
        raise UsageError(f"input '{name}' of {area} occurs twice")
    where = table.get("where", [])
    if not _is_list_of(str, where):
        raise UsageError("where must be a list of conditions as texts")
    period = Window.parse(_text(table, "period", ""), now)
    return Questionnaire(_text(table, "centre", ""), period, _weights(table), inputs, tuple(where))


def _weights(table: Mapping[str, Any]) -> Mapping[str, float]:
    own = table.get("weights", {})
    if not isinstance(own, dict):
        raise UsageError("weights must be a table of areas")
    _refuse_unknown(own, tuple(AREAS), "weights: ")
    weights = {area: PRIORITY_WEIGHTS[priority] for area, priority in AREAS.items()}
    weights |= {area: _number(own, area, "weights: ", least=0.0, most=_LARGEST_WEIGHT) for area in own}
    if not any(weights.values()):
        raise UsageError("weights: all areas have weight 0; set at least one above 0")
    return weights


def _input(table: Mapping[str, Any], position: str) -> Input:
    _refuse_unknown(table, _INPUT_KEYS, position)
    area, name = _text(table, "area", position), _text(table, "name", position)
    if area not in AREAS:
        raise UsageError(f"{position}unknown area '{area}'; use one of: {', '.join(AREAS)}")
    if "value" in table and "measure" in table:
        raise UsageError(f"{position}use either value or measure, not both")
    measure = _text(table, "measure", position) if "measure" in table else None
    if measure is not None:
        require_measure(measure, position)
    worst, best = _number(table, "worst", position), _number(table, "best", position)
    if worst == best:
        raise UsageError(f"{position}worst and best are both {worst:g}; they must differ")
    return Input(
        area,
        name,
        worst,
        best,
        _number(table, "value", position) if "value" in table else None,
        measure,
        _number({"weight": 1.0, **table}, "weight", position, least=1e-6, most=_LARGEST_WEIGHT),
    )


def _text(table: Mapping[str, Any], key: str, position: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_TEXT:
        raise UsageError(f"{position}{key} must be a text of 1 to {_LONGEST_TEXT} characters")
    return value.strip()


def _number(
    table: Mapping[str, Any], key: str, position: str, least: float = -1e18, most: float = 1e18
) -> float:
    value = table.get(key)
    # True is an int
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{position}{key} must be a number")
    if not math.isfinite(value) or not least <= value <= most:
        raise UsageError(f"{position}{key} must be a number from {least:g} to {most:g}; got {value!r:.40}")
    return float(value)


def _refuse_unknown(table: Mapping[str, Any], accepted: tuple[str, ...], position: str) -> None:
    for key in table:
        if key not in accepted:
            raise UsageError(f"{position}unknown key '{key}'; use one of: {', '.join(accepted)}")
