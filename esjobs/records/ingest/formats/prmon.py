"""Output of prmon, the memory monitor of grid jobs: samples as text, or the summary as JSON.

Text: a header and a line a sample, apart by blanks or tabs, in the form of today (``Time nprocs ... utime
rchar read_bytes ... rx_bytes``) or that of the monitor before it (``Time VMEM PSS RSS Swap rchar wchar rbytes
wbytes``). Memory is in kB. CPU time, I/O and network are counters of all processes of the job: they become
rates, the first sample has none, and where a counter falls, because a process ended, there is a gap, counted.
The series are of the job as a whole.

JSON: the summary (``Max``, ``Avg``, ``HW``), which becomes a job record; ``--set`` gives its queue and end.

The job's id comes from the digits in the file's name or from ``--set job_id=ID``. A folder stands for the
files below it whose names contain ``prmon`` or ``memory_monitor``.
"""

import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import InputError
from esjobs.core.metrics import other
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.series.rows import Series, rates, regular
from esjobs.schema.series import SERIES

_KIB = 1024.0  # prmon copies the kB of /proc

_LEVELS: dict[str, tuple[str, float]] = {
    "pss": ("mem_pss_b", _KIB),
    "rss": ("mem_used_b", _KIB),
    "vmem": ("mem_virtual_b", _KIB),
    "swap": ("swap_used_b", _KIB),
    "nprocs": ("processes", 1.0),
    "nthreads": ("threads", 1.0),
    "gpusmpct": ("gpu_load", 0.01),
    "gpufbmem": ("gpu_mem_used_b", _KIB),
}
# Metrics with the counters that they are the rate of: the sum of those that a file has.
_COUNTERS: dict[str, tuple[str, ...]] = {
    "cpu_load": ("utime", "stime"),
    "read_b_s": ("rchar",),
    "write_b_s": ("wchar",),
    "disk_read_b_s": ("read_bytes", "rbytes"),
    "disk_write_b_s": ("write_bytes", "wbytes"),
    "net_read_b_s": ("rx_bytes",),
    "net_write_b_s": ("tx_bytes",),
    "net_b_s": ("rx_bytes", "tx_bytes"),
    "net_packets_s": ("rx_packets", "tx_packets"),
}

# Metrics that need all of their counters.
_BOTH = {"cpu_load", "net_b_s", "net_packets_s"}

_USED = {"time", "wtime", *_LEVELS, *(name for names in _COUNTERS.values() for name in names)}


class Prmon(job_files.InFolder):
    """The format ``prmon``."""

    name = "prmon"
    with_events = False
    default_source = "prmon"
    wanted = re.compile(r".*(prmon|memory_monitor).*\.(txt|json)(\.gz)?")

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the job of a JSON summary, or the series of a table of samples."""
        summary = False
        try:
            text = job_files.text_of(job_files.content(file), file)
            job_id = job_files.job_id_of(file, fill)
            summary = text.lstrip().startswith("{")
            source = str(fill.get("source") or self.default_source)
            if summary:
                yield _record(text, job_id, file, fill, source)
            else:
                books = Books(file.name)
                series = list(_series(text, books))
                yield job_files.series_piece(source, job_id, series, books, fill.get("end_time"))
        except (InputError, ValueError) as error:
            yield job_files.damaged(file, error, None if summary else SERIES)


def _series(text: str, books: Books) -> Iterator[Series]:
    times, columns = _in_order(_columns(text, books), books)
    named: dict[str, npt.NDArray[np.float64]] = {}
    for name, values in columns.items():
        if (level := _level(name)) is not None:
            named[level[0]] = values * level[1]
    for metric, wanted in _COUNTERS.items():
        present = [columns[name] for name in wanted if name in columns]
        # either spelling of a counter will do, but half of a sum is none
        if present and (len(present) == len(wanted) or metric not in _BOTH):
            named[metric], fallen = rates(times, present)
            books.repair(f"decreases of the counters of {metric}, stored as gaps", fallen)
    laid = regular(times, list(named.values()))
    for (metric, _), values in zip(named.items(), laid.columns, strict=True):
        if np.isfinite(values).any():
            yield Series(metric, "job", "", laid.start, laid.step_s, values, laid.remark)
        else:
            books.refuse("no samples", metric, f"{metric} has no sample in {len(values):,} instants")


def _level(name: str) -> tuple[str, float] | None:
    """Return the metric of a column of samples, and its factor; None for counters."""
    return _LEVELS.get(name, None if name in _USED else (other(name), 1.0))


def _in_order(
    columns: Mapping[str, npt.NDArray[np.float64]], books: Books
) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
    """Return the times in order, each once, and the other columns likewise."""
    times = columns["time"]
    books.repair("times that go back, sorted", int((np.diff(times) < 0).sum()))
    order = np.argsort(times, kind="stable")
    # the last sample of a time stays: the monitor writes again after a restart
    last = np.r_[np.diff(times[order]) > 0, True]
    books.repair("samples of a time that another one has, left out", int((~last).sum()))
    order = order[last]
    return times[order], {name: values[order] for name, values in columns.items() if name != "time"}


def _columns(text: str, books: Books) -> dict[str, npt.NDArray[np.float64]]:
    lines = text.splitlines()
    names = lines[0].lower().split() if lines else []
    if "time" not in names or not {"rss", "pss", "vmem"} & set(names) or len(set(names)) != len(names):
        raise InputError(
            f"{books.file} has no header of prmon; expected Time, and columns such as pss, rss, utime, rchar"
        )
    numbers, unusable = array("d"), 0
    for line in lines[1:]:
        cells = line.split()
        if len(cells) == len(names):
            numbers.extend(map(_number, cells))
        elif cells:
            unusable += 1
    values = np.array(numbers).reshape(-1, len(names))
    # comparisons with NaN
    with np.errstate(invalid="ignore"):
        # until 2096
        timed = (values[:, names.index("time")] > 0) & (values[:, names.index("time")] < 4e9)
    books.repair(
        "lines without a time or with another number of cells, ignored", unusable + int((~timed).sum())
    )
    values = values[timed]
    if not len(values):
        raise InputError(f"{books.file} has no samples")
    books.repair("cells that are not numbers from 0, stored as gaps", int(np.isnan(values).sum()))
    return {name: values[:, position] for position, name in enumerate(names)}


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return np.nan
    return value if 0 <= value < 1e18 else np.nan


def _record(text: str, job_id: str, file: Input, fill: Mapping[str, object], source: str) -> Parsed:
    summary = job_files.document(text, file)
    try:
        most, mean = _numbers(summary["Max"]), _numbers(summary.get("Avg", {}))
    except (KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{file.name} is not a summary of prmon: no numbers under Max") from error
    processor = _of(_of(summary, "HW"), "cpu")
    cpu = [most[name] for name in ("utime", "stime") if name in most]
    # a summary has the last value of each counter under Max: totals of the job
    job: dict[str, Any] = {
        "job_id": job_id,
        "cpu_raw": str(processor["ModelName"]) if processor.get("ModelName") else None,
        "wall_s": most.get("wtime"),
        # half of the CPU time would be a wrong one
        "cpu_s": sum(cpu) if len(cpu) == 2 else None,
        "system_s": most.get("stime"),
        "max_rss_b": _kib(most.get("rss")),
        "max_pss_b": _kib(most.get("pss")),
        "max_vmem_b": _kib(most.get("vmem")),
        "avg_rss_b": _kib(mean.get("rss")),
        "avg_pss_b": _kib(mean.get("pss")),
        "read_b": most.get("rchar"),
        "written_b": most.get("wchar"),
    }
    return job_files.job_piece(job, file, fill, source, Books(file.name))


def _of(members: object, name: str) -> Mapping[str, Any]:
    inner = members.get(name) if isinstance(members, dict) else None
    return inner if isinstance(inner, dict) else {}


def _numbers(members: Mapping[str, Any]) -> dict[str, float]:
    return {
        name.lower(): float(value)
        for name, value in members.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
    }


def _kib(value: float | None) -> float | None:
    return None if value is None else value * _KIB
