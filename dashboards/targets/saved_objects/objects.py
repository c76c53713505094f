"""A saved object in its envelope, with the oldest stamps that its shape belongs to, and bundles of them.

A server moves an object of an older stamp up and refuses a whole file with a newer one. Without a stamp
every change since version 6 is applied, which a Lens panel does not survive. OpenSearch Dashboards reads none
of them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "esjobs"
CORE_STAMP = "8.8.0"
# By type, the version whose shape is written; none is newer than Kibana 8.12
STAMPS: Mapping[str, str] = {
    "dashboard": "8.9.0",
    "index-pattern": "8.0.0",
    "lens": "8.9.0",
    "links": "10.1.0",
    "search": "8.0.0",
    "tag": "8.0.0",
    "visualization": "8.5.0",
}

# By type, the word in the ids of its objects
SHORT: Mapping[str, str] = {
    "dashboard": "dashboard",
    "index-pattern": "data",
    "search": "search",
    "tag": "tag",
    "visualization": "vis",
}

Attributes = dict[str, Any]


@dataclass(frozen=True)
class Reference:
    """Reference to another object, with its local name."""

    name: str
    type: str
    id: str

    def written(self) -> dict[str, str]:
        """As a server reads it."""
        return {"id": self.id, "name": self.name, "type": self.type}


@dataclass(frozen=True)
class SavedObject:
    """One object: ``slug`` is the readable end of its id."""

    type: str
    slug: str
    attributes: Attributes
    references: tuple[Reference, ...] = ()
    prefix: str = PREFIX

    @property
    def id(self) -> str:
        """Fixed, so that a second import replaces what the first one made."""
        return identity(self.type, self.slug, self.prefix)

    def written(self) -> dict[str, Any]:
        """As a line of a bundle."""
        return {
            "attributes": self.attributes,
            "coreMigrationVersion": CORE_STAMP,
            "id": self.id,
            "references": [each.written() for each in self.references],
            "type": self.type,
            "typeMigrationVersion": STAMPS[self.type],
        }


def identity(kind: str, slug: str, prefix: str = PREFIX) -> str:
    """The id of an object.

    >>> identity("index-pattern", "latest-flags")
    'esjobs-data-latest-flags'
    """
    return f"{prefix}-{SHORT[kind]}-{slug}"


def text_of(value: Any) -> str:
    """JSON as the text of an attribute, the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def bundle(objects: Iterable[SavedObject]) -> str:
    """Objects as a file to import, a line each: what is needed before what needs it, then by id."""
    order = ["index-pattern", "tag", "visualization", "dashboard"]
    unique = {each.id: each for each in objects}
    found = sorted(unique.values(), key=lambda each: (order.index(each.type), each.id))
    return "".join(text_of(each.written()) + "\n" for each in found)


def search_source(query: str, data_view: Reference | None = None, **more: Any) -> Attributes:
    """The attribute of objects that search: a query of the search bar, the data view that it is asked of."""
    source: dict[str, Any] = {"filter": [], "query": {"language": "kuery", "query": query}, **more}
    if data_view is not None:
        source["indexRefName"] = data_view.name
    return {"searchSourceJSON": text_of(source)}


INDEX_NAME = "kibanaSavedObjectMeta.searchSourceJSON.index"


def data_view_of(index: str, name: str = INDEX_NAME, prefix: str = PREFIX) -> Reference:
    """The data view of an index, of which a search says where it looks.

    >>> data_view_of("esjobs-latest-flags").id
    'esjobs-data-latest-flags'
    """
    return Reference(
        name, "index-pattern", identity("index-pattern", index.removeprefix(f"{prefix}-"), prefix)
    )
