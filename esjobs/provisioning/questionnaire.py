"""Reads a questionnaire about a centre: the inputs of an index, entered or measured, and weights."""

import math
import tomllib
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
    """One thing that an index looks at.

    ``value``: as it was entered, None: not known. ``measure``: a metric that the records give instead.
    ``worst``, ``best``: the values worth 0 and 100 points; what lies beyond is worth as much.
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
    """Inputs of a centre in a period; ``where``: which of the stored jobs are of this centre."""

    centre: str
    period: Window
    weights: Mapping[str, float]
    inputs: tuple[Input, ...]
    where: tuple[str, ...] = ()


def read_questionnaire(path: Path, now: datetime) -> Questionnaire:
    """The questionnaire in a file of TOML; ``now``: what words such as ``last-month`` are relative to.

    Raises :class:`InputError` in one line with the file, the place in it, and what is accepted.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read the questionnaire {path}: {error.strerror or error}") from error
    if len(content) > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE >> 10} KiB; name a questionnaire")
    try:
        given = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply; an input is a table of keys") from error
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    try:
        return _questionnaire(given, now)
    except UsageError as error:
        raise InputError(f"{path}: {error}; esjobs provision questions prints one that is right") from error


def _questionnaire(given: Mapping[str, Any], now: datetime) -> Questionnaire:
    _refuse_unknown(given, _KEYS, "")
    listed = given.get("input", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise UsageError("there are no inputs; each is a table [[input]]")
    if len(listed) > _MOST_INPUTS:
        raise UsageError(f"{len(listed):,} inputs are too many; {_MOST_INPUTS} are accepted")
    inputs = tuple(_input(each, f"input {number}: ") for number, each in enumerate(listed, 1))
    names = [(each.area, each.name) for each in inputs]
    for area, name in names:
        if names.count((area, name)) > 1:
            raise UsageError(f"the input '{name}' of {area} is there twice")
    where = given.get("where", [])
    if not isinstance(where, list) or not all(isinstance(each, str) for each in where):
        raise UsageError("where is a list of conditions as texts")
    period = Window.parse(_text(given, "period", ""), now)
    return Questionnaire(_text(given, "centre", ""), period, _weights(given), inputs, tuple(where))


def _weights(given: Mapping[str, Any]) -> Mapping[str, float]:
    own = given.get("weights", {})
    if not isinstance(own, dict):
        raise UsageError("weights is a table of areas")
    _refuse_unknown(own, tuple(AREAS), "weights: ")
    weights = {area: PRIORITY_WEIGHTS[priority] for area, priority in AREAS.items()}
    weights |= {area: _number(own, area, "weights: ", least=0.0, most=_LARGEST_WEIGHT) for area in own}
    if not any(weights.values()):
        raise UsageError("weights: every area weighs 0; give one of them a weight")
    return weights


def _input(given: Mapping[str, Any], place: str) -> Input:
    _refuse_unknown(given, _INPUT_KEYS, place)
    area, name = _text(given, "area", place), _text(given, "name", place)
    if area not in AREAS:
        raise UsageError(f"{place}no area '{area}'; there are {', '.join(AREAS)}")
    if "value" in given and "measure" in given:
        raise UsageError(f"{place}value and measure exclude each other; leave one out")
    measure = _text(given, "measure", place) if "measure" in given else None
    if measure is not None:
        require_measure(measure, place)
    worst, best = _number(given, "worst", place), _number(given, "best", place)
    if worst == best:
        raise UsageError(f"{place}worst and best are the same, {worst:g}; no value lies between them")
    return Input(
        area,
        name,
        worst,
        best,
        _number(given, "value", place) if "value" in given else None,
        measure,
        _number({"weight": 1.0, **given}, "weight", place, least=1e-6, most=_LARGEST_WEIGHT),
    )


def _text(given: Mapping[str, Any], key: str, place: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_TEXT:
        raise UsageError(f"{place}{key} is a text of 1 to {_LONGEST_TEXT} characters")
    return value.strip()


def _number(
    given: Mapping[str, Any], key: str, place: str, least: float = -1e18, most: float = 1e18
) -> float:
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{place}{key} is a number")
    if not math.isfinite(value) or not least <= value <= most:
        raise UsageError(f"{place}{key} is a number from {least:g} to {most:g}, not {value!r:.40}")
    return float(value)


def _refuse_unknown(given: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{place}no key '{key}'; there are {', '.join(known)}")
