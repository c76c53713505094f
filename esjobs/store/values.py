"""Filter values as types of their fields."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime

from esjobs.core.errors import UsageError, WindowError
from esjobs.core.fields import FieldType
from esjobs.core.query import Value
from esjobs.core.window import parse_time


def typed(name: str, kind: FieldType, value: Value) -> list[object]:
    """Return the value as a field's type; empty if no value can equal it.

    Times are :func:`naive`. Raises :class:`UsageError` for text that is not of the type, and for types that
    no query can search.
    """
    if kind not in _TYPED:
        what = "is bytes" if kind == "bytes" else f"is a {kind}"
        raise UsageError(f"'{name}' {what}, which a query cannot search")
    try:
        return _TYPED[kind](value)
    except (ValueError, KeyError, WindowError, OverflowError):
        raise UsageError(f"'{value}' is not a value of '{name}', which is of type {kind}") from None


def naive(moment: datetime) -> datetime:
    """Convert a time to UTC without zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def _integer(value: Value) -> list[object]:
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, float) and not value.is_integer():
        return []
    # beyond 64 bits no stored value can equal it, and an engine would refuse to bind it
    return [int(value)] if -(2**63) <= value < 2**63 else []


def _number(value: Value) -> list[object]:
    # NaN equals nothing, itself included
    return [] if math.isnan(float(value)) else [float(value)]


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_TYPED: Mapping[str, Callable[[Value], list[object]]] = {
    # a query may give 42 for a field that stores texts
    **dict.fromkeys(("keyword", "text"), lambda value: [str(value)]),
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: [_TRUTHS[str(value).lower()]],
    "time": lambda value: [naive(parse_time(str(value)))],
    "day": lambda value: [date.fromisoformat(str(value))],
}
