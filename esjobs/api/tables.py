"""Result tables of a session: ``s.tables``."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from esjobs.core.arguments import Names, ShowOptions, WindowLike, listed, window_of
from esjobs.core.errors import UsageError
from esjobs.records.answer import Answer
from esjobs.records.context import Context
from esjobs.records.jobs.field_check import check_fields
from esjobs.records.jobs.streams import streamed_rows
from esjobs.records.shown import row_choice, show_table
from esjobs.schema import catalogue


class Tables:
    """Every result table by its name: ``s.tables.flags(level="queue")``, ``s.tables["flags"]``.

    Rows are those of the latest run unless ``run`` names another: the complete, unrestricted one of the
    newest window. Tables of no run give all rows, or those of a ``window``. Filters (``level``, ``type``,
    ``name``, ``queue``, ``method``, ...) take one value or several; case does not matter where only one value
    is meant.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def read(self, table: str, /, **options: Unpack[ShowOptions]) -> Answer:
        """Rows of a table in their order; :attr:`Answer.run` is the run that they belong to.

        ``sort``: one column or several; missing values come last. ``descending`` None: numbers from the
        largest, names and times from the first. ``top``: the first N rows. ``columns``: these only, in this
        order. Raises :class:`NoResultError` when no run has the results, :class:`KeywordError` (a TypeError)
        for an unknown keyword, :class:`UsageError` for a column that the table lacks and a value that no row
        has; all name what is close.
        """
        return show_table(self._context.store, self._context.clock, table, options)

    def batches(
        self, name: str, *, window: WindowLike = None, run: str | None = None, columns: Names = ()
    ) -> pa.RecordBatchReader:
        """Stream the rows of a table as Arrow batches, in no order: memory does not grow with them."""
        store = self._context.store
        table = catalogue.table(name)
        where = row_choice(store, table, run, window_of(window, self._context.clock))
        return streamed_rows(store, table, where, listed(columns))

    def fields(self) -> Answer:
        """Fields of the jobs index: foreign name, state, type, and cost of asking for them."""
        checked = check_fields(self._context.store)
        return Answer(pa.Table.from_pylist([asdict(each) for each in checked]))

    def search(self, name: str = "flags") -> Any:
        """Return a search of ``elasticsearch.dsl`` on the latest rows of a table, or on ``jobs``.

        Hits are typed; the alias (``esjobs-latest-flags``) is searched without any filter but yours. Raises
        :class:`UsageError` for a store other than Elasticsearch.
        """
        table = None if name == "jobs" else catalogue.table(name)
        # not part of the protocol: only one product has such a library
        ask = getattr(self._context.store, "search", None)
        if ask is None:
            raise UsageError(f"elasticsearch.dsl requires Elasticsearch; use s.tables.{name}() or s.query()")
        return ask(table)

    def __getitem__(self, name: str) -> Answer:
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in catalogue.TABLES)

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        # from the catalogue: other packages add tables
        if not any(table.name == name for table in catalogue.TABLES):
            raise AttributeError(f"unknown table '{name}'; use one of: {', '.join(self)}")
        return partial(self.read, name)

    # for completion in notebooks
    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})
