"""Families of CPUs: which events make their scores, as ``events.toml`` says.

A name of an event is compared in one spelling (:func:`event_name`), so that ``UOPS_RETIRED.RETIRE_SLOTS``,
``uops_retired_retire_slots`` and ``hsw_ep::UOPS_RETIRED:RETIRE_SLOTS:u`` are the same one.
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
"""Names what the table of events says: scores made under another one are made again."""

EVENT_LISTS = (
    *("retired", "slots", "core_cycles", "any_cycles", "thread_cycles"),
    *("cycles", "load_stalls", "store_stalls"),
    *("memory_slots", "backend_slots", "load_not_complete", "not_complete"),
)
"""What events a family may name; of each list the first that a job has counts."""


@dataclass(frozen=True)
class Family:
    """CPUs whose scores have one definition.

    ``width``: slots of the pipeline per core and cycle. ``events``: lists of names by what they count, in the
    spelling of :func:`event_name`. ``variants``: lists of which another event than the first makes a variant
    of its own. ``undefined``: why there are no scores, where there are none.
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
    """An event of GPUs, and what makes warps per SM and active cycle of it."""

    event: str
    factor: float


_PREFIX = re.compile(r"^(?:\w+::|(?:cpu|cpu_core|amd)/)")
_MODIFIER = re.compile(r"(?::[a-z]=\d+)+$|:[ukhgpsdiew]+$|/[ukhgpsdiew]*$")
_MARKS = re.compile(r"[^a-z0-9]+")


def event_name(written: str) -> str:
    """The one spelling of an event, however a tool writes it; what follows it (``:u``) is left out.

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
        re.compile("|".join(f"(?:{pattern})" for pattern in listed("models"))),
        str(row["source"]),
        float(str(row.get("width", 0))),
        {key: _names(listed(key)) for key in EVENT_LISTS if key in row},
        tuple(listed("variants")),
        str(row.get("undefined", "")),
    )


FAMILIES: tuple[Family, ...] = tuple(_family(name, row) for name, row in _TABLES["families"].items())
"""Every family of the table, in its order."""

GPU_EVENTS: Mapping[str, tuple[WarpEvent, ...]] = {
    key: tuple(WarpEvent(event_name(item["event"]), float(item["factor"])) for item in items)
    for key, items in _TABLES["gpu"].items()
    if key not in ("shares", "source")
}
"""Events of GPUs by what they count."""

GPU_SHARES: tuple[str, ...] = _names(_TABLES["gpu"]["shares"])
"""Events that look like warps and are shares of them."""

WANTED: tuple[str, ...] = tuple(
    dict.fromkeys(
        [name for family in FAMILIES for names in family.events.values() for name in names]
        + [item.event for items in GPU_EVENTS.values() for item in items]
        + list(GPU_SHARES)
    )
)
"""Every event that some score needs, once."""


def _written(value: object) -> Iterator[str]:
    """Every text of a table, as it stands there."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _written(item)
    elif isinstance(value, list):
        for item in value:
            yield from _written(item)


SPELLED: Mapping[str, str] = {event_name(text): text for text in _written(_TABLES)}
"""How messages spell an event: as the table does."""


@lru_cache(maxsize=4096)
def family_of(cpu_model: str | None) -> Family | None:
    """The family of a canonical CPU model; None for one that the table does not know.

    >>> [family_of(model).name for model in ("Intel Xeon E5-2697 v3", "AMD EPYC 9654")]
    ['hsw', 'zen4']
    >>> family_of("Intel Xeon X5650") is None
    True
    """
    if cpu_model is None:
        return None
    return next((family for family in FAMILIES if family.models.fullmatch(cpu_model)), None)
