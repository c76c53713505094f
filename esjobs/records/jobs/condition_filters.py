"""Conditions on one field: texts as values of its type, with units, and filters for a store.

Of the conditions on a field those that name what it may be (``=``, ``~``, ``is missing``) are alternatives;
those that bound or exclude (``<``, ``!=``, ``is present``, ...) must hold, each of them.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from esjobs.core.conditions import ALTERNATIVES, Condition, Operator, matches
from esjobs.core.errors import UsageError, WindowError
from esjobs.core.fields import Field
from esjobs.core.periods import calendar_period
from esjobs.core.query import Days, Either, Filter, In, Like, Missing, NotIn, NotLike, Present, Range, Times
from esjobs.core.window import Window, parse_time

_Alternative = In | NotIn | Missing | Present | Range | Days | Times | Like

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
# kB is 1000 bytes and KiB 1024; case is ignored
_BYTES = {"b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", 1)
    for end, base in (("b", 1000), ("ib", 1024))
}
# ASCII, because \d and float() accept the digits of every script
_NUMBER = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf)\s*([a-z%]*)", re.ASCII | re.IGNORECASE
)
# A single moment is a span of one: finer times are not stored.
_MICROSECOND = timedelta(microseconds=1)


def filters_of(field: Field, conditions: Sequence[Condition]) -> list[Filter]:
    """Return the filters of all conditions on a stored field; all of them must hold.

    Raises :class:`UsageError` for a value or an operator that does not suit the type of the field.
    """
    alternatives, others = _parted(conditions)
    filters = _one_of(field, alternatives) if alternatives else []
    for condition in others:
        filters += _each_of(field, condition)
    return filters


def _parted(conditions: Sequence[Condition]) -> tuple[list[Condition], list[Condition]]:
    alternatives = [each for each in conditions if each.operator in ALTERNATIVES]
    return alternatives, [each for each in conditions if each.operator not in ALTERNATIVES]


def holds(conditions: Sequence[Condition], value: str | None) -> bool:
    """True if the text of a field (None: missing) meets all conditions on the field."""
    alternatives, others = _parted(conditions)
    one_of = not alternatives or any(_meets(each, value) for each in alternatives)
    return one_of and all(_meets(each, value) for each in others)


def _meets(condition: Condition, value: str | None) -> bool:
    if condition.operator == "is missing" or value is None:
        return condition.operator == "is missing" and value is None
    match condition.operator:
        case "is present":
            return True
        case "=" | "!=":
            return (value in condition.values) == (condition.operator == "=")
        case "~" | "!~":
            return any(matches(value, each) for each in condition.values) == (condition.operator == "~")
        case _:
            raise UsageError(
                f"'{condition}' compares text; operators of text are = != ~ !~, is missing, is present"
            )


def _one_of(field: Field, conditions: Sequence[Condition]) -> list[Filter]:
    found = list(dict.fromkeys(each for condition in conditions for each in _alternatives(field, condition)))
    others: list[_Alternative] = [each for each in found if not isinstance(each, In)]
    # single values are listed together, in one filter
    equal = dict.fromkeys(value for each in found if isinstance(each, In) for value in each.values)
    if equal:
        others.insert(0, In(field.name, tuple(equal)))
    return [others[0]] if len(others) == 1 else [Either(tuple(others))]


def _alternatives(field: Field, condition: Condition) -> list[_Alternative]:
    if condition.operator == "is missing":
        return [Missing(field.name)]
    if condition.operator == "~":
        _require_text(field, condition)
        return [Like(field.name, condition.values)]
    if field.type == "time":
        return [_within(field, value, condition) for value in condition.values]
    if field.type == "day":
        return [_on_days(field.name, *_days(field, value, condition)) for value in condition.values]
    return [In(field.name, tuple(_value(field, value, condition) for value in condition.values))]


def _on_days(name: str, first: date, last: date) -> In | Days:
    # a month or year is a span
    return In(name, (str(first),)) if first == last else Days(name, first, last)


# Types whose values have no order, and how a comparison of them is refused.
_UNORDERED = {
    **dict.fromkeys(
        ("keyword", "text"),
        "is text, which cannot be compared with < or >; use =, !=, ~, !~, is missing or is present",
    ),
    "boolean": "is true or false, which cannot be compared with < or >",
}


def _each_of(field: Field, condition: Condition) -> list[Filter]:
    name, operator = field.name, condition.operator
    if operator == "is present":
        return [Present(name)]
    if operator == "!~":
        _require_text(field, condition)
        # a missing text is neither like a pattern nor unlike it
        return [Present(name), NotLike(name, condition.values)]
    if field.type not in _UNORDERED:
        return [_comparison(field, value, condition) for value in condition.values]
    if operator != "!=":
        raise UsageError(f"'{condition}': {name} {_UNORDERED[field.type]}")
    if field.type != "boolean":
        return [NotIn(name, condition.values)]
    excluded = {_truth(field, value, condition) for value in condition.values}
    return [In(name, tuple(value for value in ("true", "false") if value not in excluded))]


def _comparison(field: Field, value: str, condition: Condition) -> Filter:
    match field.type:
        case "integer" | "number":
            return _beside(field.name, _number(field, value, condition), condition.operator)
        case "time":
            return _beside_times(_within(field, value, condition), condition.operator)
        case "day":
            return _beside_days(field.name, *_days(field, value, condition), condition.operator)
    raise _unasked(field, condition)


def _unasked(field: Field, condition: Condition) -> UsageError:
    return UsageError(
        f"'{condition}': {field.name} is a {field.type}, which conditions cannot search; use: is missing, or "
        "is present"
    )


def _compared(
    operator: Operator, less: _Alternative, up_to: Filter, more: _Alternative, since: Filter
) -> Filter:
    match operator:
        case "<":
            return less
        case "<=":
            return up_to
        case ">":
            return more
        case ">=":
            return since
        case _:
            # below or above: NaN, which is neither, is not different from a number either
            return Either((less, more))


def _beside(name: str, number: float, operator: Operator) -> Filter:
    less, more = Range(name, lt=number), Range(name, gt=number)
    return _compared(operator, less, Range(name, le=number), more, Range(name, ge=number))


def _beside_times(span: Times, operator: Operator) -> Filter:
    # less than the start of a span, more than its end
    before, after = Times(span.field, end=span.start), Times(span.field, start=span.end)
    up_to, since = Times(span.field, end=span.end), Times(span.field, start=span.start)
    return _compared(operator, before, up_to, after, since)


def _beside_days(name: str, first: date, last: date, operator: Operator) -> Filter:
    # no day precedes the first of the calendar: a filter that no job meets
    before = Days(name, date.min, first - timedelta(days=1)) if first > date.min else In(name, ())
    after = Days(name, last + timedelta(days=1), date.max) if last < date.max else In(name, ())
    return _compared(operator, before, Days(name, date.min, last), after, Days(name, first, date.max))


def _require_text(field: Field, condition: Condition) -> None:
    if field.type not in ("keyword", "text"):
        what = f"{field.name} is of type {field.type}"
        raise UsageError(f"'{condition}': only text can match a pattern, and {what}")


def _value(field: Field, text: str, condition: Condition) -> str | int | float:
    match field.type:
        case "integer" | "number":
            return _number(field, text, condition)
        case "boolean":
            return _truth(field, text, condition)
        case "map" | "list" | "bytes":
            raise _unasked(field, condition)
    return text


def _truth(field: Field, text: str, condition: Condition) -> str:
    accepted = {"true": "true", "1": "true", "yes": "true", "false": "false", "0": "false", "no": "false"}
    if (value := accepted.get(text.lower())) is None:
        raise UsageError(f"'{condition}': {field.name} is true or false, not '{text}'")
    return value


def _number(field: Field, text: str, condition: Condition) -> int | float:
    number = number_in_unit(field, text)
    if number is None:
        units = units_of(field)
        accepted = f", or with a unit: {', '.join(units)}" if units else ""
        raise UsageError(
            f"'{condition}': {field.name} is of type {field.type}, and '{text}' is not{accepted}"
        )
    return number


def number_in_unit(field: Field, text: str) -> int | float | None:
    """Return a number in base units; None for other texts, and for a unit that the field does not have.

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
    # 35 / 100 is 0.35 to the last digit, 35 * 0.01 is not
    return number / 100 if scale == _PERCENT else number * scale


_PERCENT = 0.01


def units_of(field: Field) -> dict[str, float]:
    """Return the units of a field by name in lower case: times, bytes, and ``%`` of fractions."""
    if field.type not in ("integer", "number"):
        return {}
    if field.unit.split(" ")[-1] == "s":
        return dict(_SECONDS)
    if field.unit == "B":
        return dict(_BYTES)
    return {"%": _PERCENT} if field.type == "number" and not field.unit else {}


def _within(field: Field, text: str, condition: Condition) -> Times:
    try:
        if (days := calendar_period(text)) is not None:
            window = Window.of_days(*days)
            return Times(field.name, window.start, window.end)
        moment = parse_time(text)
        return Times(field.name, moment, moment + _MICROSECOND)
    except (ValueError, OverflowError, WindowError):
        raise UsageError(
            f"'{condition}': {field.name} is a time and '{text}' is not; write it in UTC, such as "
            "2018-08-15T12:00, 2018-08-15, 2018-08, 2018-W33 or 2018"
        ) from None


def _days(field: Field, text: str, condition: Condition) -> tuple[date, date]:
    try:
        if (days := calendar_period(text)) is not None:
            return days
    except ValueError:
        pass
    raise UsageError(
        f"'{condition}': {field.name} is a date and '{text}' is not; write 2018-08-15, 2018-08, 2018-W33 or "
        "2018"
    )
