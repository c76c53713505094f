"""Reads the files of a load: jobs go on at once, rows of other tables are kept aside, all are counted."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import UsageError
from esjobs.core.fields import REQUIRED
from esjobs.core.tables import Table
from esjobs.records.ingest.base import Parsed, Reject, Source
from esjobs.records.ingest.bounds import sound
from esjobs.records.ingest.pieces import pieces
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.jobs.gaps import Gaps
from esjobs.records.jobs.rejects import RejectSpool, superseded
from esjobs.records.jobs.table_rows import TableRows
from esjobs.store.batches import conformed

Progress = Callable[[str, int, int], None]

JOBS = "jobs"
"""Name of job rows in the accounting balance."""


class Reading:
    """Reads the files of a load and keeps its books; use it as a context manager.

    ``rows_in`` and ``rejected`` count by table, ``reasons`` over all tables; ``tables``: rows of other tables
    than jobs; ``first``, ``last``: span of the end times. With ``keep`` false rows of other tables are only
    counted.
    """

    def __init__(
        self,
        source: Source,
        files: Sequence[Input],
        fill: Mapping[str, object],
        spool: RejectSpool,
        progress: Progress | None,
        *,
        keep: bool = True,
    ) -> None:
        self._source = source
        self._files = files
        self._fill = fill
        self._spool = spool
        self._progress = progress
        self._keep = keep
        self._spools = ExitStack()
        self.rows_in: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.tables: dict[Table, TableRows] = {}
        self.notes: dict[str, None] = {}
        self.repaired: Counter[str] = Counter()
        self.gaps = Gaps(for_fits=getattr(source, "with_events", True))
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.first_refused: Reject | None = None
        self._files_of_rows: dict[tuple[object, ...], str] = {}

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self._spools.close()

    def jobs(self) -> Iterator[pa.RecordBatch]:
        """The acceptable jobs of all files, in their order."""
        for number, file in enumerate(self._files):
            if self._progress:
                self._progress(file.name, number, len(self._files))
            # by table: the rows listed of one leave their room to another
            out_of_bounds: dict[str, Refusals] = {}
            for parsed in pieces(self._source, file, self._fill):
                rows = self._conformed(parsed)
                refusals = out_of_bounds.setdefault(_name_of(parsed.table), Refusals(file.name))
                good = sound(rows, parsed.table, refusals)
                self._count(parsed, good.num_rows, refusals.take())
                self._require_one_file(file.name, parsed.table, good)
                if parsed.table is not None and self._keep:
                    self.tables[parsed.table].add(good)
                elif parsed.table is None and good.num_rows:
                    self._look_at(good)
                    yield good
            for name, refusals in out_of_bounds.items():
                self._refuse(refusals.rest(), name)
            self._require_balance(file.name)
        if self._progress:
            self._progress("storing", len(self._files), len(self._files))

    def jobs_if_any(self) -> Iterator[pa.RecordBatch] | None:
        """Return the jobs, None if all files have none; reads up to the first one, and so to early errors."""
        batches = self.jobs()
        first = next(batches, None)
        return None if first is None else itertools.chain([first], batches)

    def supersede(self, rows: pa.Table) -> None:
        """Count jobs that the store refused, for they lost against a newer end time."""
        if rows.num_rows:
            self._refuse(superseded(rows), JOBS)

    def _require_one_file(self, file: str, table: Table | None, rows: pa.RecordBatch) -> None:
        # of the same row of two files only one could count
        job_id = self._fill.get("job_id")
        if job_id is None or not rows.num_rows:
            return
        # a job has a row of each series, one row in other tables
        names = [name for name in ("metric", "scope", "unit") if table and name in rows.schema.names]
        of_it = rows.filter(pc.equal(rows.column("job_id"), str(job_id)))
        for row in of_it.select([*names, "job_id"]).to_pylist():
            key = (_name_of(table), *(row[name] for name in names))
            earlier = self._files_of_rows.setdefault(key, file)
            if earlier != file:
                raise UsageError(
                    f"--set job_id={job_id} gives {earlier} and {file} the same job, so only one would "
                    "count; load them individually, or put the ids into their names"
                )

    def _conformed(self, parsed: Parsed) -> pa.RecordBatch:
        if parsed.table is None:
            return self._complete(conformed(parsed.batch, PUT_SCHEMA, "jobs"))
        if parsed.table not in self.tables:
            self.tables[parsed.table] = TableRows(parsed.table)
            self._spools.enter_context(self.tables[parsed.table].spool)
        return self.tables[parsed.table].conformed(parsed.batch)

    def _count(self, parsed: Parsed, n_good: int, out_of_bounds: Iterable[Reject]) -> None:
        name = _name_of(parsed.table)
        self.rows_in[name] += parsed.rows_in
        self.accepted[name] += n_good
        self.notes.update(dict.fromkeys(parsed.notes))
        self.repaired.update(parsed.repaired)
        self._refuse((*parsed.rejects, *out_of_bounds), name)

    def _complete(self, jobs: pa.RecordBatch) -> pa.RecordBatch:
        for name in ("source", *REQUIRED):
            if missing := jobs.column(name).null_count:
                raise UsageError(
                    f"source {self._source.name} yielded {missing:,} jobs without {name}; it must reject "
                    "such rows"
                )
        return jobs

    def _look_at(self, jobs: pa.RecordBatch) -> None:
        self.gaps.add(jobs)
        ends = pc.min_max(jobs.column("end_time")).as_py()
        self.first = min(filter(None, (self.first, ends["min"])))
        self.last = max(filter(None, (self.last, ends["max"])))

    def _refuse(self, rejects: Iterable[Reject], name: str) -> None:
        listed = list(rejects)
        self._spool.refuse(listed, name)
        for reject in listed:
            self.first_refused = self.first_refused or reject
            self.reasons[reject.reason] += reject.n_rows
            self.rejected[name] += reject.n_rows

    @property
    def all_refused(self) -> bool:
        """True if there were rows, and none of them could be accepted."""
        return self.rows_in.total() > 0 and not self.accepted.total()

    def _require_balance(self, file: str) -> None:
        for name, rows in self.rows_in.items():
            if rows != self.accepted[name] + self.rejected[name]:
                raise UsageError(
                    f"source {self._source.name} read {rows:,} rows of {name} up to the end of {file}, but "
                    f"yielded {self.accepted[name]:,} and rejected {self.rejected[name]:,}. A source must "
                    "account for each row"
                )


def _name_of(table: Table | None) -> str:
    return JOBS if table is None else table.name
