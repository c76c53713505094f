"""The catalogue as indices: names, mappings, the number of the layout. Pure values, no connection.

- ``PREFIX-jobs``: versions of jobs, one document each: the catalogue's stored fields, where the row came
  from, and ``born``, ``from``, ``until``, ``load``, ``row``, ``identity`` (see `jobs`).
- ``PREFIX-TABLE-000001``: rows of a result table, whatever generation; the alias ``PREFIX-TABLE`` shows the
  published ones, ``PREFIX-latest-TABLE`` those of the latest run alone, ``PREFIX-latest-TABLE-30d`` those of
  the latest run whose window has this length.
- ``PREFIX-state``: one document per named value, and one that says what is committed.

Mappings are strict. Every value that readers get comes from ``_source``, so that texts longer than a term
can be, and times finer than a millisecond in rows, are kept, and only the index does not know them.
"""

from collections.abc import Mapping
from typing import Any

from esjobs.core.fields import JOB_FIELDS, FieldType
from esjobs.core.tables import Table

LAYOUT = "2"
"""Number of the layout; changed only when indices of the old one cannot be brought up to date by adding."""

LONGEST_TERM = 8191
"""Characters of a keyword that the index knows; four bytes each stay below Lucene's limit of 32 766."""

_HIDDEN = {"type": "object", "enabled": False}
_UNSEARCHED = {"type": "keyword", "index": False, "doc_values": False}

_TYPES: dict[FieldType, dict[str, Any]] = {
    "keyword": {"type": "keyword", "ignore_above": LONGEST_TERM},
    "text": _UNSEARCHED,
    "integer": {"type": "long"},
    "number": {"type": "double"},
    "boolean": {"type": "boolean"},
    "time": {"type": "date_nanos", "format": "strict_date_optional_time_nanos"},
    "day": {"type": "date", "format": "strict_date"},
    # stored and never parsed: names of events would else enter the mapping, one field each
    "map": _HIDDEN,
    "list": _HIDDEN,
}
_ROW_TYPES: dict[FieldType, dict[str, Any]] = {
    **_TYPES,
    # dashboards show a date as a day, and its years go on after 2262; jobs keep what a record says
    "time": {"type": "date", "format": "strict_date_optional_time_nanos"},
    # a table of a dashboard shows what has doc values; nobody searches in sentences
    "text": {"type": "keyword", "index": False, "ignore_above": LONGEST_TERM},
}
_LONG, _KEYWORD = {"type": "long"}, {"type": "keyword"}
_SOUGHT = {"type": "keyword", "doc_values": False}
_SUMMED = {"type": "long", "index": False}
_KEPT = {"type": "long", "index": False, "doc_values": False}

NOT_FINITE = "not_finite"
"""Object with the numbers of a document that JSON cannot write: NaN and the infinities, by column."""

SCAN_ONLY = "scan_only"
"""True for documents with a value that the index does not know.

Such a number, a very long text, or, in a row of results, a time that is finer than a millisecond.
"""


def row_type(kind: FieldType) -> str:
    """What the index of a result table calls a type of the catalogue."""
    return str(_ROW_TYPES[kind]["type"])


class Names:
    """Names of the indices under a prefix.

    >>> Names("esjobs").jobs, Names("esjobs").state
    ('esjobs-jobs', 'esjobs-state')
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @property
    def jobs(self) -> str:
        """The index of jobs."""
        return f"{self.prefix}-jobs"

    @property
    def state(self) -> str:
        """The index of named values and of what is committed."""
        return f"{self.prefix}-state"

    def alias(self, table: Table) -> str:
        """What readers of a table ask."""
        return f"{self.prefix}-{table.name.replace('_', '-')}"

    def latest(self, table: Table, length: str = "") -> str:
        """What readers of the latest run ask, or of the latest whose window has a length (``30d``)."""
        name = f"{self.prefix}-latest-{table.name.replace('_', '-')}"
        return f"{name}-{length}" if length else name

    def rows(self, table: Table) -> str:
        """The index that holds a table's rows."""
        return f"{self.alias(table)}-000001"


_NO_REFRESH = {"refresh_interval": "-1"}
"""Whoever writes refreshes when all is written; in between nobody may see anything."""


def jobs_index(shards: int = 1) -> dict[str, Any]:
    """The index of jobs."""
    fields = {field.name: _TYPES[field.type] for field in JOB_FIELDS}
    fields |= {"origin_file": _TYPES["keyword"], "origin_line": _LONG, "identity": _SOUGHT}
    fields |= {"load": _LONG, "row": _KEPT, "born": _LONG, "from": _LONG, "until": _LONG}
    fields |= {"mark_low": _SUMMED, "mark_high": _SUMMED}
    return _index(fields, shards, _NO_REFRESH)


def rows_index(table: Table) -> dict[str, Any]:
    """The index of a result table; see `markers` for what is not a column."""
    fields = {column.name: _ROW_TYPES[column.type] for column in table.columns}
    fields |= {"generation": _KEYWORD, "partition": _KEYWORD}
    marker = dict.fromkeys(("written", "writer", "begun"), _UNSEARCHED)
    marker |= {"n_written": _KEPT, "over": {"type": "boolean", "index": False, "doc_values": False}}
    return _index(fields | marker, 1, _NO_REFRESH)


def state_index() -> dict[str, Any]:
    """The index of named values; the values themselves are not searched."""
    return _index({"kind": _KEYWORD, "value": _UNSEARCHED, "mark": _UNSEARCHED, "commit": _HIDDEN}, 1)


def _index(
    fields: Mapping[str, Any], shards: int, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "settings": {"number_of_shards": shards, "auto_expand_replicas": "0-1", **(settings or {})},
        "mappings": {
            "dynamic": "strict",
            "_meta": {"layout": LAYOUT},
            "properties": {**fields, NOT_FINITE: _HIDDEN, SCAN_ONLY: {"type": "boolean"}},
        },
    }
