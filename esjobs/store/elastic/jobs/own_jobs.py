"""Reading the jobs that esjobs keeps in the cluster itself."""

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
    """The visible documents of the jobs' indices."""

    several_values = False
    most_read = None

    def __init__(self, jobs: Jobs, window: Window | None = None) -> None:
        self._jobs = jobs
        self._window = window
        self.live = own_fields()

    @property
    def index(self) -> str:
        """The indices in which jobs are now, with commas between."""
        return self._jobs.index_of(self._window)

    def parts(self, window: Window | None, names: Collection[str]) -> list["OwnJobs"]:
        """All of it: every index of esjobs has every field alike. Only the months of the window are asked."""
        del names
        return [OwnJobs(self._jobs, window)]

    def inside(self, window: Window | None) -> list[Clause]:
        """The versions that readers see now, of a window."""
        return [self._jobs.visible(), *within("end_time", window)]

    def judged(self, names: Collection[str]) -> frozenset[str]:
        """No more than is asked: what is no job was refused when it was loaded."""
        return frozenset(names)

    def odd(self, names: Collection[str]) -> list[Clause]:
        """Documents with a value that the index does not know: NaN, an infinity, a very long text."""
        del names
        return [{"term": {SCAN_ONLY: True}}]

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents as they were written."""
        schema = pa.schema([item for item in PUT_SCHEMA if item.name in names])
        for batch in at.batches(clause, schema):
            arrays = [
                batch.column(item.name) if item.name in names else pa.nulls(batch.num_rows, item.type)
                for item in PUT_SCHEMA
            ]
            yield Documents(pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA))

    def span(self) -> Span:
        """How many jobs are stored and which span their end times cover."""
        return self._jobs.span()

    def server_time(self) -> datetime | None:
        """The time of the cluster."""
        return self._jobs.server_time()

    def undated(self) -> int:
        """None: a job without an end time was refused when it was loaded."""
        return 0

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Columns day, n_jobs, mark; see :class:`JobStore`."""
        return self._jobs.day_fingerprints(window)
