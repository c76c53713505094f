"""Results in the cluster: rows are written under a generation, readers follow an alias with a filter.

The alias of a table says which generations readers see; one request changes the aliases of all tables at
once. The filter of an alias is the only record of what is published, so that Kibana and esjobs cannot
disagree.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.errors import StoreError
from esjobs.core.tables import TABLES, Table
from esjobs.store.base import Generation, Retired
from esjobs.store.batches import conformed
from esjobs.store.elastic.cluster import Cluster, ask
from esjobs.store.elastic.documents import columns as columns_of
from esjobs.store.elastic.documents import documents
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import Names, rows_index
from esjobs.store.elastic.patience import PassingError
from esjobs.store.elastic.scan import PointInTime
from esjobs.store.elastic.writing import Action, create, delete, refresh, write
from esjobs.store.promises import known, require_once

_NOTHING = "none"
"""Stands in the filter of an alias that shows nothing."""


class Results:
    """The rows of all result tables."""

    def __init__(self, cluster: Cluster, names: Names) -> None:
        self._cluster = cluster
        self._names = names

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write rows under a new generation, all of them or none that will ever be seen."""
        index = self._names.rows(known(table))
        number = uuid.uuid4().hex
        schema = table_schema(table)
        rows = 0

        def actions() -> Iterator[Action]:
            nonlocal rows
            # says that the generation was written, even if it has no rows
            yield create(index, number, {"generation": number, "written": partition})
            for batch in batches:
                for document in documents(conformed(batch, schema, f"rows of '{table.name}'")):
                    rows += 1
                    marked = document | {"generation": number, "partition": partition}
                    yield create(index, f"{number}.{rows}", marked)

        ensure_index(self._cluster, index, rows_index(table))
        write(self._cluster, actions())
        return Generation(table, partition, number)

    def publish(self, changes: Sequence[Generation | Retired]) -> None:
        """Switch readers of every named partition in one request."""
        require_once(changes)
        tables = {change.table.name: known(change.table) for change in changes}
        for change in changes:
            if isinstance(change, Generation):
                self._require_written(change)
        wanted = {name: self._after(table, changes) for name, table in tables.items() if self._exists(table)}
        actions = [_alias(self._names, tables[name], shown) for name, shown in wanted.items()]
        if not actions:
            return
        try:
            self._cluster.call("POST", "/_aliases", {"actions": actions})
        except PassingError as error:
            if not error.passing:
                raise
            # the answer may be lost and the switch made
            if any(self.published(tables[name]) != shown for name, shown in wanted.items()):
                raise

    def _after(self, table: Table, changes: Sequence[Generation | Retired]) -> dict[str, str]:
        """The generation of each partition that readers of a table are to see after a switch."""
        refresh(self._cluster, self._names.rows(table))
        shown = self.published(table)
        for change in changes:
            if change.table == table:
                shown.pop(change.partition, None)
                if isinstance(change, Generation):
                    shown[change.partition] = change.number
        return shown

    def published(self, table: Table) -> dict[str, str]:
        """The generation that readers of a table see of each partition."""
        index, alias = self._names.rows(table), self._names.alias(table)
        found = ask(self._cluster, f"/{index}/_alias/{alias}")
        if found is None:
            return {}
        numbers, partitions = found[index]["aliases"][alias]["filter"]["bool"]["filter"]
        pairs = zip(partitions["terms"]["partition"], numbers["terms"]["generation"], strict=True)
        return {partition: number for partition, number in pairs if number != _NOTHING}

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Stream the rows that readers see, as of the moment of the call."""
        shown = self.published(known(table))
        return self._stream(table, PointInTime(self._cluster, self._names.rows(table)), _shown(shown))

    def _stream(self, table: Table, at: PointInTime, query: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        schema = table_schema(table)
        with at:
            for hits in at.pages(query):
                yield columns_of([hit["_source"] for hit in hits], schema)

    def sweep(self, pending: Set[str]) -> int:
        """Delete the rows of generations that are neither visible nor about to be published."""
        return sum(self._sweep(table, pending) for table in TABLES)

    def _sweep(self, table: Table, pending: Set[str]) -> int:
        index = self._names.rows(table)
        if not self._exists(table):
            return 0
        refresh(self._cluster, index)
        kept = [*self.published(table).values(), *pending]
        query = {"bool": {"must_not": [{"terms": {"generation": kept}}]}}
        deleted = 0
        with PointInTime(self._cluster, index) as at:
            for hits in at.pages(query, False):
                write(self._cluster, (delete(index, hit["_id"]) for hit in hits))
                deleted += sum("." in hit["_id"] for hit in hits)
        if deleted:
            refresh(self._cluster, index)
        return deleted

    def _exists(self, table: Table) -> bool:
        only = {"filter_path": "*.aliases"}
        return ask(self._cluster, f"/{self._names.rows(table)}", params=only) is not None

    def _require_written(self, generation: Generation) -> None:
        table, number = generation.table, generation.number
        found = ask(self._cluster, f"/{self._names.rows(table)}/_doc/{quote(number, safe='')}")
        written = found["_source"].get("written") if found else None
        if written != generation.partition:
            raise StoreError(
                f"generation {number} of '{table.name}' {generation.partition} is not in the store "
                "(swept, or of another store); run the step again"
            )


def has_alias(cluster: Cluster, names: Names, table: Table) -> bool:
    """Whether a table has the alias that readers ask."""
    return ask(cluster, f"/{names.rows(table)}/_alias/{names.alias(table)}") is not None


def ensure_alias(cluster: Cluster, names: Names, table: Table) -> None:
    """Give a table that has never been published an alias that shows nothing."""
    if not has_alias(cluster, names, table):
        cluster.call("POST", "/_aliases", {"actions": [_alias(names, table, {})]})


def _alias(names: Names, table: Table, published: Mapping[str, str]) -> dict[str, Any]:
    """The action that makes an alias show these generations, whatever it showed before."""
    alias = {"index": names.rows(table), "alias": names.alias(table), "is_write_index": False}
    return {"add": alias | {"filter": _shown(published)}}


def _shown(published: Mapping[str, str]) -> dict[str, Any]:
    """The rows that readers see, as the filter of an alias: two lists in the same order.

    The document that says that a generation was written has no partition and so is never shown.
    """
    shown = published or {_NOTHING: _NOTHING}
    generations = {"terms": {"generation": list(shown.values())}}
    return {"bool": {"filter": [generations, {"terms": {"partition": list(shown)}}]}}
