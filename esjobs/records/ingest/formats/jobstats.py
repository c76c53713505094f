"""Summaries of jobstats, from ``AdminComment`` of ``sacct``: what cgroups and GPUs of a job's nodes measured.

``JS1:``, then base64 of gzip of JSON. CPU time is the last sample of a counter, memory the largest sample:
both fall short of the truth, if anything. GPUs without ``gpu_utilization`` (slices, MIG) have no known load.
Source: ``jobstats.py`` of PrincetonUniversity/jobstats.
"""

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

_MARK, _NOTHING = "JS1:", ("", "Short", "None")
_GZIP = 16 + zlib.MAX_WBITS
_NO_LIMIT = 1e15
_Amount = Annotated[float, msgspec.Meta(ge=0, lt=_NO_LIMIT)]
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
    read: dict[str, Mapping[str, float | None]] = {}
    for comment in comments:
        try:
            read[comment] = figures(comment)
        except ValueError as error:
            read[comment] = {}
            ignored[str(error)] += 1
    found = [read[comment] for comment in comments]
    return {name: [_text(each.get(name)) for each in found] for name in FIGURES}


def figures(comment: str) -> Mapping[str, float | None]:
    """Return what a comment says; nothing for one of others. Raises :class:`ValueError` with the reason.

    >>> figures("JS1:Short"), figures("the node was drained")
    ({}, {})
    """
    if not comment.startswith(_MARK) or comment.removeprefix(_MARK) in _NOTHING:
        return {}
    summary = _summary(comment.removeprefix(_MARK))
    nodes = summary.nodes.values()
    cpus, cpu_s = _of_all(node.cpus for node in nodes), _of_all(node.total_time for node in nodes)
    if cpus and cpu_s and sum(cpu_s) > sum(cpus) * summary.total_time:
        raise ValueError("CPU time above elapsed time x cores")
    used = _of_all(node.used_memory for node in nodes)
    limits = _of_all(node.total_memory for node in nodes)
    loads = [load for node in nodes for load in node.gpu_utilization.values()]
    memory = [used_b for node in nodes for used_b in node.gpu_used_memory.values()]
    values = (
        summary.gpus,
        *map(_total, (cpus, cpu_s, used)),
        # without a limit the kernel says 2^63
        _total(limits) if max(limits, default=0) < _NO_LIMIT else None,
        # a mean over some of the GPUs is none of the job
        fmean(loads) / 100 if loads and len(loads) == summary.gpus else None,
        max(memory) if memory and len(memory) == summary.gpus else None,
        max(used, default=None),
    )
    return dict(zip(FIGURES, values, strict=True))


def _summary(encoded: str) -> _Summary:
    stream = zlib.decompressobj(_GZIP)
    try:
        data = stream.decompress(base64.b64decode(encoded, validate=True), LARGEST + 1)
    except (ValueError, zlib.error):
        raise ValueError("damaged") from None
    if len(data) > LARGEST:
        raise ValueError("above 1 MiB unpacked")
    if not stream.eof:
        raise ValueError("incomplete")
    try:
        return msgspec.json.decode(data, type=_Summary)
    except (ValueError, RecursionError):
        raise ValueError("not a summary") from None


def _of_all(values: Iterable[float | None]) -> list[float]:
    """Return the values of nodes; empty if one is missing."""
    listed = list(values)
    found = [value for value in listed if value is not None]
    return found if len(found) == len(listed) else []


def _total(values: Sequence[float]) -> float | None:
    if sum(values) >= MAX_NUMBER:
        raise ValueError("not a summary")
    return sum(values) if values else None


def _text(value: float | None) -> str | None:
    return None if value is None else str(value)
