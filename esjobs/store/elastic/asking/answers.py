"""Types of the answers to composite aggregations."""

from typing import TYPE_CHECKING, Any

import msgspec

from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.scan import PointInTime

if TYPE_CHECKING:
    from esjobs.store.elastic.asking.composite import Grouping


# gc=False: a page has tens of thousands of these, without cycles; the collector would walk all of them
class _Value(msgspec.Struct, gc=False):
    value: float | str | None = None
    """Text if the sum overflowed."""


class _Bin(msgspec.Struct, gc=False):
    doc_count: int


class _Bins(msgspec.Struct, gc=False):
    buckets: list[_Bin]


class _Shards(msgspec.Struct):
    total: int = 0
    failed: int = 0


class _Answer(msgspec.Struct):
    shards: _Shards = msgspec.field(name="_shards")
    timed_out: bool = False

    def require_whole(self, at: PointInTime) -> None:
        """Raise unless the answer covers all shards."""
        at.require_whole(self.timed_out, self.shards.failed, self.shards.total)


def answer_type(requested: "Grouping") -> type[Any]:
    """Return the type of the answer to a grouping."""
    groups = groups_type(requested)
    if not requested.has_keys:
        # only what is read is decoded: other members of an answer are skipped
        groups = msgspec.defstruct("Aggregations", [("all", groups)])
    return msgspec.defstruct("Answer", [("aggregations", groups)], bases=(_Answer,), kw_only=True)


def answer_at_once_type(requested: "Grouping") -> type[Any]:
    """Return the type of the single-search answer: groups, and the count of unjudgeable documents."""
    groups = groups_type(requested)
    sane = (
        groups if not requested.has_keys else msgspec.defstruct("Sane", [("doc_count", int)], bases=(groups,))
    )
    unjudged = msgspec.defstruct("Unjudged", [("doc_count", int)])
    ends = [(name, _Value, msgspec.field(default_factory=_Value)) for name in ("first", "last")]
    both = msgspec.defstruct("Aggregations", [("sane", sane), ("unjudged", unjudged), *ends])
    return msgspec.defstruct("Answer", [("aggregations", both)], bases=(_Answer,), kw_only=True)


def groups_type(requested: "Grouping") -> type[Any]:
    """Return the type of the groups, or without keys of the single one."""
    inner = _inside(requested)
    if not requested.has_keys:
        optional = [(name, kind | None, None) for name, kind in inner]
        return msgspec.defstruct("Bucket", [*optional, ("doc_count", int, 0)])
    kinds = [
        (name, _key_type(requested.live[column.field]))
        for name, column in requested.requested_columns.items()
    ]
    if requested.days:
        kinds.append(("day", int))
    if requested.value:
        kinds.append(("value", float))
    key = msgspec.defstruct("Key", kinds, gc=False, frozen=True)
    # types made for the question: no dictionary per group
    bucket: Any = msgspec.defstruct("Bucket", [("key", key), ("doc_count", int), *inner], gc=False)
    after = ("after_key", dict[str, Any] | None, None)
    page = msgspec.defstruct("Groups", [("buckets", list[bucket]), after])
    return msgspec.defstruct("Aggregations", [("groups", page)], kw_only=True)


def _inside(requested: "Grouping") -> list[tuple[str, Any]]:
    """Return the members of a bucket beside its key: sums, sums of filtered jobs, bins."""
    inner: list[tuple[str, Any]] = []
    filters: dict[str, list[tuple[str, Any]]] = {}
    for atom in requested.sums.atoms():
        target = filters.setdefault(requested.sums.filter_name(atom), []) if atom.of_some else inner
        if atom.kind != "count":
            target.append((requested.sums.name(atom), _Value))
    for name, sums in filters.items():
        kind = msgspec.defstruct("Filtered", [("doc_count", int), *sums], gc=False)
        inner.append((name, kind))
    return inner + [(name, _Bins) for name in requested.binned]


def _key_type(live: LiveField) -> Any:
    if live.field.type in ("boolean", "day"):
        return bool | None if live.field.type == "boolean" else int | None
    if live.field.type == "number":
        return float | None
    return int | float | None if live.field.type == "integer" or live.whole_numbers else str | None
