"""Catalogue as indices: names, mappings, layout number. Pure values.

``PREFIX-jobs-2026-11``: versions of jobs of a month, behind the alias ``PREFIX-jobs``.
``PREFIX-TABLE-000001``: result rows of all generations, behind ``PREFIX-TABLE``, ``PREFIX-latest-TABLE`` and
``PREFIX-latest-TABLE-30d``; tables replaced per day have ``PREFIX-TABLE-2026-11``. ``PREFIX-state``: named
values and the commit.

Mappings are strict. Values are read from ``_source``, so long texts and fine times are kept although the
index does not know them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from esjobs.core.errors import SettingsError
from esjobs.core.fields import JOB_FIELDS, FieldType
from esjobs.core.query import Days
from esjobs.core.tables import Table
from esjobs.store.base import PART
from esjobs.store.checks import of_days

LAYOUT = "6"
"""Number of the layout; indices of another one are refused."""

TEMPLATE_PRIORITY = 500
"""Above the usual priorities of an installation's own templates."""

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
    "bytes": {"type": "binary"},
}
_ROW_TYPES: dict[FieldType, dict[str, Any]] = {
    **_TYPES,
    # dashboards show a date as a day, and its years go on after 2262; jobs keep what a record says
    "time": {"type": "date", "format": "strict_date_optional_time_nanos"},
    # a table of a dashboard shows what has doc values; nobody searches in sentences
    "text": {"type": "keyword", "index": False, "ignore_above": LONGEST_TERM},
}
_LONG, _KEYWORD = {"type": "long"}, {"type": "keyword"}
# what is only looked up, only summed, or only read back does without the other data structure
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
    """Return the index type of a catalogue type in result tables."""
    return str(_ROW_TYPES[kind]["type"])


@dataclass(frozen=True)
class IndexSettings:
    """Operator settings of indices.

    ``shards``: of monthly indices. ``replicas`` None: one if there is a second node.
    """

    shards: int = 1
    replicas: int | None = None
    template_priority: int = TEMPLATE_PRIORITY

    def of_index(self, *, monthly: bool = False) -> dict[str, Any]:
        """Return the settings of an index."""
        if self.replicas is None:
            # a single node would stay yellow with a replica that has no place
            copies: dict[str, Any] = {"auto_expand_replicas": "0-1"}
        else:
            # a template may have asked for the other one
            copies = {"number_of_replicas": self.replicas, "auto_expand_replicas": False}
        # only monthly indices grow with the installation
        return {"number_of_shards": self.shards if monthly else 1, **copies}


USUAL = IndexSettings()
"""Default settings of indices."""

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
# Ends the name of the index of a table, or of what belongs to no month
_FIRST = "000001"

DIGITS = "0123456789"
"""First characters of the suffix of an index name, with and without a month."""

_LATEST = "latest"

# Number of months that are requested individually; for more, all are requested
_MOST_MONTHS = 12

LONGEST_TARGET = 2000
"""Characters of the indices in an address: servers accept 4096 for all of its line."""


def is_monthly(table: Table) -> bool:
    """True if a table has monthly indices: those replaced per day."""
    return of_days(table)


class Names:
    """Names of the indices under a prefix.

    Raises :class:`SettingsError` for a prefix that collides with aliases of another.

    >>> Names("esjobs").jobs, Names("esjobs").state
    ('esjobs-jobs', 'esjobs-state')
    """

    def __init__(self, prefix: str) -> None:
        if prefix.endswith(f"-{_LATEST}"):
            other = prefix.removesuffix(f"-{_LATEST}")
            raise SettingsError(
                f"prefix '{prefix}' (cluster.prefix) would create index names that are aliases of an "
                f"installation with the prefix '{other}'; use a prefix that does not end in -{_LATEST}"
            )
        self.prefix = prefix

    @property
    def jobs(self) -> str:
        """Alias of the jobs."""
        return f"{self.prefix}-jobs"

    def jobs_of(self, month: str = "") -> str:
        """Return the index of a month of jobs, or the undated one that keeps the alias."""
        return f"{self.jobs}-{month or _FIRST}"

    @property
    def job_patterns(self) -> list[str]:
        """Patterns of the indices; :meth:`is_jobs` filters the matches."""
        return [f"{self.jobs}-{digit}*" for digit in DIGITS]

    def is_jobs(self, index: str) -> bool:
        """True if an index holds jobs."""
        ending = index.removeprefix(f"{self.jobs}-")
        return ending != index and (ending == _FIRST or _MONTH.fullmatch(ending) is not None)

    @property
    def state(self) -> str:
        """Index of named values and of the commit."""
        return f"{self.prefix}-state"

    def alias(self, table: Table) -> str:
        """Return the alias of a table."""
        return f"{self.prefix}-{table.name.replace('_', '-')}"

    def latest(self, table: Table, length: str = "") -> str:
        """Return the alias of the latest run, or of the latest of a window length (``30d``)."""
        name = f"{self.prefix}-{_LATEST}-{table.name.replace('_', '-')}"
        return f"{name}-{length}" if length else name

    def rows(self, table: Table, partition: str = "") -> str:
        """Return the index of a partition; without one, the undated index.

        >>> from esjobs.schema.jobs import BUCKETS
        >>> Names("esjobs").rows(BUCKETS, "2026-11-19"), Names("esjobs").rows(BUCKETS)
        ('esjobs-buckets-2026-11', 'esjobs-buckets-000001')
        """
        month = month_of(partition) if is_monthly(table) else None
        return f"{self.alias(table)}-{month or _FIRST}"

    def is_rows(self, table: Table, index: str) -> bool:
        """True if an index holds rows of a table."""
        ending = index.removeprefix(f"{self.alias(table)}-")
        return ending != index and (
            ending == _FIRST or (is_monthly(table) and _MONTH.fullmatch(ending) is not None)
        )

    def month(self, table: Table, index: str) -> str:
        """Return the month of an index; empty for the undated one.

        >>> from esjobs.schema.jobs import BUCKETS
        >>> [Names("esjobs").month(BUCKETS, f"esjobs-buckets-{end}") for end in ("2026-11", "000001")]
        ['2026-11', '']
        """
        ending = index.removeprefix(f"{self.alias(table)}-")
        return "" if ending == _FIRST else ending

    def patterns(self, table: Table, months: Collection[str] | None = None) -> list[str]:
        """Return the undated index and monthly patterns; :meth:`is_rows` filters the matches.

        ``months``: only these, if at most a year.
        """
        if not is_monthly(table):
            return [self.rows(table)]
        # patterns, so that a month that is not there is no error
        endings = DIGITS if months is None or len(months) > _MOST_MONTHS else sorted(months)
        return [self.rows(table), *(f"{self.alias(table)}-{ending}*" for ending in endings)]

    def target(self, table: Table, indices: Iterable[str]) -> str:
        """Return indices as request target: listed, or by pattern if too long."""
        target = listed(indices)
        return target if len(target) <= LONGEST_TARGET else listed(self.patterns(table))

    def template(self, name: str) -> str:
        """Return the template name; the dot keeps prefixes apart."""
        return f"{self.prefix}.{name}"


def month_of(partition: str) -> str | None:
    """Return the month of a day partition; None for any other.

    >>> month_of("2026-11-19"), month_of("2026-11-19+7"), month_of("panda")
    ('2026-11', '2026-11', None)
    """
    day = day_of(partition)
    return None if day is None else day.isoformat()[:7]


def day_of(partition: str) -> date | None:
    """Return the day of a partition, or of rows added to it; None of any other."""
    try:
        return date.fromisoformat(partition.partition(PART)[0])
    except ValueError:
        return None


def months_of(days: Days) -> list[str] | None:
    """Return the months of some days; None for more than a year.

    >>> months_of(Days("day", date(2026, 11, 19), date(2027, 1, 1)))
    ['2026-11', '2026-12', '2027-01']
    """
    first, last = (12 * day.year + day.month - 1 for day in (days.first, days.last))
    # also windows that end before they begin
    if not 0 <= last - first < _MOST_MONTHS:
        return None
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in range(first, last + 1)]


def listed(indices: Iterable[str]) -> str:
    """Return indices as the target of a request."""
    return ",".join(indices)


def groups(indices: Iterable[str], longest: int = LONGEST_TARGET) -> Iterator[list[str]]:
    """Yield indices in groups that the path of one request can list.

    >>> [len(group) for group in groups(["jobs-2026.01.01"] * 400, 3000)]
    [187, 187, 26]
    """
    group: list[str] = []
    length = 0
    for index in indices:
        if group and length + len(index) + 1 > longest:
            yield group
            group, length = [], 0
        group.append(index)
        length += len(index) + 1
    if group:
        yield group


# No refresh by time: the writer refreshes when all is written; before that, nothing may be visible
_NO_REFRESH = {"refresh_interval": "-1"}


def jobs_index(how: IndexSettings = USUAL, *, monthly: bool = False) -> dict[str, Any]:
    """Return the layout of an index of jobs."""
    fields = {field.name: _TYPES[field.type] for field in JOB_FIELDS}
    fields |= {"origin_file": _TYPES["keyword"], "origin_line": _LONG, "identity": _SOUGHT}
    # the control fields of `loads`
    fields |= {"load": _LONG, "row": _KEPT, "born": _LONG, "from": _LONG, "until": _LONG}
    fields |= {"mark_low": _SUMMED}
    # results name a queue so: a dashboard's filter on one finds its jobs, too
    fields |= {"name": {"type": "alias", "path": "queue"}}
    return _index(fields, how.of_index(monthly=monthly) | _NO_REFRESH)


def rows_index(table: Table, how: IndexSettings = USUAL, *, monthly: bool = False) -> dict[str, Any]:
    """Return the layout of an index of result rows; see `markers` and `pieces` for the extra fields."""
    fields = {column.name: _ROW_TYPES[column.type] for column in table.columns}
    if table.named != "name":
        fields |= {"name": {"type": "alias", "path": table.named}}
    fields |= {"generation": _KEYWORD, "partition": _KEYWORD}
    marker: dict[str, Any] = dict.fromkeys(("written", "writer", "begun"), _UNSEARCHED)
    marker |= {"n_written": _KEPT, "over": {"type": "boolean", "index": False, "doc_values": False}}
    if table.packed:
        marker |= {"piece": _LONG, "pieces": _KEPT, "packed": _TYPES["bytes"]}
    return _index(fields | marker, how.of_index(monthly=monthly) | _NO_REFRESH)


def state_index(how: IndexSettings = USUAL) -> dict[str, Any]:
    """Return the layout of the index of named values."""
    fields = {"kind": _KEYWORD, "value": _UNSEARCHED, "mark": _UNSEARCHED, "commit": _HIDDEN}
    return _index(fields, how.of_index())


def _index(fields: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "settings": dict(settings),
        "mappings": {
            # a misspelt field must fail, and not become a field of the index
            "dynamic": "strict",
            "_meta": {"layout": LAYOUT},
            "properties": {**fields, NOT_FINITE: _HIDDEN, SCAN_ONLY: {"type": "boolean"}},
        },
    }
