"""Rooflines of jobs: floating-point operations against memory traffic, beside the peaks of a node."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.core.arrays import Floats
from esjobs.issues.footprints import units_together
from esjobs.records.clusters.description import Clusters, Subcluster
from esjobs.records.series.blocks import Block

_BY_PRECISION, _ANY = ("flops_dp_s", "flops_sp_s"), ("flops_s",)
TRAFFIC = "mem_bw_b_s"
COUNTERS = (TRAFFIC, *_BY_PRECISION, *_ANY)
"""Metrics that a roofline needs."""
# Points of all nodes together, about
_MOST = 20_000


@dataclass(frozen=True)
class Roofline:
    """Operations and memory traffic of a job, of one node and second; missing is None or NaN.

    ``counters``: metrics whose sum is the operations. ``shared``: True if the job had a part of its nodes
    only, and no points, as traffic is of all jobs there; None: unknown. ``part``: its peaks are the roofs.
    ``times`` (UTC), ``flops_s``, ``mem_bw_b_s`` (node, time): points, of many samples each n-th. Left out are
    samples that lack a counter, or traffic. ``intensity``: operations per byte, of sums. ``roof_share_frac``:
    ``mean_flops_s`` over the roof at this intensity; ``bound``: which roof, memory or compute.
    """

    counters: tuple[str, ...]
    shared: bool | None
    part: Subcluster
    nodes: tuple[str, ...]
    times: npt.NDArray[np.datetime64]
    flops_s: Floats
    mem_bw_b_s: Floats
    n_samples: int
    n_left_out: int
    n_idle: int
    mean_flops_s: float | None
    mean_mem_bw_b_s: float | None
    intensity: float | None
    bound: str | None
    roof_share_frac: float | None


def roofline(block: Block, row: int, record: Mapping[str, Any], clusters: Clusters) -> Roofline | None:
    """Return the roofline of a job and its ``record``; None without counters of operations and traffic."""
    # both precisions, or neither: the sum of one alone is not all operations
    exact = all(_of_nodes(block, row, metric) for metric in _BY_PRECISION)
    counters = _BY_PRECISION if exact else _ANY
    parts = [_of_nodes(block, row, metric) for metric in (TRAFFIC, *counters)]
    if not all(parts):
        return None
    nodes = sorted({node for each in parts for node in each})
    names = (record.get(name) for name in ("cluster", "subcluster", "queue"))
    part = clusters.described(*names) or Subcluster("", "")
    shared = _shared(record, len(nodes), part)
    # traffic of a shared node is that of all its jobs
    nodes = [] if shared else nodes
    return Roofline(counters, shared, part, tuple(nodes), *_numbers(block, row, nodes, parts, part))


def _numbers(
    block: Block, row: int, nodes: Sequence[str], parts: Sequence[Mapping[str, Floats]], part: Subcluster
) -> tuple[Any, ...]:
    """Return the fields of :class:`Roofline` from ``times`` on, in order."""
    values = np.full((len(parts), len(nodes), block.n_samples), np.nan)
    for of_part, found in zip(values, parts, strict=True):
        for number, node in enumerate(nodes):
            of_part[number] = found.get(node, np.nan)
    traffic, flops = values[0], values[1:].sum(axis=0)
    used = np.isfinite(flops) & (traffic > 0)
    # points need both: intensity is operations over traffic
    flops[~used] = traffic[~used] = np.nan
    n = int(used.sum())
    rate, mean_traffic = (float(each[used].mean()) if n else None for each in (flops, traffic))
    # each n-th sample, not means: means would hide phases
    every = math.ceil(used.size / _MOST) or 1
    step = np.timedelta64(round(1e6 * float(block.step_s[row])), "us")
    times = block.start_time[row] + np.arange(0, block.n_samples, every) * step
    counts = used.size, used.size - n, int((flops == 0).sum())
    points = times, flops[:, ::every], traffic[:, ::every]
    return (*points, *counts, rate, mean_traffic, *_below(rate, mean_traffic, part))


def _of_nodes(block: Block, row: int, metric: str) -> dict[str, Floats]:
    """Return the samples of each node, its units added up; empty without any."""
    units: dict[str, list[int]] = defaultdict(list)
    if metric in block.values and block.scopes[metric][row] != "job":
        for number, unit in enumerate(block.units[metric][row]):
            units[unit.partition("/")[0]].append(number)
        samples = block.values[metric][row].astype(np.float64)
        # a fault of a sensor
        samples[~((samples >= 0) & np.isfinite(samples))] = np.nan
        if np.isfinite(samples).any():
            return {node: units_together(samples[None, rows], summed=True)[0] for node, rows in units.items()}
    return {}


def _shared(record: Mapping[str, Any], n_nodes: int, part: Subcluster) -> bool | None:
    cores = record.get("cores")
    return None if cores is None or not part.cores else cores < record.get("nodes", n_nodes) * part.cores


def _below(
    rate: float | None, mean_traffic: float | None, part: Subcluster
) -> tuple[float | None, str | None, float | None]:
    """Return intensity, the roof above a job and its share of it (Williams et al., CACM 52 (2009) 65)."""
    if rate is None or not mean_traffic:
        return None, None, None
    # without operations, or peaks, no roof is over the job
    if not rate or not part.peak_flops_s or not part.peak_mem_bw_b_s:
        return rate / mean_traffic, None, None
    # F / min(P, I x B) with I = F / mean_traffic is the larger of F / P and mean_traffic / B
    shares = {"compute": rate / part.peak_flops_s, "memory": mean_traffic / part.peak_mem_bw_b_s}
    return rate / mean_traffic, *max(shares.items(), key=lambda each: each[1])
