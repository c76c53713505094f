"""Rows of the catalogue as documents of ``elasticsearch.dsl``, generated from the tables."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from elasticsearch import Elasticsearch, dsl

from esjobs.core.fields import FieldType

# Python type of a value in a hit: ``datetime`` for times and days, ``bytes``, else that of JSON
_KINDS: Mapping[FieldType, type[dsl.Field]] = {
    "keyword": dsl.Keyword,
    "text": dsl.Keyword,
    "integer": dsl.Long,
    "number": dsl.Double,
    "boolean": dsl.Boolean,
    "time": dsl.Date,
    "day": dsl.Date,
    "map": dsl.Object,
    "list": dsl.Double,
    "bytes": dsl.Binary,
}


class _Row(dsl.Document):
    """Document that matches every index behind an alias."""

    @classmethod
    def _matches(cls, hit: Mapping[str, Any]) -> bool:
        del hit
        return True


@cache
def document(name: str, columns: tuple[tuple[str, FieldType], ...]) -> type[dsl.Document]:
    """Return the document class of a table, such as ``LatestFlags``."""
    fields: dict[str, Any] = {column: _KINDS[kind]() for column, kind in columns}
    title = "".join(word.capitalize() for word in name.replace("_", "-").split("-"))
    return type(title, (_Row,), {"__doc__": f"A row of {name}.", "__module__": __name__, **fields})


def search(client: Elasticsearch, name: str, index: str, columns: Mapping[str, FieldType]) -> dsl.Search[Any]:
    """Return a search on an index or alias with hits of a table."""
    kind = document(name, tuple(columns.items()))
    return dsl.Search(using=client, index=index, doc_type=kind)
