"""Field maps matched against live indices."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from esjobs.core import fields
from esjobs.core.errors import StoreError
from esjobs.core.fields import Field
from esjobs.store.elastic.fields.field_map import FieldMap, Source
from esjobs.store.elastic.fields.mappings import Mappings

State = Literal["present", "constant", "mixed", "unindexed", "absent"]
"""``unindexed``: documents have it, but the index cannot find or sum its values. ``mixed``: each of several
indices can, but they cannot be asked together."""

_INTEGERS = frozenset({"long", "integer", "short", "byte", "unsigned_long"})
_NUMBERS = _INTEGERS | {"double", "float", "half_float", "scaled_float"}
_TEXTS = frozenset({"keyword", "constant_keyword", "wildcard"})
_TIMES = frozenset({"date", "date_nanos"})
_BOOLEANS = frozenset({"boolean"})
# Mapping types of an object; its members are read from documents in any case
_OBJECTS = frozenset({"object", "nested", "flattened", "flat_object"})
OBJECT = "object"
"""The type of a map that is read from documents."""
_NOT_TOLD = "read from the documents; the index does not show whether they have it"
_CALLED = {
    "integer": "a number",
    "number": "a number",
    "time": "a date",
    "boolean": "a boolean",
    "map": "an object",
}
# where indices keep a text that can be grouped: itself, dynamic mappings, Logstash
_SUB_FIELDS = ("", ".keyword", ".raw")


@dataclass(frozen=True)
class LiveField:
    """Field of the catalogue as an index has it.

    ``paths``: for queries, in order of preference. ``read``: for documents. ``whole_numbers``: all paths hold
    integers. ``one_kind``: all indices agree on integers or fractions. ``note``: fault.
    """

    field: Field
    source: Source
    state: State
    paths: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    whole_numbers: bool = False
    type: str = ""
    note: str = ""
    one_kind: bool = True

    @property
    def askable(self) -> bool:
        """True if the index answers exactly."""
        return self.state not in ("unindexed", "mixed")

    @property
    def plain(self) -> bool:
        """True if one path holds the values unchanged."""
        source = self.source
        return (
            self.state == "present"
            and len(self.paths) == 1
            and not source.values
            and source.factor == 1
            and source.unset is None
        )


def own_fields(stored: Iterable[Field] = fields.JOB_FIELDS) -> dict[str, LiveField]:
    """Return the fields of indices that esjobs writes."""
    return {
        item.name: LiveField(
            item,
            Source((item.name,)),
            # kept in documents only, see `layout`
            "unindexed" if item.type in ("text", "map", "list", "bytes") else "present",
            (item.name,),
            (item.name,),
            item.type == "integer",
        )
        for item in stored
    }


def foreign_names(field_map: FieldMap) -> set[str]:
    """Return the foreign names of all fields, with sub-fields."""
    return {
        name + sub for source in field_map.sources.values() for name in source.names for sub in _SUB_FIELDS
    }


def live_fields(field_map: FieldMap, mappings: Mappings, loose: Collection[str] = ()) -> dict[str, LiveField]:
    """Return every stored field as a group of indices has it."""
    return {
        item.name: _live(item, field_map.sources.get(item.name, Source()), mappings, loose=item.name in loose)
        for item in fields.JOB_FIELDS
    }


def index_groups(
    field_map: FieldMap, mappings: Mappings, names: Collection[str], loose: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """Return groups of indices that have some fields in the same way.

    ``loose``: fields that are only summed or ordered in time, so numeric or date types may differ.
    """
    groups: dict[tuple[object, ...], list[str]] = {}
    wanted = [(fields.field(name), field_map.sources.get(name, Source())) for name in sorted(names)]
    for index in mappings.indices:
        ways = tuple(
            _way(item, name, mappings, index, loose=item.name in loose)
            for item, source in wanted
            for name in source.names
        )
        # equal ways of access: these indices can be asked together
        groups.setdefault(ways, []).append(index)
    return [tuple(group) for group in groups.values()]


def require_usable(live: Mapping[str, LiveField], index: str) -> None:
    """Raise :class:`StoreError` if a required field is absent."""
    for item in live.values():
        name = item.field.name
        if item.source.absent == "refuse" and item.state == "absent":
            raise StoreError(
                f"{index} has no {' or '.join(item.source.names) or name}, the field for {name}; run: esjobs "
                "fields check, or use a different --field-map"
            )
        if name == "end_time" and not item.askable:
            raise StoreError(f"{index}: {item.note}; the time field must be a date, so use a different one")


def _live(item: Field, source: Source, mappings: Mappings, *, loose: bool) -> LiveField:
    if source.constant is not None:
        return LiveField(item, source, "constant")
    if item.type == "map" and source.names and _may_be_objects(source.names, mappings):
        return LiveField(item, source, "unindexed", (), source.names, type=OBJECT, note=_NOT_TOLD)
    read = tuple(name for name in source.names if mappings.kinds.get(name))
    if not read:
        expected = " or ".join(source.names)
        return LiveField(
            item, source, "absent", note=f"{expected} is not mapped" if expected else "not in the map"
        )
    found = [_access(item, name, mappings, loose=loose) for name in read]
    paths = tuple(each.path for each in found if each.path is not None)
    types = [{kind.type for kind in mappings.kinds[path].values()} for path in paths]
    return LiveField(
        item,
        source,
        _worst(each.state for each in found),
        paths,
        read,
        bool(paths) and all(of_path <= _INTEGERS for of_path in types),
        ", ".join(each.type for each in found),
        "; ".join(each.note for each in found if each.note),
        all(len(set(map(_class, of_path))) == 1 for of_path in types),
    )


@dataclass(frozen=True)
class _Access:
    """Access of a group of indices to one foreign field; ``path`` None: from documents only."""

    path: str | None
    state: State
    type: str
    note: str = ""


def _access(item: Field, name: str, mappings: Mappings, *, loose: bool) -> _Access:
    having = mappings.kinds[name]
    ways = {_way(item, name, mappings, index, loose=loose) for index in having}
    paths = {way.path for way in ways if way is not None}
    own = ", ".join(sorted({kind.type for kind in having.values()}))
    path = next(iter(paths)) if len(ways) == 1 else None
    if path is not None:
        return _Access(
            path, "present", own if path == name else f"{own} with {path.removeprefix(f'{name}.')}"
        )
    # every index can be asked, but in different ways
    state: State = "unindexed" if None in paths else "mixed"
    return _Access(None, state, own, _what_is_wrong(item, name, own, n_ways=len(ways)))


def _worst(states: Iterable[State]) -> State:
    """Return the state of a field of several sources: the index answers as its worst source does."""
    return max(states, key=("present", "mixed", "unindexed").index)


def _may_be_objects(names: Iterable[str], mappings: Mappings) -> bool:
    """True if no index has a plain value in place of an object."""
    return all(kind.type in _OBJECTS for name in names for kind in mappings.kinds.get(name, {}).values())


def _what_is_wrong(item: Field, name: str, types: str, *, n_ways: int) -> str:
    if n_ways > 1:
        return f"{name} has different types in different indices ({types})"
    if "text" in types.split(", ") and item.type == "keyword":
        return f"{name} is text without a keyword sub-field"
    return f"{name} is {types}, not {_CALLED.get(item.type, 'a keyword')}"


# By type of a field, the types of an index by which it can be asked; a map cannot be
_ASKED_AS = {
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "time": _TIMES,
    "boolean": _BOOLEANS,
    "map": frozenset[str](),
}


@dataclass(frozen=True)
class _Way:
    """Access to a foreign field; ``path`` None: from documents. Equal ``kind``: can be asked together."""

    path: str | None
    kind: str = ""


def _way(item: Field, name: str, mappings: Mappings, index: str, *, loose: bool) -> _Way | None:
    """Return the access to a foreign field in one index; None without the field."""
    if mappings.kind(name, index) is None:
        return None
    wanted = _ASKED_AS.get(item.type, _TEXTS | _INTEGERS)
    for sub in _SUB_FIELDS:
        kind = mappings.kind(name + sub, index)
        # the first that the index can search and aggregate
        if kind is not None and kind.type in wanted and kind.able:
            return _Way(name + sub, _asked_as(item, kind.type, loose=loose))
    return _Way(None)


def _asked_as(item: Field, kind: str, *, loose: bool) -> str:
    """Return the class of a type; indices of one class can be asked together."""
    if item.type == "number" or (loose and item.type in ("integer", "time")):
        return item.type
    return _class(kind)


def _class(kind: str) -> str:
    """Return the class of types that can be keys of one question."""
    # an unsigned_long is compared differently from every other whole number
    if kind in _NUMBERS - {"unsigned_long"}:
        return "whole" if kind in _INTEGERS else "fraction"
    return kind
