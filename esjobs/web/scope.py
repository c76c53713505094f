"""The store as a site sees it: a condition on its own queues in every question."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa

from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError
from esjobs.core.query import Filter, In, Query, Select
from esjobs.core.tables import Table
from esjobs.entry import open as open_session
from esjobs.publish.latest import latest_run
from esjobs.render.profile.named import named
from esjobs.schema.speed import SPEED
from esjobs.store.base import Aggregate, JobStore
from esjobs.web.source import Shown

# A value that no row has
_NOBODY = "\0"
_HARMLESS = ("value", "capabilities", "account", "work", "check_fields", "close")
_REFUSED = (
    *("put_jobs", "undo_load", "prune_versions", "replace", "publish", "sweep", "compare_and_set"),
    "set_up",
)


class ScopedStore:
    """Store that shows rows of some queues and of their sites only, and writes nothing.

    A table that names neither queue, site nor name has rows about everybody; of it nothing is shown.
    """

    def __init__(self, inner: JobStore, queues: Sequence[str], sites: Sequence[str]) -> None:
        self._inner = inner
        self._queues, self._names = tuple(queues), tuple({*queues, *sites})

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs of the own queues."""
        return self._inner.select(replace(select, where=(*select.where, self._of_jobs)))

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum jobs of the own queues, or own rows of ``query.over``."""
        own = self._of_jobs if query.over is None else self._of(query.over)
        return self._inner.aggregate(query if own is None else replace(query, where=(*query.where, own)))

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream own rows."""
        own = self._of(table)
        filters = where if own is None else (*where, own)
        return self._inner.read(table, filters, columns, order=order, limit=limit)

    def __getattr__(self, name: str) -> Any:
        if name in (*_HARMLESS, "span", "day_fingerprints"):
            return getattr(self._inner, name)
        if name in _REFUSED:
            return self._refuse
        raise AttributeError(name)

    @property
    def _of_jobs(self) -> Filter:
        return In("queue", self._queues)

    def _of(self, table: Table) -> Filter | None:
        names = table.column_names
        if "queue" in names:
            return self._of_jobs
        if table.name in _ABOUT_RUNS:
            return None
        column = next((each for each in ("name", "site") if each in names), None)
        if column is not None:
            return In(column, self._names)
        text = next(each.name for each in table.columns if each.type == "keyword")
        return In(text, (_NOBODY,))

    def _refuse(self, *_: object, **__: object) -> Any:
        raise EsjobsError("a store of a reader is never written")


# Tables without a name of a queue, also in sentences
_ABOUT_RUNS = frozenset({"runs", "latest_runs", "references"})


def scoped(shown: Shown, sites: Sequence[str]) -> Session:
    """Return a session on the queues of some sites; a name that is no site is a queue."""
    store = shown.session.store
    run = latest_run(store, SPEED)
    queues: set[str] = set()
    for each in sites:
        try:
            queues.update(named(store, "queue", each, run, None if run is None else run.window).names)
        except EsjobsError:
            queues.add(each)
    own = ScopedStore(store, sorted(queues), sites)
    clock = shown.session._context.clock
    return open_session(cast("JobStore", own), settings=shown.session.settings, read_only=True, clock=clock)
