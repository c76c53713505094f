"""Jobs that esjobs stores in the cluster itself."""

from collections.abc import Collection, Iterator
from datetime import datetime

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.window import Window
from esjobs.store.base import Span
from esjobs.store.elastic.asking.clauses import Clause
from esjobs.store.elastic.asking.days import within
from esjobs.store.elastic.fields.live_fields import own_fields
from esjobs.store.elastic.jobs.job_index import Documents
from esjobs.store.elastic.jobs.loads import Jobs
from esjobs.store.elastic.layout import SCAN_ONLY
from esjobs.store.elastic.transport.scan import PointInTime


class OwnJobs:
    """Visible documents of the jobs indices; ``commits``: those after the first, up to the second."""

    several_values = False
    most_read = None

    def __init__(
        self, jobs: Jobs, window: Window | None = None, commits: tuple[int, int] | None = None
    ) -> None:
        self._jobs = jobs
        self._window = window
        self._commits = commits
        self.live = own_fields()

    @property
    def index(self) -> str:
        return self._jobs.index_of(self._window)

    def parts(self, window: Window | None, names: Collection[str]) -> list["OwnJobs"]:
        """Return one part: all own indices have the same fields."""
        del names
        return [OwnJobs(self._jobs, window, self._commits)]

    def inside(self, window: Window | None) -> list[Clause]:
        """Return the clauses of visible versions in a window."""
        after, upto = self._commits or (None, None)
        of_commits = [] if after is None else [{"range": {"from": {"gt": after, "lte": upto}}}]
        return [self._jobs.visible(), *of_commits, *within("end_time", window)]

    def judged(self, names: Collection[str]) -> frozenset[str]:
        """Return the names: invalid jobs were refused when loaded."""
        return frozenset(names)

    def unjudged(self, names: Collection[str]) -> list[Clause]:
        """Return the clause of documents with a value unknown to the index: NaN, infinity, very long text."""
        del names
        return [{"term": {SCAN_ONLY: True}}]

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents."""
        schema = pa.schema([item for item in PUT_SCHEMA if item.name in names])
        for batch in at.batches(clause, schema):
            arrays = [
                # columns that nobody asked for are not read
                batch.column(item.name) if item.name in names else pa.nulls(batch.num_rows, item.type)
                for item in PUT_SCHEMA
            ]
            yield Documents(pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA))

    def span(self) -> Span:
        return self._jobs.span()

    def server_time(self) -> datetime | None:
        return self._jobs.server_time()

    def undated(self) -> int:
        """Return 0: jobs without end time were refused when loaded."""
        return 0

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        return self._jobs.day_fingerprints(window)

    def load_fingerprints(self, window: Window) -> pa.Table:
        return self._jobs.load_fingerprints(window)

    def of_commits(self, after: int, upto: int) -> "OwnJobs":
        """Return the documents of some commits."""
        return OwnJobs(self._jobs, commits=(after, upto))
