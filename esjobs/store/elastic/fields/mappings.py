"""Mappings of the indices of a pattern; requires the right to read only."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.naming import PATTERN

_UNMAPPED = "unmapped"


@dataclass(frozen=True)
class Kind:
    """Type of a field in one index; ``able``: searchable and aggregatable."""

    type: str
    able: bool


@dataclass(frozen=True)
class Mappings:
    """Kinds by field and index; indices that lack a field are omitted."""

    indices: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, Kind]]

    def of(self, indices: Collection[str]) -> "Mappings":
        """Return the mappings of some of the indices."""
        kept = {
            name: {index: kind for index, kind in by_index.items() if index in indices}
            for name, by_index in self.kinds.items()
        }
        return Mappings(tuple(index for index in self.indices if index in indices), kept)

    def joined(self, others: "Mappings") -> "Mappings":
        """Return the union with the mappings of other indices."""
        kinds = {
            name: {**self.kinds.get(name, {}), **others.kinds.get(name, {})}
            for name in self.kinds.keys() | others.kinds.keys()
        }
        return Mappings((*self.indices, *others.indices), kinds)

    def kind(self, name: str, index: str) -> Kind | None:
        """Return the kind of a field in an index; None if absent."""
        return self.kinds.get(name, {}).get(index)


def mappings_of(cluster: Cluster, index: str, names: Iterable[str]) -> Mappings:
    """Return the mappings of some fields; no indices if none matches."""
    # include_unmapped: otherwise a field that some indices lack looks as if all had it
    params = {"fields": ",".join(sorted(names)), "include_unmapped": "true"}
    try:
        # _field_caps needs the right to read only; _mapping that to view metadata
        answer = cluster.call("GET", f"/{quote(index, safe=PATTERN)}/_field_caps", params=params)
    except RefusedError as error:
        if not error.absent:
            raise
        answer = {}
    indices = tuple(answer.get("indices") or ())
    by_field = answer.get("fields", {})
    return Mappings(indices, {name: _by_index(types, indices) for name, types in by_field.items()})


def _by_index(types: Mapping[str, Mapping[str, Any]], indices: Collection[str]) -> dict[str, Kind]:
    """Return kinds by index; an answer lists indices only where types differ."""
    return {
        index: Kind(name, _able(capability, index))
        for name, capability in types.items()
        if name != _UNMAPPED
        for index in capability.get("indices") or indices
    }


def _able(capability: Mapping[str, Any], index: str) -> bool:
    return all(
        capability.get(word)
        or (f"non_{word}_indices" in capability and index not in capability[f"non_{word}_indices"])
        for word in ("searchable", "aggregatable")
    )
