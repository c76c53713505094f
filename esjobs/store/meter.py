"""Meter of a store: the work it did since it was opened."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from esjobs.store.base import Aggregate, Work


class Meter:
    """Counters behind ``store.work()``. Thread-safe: clusters are written by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work = Work()

    @property
    def work(self) -> Work:
        """The counts up to now."""
        with self._lock:
            return self._work

    def add(self, work: Work) -> None:
        """Add counts."""
        with self._lock:
            self._work = self._work + work

    def read_jobs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches of jobs and count their rows."""
        for batch in batches:
            self.add(Work(jobs_read=batch.num_rows))
            yield batch

    def grouped(self, answer: Aggregate) -> Aggregate:
        """Count the jobs behind an answer and return it; rows of result tables have no books."""
        books = answer.books.select(["kind", "n_jobs"]).to_pylist()
        # notes count jobs that are also binned
        n_jobs = sum(row["n_jobs"] for row in books if row["kind"] != "note")
        self.add(Work(jobs_read=n_jobs))
        return answer

    def written(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches to be stored and count their rows and bytes."""
        for batch in batches:
            self.add(Work(rows_written=batch.num_rows, bytes_written=batch.nbytes))
            yield batch

    def request(self, status: str, sent: int, received: int, server_s: float) -> None:
        """Count a request of a cluster; ``status``: of HTTP, or ``none`` without an answer."""
        counted = Counter({status: 1})
        self.add(Work(requests=counted, bytes_sent=sent, bytes_received=received, server_s=server_s))
