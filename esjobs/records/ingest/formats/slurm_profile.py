"""Profiles of Slurm jobs (``acct_gather_profile``) as ``sh5util`` or a data set writes them in CSV.

A row a sample of a task: Step, Node, Series (the task), EpochTime, CPUUtilization (percent of one core), RSS
and VMSize (kB), ReadMB and WriteMB (since the sample before), where there: GPUUtilization (percent),
GPUMemMB, Power (W). Samples of the tasks and steps of a node are added up; the step ``-1`` (``extern``) does
nothing and is left out. The job's id comes from a column, from the digits in the file's name, or from
``--set job_id=ID``. What it gives are series of nodes; the job ended with the last sample unless
``--set end_time=TIME`` says more.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Ints
from esjobs.core.errors import InputError
from esjobs.core.fields import Field
from esjobs.core.metrics import other
from esjobs.core.numbers import duration
from esjobs.records.ingest.base import Parsed, Reject
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.series.rows import Series, regular
from esjobs.schema.series import SERIES

_KIB, _MIB = 1024.0, 1024.0 * 1024.0

# Columns whose samples are what they say, with their metric and factor.
_LEVELS: dict[str, tuple[str, float]] = {
    "cpuutilization": ("cpu_load", 0.01),
    "cpufrequency": ("clock_hz", 1e6),
    "rss": ("mem_used_b", _KIB),
    "vmsize": ("mem_virtual_b", _KIB),
    "gpuutilization": ("gpu_load", 0.01),
    "gpumemmb": ("gpu_mem_used_b", _MIB),
    "power": ("power_w", 1.0),
}

# Columns that count since the sample before.
_SINCE: dict[str, tuple[str, float]] = {
    "readmb": ("read_b_s", _MIB),
    "writemb": ("write_b_s", _MIB),
    "megabytesin": ("net_read_b_s", _MIB),
    "megabytesout": ("net_write_b_s", _MIB),
    "pages": (other("pages_s"), 1.0),
}

# Metrics of which tasks of a node have a mean, not a sum.
_MEANS = {"clock_hz", "gpu_load"}

_JOB = ("jobid", "job_id", "id_job", "job")
_EXTERN = ("-1", "extern", "4294967292", "-4")
_WANTED = ("step", "node", "epochtime")


class SlurmProfile:
    """The format ``slurm-profile``."""

    name = "slurm-profile"
    default_source = "slurm"
    settable: ClassVar[tuple[Field, ...]] = job_files.OF_ONE_JOB

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the series of each job; a file that cannot be read to its end has none."""
        try:
            rows, omitted = _table(file)
            pieces = list(_jobs(rows, omitted, file, fill, str(fill.get("source") or self.default_source)))
        except (InputError, pa.ArrowInvalid, ValueError) as error:
            pieces = [job_files.damaged(file, error, SERIES)]
        yield from pieces


def _table(file: Input) -> tuple[pa.Table, Mapping[str, int]]:
    rows, omitted = job_files.text_columns(job_files.content(file), file, fold=True)
    lacking = [name for name in _WANTED if name not in rows.column_names]
    if lacking:
        raise InputError(
            f"{file.name}: {', '.join(lacking)} missing in the header; expected the columns of a Slurm "
            "profile: Step,Node,Series,ElapsedTime,EpochTime,..."
        )
    return rows, omitted


def _jobs(
    rows: pa.Table, omitted: Mapping[str, int], file: Input, fill: Mapping[str, object], source: str
) -> Iterator[Parsed]:
    steps = pc.utf8_trim_whitespace(rows.column("step"))
    # extern sleeps; 4294967292 is -4 as an unsigned number
    rows = rows.filter(pc.invert(pc.is_in(steps, pa.array(_EXTERN))))
    if not rows.num_rows:
        raise InputError(f"{file.name} has samples of step extern only")
    column = next((name for name in _JOB if name in rows.column_names), None)
    if column is None:
        of_jobs = {job_files.job_id_of(file, fill): rows}
    else:
        of_jobs = _by_job(rows, column)
        if unnamed := pc.sum(pc.equal(rows.column(column), "")).as_py():
            yield _unnamed(file, column, unnamed)
    # what is left out of the file is counted once, with its first job
    counts = omitted
    for job_id, of_job in of_jobs.items():
        books = Books(file.name, repaired=dict(+Counter(counts)))
        counts = {}
        named = of_job.filter(pc.not_equal(pc.utf8_trim_whitespace(of_job.column("node")), ""))
        books.repair("samples without a node, ignored", of_job.num_rows - named.num_rows)
        series = [one for node, of_node in _nodes(named) for one in _of_node(of_node, node, books)]
        if not series and not books.rejects:
            books.refuse("no series", "", f"job {job_id} has no sample with a time and a node")
        yield job_files.series_piece(source, job_id, series, books, fill.get("end_time"))


def _by_job(rows: pa.Table, column: str) -> dict[str, pa.Table]:
    job_ids = rows.column(column)
    return {str(value): rows.filter(pc.equal(job_ids, value)) for value in job_ids.unique() if value.as_py()}


def _unnamed(file: Input, column: str, count: int) -> Parsed:
    detail = f"samples with empty {column}; accepted: the id of a job"
    reject = Reject(job_files.NO_JOB, file.name, 1, "job_id", detail, "", count)
    return Parsed.of((), (reject,), table=SERIES)


def _nodes(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    codes = rows.column("node").combine_chunks().dictionary_encode()
    positions = codes.indices.to_numpy()
    # nodes in one piece each, samples in the order of the file
    order = np.argsort(positions, kind="stable")
    rows = rows.take(pa.array(order))
    ends = np.searchsorted(positions[order], np.arange(len(codes.dictionary) + 1)).tolist()
    for number, node in enumerate(codes.dictionary.to_pylist()):
        yield node, rows.slice(ends[number], ends[number + 1] - ends[number])


def _length(times: Floats, step: float, node: str, books: Books) -> int:
    span = float(times.max()) - float(times.min())
    length = round(span / step) + 1 if step else 1
    # a clock that jumped by years would ask for an array of as many steps
    if length > 4 * len(times) + 1000:
        raise InputError(
            f"{books.file}: {len(times):,} samples of {node} in {duration(span)} are too few for a profile"
        )
    return length


def _of_node(rows: pa.Table, node: str, books: Books) -> Iterator[Series]:
    times = _numbers(rows, "epochtime", books)
    timed = np.isfinite(times) & (times > 0) & (times < 4e9)
    books.repair("samples without a time, ignored", int((~timed).sum()))
    if not timed.any():
        return
    rows, times = rows.filter(pa.array(timed)), times[timed]
    tasks = _tasks(rows)
    columns = [name for name in (*_LEVELS, *_SINCE) if name in rows.column_names]
    values = {name: _numbers(rows, name, books) for name in columns}
    laid = [
        (times[tasks == task], [values[name][tasks == task] for name in columns]) for task in np.unique(tasks)
    ]
    step = _step_of(laid)
    first, length = float(times.min()), _length(times, step, node, books)
    sums, counts, remark = _added(laid, len(columns), first, step, length)
    start = datetime.fromtimestamp(first, UTC)
    for name, total, count in zip(columns, sums, counts, strict=True):
        if not count.any():
            books.refuse("no samples", name, f"column {name} of {node}: no number", node)
        elif name in _SINCE and not step:
            books.refuse("no samples", name, f"column {name} of {node}: one sample has no rate", node)
        else:
            metric, factor = (_LEVELS | _SINCE)[name]
            # means over tasks; counts since the sample before become rates
            divisor = np.maximum(count, 1) if metric in _MEANS else step if name in _SINCE else 1.0
            yield Series(metric, "node", node, start, step, total * factor / divisor, remark)


def _step_of(laid: Sequence[tuple[Floats, Sequence[Floats]]]) -> float:
    """Return the time (s) between samples; 0 if there is one only."""
    # tasks are sampled one after the other: their instants are those of the one with most samples
    instants = np.unique(max((times for times, _ in laid), key=len))
    return float(np.median(np.diff(instants))) if len(instants) > 1 else 0.0


def _added(
    laid: Sequence[tuple[Floats, Sequence[Floats]]], n_columns: int, first: float, step: float, length: int
) -> tuple[Floats, Floats, str | None]:
    # arrays are (columns, instants); a sum is NaN where no task has a sample
    sums, counts = np.zeros((n_columns, length)), np.zeros((n_columns, length))
    remarks: set[str] = set()
    for times, columns in laid:
        resampled = regular(times, columns)
        remarks |= {resampled.remark} if resampled.remark else set()
        own = np.arange(len(resampled.columns[0])) * resampled.step_s + resampled.start.timestamp() - first
        positions = np.rint(own / (step or 1.0)).astype(np.int64)
        for number, samples in enumerate(resampled.columns):
            present = np.isfinite(samples) & (positions < length)
            sums[number, positions[present]] += samples[present]
            counts[number, positions[present]] += 1
    sums[counts == 0] = np.nan
    return sums, counts, "; ".join(sorted(remarks)) or None


def _tasks(rows: pa.Table) -> Ints:
    names = [name for name in ("step", "series", "task") if name in rows.column_names]
    texts = pc.binary_join_element_wise(
        *(pc.fill_null(rows.column(name), "") for name in names), "/"
    ).combine_chunks()
    numbers: Ints = texts.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _numbers(rows: pa.Table, name: str, books: Books) -> Floats:
    # negative numbers are gaps
    texts = pc.utf8_trim_whitespace(rows.column(name))
    plain = pc.match_substring_regex(texts, r"^[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$")
    values: Floats = (
        pc.if_else(plain, texts, None).cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    )
    bad = ~np.isfinite(values) | (values < 0)
    books.repair(f"cells of {name} that are not numbers from 0, stored as gaps", int(bad.sum()))
    values[bad] = np.nan
    return values
