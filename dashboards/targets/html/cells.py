"""Formatting of values, without HTML or Vega."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from dashboards.spec import Entry, Show
from dashboards.view.rows import Row
from esjobs.core import numbers
from esjobs.core.numbers import MISSING, count, declared, estimate, number
from esjobs.core.text import visible
from esjobs.core.window import format_time
from esjobs.core.words import HALF_WIDTH_90, noun, status_shown

_NARROW = "\u202f"
_UNIT_LETTERS = 16


def percent(value: float | None, error: float | None = None) -> str:
    """A deviation with the half-width of its 90 % interval; it is not broken at the end of a line.

    >>> percent(-0.372, 0.03).replace(_NARROW, " "), percent(0.004).replace(_NARROW, " ")
    ('−37 ± 5 %', '+0.4 %')
    """
    return unbroken(numbers.signed_percent(value, None if error is None else HALF_WIDTH_90 * error))


def unbroken(text: str) -> str:
    """A number whose unit does not begin a line."""
    return text.replace(" %", f"{_NARROW}%")


def readable_json(text: str) -> str:
    """A JSON list or object as words; text that is not JSON is returned as it is.

    >>> readable_json('{"no events": 12, "no cores": 3}'), readable_json("[]"), readable_json("plain")
    ('no events: 12; no cores: 3', '–', 'plain')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return _words(value, "; ") if isinstance(value, dict | list) else text


def _words(value: Any, between: str) -> str:
    """Entries of a list or mapping; what is nested stands in brackets, separated by commas."""
    if isinstance(value, dict):
        return between.join(f"{key}: {_nested(item)}" for key, item in value.items()) or MISSING
    return between.join(_nested(item) for item in value) or MISSING


def _nested(value: Any) -> str:
    match value:
        case dict():
            return f"({_words(value, ', ')})"
        case list():
            return _words(value, ", ")
        case None:
            return MISSING
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case _:
            return str(value)


def level_name(level: object) -> str:
    """Return the plural noun of a level.

    >>> level_name("cpu_model")
    'CPU models'
    """
    return visible(noun(str(level)))


def moment(value: Any) -> str:
    """A time in UTC, to the second, or a day, as ISO 8601; a time without a zone is UTC.

    >>> moment(datetime(2018, 8, 1, 12)), moment(datetime(2018, 8, 1).date())
    ('2018-08-01T12:00:00Z', '2018-08-01')
    """
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return format_time(aware.replace(microsecond=0))
    return visible(str(value))


def value_of(row: Row, entry: Entry) -> Any:
    """The value of one field of a row, divided where the field says so; a division by 0 has no value.

    >>> value_of({"chi2": 30.0, "dof": 20}, Entry("chi2", "", per="dof"))
    1.5
    """
    value = row.get(entry.column)
    if value is None or not entry.per:
        return value
    divisor = row.get(entry.per)
    return value / divisor if divisor else None


def read(row: Row, entry: Entry) -> str:
    """The text of one field of a row, as its panel wants it read."""
    value = value_of(row, entry)
    error = row.get(entry.error) if entry.error else None
    if value is None:
        return MISSING
    if entry.show == "verdict":
        return visible(status_shown(str(value), row.get("confirmed")))
    unit = row.get(entry.unit) if entry.unit else None
    text = _read(value, error, entry)
    # a long name of a benchmark is cut: captions give all of it
    text += "" if unit is None else f" {short(visible(str(unit)), _UNIT_LETTERS)}"
    if entry.fixed is not None:
        column, expected, remark = entry.fixed
        text += remark if row.get(column) == expected else ""
    return text


def short(text: str, letters: int) -> str:
    """Return a text cut to so many letters, the last one an ellipsis.

    >>> short("CERN-PROD", 9), short("CERN-PROD", 5)
    ('CERN-PROD', 'CERN…')
    """
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


_WITH_ERROR = {"number": number, "estimate": estimate, "percent": percent}
_ALONE: Mapping[Show, Callable[[Any], str]] = {
    "count": count,
    "declared": declared,
    "sure": lambda value: unbroken(numbers.sure(value)),
    "fraction": lambda value: unbroken(numbers.percent(value)),
    "size": lambda value: unbroken(numbers.percent(value)),
    "shift": percent,
    "yesno": lambda value: "yes" if value else "no",
    "time": moment,
    "json": lambda value: visible(readable_json(str(value))),
    "level": level_name,
}


def _read(value: Any, error: Any, entry: Entry) -> str:
    if entry.show in _WITH_ERROR:
        return _WITH_ERROR[entry.show](value, error)
    if entry.show in _ALONE:
        return _ALONE[entry.show](value)
    return visible(str(value))


def numeric(entry: Entry) -> bool:
    """True if a field is right-aligned and sorted by value."""
    return entry.show in {*_WITH_ERROR, "count", "declared", "fraction", "sure", "shift", "size"}
