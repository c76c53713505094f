"""Rules of running jobs over the samples until now. Pure.

A rule says None where it saw too little: 80 % of the samples of its time, the newest at most two sampling
intervals old. Missing samples are never idle ones, so that a silent exporter raises no alarm. Of 2000 made-up
healthy jobs of 24 h with pauses the collapse rule, asked every 5 minutes, flagged 1.3 %.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.arrays import Floats
from esjobs.core.numbers import many
from esjobs.issues.detectors.runs import longest_run
from esjobs.issues.rules.hints import formatted

LONG_S, SHORT_S, LOOK_S = 3600.0, 1800.0, 300.0
"""Time without work, time of a trend, time between two values of swap space."""
_LONGEST_S = 14_400.0  # samples longer ago need not be in the files
_SEEN, _STALE = 0.8, 2.0
_QUIET, _PAUSES = 0.1, 3.0
_SWAPPED, _FULL, _UNUSED = 0.01, 0.95, 0.01


@dataclass(frozen=True)
class Running:
    """Samples of a running job. ``times``: seconds since its start; ``age_s``: those of now.

    ``values``: per metric (units, samples), NaN where missing; ``units``: their names. ``memory_b``: its
    limit, NaN unknown; ``nodes``: 0 unknown.
    """

    age_s: float
    times: Floats
    step_s: float
    values: Mapping[str, npt.NDArray[np.float32]]
    units: Mapping[str, tuple[str, ...]]
    memory_b: float = np.nan
    nodes: int = 0

    def window(self, metric: str, width_s: float) -> tuple[Floats, list[str]] | None:
        """Return the samples of the units that were seen in the last seconds, and their names; None: none."""
        values = self.values.get(metric)
        if values is None or not values.size or self.step_s <= 0:
            return None
        # half a step: samples do not fall on full intervals
        inside = (self.times > self.age_s - width_s - self.step_s / 2) & (self.times >= 0)
        part = values[:, inside].astype(np.float64)
        fresh = np.isfinite(part[:, self.times[inside] >= self.age_s - _STALE * self.step_s]).any(axis=1)
        seen = fresh & (np.isfinite(part).sum(axis=1) >= _SEEN * width_s / self.step_s)
        if not seen.any():
            return None
        names = self.units[metric]
        return part[seen], [names[unit] for unit in np.flatnonzero(seen)]


@dataclass(frozen=True)
class Found:
    """Answer of a rule. ``flagged``; ``value`` against ``threshold``, in the unit of the rule."""

    flagged: bool
    value: float
    threshold: float
    unit: str
    text: str


def gpu_idle(job: Running) -> Found | None:
    """GPUs that did nothing since the start, or for four hours; from an age of one hour on."""
    width = min(job.age_s, _LONGEST_S)
    seen = job.window("gpu_load", width) if job.age_s >= LONG_S else None
    if seen is None:
        return None
    # a unit is idle if it never did anything: a short kernel counts as work
    idle = [name for name, load in zip(seen[1], seen[0], strict=True) if np.nanmax(load) <= 0]
    text = f"{len(idle)} of {many(len(seen[1]), 'GPU')} did nothing for {width / 3600:.1f} h"
    return Found(bool(idle), float(len(idle)), 0.0, idle[0] if idle else "", text)


def collapse(job: Running) -> Found | None:
    """Load below a tenth of its own median for an hour, three times as long as any earlier pause."""
    metric = "gpu_load" if job.values.get("gpu_load", np.empty(0)).size else "cpu_load"
    if job.window(metric, LONG_S) is None:
        return None
    kept = job.times >= 0
    counted = np.isfinite(job.values[metric][:, kept])
    total = np.where(counted, job.values[metric][:, kept], 0.0).sum(axis=0, dtype=np.float64)
    seen = counted.any(axis=0)
    rate, times = (total[seen] / counted[:, seen].sum(axis=0)), job.times[kept][seen]
    # of its own past: nothing else shows what the job usually does
    before = rate[times <= job.age_s - LONG_S]
    if len(before) * job.step_s < LONG_S * _SEEN or not np.median(before) > 0:
        return None
    quiet = rate < _QUIET * np.median(before)
    busy = np.flatnonzero(~quiet)
    silent_s = (len(quiet) - 1 - int(busy[-1])) * job.step_s
    begin, end = longest_run(quiet[None, busy[0] : busy[-1] + 1])
    pause_s = float(end[0] - begin[0]) * job.step_s
    threshold = max(LONG_S, _PAUSES * pause_s)
    text = f"{metric} is below a tenth of its median for {silent_s / 3600:.1f} h"
    return Found(silent_s >= threshold, silent_s, threshold, "", text)


def swap(job: Running) -> Found | None:
    """Swap space that grew from look to look, three times, beyond 1 % of the memory limit."""
    seen = job.window("swap_used_b", 3 * LOOK_S + job.step_s)
    if seen is None or not job.memory_b > 0:
        return None
    back = np.array([3, 2, 1, 0]) * max(1, round(LOOK_S / job.step_s))
    at = seen[0].shape[1] - 1 - back
    values = seen[0][:, np.maximum(at, 0)]
    grew = (np.diff(values, axis=1) > 0).all(axis=1) & (values[:, -1] > _SWAPPED * job.memory_b)
    used = float(np.nansum(seen[0][:, -1]))
    worst = seen[1][int(np.argmax(np.where(grew, values[:, -1], -1.0)))]
    text = f"swap space in use grew three times, to {_size(used)}"
    return Found(bool(grew.any()), used, _SWAPPED * job.memory_b, worst, text)


def memory_limit(job: Running) -> Found | None:
    """Memory above 95 % of the limit that reaches it within half an hour if it grows as in the last one."""
    seen = job.window("mem_used_b", SHORT_S)
    if seen is None or not job.memory_b > 0:
        return None
    # the limit is that of the job; nodes are taken to have equal parts
    limit = job.memory_b / max(1, job.values["mem_used_b"].shape[0])
    ahead = [_in_half_an_hour(used, job.step_s) for used in seen[0]]
    last = [used[np.isfinite(used)][-1] for used in seen[0]]
    near = [used > _FULL * limit and then >= limit for used, then in zip(last, ahead, strict=True)]
    worst = int(np.argmax(np.where(near, last, -1.0))) if any(near) else int(np.argmax(last))
    share = float(last[worst] / limit)
    text = f"{_size(float(last[worst]))} of {_size(limit)} in use, and growing"
    return Found(any(near), share, _FULL, seen[1][worst], text)


def _in_half_an_hour(used: Floats, step_s: float) -> float:
    finite = np.flatnonzero(np.isfinite(used))
    # a line through one sample has no slope
    slope = np.polyfit(finite * step_s, used[finite], 1)[0] if len(finite) > 1 else 0.0
    return float(used[finite[-1]] + slope * SHORT_S)


def _size(value: float) -> str:
    return formatted(value, "bytes")


def nodes_unused(job: Running) -> Found | None:
    """Nodes with less than 1 % of a core and no busy GPU for half an hour beside nodes that work."""
    seen = job.window("cpu_load", SHORT_S) if job.age_s >= LONG_S and job.nodes > 1 else None
    if seen is None:
        return None
    work: dict[str, float] = {}
    gpus = job.window("gpu_load", SHORT_S) or (np.empty((0, 0)), [])
    for values, names in (seen, gpus):
        for name, load in zip(names, values, strict=True):
            node = name.partition("/")[0]
            work[node] = work.get(node, 0.0) + float(np.nanmean(load))
    unused = sorted(node for node, load in work.items() if load < _UNUSED)
    # where no node works the collapse rule tells
    flagged = 0 < len(unused) < len(work)
    text = f"{len(unused)} of {many(job.nodes, 'node')} did nothing for half an hour"
    return Found(flagged, float(len(unused)), 0.0, unused[0] if unused else "", text)


RULES: Mapping[str, Callable[[Running], Found | None]] = {
    "gpu-idle": gpu_idle,
    "collapse": collapse,
    "swap": swap,
    "memory-limit": memory_limit,
    "nodes-unused": nodes_unused,
}
METRICS = ("gpu_load", "cpu_load", "swap_used_b", "mem_used_b")
"""Metrics that the rules read."""
