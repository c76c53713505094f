"""One person's name taken out of a store: jobs, every table that has columns with names, texts.

Jobs and results stay, without the name: they are records of machines, and speed factors rest on them. What
people entered about the person alone (contacts, messages to them) is deleted. Which columns can name somebody
follows from the catalogue (:mod:`esjobs.core.personal`): a column that is added is among them.
"""

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import ORIGIN_SCHEMA, table_schema
from esjobs.core.errors import UsageError
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.personal import AUTHORS, is_free_text, kind_of_names
from esjobs.core.tables import Table, column
from esjobs.publish.publication import read_table, tidy
from esjobs.records.export.pseudonyms import Pseudonyms
from esjobs.records.jobs.table_rows import of_partition
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.web import ACTS
from esjobs.store.base import Change, Erasing, Expiring, Hide, JobStore

_USER = "user"
_NOBODY = "somebody"
_MOST_OTHERS = 20  # similar names that a report lists
_JOBS = "jobs"
_PUT_FIELDS: tuple[Field, ...] = (
    *JOB_FIELDS,
    *(column(name, "keyword", "") for name in ORIGIN_SCHEMA.names if name != "origin_line"),
)

SCHEMA = pa.schema(
    [("table", pa.string()), ("column", pa.string()), ("rows", pa.int64()), ("what", pa.string())]
)
"""Of the account: in which columns the name stood, and what became of it."""


Entries = list[dict[str, Any]]
"""Entries of the journal of pages, in their order."""
_JOURNAL = {each.name: each for each in (*ACTS.columns, *FLAG_NOTES.columns)}


@dataclass(frozen=True)
class Forgotten:
    """Report on a removal.

    ``account``: one row per column; jobs count in versions. ``others``: similar names, taken for other
    people's. ``erased``: state of the bytes; empty for a dry run. ``remains``: where the name may still be.
    """

    account: pa.Table
    others: tuple[str, ...]
    erased: str
    remains: tuple[str, ...]


def forget_user(
    store: JobStore,
    tables: Iterable[Table],
    name: str,
    *,
    pseudonymise: bool = False,
    keep_texts: bool = False,
    dry_run: bool = False,
    rewrite: Callable[[Callable[[Entries], Entries]], None] | None = None,
) -> Forgotten:
    """Remove a name from all stored rows; a second time it finds nothing.

    ``pseudonymise``: one random pseudonym in place of the name, else jobs have no user. ``keep_texts``:
    change columns of users only; always so for a name of digits, which occurs by chance. ``rewrite`` changes
    the journal of pages by a function of its entries. Concurrent writers may bring the name back.

    Memory: a partition of a table; of the embedded store, the versions of jobs that name the person. Raises
    :class:`UsageError` for an empty name, and for a store that cannot change jobs.
    """
    erasing = _erasing(store, name)
    # the key outlives a run that breaks off: the next one must give the same pseudonym
    marker = f"forgetting {hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"
    key = secrets.token_hex(32) if dry_run else _key(store, marker)
    names = _Names(name, bytes.fromhex(key), pseudonymise=pseudonymise, keep_texts=keep_texts)
    # an index whose jobs expire belongs to others and is only read
    of_others = isinstance(store, Expiring) and store.forgets
    if not of_others:
        erasing.rewrite_jobs(name, names.counting if dry_run else names.jobs)
    for table in tables:
        _forget_rows(store, table, names, dry_run=dry_run)
    if rewrite is not None:
        rewrite(names.counting_entries if dry_run else names.entries)
    erased = ""
    if not dry_run:
        tidy(store)
        store.compare_and_set(marker, key, None)
        erased = erasing.erase()
    others = tuple(sorted(names.others))[:_MOST_OTHERS]
    return Forgotten(names.account(), others, erased, (*(_OF_OTHERS if of_others else ()), *_REMAINS))


_OF_OTHERS = (
    "the jobs themselves: they are in an index that esjobs only reads; scores and issues that are computed "
    "again contain the name",
)
_REMAINS = (
    "the original files of the jobs; when they are read again, the name returns",
    "exports, reports, pages, pictures, mails, messages and logs written so far",
    "backups and snapshots of the store or cluster, and archives that are read in place",
    "the settings, if they name the user as a recipient",
)


def _erasing(store: JobStore, name: str) -> Erasing:
    if not name.strip():
        raise UsageError(
            "the name is empty; use the user's name in the job records (list: esjobs query --by user)"
        )
    if not isinstance(store, Erasing):
        raise UsageError("this store cannot change stored jobs: it has no rewrite_jobs (see Erasing)")
    return store


def _key(store: JobStore, marker: str) -> str:
    # the key of an interrupted run is used again; it goes when all is done
    while (key := store.value(marker)) is None:
        store.compare_and_set(marker, None, secrets.token_hex(32))
    return key


def _forget_rows(store: JobStore, table: Table, names: "_Names", *, dry_run: bool) -> None:
    named_columns = names.columns_of(table.columns)
    if not named_columns:
        return
    wanted = tuple(dict.fromkeys((table.partition, *(each.name for each in named_columns))))
    partitions: set[str] = set()
    for batch in store.read(table, columns=wanted):
        named = names.named(batch, named_columns)
        if pc.any(named).as_py():
            partitions.update(map(str, pc.unique(batch.column(table.partition).filter(named)).to_pylist()))
    for partition in sorted(partitions):
        rows = read_table(store, table, [of_partition(table, partition)])
        kept = pa.Table.from_batches(names.rows(rows.to_batches(), table), table_schema(table))
        if not dry_run:
            store.publish(_changes(store, table, partition, kept))


def _changes(store: JobStore, table: Table, partition: str, rows: pa.Table) -> list[Change]:
    # the partition itself may have another name
    changes: list[Change] = []
    for value in rows.column(table.partition).unique().to_pylist():
        of_value = rows.filter(pc.equal(rows.column(table.partition), value))
        changes.append(store.replace(table, str(value), of_value.to_batches()))
    if not any(change.partition == partition for change in changes):
        changes.append(Hide(table, partition))
    return changes


class _Names:
    """Finds a name in columns and removes it; counts what it found."""

    def __init__(self, name: str, key: bytes, *, pseudonymise: bool, keep_texts: bool) -> None:
        self._name = name
        self._pseudonyms = Pseudonyms(key)
        self._user = self._pseudonyms.of(_USER, name) if pseudonymise else None
        self._keep_texts = keep_texts or name.isdecimal()
        # in texts as it is, in JSON also with escapes
        spellings = {name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1]}
        listed = "|".join(map(re.escape, sorted(spellings, key=len, reverse=True)))
        # a name is no part of a longer word; an underscore separates words
        self._word = re.compile(rf"(?<![^\W_])(?:{listed})(?![^\W_])", re.IGNORECASE)
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self.others: set[str] = set()

    def columns_of(self, columns: Iterable[Field]) -> list[Field]:
        """Return the columns that can name somebody."""
        return [
            each
            for each in columns
            if kind_of_names(each) == _USER
            or (not self._keep_texts and (is_free_text(each) or kind_of_names(each) is not None))
        ]

    def named(self, batch: pa.RecordBatch, columns: Iterable[Field]) -> pa.Array:
        """Return a mask of the rows that name the person in one of the columns."""
        found = pa.repeat(False, batch.num_rows)
        for each in columns:
            found = pc.or_(found, self._found(batch.column(each.name), each))
        return found

    def rows(self, batches: Iterable[pa.RecordBatch], table: Table) -> Iterator[pa.RecordBatch]:
        """Rows of a table without the name; those that people entered about the person are left out."""
        for batch in batches:
            kept = batch
            if table.entered:
                about = [each for each in self.columns_of(table.columns) if self._is_about(each)]
                named = self.named(batch, about)
                kept = batch.filter(pc.invert(named))
                self._counts.update(
                    {
                        (table.name, each.name, "rows deleted"): count
                        for each in about
                        if (count := pc.sum(self._found(batch.column(each.name), each)).as_py())
                    }
                )
            yield self._renewed(kept, table.columns, table.name)

    @staticmethod
    def _is_about(each: Field) -> bool:
        return kind_of_names(each) == _USER and each.name not in AUTHORS

    def jobs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Versions of jobs without the name."""
        return self._renewed(batch, _PUT_FIELDS, _JOBS)

    def counting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same versions: only what would change is counted."""
        self.jobs(batch)
        return batch

    def entries(self, entries: Entries) -> Entries:
        """Return entries of the journal without the name."""
        names = {name for entry in entries for name, value in entry.items() if isinstance(value, str)}
        columns = [_JOURNAL[name] for name in sorted(names & _JOURNAL.keys())]
        texts = {
            each.name: pa.array([entry.get(each.name) for entry in entries], pa.string()) for each in columns
        }
        rows = self._renewed(pa.RecordBatch.from_pydict(texts), columns, "journal").to_pylist()
        return [_renewed_entry(entry, row) for entry, row in zip(entries, rows, strict=True)]

    def counting_entries(self, entries: Entries) -> Entries:
        """Return the same entries: only what would change is counted."""
        self.entries(entries)
        return entries

    def _renewed(self, batch: pa.RecordBatch, columns: Iterable[Field], table: str) -> pa.RecordBatch:
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        for each in self.columns_of(columns):
            array = arrays[each.name]
            found = self._found(array, each)
            count = pc.sum(found).as_py()
            if not count:
                continue
            distinct = array.dictionary_encode()
            texts = [
                self._without(text, each) if self._is_named(text, each) else text
                for text in distinct.dictionary.to_pylist()
            ]
            arrays[each.name] = pa.array(texts, pa.string()).take(distinct.indices)
            removed = kind_of_names(each) == _USER and self._user is None
            self._counts[table, each.name, "name removed" if removed else "name replaced"] += count
        return pa.RecordBatch.from_arrays(list(arrays.values()), schema=batch.schema)

    def _found(self, array: pa.Array, each: Field) -> pa.Array:
        # each text is searched once, however many rows have it
        distinct = array.dictionary_encode()
        named = [text is not None and self._is_named(text, each) for text in distinct.dictionary.to_pylist()]
        return pc.fill_null(pa.array(named, pa.bool_()).take(distinct.indices), False)

    def _is_named(self, text: str, each: Field) -> bool:
        if kind_of_names(each) != _USER:
            return self._word.search(text) is not None
        # a mail address is that of the user before its @
        if self._name in (text, text.partition("@")[0]):
            return True
        if self._word.search(text):
            self.others.add(text)
        return False

    def _without(self, text: str, each: Field) -> str | None:
        kind = kind_of_names(each)
        if kind == _USER:
            return self._user
        if kind is None:
            return self._word.sub(self._user or _NOBODY, text)
        return self._pseudonyms.of(kind, text)

    def account(self) -> pa.Table:
        """Return one row per column with the name."""
        rows = [
            {"table": table, "column": name, "rows": rows, "what": what}
            for (table, name, what), rows in self._counts.items()
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)


def _renewed_entry(entry: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    # notes need an author
    return {**entry, **{name: row[name] or _NOBODY for name in row if entry.get(name) is not None}}
