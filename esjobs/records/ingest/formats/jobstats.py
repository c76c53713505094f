"""Summaries of jobstats, from ``AdminComment`` of ``sacct``: what cgroups and GPUs of a job's nodes measured.

``JS1:``, then base64 of gzip of JSON. CPU time is the last sample of a counter, memory the largest sample:
both fall short of the truth, if anything. GPUs without ``gpu_utilization`` (slices, MIG) have no known load.
Source: ``jobstats.py`` of PrincetonUniversity/jobstats.
"""

import base64
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated

import msgspec

from esjobs.core.words import COUNTER_COLUMN
from esjobs.records.ingest.base import MAX_NUMBER

LARGEST = 1 << 20
"""Bytes of a summary, unpacked: those of some thousand nodes."""

FIGURES = (
    *(f"admincomment/{name}" for name in ("gpus", "cpus", "cpu_s", "used_b", "limit_b")),
    *(f"{COUNTER_COLUMN}{name}" for name in ("gpu_load.mean", "gpu_mem_used_b.max", "mem_used_b.node_max")),
)
"""Columns of a summary; those of ``counters`` have the names of rules."""

_PACKED = re.compile(r"JS1:(?!(?:Short|None)?$)(.*)")
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]


class _Node(msgspec.Struct, frozen=True):
    cpus: _Count | None = None
    total_time: _Amount | None = None
    used_memory: _Amount | None = None
    total_memory: Annotated[float, msgspec.Meta(ge=0)] | None = None
    gpu_utilization: dict[str, _Percent] = {}
    gpu_used_memory: dict[str, _Amount] = {}


class _Summary(msgspec.Struct, frozen=True):
    nodes: dict[str, _Node]
    total_time: _Amount
    gpus: _Count = 0


def columns(comments: Sequence[str], ignored: Counter[str]) -> dict[str, list[str | None]]:
    """Return :data:`FIGURES` of comments; ``ignored`` counts summaries that cannot be used, by reason."""
    rows: list[Mapping[str, str]] = []
    for comment in comments:
        try:
            rows.append(figures(comment))
        except ValueError as error:
            rows.append({})
            ignored[f"summaries of jobstats, ignored: {error}"] += 1
    return {name: [row.get(name) for row in rows] for name in FIGURES}


def figures(comment: str) -> Mapping[str, str]:
    """Return what a comment says; nothing for one of others. Raises :class:`ValueError` with the reason.

    >>> figures("JS1:Short"), figures("the node was drained")
    ({}, {})
    """
    packed = _PACKED.fullmatch(comment)
    if packed is None:
        return {}
    summary = _summary(packed[1])
    in_all = (_of_all(summary, name) for name in ("cpus", "total_time", "used_memory", "total_memory"))
    cpus, cpu_s, used, limits = in_all
    if cpus and sum(cpu_s) > sum(cpus) * summary.total_time:
        raise ValueError("CPU time above elapsed time x cores")
    loads, memory = (_of_gpus(summary, name) for name in ("gpu_utilization", "gpu_used_memory"))
    load = fmean(loads) / 100 if loads else None
    largest = (max(values, default=None) for values in (memory, used))
    values = (summary.gpus, *map(_total, (cpus, cpu_s, used, limits)), load, *largest)
    return {name: str(value) for name, value in zip(FIGURES, values, strict=True) if value is not None}


def _summary(encoded: str) -> _Summary:
    stream = zlib.decompressobj(wbits=31)  # Gzip
    try:
        # bounded: some kilobytes of gzip unpack to gigabytes
        data = stream.decompress(base64.b64decode(encoded, validate=True), LARGEST + 1)
    except (ValueError, zlib.error):
        raise ValueError("damaged") from None
    if len(data) > LARGEST or not stream.eof:
        raise ValueError("incomplete, or above 1 MiB unpacked")
    try:
        return msgspec.json.decode(data, type=_Summary)
    except (ValueError, RecursionError):
        raise ValueError("not a summary") from None


def _of_all(summary: _Summary, name: str) -> list[float]:
    # one node missing makes no sum of the job
    values = [getattr(node, name) for node in summary.nodes.values()]
    return [] if None in values else values


def _of_gpus(summary: _Summary, name: str) -> list[float]:
    values = [value for node in summary.nodes.values() for value in getattr(node, name).values()]
    # as for nodes: without one GPU there is no mean of the job
    return values if len(values) == summary.gpus else []


def _total(values: Sequence[float]) -> float | None:
    # the kernel's limit of nodes without one is 2^63
    return sum(values) if values and sum(values) < MAX_NUMBER else None
