"""What conditions on one field mean: texts as values of its type, with units, and filters for a store.

Of the conditions on a field those that name what it may be (``=``, ``~``, ``is missing``) are alternatives;
those that bound or exclude (``<``, ``!=``, ``is present``, ...) must hold, each of them.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import assert_never

from esjobs.core.conditions import ALTERNATIVES, Condition, Operator, matches
from esjobs.core.errors import UsageError, WindowError
from esjobs.core.fields import Field
from esjobs.core.periods import calendar_period
from esjobs.core.query import Days, Either, Filter, In, Like, Missing, NotIn, NotLike, Present, Range, Times
from esjobs.core.window import Window, parse_time

_Alternative = In | NotIn | Missing | Present | Range | Days | Times | Like

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_BYTES = {"b": 1} | {
    f"{letter}{end}": base**power
    for power, letter in enumerate("kmgt", 1)
    for end, base in (("b", 1000), ("ib", 1024))
}
_NUMBER = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf)\s*([a-z%]*)", re.ASCII | re.IGNORECASE
)
_MICROSECOND = timedelta(microseconds=1)


def filters_of(field: Field, conditions: Sequence[Condition]) -> list[Filter]:
    """The filters of all conditions on a field that stores know; all of them must hold.

    Raises :class:`UsageError` for a value that is none of the field's type, or an operator that it has not.
    """
    alternatives = [condition for condition in conditions if condition.operator in ALTERNATIVES]
    filters = _one_of(field, alternatives) if alternatives else []
    for condition in conditions:
        if condition.operator not in ALTERNATIVES:
            filters += _each_of(field, condition)
    return filters


def check(field: Field, conditions: Sequence[Condition]) -> None:
    """Raise :class:`UsageError` unless the conditions make sense for the field, resolved or stored."""
    filters_of(field, conditions)


def holds(conditions: Sequence[Condition], value: str | None) -> bool:
    """Whether the text of a field, which is missing if it is None, meets all conditions on the field."""
    alternatives = [each for each in conditions if each.operator in ALTERNATIVES]
    others = (each for each in conditions if each.operator not in ALTERNATIVES)
    one_of = not alternatives or any(_meets(each, value) for each in alternatives)
    return one_of and all(_meets(each, value) for each in others)


def _meets(condition: Condition, value: str | None) -> bool:
    match condition.operator:
        case "is missing":
            return value is None
        case "is present":
            return value is not None
        case "=":
            return value in condition.values
        case "!=":
            return value is not None and value not in condition.values
        case "~":
            return value is not None and any(matches(value, each) for each in condition.values)
        case "!~":
            return value is not None and not any(matches(value, each) for each in condition.values)
        case _:
            raise UsageError(f"'{condition}' compares a text; texts have = != ~ !~, is missing, is present")


def _one_of(field: Field, conditions: Sequence[Condition]) -> list[Filter]:
    """The alternatives as one filter; nothing but equal values stays one list of values."""
    equal: list[str | int | float] = []
    others: list[_Alternative] = []
    for condition in conditions:
        if condition.operator == "is missing":
            others.append(Missing(field.name))
        elif condition.operator == "~":
            _require_text(field, condition)
            others.append(Like(field.name, condition.values))
        elif field.type == "time":
            others += [_within(field, value, condition) for value in condition.values]
        elif field.type == "day":
            for value in condition.values:
                first, last = _days(field, value, condition)
                if first == last:
                    equal.append(str(first))
                else:
                    others.append(Days(field.name, first, last))
        else:
            equal += [_value(field, value, condition) for value in condition.values]
    others = list(dict.fromkeys(others))
    if equal:
        others.insert(0, In(field.name, tuple(dict.fromkeys(equal))))
    return [others[0]] if len(others) == 1 else [Either(tuple(others))]


def _each_of(field: Field, condition: Condition) -> list[Filter]:
    """The filters of a condition that must hold whatever the others say."""
    name, operator = field.name, condition.operator
    if operator == "is present":
        return [Present(name)]
    if operator == "!~":
        _require_text(field, condition)
        return [Present(name), NotLike(name, condition.values)]
    match field.type:
        case "keyword" | "text":
            if operator != "!=":
                raise UsageError(
                    f"'{condition}': {name} is a text, which is not less or more than another; "
                    "texts have = != ~ !~, is missing, is present"
                )
            return [NotIn(name, condition.values)]
        case "boolean":
            if operator != "!=":
                raise UsageError(f"'{condition}': {name} is true or false, not less or more than something")
            excluded = {_truth(field, value, condition) for value in condition.values}
            return [In(name, tuple(value for value in ("true", "false") if value not in excluded))]
        case "integer" | "number":
            return [_beside(name, _number(field, value, condition), operator) for value in condition.values]
        case "time":
            return [_beside_times(_within(field, value, condition), operator) for value in condition.values]
        case "day":
            return [
                _beside_days(name, *_days(field, value, condition), operator) for value in condition.values
            ]
        case "map" | "list" | "bytes":
            raise _unasked(field, condition)
    assert_never(field.type)


def _unasked(field: Field, condition: Condition) -> UsageError:
    return UsageError(
        f"'{condition}': no condition looks into {field.name}, a {field.type}; "
        "ask whether it is missing, or is present"
    )


def _beside(name: str, number: float, operator: Operator) -> Filter:
    match operator:
        case "<":
            return Range(name, lt=number)
        case "<=":
            return Range(name, le=number)
        case ">":
            return Range(name, gt=number)
        case ">=":
            return Range(name, ge=number)
        case _:
            # below or above: NaN, which is neither, is not different from a number either
            return Either((Range(name, lt=number), Range(name, gt=number)))


def _beside_times(span: Times, operator: Operator) -> Filter:
    """A comparison with a span of time: less than its start, more than what is in it."""
    before, after = Times(span.field, end=span.start), Times(span.field, start=span.end)
    match operator:
        case "<":
            return before
        case "<=":
            return Times(span.field, end=span.end)
        case ">":
            return after
        case ">=":
            return Times(span.field, start=span.start)
        case _:
            return Either((before, after))


def _beside_days(name: str, first: date, last: date, operator: Operator) -> Filter:
    before = Days(name, date.min, first - timedelta(days=1)) if first > date.min else In(name, ())
    after = Days(name, last + timedelta(days=1), date.max) if last < date.max else In(name, ())
    match operator:
        case "<":
            return before
        case "<=":
            return Days(name, date.min, last)
        case ">":
            return after
        case ">=":
            return Days(name, first, date.max)
        case _:
            return Either((before, after))


def _require_text(field: Field, condition: Condition) -> None:
    if field.type not in ("keyword", "text"):
        what = f"{field.name} is of type {field.type}"
        raise UsageError(f"'{condition}': only texts match patterns, and {what}")


def _value(field: Field, text: str, condition: Condition) -> str | int | float:
    """A value that a field may equal."""
    match field.type:
        case "integer" | "number":
            return _number(field, text, condition)
        case "boolean":
            return _truth(field, text, condition)
        case "map" | "list" | "bytes":
            raise _unasked(field, condition)
    return text


def _truth(field: Field, text: str, condition: Condition) -> str:
    known = {"true": "true", "1": "true", "yes": "true", "false": "false", "0": "false", "no": "false"}
    if (value := known.get(text.lower())) is None:
        raise UsageError(f"'{condition}': {field.name} is true or false, not '{text}'")
    return value


def _number(field: Field, text: str, condition: Condition) -> int | float:
    """A number, in the unit of the field or in one that is named: ``2h``, ``2GB``, ``10%``."""
    number = number_in_unit(field, text)
    if number is None:
        units = units_of(field)
        known = f", or with a unit: {', '.join(units)}" if units else ""
        raise UsageError(f"'{condition}': '{text}' is no {field.type}, which {field.name} is{known}")
    return number


def number_in_unit(field: Field, text: str) -> int | float | None:
    """A number as :func:`_number` reads it; None for what is none, or in a unit that the field has not.

    >>> from esjobs.core import fields
    >>> number_in_unit(fields.field("queue_s"), "2h"), number_in_unit(fields.field("queue_s"), "2GB")
    (7200, None)
    """
    parts = _NUMBER.fullmatch(text.strip())
    units = units_of(field)
    if parts is None or (parts[2] and parts[2].lower() not in units):
        return None
    digits, unit = parts[1], parts[2].lower()
    # an integer stays exact, as far as stores know integers; others are the same number as a double
    number = int(digits) if re.fullmatch(r"[+-]?\d{1,18}", digits, re.ASCII) else float(digits)
    scale = units.get(unit, 1)
    return number / 100 if scale == _PERCENT else number * scale


_PERCENT = 0.01


def units_of(field: Field) -> dict[str, float]:
    """The units in which values of a field may be given, by their names in small letters.

    Seconds, also those of cores, as ``min``, ``h``, ``d``; bytes as ``kB``, ``GiB``, ...; fractions as ``%``.
    """
    if field.type not in ("integer", "number"):
        return {}
    if field.unit.split(" ")[-1] == "s":
        return dict(_SECONDS)
    if field.unit == "B":
        return dict(_BYTES)
    return {"%": _PERCENT} if field.type == "number" and not field.unit else {}


def _within(field: Field, text: str, condition: Condition) -> Times:
    """The times that a text stands for: those of a day, a month, ..., or one moment."""
    try:
        if (days := calendar_period(text)) is not None:
            window = Window.of_days(*days)
            return Times(field.name, window.start, window.end)
        moment = parse_time(text)
        return Times(field.name, moment, moment + _MICROSECOND)
    except (ValueError, OverflowError, WindowError):
        raise UsageError(
            f"'{condition}': '{text}' is no time, which {field.name} is; expected one in UTC, such as "
            "2018-08-15T12:00, or 2018-08-15, 2018-08, 2018-W33, 2018"
        ) from None


def _days(field: Field, text: str, condition: Condition) -> tuple[date, date]:
    try:
        if (days := calendar_period(text)) is not None:
            return days
    except ValueError:
        pass
    raise UsageError(
        f"'{condition}': '{text}' is no day, which {field.name} is; "
        "expected 2018-08-15, 2018-08, 2018-W33 or 2018"
    )
