"""Rows of the catalogue as documents of ``elasticsearch.dsl``, the library of those who know Elasticsearch.

The classes are made from the tables; nothing about a column stands here.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from elasticsearch import Elasticsearch, dsl

from esjobs.core.fields import FieldType

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
"""What a value becomes in a hit: times and days a ``datetime``, bytes bytes, all else what JSON has."""


class _Row(dsl.Document):
    """What a hit becomes, whatever the index behind the alias is called."""

    @classmethod
    def _matches(cls, hit: Mapping[str, Any]) -> bool:
        del hit
        return True


@cache
def document(name: str, columns: tuple[tuple[str, FieldType], ...]) -> type[dsl.Document]:
    """The class of the rows of a table, with a field per column, called like the table: ``LatestFlags``."""
    fields: dict[str, Any] = {column: _KINDS[kind]() for column, kind in columns}
    title = "".join(word.capitalize() for word in name.replace("_", "-").split("-"))
    return type(title, (_Row,), {"__doc__": f"A row of {name}.", "__module__": __name__, **fields})


def search(client: Elasticsearch, name: str, index: str, columns: Mapping[str, FieldType]) -> dsl.Search[Any]:
    """A search on an index or alias, whose hits are documents of a table; nothing is asked yet."""
    kind = document(name, tuple(columns.items()))
    return dsl.Search(using=client, index=index, doc_type=kind)
