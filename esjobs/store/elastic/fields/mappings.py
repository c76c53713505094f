"""How each index of a pattern has the fields that a map names; needs the right to read only."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from esjobs.core.errors import StoreError
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.naming import PATTERN

_UNMAPPED = "unmapped"


@dataclass(frozen=True)
class Kind:
    """A field as one index has it. ``able``: whether its values can be found and summed."""

    type: str
    able: bool


@dataclass(frozen=True)
class Mappings:
    """Fields by name, and by index how it has them; an index that lacks a field is not among its indices."""

    indices: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, Kind]]

    def of(self, indices: Collection[str]) -> "Mappings":
        """The same of some of the indices."""
        kept = {
            name: {index: kind for index, kind in by_index.items() if index in indices}
            for name, by_index in self.kinds.items()
        }
        return Mappings(tuple(index for index in self.indices if index in indices), kept)

    def joined(self, others: "Mappings") -> "Mappings":
        """These and those of other indices."""
        kinds = {
            name: {**self.kinds.get(name, {}), **others.kinds.get(name, {})}
            for name in self.kinds.keys() | others.kinds.keys()
        }
        return Mappings((*self.indices, *others.indices), kinds)

    def kind(self, name: str, index: str) -> Kind | None:
        """A field as an index has it; None where it has no such field."""
        return self.kinds.get(name, {}).get(index)


def mappings_of(cluster: Cluster, index: str, names: Iterable[str]) -> Mappings:
    """What the indices of a pattern say of some fields; no indices when none matches."""
    asked = {"fields": ",".join(sorted(names)), "include_unmapped": "true"}
    try:
        answer = cluster.call("GET", f"/{quote(index, safe=PATTERN)}/_field_caps", params=asked)
    except RefusedError as error:
        if not error.absent:
            raise
        answer = {}
    indices = tuple(answer.get("indices") or ())
    by_field = answer.get("fields", {})
    return Mappings(indices, {name: _by_index(types, indices) for name, types in by_field.items()})


def require_indices(cluster: Cluster, index: str, mappings: Mappings) -> None:
    """Raise :class:`StoreError` when no index matches a pattern."""
    if not mappings.indices:
        raise StoreError(
            f"no index of {cluster.location} matches '{index}' (or none that this user may read); "
            "name the jobs' index with --jobs-index"
        )


def _by_index(types: Mapping[str, Mapping[str, Any]], indices: Collection[str]) -> dict[str, Kind]:
    """A field by index; an answer names the indices of a type only where there are several types."""
    return {
        index: Kind(name, _able(told, index))
        for name, told in types.items()
        if name != _UNMAPPED
        for index in told.get("indices") or indices
    }


def _able(told: Mapping[str, Any], index: str) -> bool:
    """Whether an index can find and sum the values of a type that some indices may not be able to."""
    return all(
        told.get(word) or (f"non_{word}_indices" in told and index not in told[f"non_{word}_indices"])
        for word in ("searchable", "aggregatable")
    )
