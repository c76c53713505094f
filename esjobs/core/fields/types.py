"""What a field is: its type, and how a field that no record carries follows from others."""

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
    """A field computed per job: the product of ``over`` divided by the product of ``under``.

    Null when a factor is missing or a divisor is 0.
    """

    over: tuple[str, ...]
    under: tuple[str, ...] = ()


@dataclass(frozen=True)
class DayOf:
    """The UTC day of a time field."""

    field: str


@dataclass(frozen=True)
class CoreClassOf:
    """``single`` for one core, ``multi`` for more; null when the number of cores is missing or below 1."""

    field: str


@dataclass(frozen=True)
class Resolved:
    """Resolved above the store from a stored field, by which a store groups and filters instead."""

    field: str


Derivation = Quotient | DayOf | CoreClassOf | Resolved


@dataclass(frozen=True)
class Field:
    """One field of a job.

    ``required``: a row without it is rejected. ``bounded``: a negative value is rejected.
    ``groupable``: queries may group by it. ``declared``: contains the declared corepower, so it may
    supply the declared value and must never enter a fit. ``derived``: computed, not stored. ``values``: all
    that a keyword can be; empty where anything may stand.
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
