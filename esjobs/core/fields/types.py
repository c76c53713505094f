"""Types of fields, and the derivations of fields that no record carries."""

from dataclasses import dataclass
from typing import Literal

FieldType = Literal["keyword", "integer", "number", "boolean", "time", "day", "text", "map", "list", "bytes"]
"""``keyword`` an exact string; ``integer`` 64-bit; ``number`` double; ``time`` UTC to the microsecond;
``day`` a UTC calendar day; ``text`` a string for people, not for filters; ``map`` names to numbers (counters
by event); ``list`` numbers in their order, null where one is missing; ``bytes`` as they are (a packed
series), base64 in CSV and JSON. Maps, lists and bytes are kept and given back; no query looks inside
them."""


@dataclass(frozen=True)
class Quotient:
    """Product of ``over`` divided by the product of ``under``, per job.

    Null if a factor is missing or a divisor is 0.
    """

    over: tuple[str, ...]
    under: tuple[str, ...] = ()


@dataclass(frozen=True)
class DayOf:
    """UTC day of a time field."""

    field: str


@dataclass(frozen=True)
class CoreClassOf:
    """``single`` for one core, ``multi`` for more; null if the number is missing or below 1."""

    field: str


@dataclass(frozen=True)
class Resolved:
    """Value resolved above the store; stores group and filter by the stored field instead."""

    field: str


Derivation = Quotient | DayOf | CoreClassOf | Resolved


@dataclass(frozen=True)
class Field:
    """One field of a job.

    ``required``: rows without it are rejected. ``bounded``: negative values are rejected. ``declared``:
    contains the declared corepower, so it must never enter a fit. ``values``: all possible values of a
    keyword; empty: any.
    """

    name: str
    type: FieldType
    unit: str
    meaning: str
    required: bool = False
    bounded: bool = False
    groupable: bool = False
    declared: bool = False
    derived: Derivation | None = None
    values: tuple[str, ...] = ()
