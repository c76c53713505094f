"""A store as if it had only the jobs of some loads."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from esjobs.core.query import Query, Select
from esjobs.store.base import Aggregate, JobStore


class JobsOfLoads:
    """A store whose questions about jobs are answered by others; questions about results are its own."""

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
