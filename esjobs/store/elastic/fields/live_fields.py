"""A field map held against an index as it is: what can be asked, what must be read, what is not there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from esjobs.core import fields
from esjobs.core.errors import StoreError
from esjobs.core.fields import Field
from esjobs.store.elastic.fields.field_map import FieldMap, Source
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.scan import PATTERN

State = Literal["present", "constant", "unindexed", "absent"]
"""``unindexed``: documents have it, but the index cannot find or sum its values."""

_WHOLE = frozenset({"long", "integer", "short", "byte", "unsigned_long"})
_NUMBERS = _WHOLE | {"double", "float", "half_float", "scaled_float"}
_TEXTS = frozenset({"keyword", "constant_keyword", "wildcard"})
_TIMES = frozenset({"date", "date_nanos"})
_CALLED = {"integer": "a number", "number": "a number", "time": "a date"}
_SUB_FIELDS = ("", ".keyword", ".raw")
_UNMAPPED = "unmapped"


@dataclass(frozen=True)
class LiveField:
    """A field of the catalogue as an index has it.

    ``paths``: what queries name, in order of preference. ``read``: what is fetched of a document, alike.
    ``whole_numbers``: whether every path holds whole numbers, be they texts to us. ``type``: what the index
    says. ``note``: what is wrong.
    """

    field: Field
    source: Source
    state: State
    paths: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    whole_numbers: bool = False
    type: str = ""
    note: str = ""

    @property
    def askable(self) -> bool:
        """Whether the index answers exactly what is asked of this field."""
        return self.state != "unindexed"

    @property
    def plain(self) -> bool:
        """Whether the index holds the field's values themselves, under one name."""
        source = self.source
        return (
            self.state == "present"
            and len(self.paths) == 1
            and not source.values
            and source.factor == 1
            and source.unset is None
        )


def own_fields(stored: Iterable[Field] = fields.JOB_FIELDS) -> dict[str, LiveField]:
    """The fields of an index that esjobs writes itself: of its jobs, or of the rows of a table."""
    return {
        item.name: LiveField(
            item,
            Source((item.name,)),
            "unindexed" if item.type in ("text", "map", "list") else "present",
            (item.name,),
            (item.name,),
            item.type == "integer",
        )
        for item in stored
    }


def live_fields(cluster: Cluster, index: str, field_map: FieldMap) -> dict[str, LiveField]:
    """Every stored field of the catalogue, as the index has it now.

    Needs the right to read only. Raises :class:`StoreError` when no index matches.
    """
    names = {name for source in field_map.sources.values() for name in source.names}
    asked = sorted(name + sub for name in names for sub in _SUB_FIELDS)
    capabilities = capabilities_of(cluster, index, asked)
    return {
        item.name: _live(item, field_map.sources.get(item.name, Source()), capabilities)
        for item in fields.JOB_FIELDS
    }


def capabilities_of(cluster: Cluster, index: str, names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """What the index says of fields: name -> type -> whether it is searchable and aggregatable."""
    asked = {"fields": ",".join(names), "include_unmapped": "true"}
    try:
        answer = cluster.call("GET", f"/{quote(index, safe=PATTERN)}/_field_caps", params=asked)
    except RefusedError as error:
        if not error.absent:
            raise
        answer = {"indices": []}
    if not answer.get("indices"):
        raise StoreError(
            f"no index of {cluster.location} matches '{index}' (or none that this user may read); "
            "name the jobs' index with --jobs-index"
        )
    by_name = answer.get("fields", {})
    return {name: types for name, types in by_name.items() if set(types) != {_UNMAPPED}}


def require_usable(live: Mapping[str, LiveField], index: str) -> None:
    """Raise :class:`StoreError` when the index lacks a field that nothing makes sense without."""
    for item in live.values():
        name = item.field.name
        if item.source.absent == "refuse" and item.state == "absent":
            raise StoreError(
                f"{index} has no {' or '.join(item.source.names) or name}, which stands for {name}; "
                "see: esjobs fields check, and name another field map (--field-map)"
            )
        if name == "end_time" and item.state == "unindexed":
            raise StoreError(f"{index}: {item.note}; the time field must be a date: name another one")


def _live(item: Field, source: Source, capabilities: Mapping[str, Mapping[str, Any]]) -> LiveField:
    if source.constant is not None:
        return LiveField(item, source, "constant")
    paths: list[str] = []
    read: list[str] = []
    types: list[str] = []
    notes: list[str] = []
    usable = True
    for name in source.names:
        if name not in capabilities:
            continue
        read.append(name)
        path, kind, note = _path(item, name, capabilities)
        types.append(kind)
        if path is None:
            usable = False
            notes.append(note)
        else:
            paths.append(path)
    if not read:
        asked = " or ".join(source.names)
        return LiveField(item, source, "absent", note=f"{asked} is not mapped" if asked else "not in the map")
    integral = bool(types) and all(kind in _WHOLE for kind in types)
    state: State = "present" if usable else "unindexed"
    return LiveField(
        item, source, state, tuple(paths), tuple(read), integral, ", ".join(types), "; ".join(notes)
    )


def _path(
    item: Field, name: str, capabilities: Mapping[str, Mapping[str, Any]]
) -> tuple[str | None, str, str]:
    """What queries call a foreign field, its type, and what is wrong when there is no such name."""
    wanted = {"integer": _NUMBERS, "number": _NUMBERS, "time": _TIMES}.get(item.type, _TEXTS | _WHOLE)
    types = sorted(set(capabilities[name]) - {_UNMAPPED})
    own = ", ".join(types)
    if len(types) > 1:
        return None, own, f"{name} is of different types in different indices ({own})"
    for sub in _SUB_FIELDS:
        of_subfield = capabilities.get(name + sub, {})
        kinds = set(of_subfield) - {_UNMAPPED}
        # where an index has the field without its sub-field, its documents would be passed over
        lacking = _lacking(of_subfield) - _lacking(capabilities[name])
        able = all(
            of_subfield[kind].get("searchable") and of_subfield[kind].get("aggregatable") for kind in kinds
        )
        if kinds and len(kinds) == 1 and kinds <= wanted and able and not lacking:
            return name + sub, f"{own} with {sub[1:]}" if sub else own, ""
    if "text" in types and item.type == "keyword":
        return None, own, f"{name} is text without a keyword sub-field in every index"
    return None, own, f"{name} is {own}, not {_CALLED.get(item.type, 'a keyword')}"


def _lacking(types: Mapping[str, Any]) -> set[str]:
    """The indices that do not have a field."""
    return set(types.get(_UNMAPPED, {}).get("indices") or ())
