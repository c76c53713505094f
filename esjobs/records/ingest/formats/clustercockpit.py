"""The job archive of ClusterCockpit: ``meta.json`` with ``data.json`` (or ``data.json.gz``) beside it.

A folder stands for all such files below it. ``meta.json`` gives the job record, ``data.json`` its series,
which say neither whose they are nor when they began: that is read from the ``meta.json`` beside, or given by
``--set``. Values are turned into base units by the unit and prefix that stand beside them. Where the result
exceeds what any node can do and the next smaller prefix does not, the smaller one was meant (G for M); that
and ``B/s`` for used memory are repaired and counted. Null is a gap.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from esjobs.core.errors import InputError
from esjobs.core.metrics import other
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.job_files import Books
from esjobs.records.ingest.formats.naming import Naming
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.names.applications import Applications
from esjobs.records.series.rows import Series
from esjobs.schema.series import SERIES

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES |= {"m": 1e-3, "u": 1e-6, "n": 1e-9}
# prefixes to try where a value is impossible with the one given
_SMALLER = {"T": "G", "G": "M", "M": "K", "P": "T"}
_WORDS = {"kilo": "K", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "milli": "m"}

# a step of 0 s would place all samples at one instant
_LEAST_STEP_S = 1e-3

_SCOPES = {
    "node": "node",
    "socket": "socket",
    "memorydomain": "socket",
    "core": "core",
    "hwthread": "thread",
    "accelerator": "accelerator",
}


@dataclass(frozen=True)
class _OurMetric:
    """Our metric for one of theirs; ``most``: maximum of a node; ``percent``: theirs is 0 to 100."""

    name: str
    most: float = np.inf
    percent: bool = False


_METRICS = {
    "cpu_load": _OurMetric("cpu_load", 1e5),
    "load_one": _OurMetric("cpu_load", 1e5),
    "cpu_user": _OurMetric("cpu_user", percent=True),
    "cpu_system": _OurMetric("cpu_system", percent=True),
    "cpu_iowait": _OurMetric("cpu_iowait", percent=True),
    "cpu_irq": _OurMetric("cpu_irq", percent=True),
    "ipc": _OurMetric("ipc", 100.0),
    "clock": _OurMetric("clock_hz", 2e10),
    "flops_any": _OurMetric("flops_s", 1e15),
    "flops_dp": _OurMetric("flops_dp_s", 1e15),
    "flops_sp": _OurMetric("flops_sp_s", 1e15),
    "vectorization_ratio": _OurMetric("vector_frac", percent=True),
    "mem_used": _OurMetric("mem_used_b", 1e14),
    "mem_bw": _OurMetric("mem_bw_b_s", 1e13),
    "cpu_power": _OurMetric("power_w", 1e5),
    "rapl_power": _OurMetric("power_w", 1e5),
    "mem_power": _OurMetric("mem_power_w", 1e5),
    "acc_utilization": _OurMetric("gpu_load", percent=True),
    "acc_mem_used": _OurMetric("gpu_mem_used_b", 1e13),
    "acc_mem_util": _OurMetric("gpu_mem_load", percent=True),
    "acc_power": _OurMetric("gpu_power_w", 1e5),
    "ib_recv": _OurMetric("net_read_b_s", 1e12),
    "ib_xmit": _OurMetric("net_write_b_s", 1e12),
    "ib_bw": _OurMetric("net_b_s", 1e12),
    "net_bw": _OurMetric("net_b_s", 1e12),
    "lustre_read_bw": _OurMetric("read_b_s", 1e12),
    "lustre_write_bw": _OurMetric("write_b_s", 1e12),
    "file_read_bw": _OurMetric("read_b_s", 1e12),
    "file_write_bw": _OurMetric("write_b_s", 1e12),
}

# Metrics of ours that two of theirs make together, node by node.
_SUMS = {"net_b_s": ("ib_recv", "ib_xmit"), "metadata_ops_s": ("lustre_open", "lustre_close")}

_Number = float | int | None


class _Unit(msgspec.Struct):
    base: str = ""
    prefix: str | None = None


class _One(msgspec.Struct):
    data: msgspec.Raw
    hostname: str = ""
    id: str | int | None = None


class _Metric(msgspec.Struct):
    series: list[msgspec.Raw]
    timestep: float = 0.0
    unit: _Unit | str | None = None


@dataclass(frozen=True)
class ClusterCockpit(Naming, job_files.InFolder):
    """The format ``clustercockpit``."""

    name: ClassVar[str] = "clustercockpit"
    with_events: ClassVar[bool] = False
    default_source: ClassVar[str] = "clustercockpit"
    wanted: ClassVar[re.Pattern[str]] = re.compile(r"(meta|data)\.json(\.gz)?")

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the job of ``meta.json`` or the series of ``data.json``, told apart by their members."""
        table = None if file.name.startswith("meta") else SERIES
        if isinstance(file, Path):
            file = job_files.InFolders(file)
        try:
            document = _document(file)
            if "jobId" in document and "startTime" in document:
                table = None
                yield _record(document, file, fill, self.applications)
            else:
                table = SERIES
                yield _series(document, file, fill)
        except (
            InputError,
            msgspec.MsgspecError,
            ValueError,
            TypeError,
            OverflowError,
            RecursionError,
        ) as error:
            yield job_files.damaged(file, error, table)


def _document(file: Input) -> dict[str, msgspec.Raw]:
    decode = partial(msgspec.json.decode, type=dict[str, msgspec.Raw])
    return cast("dict[str, msgspec.Raw]", job_files.document(job_files.content(file), file, decode))


def _decoded(document: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    return {name: msgspec.json.decode(raw) for name, raw in document.items() if name != "statistics"}


def _present(members: Mapping[str, Any], name: str) -> Any:
    # an empty text or 0 stands for a value that is unknown
    return members.get(name) or None


def _record(
    document: Mapping[str, msgspec.Raw], file: Input, fill: Mapping[str, object], applications: Applications
) -> Parsed:
    meta = _decoded(document)
    books = Books(file.name)
    facts = _facts(meta, fill)
    smt, threads = {0: False, 1: True}.get(meta.get("smt", -1)), _count(meta.get("numHwthreads"))
    named = {name: text for name, text in (meta.get("metaData") or {}).items() if isinstance(text, str)}
    job = {
        "source": facts.source,
        "job_id": facts.job_id or None,
        "queue": fill.get("queue") or meta.get("partition") or meta.get("cluster"),
        "cluster": meta.get("cluster"),
        "subcluster": _present(meta, "subCluster"),
        "user": meta.get("user"),
        "project": meta.get("project"),
        "state": job_files.state_of(meta.get("jobState")),
        "submit_time": _moment(_present(meta, "submitTime")),
        "start_time": facts.start,
        "end_time": facts.end,
        "wall_s": meta.get("duration"),
        "requested_wall_s": _present(meta, "walltime"),
        "nodes": _count(meta.get("numNodes")) or len(meta.get("resources") or ()) or None,
        # of a core with SMT both threads are counted
        "cores": threads // 2 if threads and smt else threads,
        "gpus": _count(meta.get("numAcc"), least=0),
        "smt": smt,
        "job_name": _present(named, "jobName"),
        "application": applications.of_job(None, named.get("jobName"), named.get("jobScript")),
        # kWh, of which they round the small ones to 0
        "energy_j": (meta.get("energy") or 0) * 3.6e6 or None,
    }
    # some clusters write the limit in minutes; noted, not corrected: nothing says which unit was meant
    limit, wall = meta.get("walltime"), meta.get("duration")
    if limit and wall and wall > 2 * limit:
        books.repair("jobs longer than twice their walltime limit, which may have another unit")
    return job_files.job_piece(job, file, fill, facts.source, books)


@dataclass(frozen=True)
class _Facts:
    source: str
    job_id: str
    start: datetime | None
    end: datetime | None


def _facts(meta: Mapping[str, Any], fill: Mapping[str, object]) -> _Facts:
    source = str(fill.get("source") or meta.get("cluster") or ClusterCockpit.default_source)
    start = _moment(meta.get("startTime"))
    # stopTime may be 0 or absent: then start and duration tell the end
    end = _moment(meta.get("stopTime") or None)
    if end is None and start is not None and isinstance(meta.get("duration"), int | float):
        end = _moment(start.timestamp() + meta["duration"])
    job_id = meta.get("jobId", fill.get("job_id"))
    if not isinstance(job_id, int | str):
        job_id = None
    # a fill is typed by its field
    start = start or cast("datetime | None", fill.get("start_time"))
    end = end or cast("datetime | None", fill.get("end_time"))
    return _Facts(source, "" if job_id is None else str(job_id), start, end)


def _beside(file: Input) -> dict[str, Any]:
    if not isinstance(file, job_files.InFolders):
        return {}
    for name in ("meta.json", "meta.json.gz"):
        if (meta := file.path.with_name(name)).is_file():
            return _decoded(_document(job_files.InFolders(meta)))
    return {}


def _moment(seconds: Any) -> datetime | None:
    return None if seconds is None else job_files.moment(float(seconds))


def _count(value: Any, least: int = 1) -> int | None:
    return value if isinstance(value, int) and value >= least else None


def _series(document: Mapping[str, msgspec.Raw], file: Input, fill: Mapping[str, object]) -> Parsed:
    facts = _facts(_beside(file), fill)
    if not facts.job_id or facts.start is None:
        raise InputError(
            f"{file.name} does not name its job; put the job's meta.json beside it, or add --set job_id=ID "
            "--set start_time=TIME"
        )
    books = Books(file.name)
    found: list[Series] = []
    raw_nodes: dict[str, dict[str, Series]] = {}
    for theirs, raw in document.items():
        for scope, metric in _scopes(theirs, raw, books):
            for one in _of_metric(theirs, scope, metric, facts.start, books):
                if scope == "node" and any(theirs in parts for parts in _SUMS.values()):
                    raw_nodes.setdefault(theirs, {})[one.unit] = one
                found.append(one)
    found += _sums(raw_nodes, {one.metric for one in found})
    return job_files.series_piece(facts.source, facts.job_id, found, books, facts.end)


def _scopes(theirs: str, raw: msgspec.Raw, books: Books) -> Iterator[tuple[str, _Metric]]:
    # memory domains count only where there are no sockets
    try:
        scopes = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError as error:
        books.refuse("no series", theirs, f"'{theirs}' is not a metric by scope: {error}")
        return
    for name, one in scopes.items():
        scope = _SCOPES.get(name.lower())
        if scope is None:
            books.refuse("unknown scope", theirs, f"'{theirs}' has the scope '{name[:60]}'")
            continue
        if name.lower() == "memorydomain" and "socket" in scopes:
            books.refuse(
                "repeated", theirs, f"'{theirs}' per memory domain, ignored because it exists per socket"
            )
            continue
        try:
            yield scope, msgspec.json.decode(one, type=_Metric)
        except msgspec.MsgspecError as error:
            books.refuse("no series", theirs, f"'{theirs}' of scope '{name[:60]}': {error}")


def _of_metric(theirs: str, scope: str, metric: _Metric, start: datetime, books: Books) -> Iterator[Series]:
    ours = _METRICS.get(theirs, _OurMetric(other(theirs)))
    base, prefix = _unit(metric.unit)
    for raw, one, unit in _units(theirs, scope, metric, books):
        try:
            samples = msgspec.json.decode(one.data, type=list[_Number])
        except msgspec.MsgspecError as error:
            books.refuse(job_files.NOT_A_NUMBER, theirs, f"a series of '{theirs}': {error}", str(raw)[:60])
            continue
        lacking = _lacking(samples, one.hostname, metric.timestep)
        if lacking:
            books.refuse("no series", theirs, f"a series of '{theirs}' has no {lacking}", unit)
            continue
        # JSON null is a gap
        values = np.array([np.nan if value is None else value for value in samples], np.float64)
        values, remark = _in_base_units(values, ours, base, prefix, books)
        yield Series(
            ours.name, scope, unit, start, metric.timestep if len(samples) > 1 else 0.0, values, remark
        )


def _lacking(samples: Sequence[_Number], hostname: str, timestep: float) -> str:
    if not samples:
        return "samples"
    if not hostname:
        return "hostname"
    return "timestep" if timestep < _LEAST_STEP_S and len(samples) > 1 else ""


def _units(theirs: str, scope: str, metric: _Metric, books: Books) -> Iterator[tuple[msgspec.Raw, _One, str]]:
    # Ids that repeat on a node are replaced by their position. Of each series only the head is decoded before
    # its samples: a job has thousands.
    heads = list(_heads(theirs, scope, metric, books))
    repeated = {name for name, count in Counter(name for _, _, name in heads).items() if count > 1}
    hosts = {one.hostname for _, one, name in heads if name in repeated}
    positions: Counter[str] = Counter()
    for raw, one, name in heads:
        if one.hostname not in hosts:
            yield raw, one, name
            continue
        position = positions[one.hostname]
        if scope != "node":
            books.repair("series whose ids repeat on their node, numbered by their order")
            yield raw, one, f"{one.hostname}/{position}"
        elif not position:
            yield raw, one, name
        else:
            books.refuse("repeated", theirs, f"'{theirs}' has the node {name} twice", name)
            continue
        positions[one.hostname] += 1


def _heads(theirs: str, scope: str, metric: _Metric, books: Books) -> Iterator[tuple[msgspec.Raw, _One, str]]:
    for raw in metric.series:
        try:
            one = msgspec.json.decode(raw, type=_One)
        except msgspec.MsgspecError as error:
            books.refuse("no series", theirs, f"a series of '{theirs}': {error}", str(raw)[:60])
            continue
        of_host = scope == "node" or one.id is None
        yield raw, one, one.hostname if of_host else f"{one.hostname}/{one.id}"


def _in_base_units(
    values: npt.NDArray[np.float64], ours: _OurMetric, base: str, prefix: str, books: Books
) -> tuple[npt.NDArray[np.float64], str | None]:
    if ours.percent:
        return values / 100, None
    remark = None
    meant = _meant(prefix, float(np.nanmax(values, initial=0.0)), ours.most)
    if meant != prefix:
        remark = f"{prefix}{base} read as {meant}{base}: more than a node can do"
        books.repair(f"series of {ours.name} with a unit prefix that is too large")
        prefix = meant
    if ours.name in ("mem_used_b", "gpu_mem_used_b") and base.endswith("/s"):
        books.repair("series of used memory in bytes per second, read as bytes")
        remark = "; ".join(filter(None, (remark, "B/s read as B")))
    with np.errstate(over="ignore"):
        # what is too large for a number is a gap
        return values * _PREFIXES[prefix], remark


def _meant(prefix: str, largest: float, most: float) -> str:
    # the largest prefix with which a value is possible
    meant = prefix
    # only the largest sample decides: all of a series have one unit
    while largest * _PREFIXES[meant] > most:
        if meant not in _SMALLER:
            return prefix
        meant = _SMALLER[meant]
    return meant


def _unit(unit: _Unit | str | None) -> tuple[str, str]:
    """Base and prefix of a unit, written as an object or as one word.

    >>> _unit("GB/s"), _unit("MHz"), _unit("%")
    (('B/s', 'G'), ('Hz', 'M'), ('%', ''))
    """
    if unit is None:
        return "", ""
    if isinstance(unit, str):
        match = re.fullmatch(r"([kKMGTPmun]?)(B/s|B|Flops/s|Flop/s|F/s|Hz|W|.*)", unit.strip())
        if match is None or match[2] not in ("B/s", "B", "Flops/s", "Flop/s", "F/s", "Hz", "W"):
            return unit.strip(), ""
        return match[2], match[1]
    prefix = unit.prefix or ""
    prefix = _WORDS.get(prefix.lower(), prefix)
    return unit.base, prefix if prefix in _PREFIXES else ""


def _sums(by_theirs: Mapping[str, Mapping[str, Series]], present: set[str]) -> Iterator[Series]:
    for name, (first, second) in _SUMS.items():
        one, two = by_theirs.get(first, {}), by_theirs.get(second, {})
        # measured by itself: their sum would count it twice
        if name in present:
            continue
        for unit in one:
            if unit in two and len(one[unit].values) == len(two[unit].values):
                total = one[unit].values + two[unit].values
                yield Series(
                    name, "node", unit, one[unit].start, one[unit].step_s, total, f"{first} + {second}"
                )
