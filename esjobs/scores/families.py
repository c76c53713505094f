"""CPU families and the events that make their scores, read from ``events.toml``.

Event names are normalised (:func:`event_name`): ``UOPS_RETIRED.RETIRE_SLOTS``, ``uops_retired_retire_slots``
and ``hsw_ep::UOPS_RETIRED:RETIRE_SLOTS:u`` are the same event.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

_TEXT = files("esjobs.scores").joinpath("events.toml").read_text(encoding="utf-8")
_TABLES = tomllib.loads(_TEXT)

EVENTS_VERSION: str = hashlib.sha256(_TEXT.encode()).hexdigest()[:8]
"""Hash of the event table; a change makes stored scores stale."""

EVENT_LISTS = (
    *("retired", "slots", "core_cycles", "any_cycles", "thread_cycles"),
    *("cycles", "load_stalls", "store_stalls"),
    *("memory_slots", "backend_slots", "load_not_complete", "not_complete"),
)
"""Event lists that a family may define; the first event of a list that a job has counts."""


@dataclass(frozen=True)
class Family:
    """CPUs that share one definition of the scores.

    ``width``: pipeline slots per core and cycle. ``variants``: lists in which an alternative event makes a
    variant. ``undefined``: reason why the family has no scores.
    """

    name: str
    title: str
    models: re.Pattern[str]
    source: str
    width: float = 0.0
    events: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    undefined: str = ""


@dataclass(frozen=True)
class WarpEvent:
    """GPU event and its factor to warps per SM and active cycle."""

    event: str
    factor: float


# the processor unit, as libpfm and perf write it
_PREFIX = re.compile(r"^(?:\w+::|(?:cpu|cpu_core|amd)/)")
# of perf, PAPI and libpfm: what is counted, not which event
_MODIFIER = re.compile(r"(?::[a-z]=\d+)+$|:[ukhgpsdiew]+$|/[ukhgpsdiew]*$")
_MARKS = re.compile(r"[^a-z0-9]+")


def event_name(written: str) -> str:
    """Return the normalised spelling of an event, without modifiers (``:u``).

    >>> event_name("UOPS_RETIRED.RETIRE_SLOTS"), event_name("cpu/topdown-retiring/u")
    ('uops_retired_retire_slots', 'topdown_retiring')
    >>> event_name("hsw_ep::UOPS_RETIRED:RETIRE_SLOTS:u=1:k=1")
    'uops_retired_retire_slots'
    """
    text = _PREFIX.sub("", written.strip().lower())
    text = _MODIFIER.sub("", text)
    return _MARKS.sub("_", text).strip("_")


def _names(written: Iterable[str]) -> tuple[str, ...]:
    return tuple(event_name(name) for name in written)


def _family(name: str, row: Mapping[str, object]) -> Family:
    def listed(key: str) -> list[str]:
        value = row.get(key, ())
        return [str(item) for item in value] if isinstance(value, list) else []

    return Family(
        name,
        str(row["title"]),
        # matched as a whole, so that a longer name is another model
        re.compile("|".join(f"(?:{pattern})" for pattern in listed("models"))),
        str(row["source"]),
        float(str(row.get("width", 0))),
        {key: _names(listed(key)) for key in EVENT_LISTS if key in row},
        tuple(listed("variants")),
        str(row.get("undefined", "")),
    )


FAMILIES: tuple[Family, ...] = tuple(_family(name, row) for name, row in _TABLES["families"].items())

GPU_EVENTS: Mapping[str, tuple[WarpEvent, ...]] = {
    key: tuple(WarpEvent(event_name(item["event"]), float(item["factor"])) for item in items)
    for key, items in _TABLES["gpu"].items()
    if key not in ("shares", "source")
}
"""GPU events by quantity."""

GPU_SHARES: tuple[str, ...] = _names(_TABLES["gpu"]["shares"])
"""Occupancy events: shares of warps, not warps."""

WANTED: tuple[str, ...] = tuple(
    dict.fromkeys(
        [name for family in FAMILIES for names in family.events.values() for name in names]
        + [item.event for items in GPU_EVENTS.values() for item in items]
        + list(GPU_SHARES)
    )
)
"""All events used by some score."""


def _written(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _written(item)
    elif isinstance(value, list):
        for item in value:
            yield from _written(item)


SPELLED: Mapping[str, str] = {event_name(text): text for text in _written(_TABLES)}
"""Spelling of an event in messages: that of the table."""


# raw strings of pilots come here, too: a grid has hundreds
@lru_cache(maxsize=4096)
def family_of(cpu_model: str | None) -> Family | None:
    """Return the family of a canonical CPU model, None if unknown.

    >>> [family_of(model).name for model in ("Intel Xeon E5-2697 v3", "AMD EPYC 9654")]
    ['hsw', 'zen4']
    >>> family_of("Intel Xeon X5650") is None
    True
    """
    if cpu_model is None:
        return None
    return next((family for family in FAMILIES if family.models.fullmatch(cpu_model)), None)
