"""Temporary DuckDB tables for questions about rows."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.store.base import Aggregate
from esjobs.store.duck import aggregate as duck_aggregate
from esjobs.store.duck import jobs as duck_jobs
from esjobs.store.duck import results as duck_results
from esjobs.store.duck import schema
from esjobs.store.duck.connection import DuckConnection


class DuckScratch:
    """Rows in memory, spilled above ``memory_limit``; without replacement."""

    def __init__(self, name: str, columns: Mapping[str, str], *, memory_limit: str = "1GB") -> None:
        self._connection = DuckConnection(None, memory_limit, None)
        self._name = schema.quote(name)
        listed = ", ".join(f"{schema.quote(column)} {kind}" for column, kind in columns.items())
        self._connection.run(f"CREATE TABLE {self._name} ({listed})")

    @classmethod
    def of_jobs(cls) -> "DuckScratch":
        """Return one for batches of schema ``PUT_SCHEMA``."""
        # without load numbers and hashes: these rows are never settled
        return cls("jobs", {name: schema.JOB_COLUMNS[name] for name in PUT_SCHEMA.names})

    @classmethod
    def of_results(cls, table: Table) -> "DuckScratch":
        """Return one for rows of a result table."""
        columns = schema.result_columns(table)
        return cls(table.name, {name: columns[name] for name in table.column_names})

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows with columns in schema order."""
        if batch.num_rows:
            self._connection.insert(
                f"INSERT INTO {self._name} SELECT * FROM incoming",  # noqa: S608  a name of the catalogue
                pa.Table.from_batches([batch]),
            )

    def clear(self) -> None:
        """Delete all rows."""
        self._connection.run(f"DELETE FROM {self._name}")  # noqa: S608  a name of the catalogue

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        return duck_jobs.select(self._connection, select)

    def aggregate(self, query: Query) -> Aggregate:
        return duck_aggregate.aggregate(self._connection, query)

    def read(
        self,
        table: Table,
        where: Sequence[Filter],
        columns: Sequence[str],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return duck_results.read(self._connection, table, where, columns, order, limit)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "DuckScratch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
