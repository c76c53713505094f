"""Jobs as SUPReMM summarises them, one JSON document each: summaries, and series for its plots.

A folder stands for the JSON files below it.

Summaries of both generations become job records: ``acct`` says who, when and how much; CPU time is the share
of time in user mode and in the kernel times cores times duration. Counters: of the earlier generation (0.9,
groups such as ``intel_snb``) the rates per core times cores times duration, of the later one (1.0,
``cpuperf``) the counts per core times cores; groups outside the cores keep the group before the name. The
queue is the partition unless ``--set queue=`` names another.

Series of both forms (``nodebased`` and ``devicebased``, or a member per metric) become rows of nodes and
cores. A metric with an ``error`` in place of numbers has no data: it is refused under that reason, and left
out of a summary, counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, ClassVar

import numpy as np

from esjobs.core.arrays import Floats
from esjobs.core.errors import InputError
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.metrics import other
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.series.rows import Series, regular
from esjobs.schema.series import SERIES

# Their metrics with ours and the factor; shares are in percent, memory and rates in GiB and MiB.
_METRICS: dict[str, tuple[str, float]] = {
    "cpuuser": ("cpu_user", 0.01),
    "membw": ("mem_bw_b_s", 2.0**30),
    "memused": ("mem_used_b", 2.0**30),
    "memused_minus_diskcache": ("mem_used_b", 2.0**30),
    "ib_lnet": ("net_b_s", 2.0**20),
}

_BESIDE = {"_id", "times", "version", "hosts", "error", "nodebased", "devicebased"}
_GROUP = re.compile(r"(intel|amd)[a-z0-9_]*", re.IGNORECASE)
_OUTSIDE = re.compile(r"_(imc|cbo|cha|qpi|upi|pcu|hau|ha|r2pci|rapl|iio|m2m|nb)$")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)([nc]?)", re.IGNORECASE)
_UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Supremm(job_files.InFolder):
    """The format ``supremm``."""

    name = "supremm"
    with_events = False
    default_source = "supremm"
    settable: ClassVar[tuple[Field, ...]] = JOB_FIELDS
    wanted = re.compile(r".*\.json(\.gz)?")

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the job of a summary, or the series of its plots, told apart by their members."""
        table = None
        try:
            document = _document(file)
            source = str(fill.get("source") or self.default_source)
            if isinstance(document.get("acct"), dict):
                yield _record(document, file, fill, source)
            else:
                table = SERIES
                yield _of_plots(document, file, fill, source)
        except (InputError, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
            yield job_files.damaged(file, error, table)


def _document(file: Input) -> dict[str, Any]:
    document = job_files.document(job_files.content(file), file)
    if not isinstance(document, dict) or not isinstance(document.get("_id"), str):
        raise InputError(f"{file.name} is not a document of SUPReMM: no _id; expected one document per file")
    return document


# -- summaries -------------------------------------------------------------------------------------------


def _record(document: Mapping[str, Any], file: Input, fill: Mapping[str, object], source: str) -> Parsed:
    books = Books(file.name)
    # names of members changed between the generations
    acct = document["acct"]
    start, end = _moment(acct.get("start_time")), _moment(acct.get("end_time"))
    wall = (end - start).total_seconds() if start and end else None
    cores = acct.get("ncpus", acct.get("cores"))
    nodes = acct.get("nodes")
    requested = acct.get("reqcpus")
    project = acct.get("account", acct.get("project"))
    errors = sum(_has_no_data(value) for value in document.values())
    books.repair("groups without data, ignored", errors)
    used = _member(_member(document, "process_memory"), "usage")
    executable = _text(_member(document, "lariat").get("exec")) or None
    job = {
        "job_id": str(acct.get("local_job_id", acct.get("id")) or "") or None,
        "queue": fill.get("queue") or acct.get("partition", acct.get("queue")),
        "user": _text(acct.get("user", acct.get("uid"))),
        "project": _text(project),
        "state": job_files.state_of(acct.get("exit_status", acct.get("status"))),
        "exit_code": _text(acct.get("exit_code")),
        "application": PurePosixPath(executable or "").name or None,
        "executable": executable,
        "submit_time": _moment(acct.get("submit", acct.get("queue_time"))),
        "start_time": start,
        "end_time": end,
        "wall_s": wall,
        "cores": cores,
        "nodes": nodes,
        "requested_cores": requested,
        "requested_wall_s": acct.get("timelimit"),
        "requested_memory_b": _memory(acct.get("reqmem"), nodes, requested or cores),
        "cpu_s": _cpu_s(document, wall, ("user", "system"), ("nice",)),
        "system_s": _cpu_s(document, wall, ("system",)),
        "max_rss_b": _total(used.get("max")),
        "avg_rss_b": _total(used.get("avg")),
        "counters": _counters(document, wall) or None,
    }
    return job_files.job_piece(job, file, fill, source, books)


def _has_no_data(value: object) -> bool:
    return isinstance(value, dict) and "error" in value


def _member(container: object, name: str) -> Mapping[str, Any]:
    inner = container.get(name) if isinstance(container, Mapping) else None
    return inner if isinstance(inner, dict) and not _has_no_data(inner) else {}


def _total(statistics: object) -> float | None:
    # mean times count
    if not isinstance(statistics, dict):
        return None
    mean, count = statistics.get("avg"), statistics.get("cnt")
    if not isinstance(mean, int | float) or not isinstance(count, int) or not 0 <= mean * count < 1e18:
        return None
    return float(mean) * count


def _cpu_s(
    document: Mapping[str, Any], wall: float | None, needed: Sequence[str], more: Sequence[str] = ()
) -> float | None:
    cpu = _member(document, "cpu")
    cpu = _member(cpu, "jobcpus") or cpu
    # mean share over cores times their number: cores that were busy
    shares = [_total(cpu.get(name)) for name in (*needed, *more)]
    if wall is None or None in shares[: len(needed)]:
        return None
    return wall * sum(share or 0.0 for share in shares)


def _counters(document: Mapping[str, Any], wall: float | None) -> dict[str, float]:
    counters: dict[str, float] = {}
    for name, group in document.items():
        if not isinstance(group, dict) or _has_no_data(group):
            continue
        if name == "cpuperf":
            flops = _total(group.get("flops"))
            counters |= {} if flops is None else {"flops": flops}
        elif _GROUP.fullmatch(name) and wall:
            counters |= _events(name, group, wall)
    return counters


def _events(name: str, group: Mapping[str, Any], wall: float) -> dict[str, float]:
    # parts outside the core count events of equal names
    before = f"{name}." if _OUTSIDE.search(name) else ""
    rates = {event: _total(statistics) for event, statistics in group.items()}
    return {f"{before}{event}": rate * wall for event, rate in rates.items() if rate is not None}


def _memory(text: object, nodes: object, cores: object) -> float | None:
    # 24000Mn is per node, 2800Mc per core, else of the job
    match = _MEMORY.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    count = {"n": nodes, "c": cores, "": 1}[match[3].lower()]
    if not isinstance(count, int):
        return None
    return float(match[1]) * _UNITS[match[2].upper()] * count


def _moment(seconds: object) -> datetime | None:
    return job_files.moment(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


# -- series ----------------------------------------------------------------------------------------------


def _of_plots(document: Mapping[str, Any], file: Input, fill: Mapping[str, object], source: str) -> Parsed:
    books = Books(file.name)
    hosts = document.get("hosts")
    job_id, _, ended = document["_id"].rpartition("-")
    if not job_id or not ended.isdigit():
        raise InputError(f"{file.name}: the _id '{document['_id'][:60]}' is not JOB-TIME")
    found: list[Series] = []
    for metric, host, device, samples, times in _plots(document):
        node = str(_named(hosts, host))
        unit = node if device is None else f"{node}/{device.removeprefix('cpu')}"
        scope = "node" if device is None else "core"
        found += _of_plot(metric, scope, unit, samples, times, books)
    if not found and not books.rejects:
        raise InputError(f"{file.name} has neither acct nor series; check that it is a document of SUPReMM")
    named = job_files.moment(int(ended), "the time in _id")
    last = max((one.last for one in found), default=named)
    # samples may go on after the time in the id, and series end with their job
    end = fill.get("end_time") or max(last, named)
    return job_files.series_piece(source, job_id, found, books, end)


def _of_plot(metric: str, scope: str, unit: str, samples: Any, times: Any, books: Books) -> Iterator[Series]:
    name, factor = _METRICS.get(metric, (other(metric), 1.0))
    if _has_no_data(samples):
        books.refuse("no data", metric, f"{metric} of {unit}: error {samples['error']!r}", unit)
        return
    if not _as_many(samples, times):
        books.refuse("no series", metric, f"{metric} of {unit} has not as many samples as times", unit)
        return
    at, values = _floats(times), _floats(samples)
    timed = np.isfinite(at)
    if not timed.any():
        books.refuse("no series", metric, f"{metric} of {unit} has no times", unit)
        return
    books.repair("samples that are not numbers, stored as gaps", int(np.isnan(values).sum()))
    laid = regular(at[timed], [values[timed] * factor])
    yield Series(name, scope, unit, laid.start, laid.step_s, laid.columns[0], laid.remark)


def _as_many(samples: Any, times: Any) -> bool:
    both = isinstance(samples, list) and isinstance(times, list)
    return both and len(samples) == len(times) > 0


def _of_devices(devices: Any, times: Any) -> Iterator[tuple[str, Any, Any]]:
    if _has_no_data(devices):
        yield "all", devices, None
    else:
        yield from ((device, samples, times) for device, samples in _items(devices))


def _plots(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None, Any, Any]]:
    # metric, number of the host, device (None: the node), samples, times
    times = document.get("times")
    for metric, hosts in _member(document, "nodebased").items():
        for host, samples in _items(hosts):
            yield metric, host, None, samples, _named(times, host)
    for metric, hosts in _member(document, "devicebased").items():
        for host, devices in _items(hosts):
            yield from ((metric, host, *plot) for plot in _of_devices(devices, _named(times, host)))
    for metric, one in document.items():
        if metric in _BESIDE or not isinstance(one, dict):
            continue
        if _has_no_data(one):
            yield metric, "0", None, one, None
        else:
            yield from ((metric, *plot) for plot in _of_hosts(one))


def _of_hosts(one: Mapping[str, Any]) -> Iterator[tuple[str, str | None, Any, Any]]:
    for host, parts in _items(one.get("hosts")):
        times = one.get("times")
        # one list of times for all hosts, or one per host
        if isinstance(times, dict) or (isinstance(times, list) and times and isinstance(times[0], list)):
            times = _named(times, host)
        if _has_no_data(parts):
            yield host, None, parts, times
            continue
        if "all" in parts:
            yield host, None, parts["all"], times
        names = parts.get("names") or {}
        for device, samples in _items(parts.get("dev")):
            yield host, str(names.get(device, device)), samples, times


def _items(container: object) -> Iterator[tuple[str, Any]]:
    if isinstance(container, dict):
        yield from container.items()
    elif isinstance(container, list):
        yield from ((str(number), value) for number, value in enumerate(container))


def _named(container: object, name: str) -> Any:
    if isinstance(container, dict):
        # hosts are numbers into a list of names in one form, names in the other
        return container.get(name, name)
    if isinstance(container, list) and name.isdigit() and int(name) < len(container):
        return container[int(name)]
    return name


def _floats(values: Sequence[Any]) -> Floats:
    return np.array(
        [
            float(value) if isinstance(value, int | float) and abs(value) < 1e18 else np.nan
            for value in values
        ],
        np.float64,
    )
