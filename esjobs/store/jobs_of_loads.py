"""View of a store with the jobs of some loads only."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from esjobs.core.query import Query, Select
from esjobs.store.base import Aggregate, JobStore


class JobsOfLoads:
    """Store that passes questions about jobs to other functions; everything else is its own."""

    def __init__(
        self,
        store: JobStore,
        select: Callable[[Select], Iterator[pa.RecordBatch]],
        aggregate: Callable[[Query], Aggregate],
    ) -> None:
        self._store = store
        self.select = select
        self._of_jobs = aggregate

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum these jobs, or rows of ``query.over``."""
        return self._of_jobs(query) if query.over is None else self._store.aggregate(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
