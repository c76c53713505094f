"""How values read: numbers rounded sensibly, names made visible. Nothing here knows HTML or Vega."""

import json
import math
from datetime import UTC, datetime
from typing import Any

from dashboards.spec import Entry
from dashboards.view.rows import Row
from esjobs.core.text import visible
from esjobs.core.window import format_time
from esjobs.core.words import HALF_WIDTH_90, noun, standing

MISSING = "–"
_MINUS, _THIN, _NARROW = "−", "\u2009", "\u202f"
_UNIT_LETTERS = 16
_ROUND_OFF = 1e-12
"""What is no larger is what rounding left of a zero."""


def count(value: float | None) -> str:
    """An integer with thin spaces between thousands.

    >>> count(13012).replace("\\u202f", "_"), count(None)
    ('13_012', '–')
    """
    return MISSING if value is None else f"{round(value):,}".replace(",", _NARROW).replace("-", _MINUS)


def _decimals(value: float) -> int:
    """Places after the point that leave three significant digits, at most six."""
    if value == 0:
        return 2
    return min(6, max(0, 2 - math.floor(math.log10(abs(value)))))


def number(value: float | None, error: float | None = None) -> str:
    """Three significant digits, with the error to the same place; fewer where the error makes them idle.

    >>> number(1.0836, 0.0312), number(1.0836), number(12.345, 0.004), number(0.08, 0.01)
    ('1.08 ± 0.03', '1.08', '12.345 ± 0.004', '0.080 ± 0.010')
    >>> number(1296, 10226), number(1910, 1323)
    ('1000 ± 10000', '1900 ± 1300')
    """
    if value is None:
        return MISSING
    value = value if abs(value) > _ROUND_OFF else 0.0
    if value != 0 and not 1e-6 <= abs(value) < 1e7:
        text = f"{value:.2e}" + (f" ± {error:.0e}" if error is not None else "")
        return text.replace("-", _MINUS)
    places = _decimals(float(f"{value:.3g}"))
    if error is not None and error >= 100:
        places = 1 - math.floor(math.log10(error))
        value, error = round(value, places), round(error, places)
        places = 0
    elif error is not None and error > 0:
        first = -math.floor(math.log10(error))
        places = first if places < first <= places + 2 else max(0, min(places, first + 1))
    return _fixed(value, error, places)


def _fixed(value: float, error: float | None, places: int) -> str:
    """So many places after the point, and no sign before a zero."""
    text = f"{value:z.{places}f}"
    if error is not None:
        text += f" ± {error:.{places}f}"
    return text.replace("-", _MINUS)


def declared(value: float) -> str:
    """A declared score with all its digits, and at least two after the point.

    What was derived from rounded records is not a short number; it is good for two places.

    >>> declared(16.35), declared(10.672), declared(10), declared(16.879691)
    ('16.35', '10.672', '10.00', '16.88')
    """
    places = next((n for n in (2, 3, 4) if math.isclose(round(value, n), value, rel_tol=1e-9)), 2)
    return _fixed(value, None, places)


def estimate(value: float, error: float | None) -> str:
    """A value to the place of the first digit of its error, or of the second where the first is 1.

    >>> estimate(8.871, 0.4436), estimate(11.16, 0.558), estimate(9.94, 0.141)
    ('8.9 ± 0.4', '11.2 ± 0.6', '9.94 ± 0.14')
    """
    if error is None or not 1e-6 < error < 10:
        return number(value, error)
    first = math.floor(math.log10(error))
    leading = round(error / 10.0**first)
    return _fixed(value, error, max(0, (1 if leading == 1 else 0) - first))


def percent(value: float | None, error: float | None = None) -> str:
    """A signed relative deviation in percent, with the half-width of its 90 % interval.

    >>> percent(-0.372, 0.03).replace("\\u202f", " "), percent(0.004).replace("\\u202f", " ")
    ('−37 ± 5 %', '0 %')
    """
    if value is None:
        return MISSING
    text = _whole_percent(value, "+")
    if error is not None:
        text += f" ± {_whole_percent(HALF_WIDTH_90 * error, '')}"
    return text.replace("-", _MINUS) + _NARROW + "%"


def fine_percent(value: float, sign: str = "") -> str:
    """A small relative number in percent, with one decimal below 10 %.

    >>> fine_percent(0.0042, "+").replace("\u202f", " "), fine_percent(0.127).replace("\u202f", " ")
    ('+0.4 %', '13 %')
    """
    if abs(value) >= 0.0995:
        text = _whole_percent(value, sign)
    else:
        text = f"{100 * value:{sign}.1f}" if abs(value) >= 0.0005 else "0.0"
    return text.replace("-", _MINUS) + _NARROW + "%"


def _whole_percent(value: float, sign: str) -> str:
    """Without the sign of percent; beyond a millionfold the size alone says enough."""
    if abs(value) > 1e6:
        return f"{value:{sign}.0e} × 100"
    rounded = round(100 * value)
    return f"{rounded:{sign},d}".replace(",", _NARROW) if rounded else "0"


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
    """What the names of a level are called in a sentence.

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
        known = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return format_time(known.replace(microsecond=0))
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
        return visible(standing(str(value), row.get("confirmed")))
    unit = row.get(entry.unit) if entry.unit else None
    text = _read(value, error, entry) + (f" {_unit(str(unit))}" if unit is not None else "")
    if entry.fixed is not None:
        column, held, remark = entry.fixed
        text += remark if row.get(column) == held else ""
    return text


def _unit(text: str) -> str:
    """The name of a benchmark behind a number; a long one is cut, for the captions give all of it."""
    shown = visible(text)
    return shown if len(shown) <= _UNIT_LETTERS else f"{shown[: _UNIT_LETTERS - 1]}…"


_WITH_ERROR = {"number": number, "estimate": estimate, "percent": percent}


def _read(value: Any, error: Any, entry: Entry) -> str:
    if entry.show in _WITH_ERROR:
        return _WITH_ERROR[entry.show](value, error)
    match entry.show:
        case "count":
            return count(value)
        case "declared":
            return declared(value)
        case "fraction":
            return percent(value).lstrip("+")
        case "shift" | "size":
            return fine_percent(value, "+" if entry.show == "shift" else "")
        case "yesno":
            return "yes" if value else "no"
        case "time":
            return moment(value)
        case "json":
            return visible(readable_json(str(value)))
        case "level":
            return level_name(value)
        case _:
            return visible(str(value))


def numeric(entry: Entry) -> bool:
    """Whether a field is set flush right and sorts by its value."""
    return entry.show in {"count", "number", "declared", "estimate", "percent", "fraction", "shift", "size"}
