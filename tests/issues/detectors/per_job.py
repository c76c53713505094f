"""The rules once more, for one job at a time, as one would write them down from their description.

Arrays have the shape (units, samples), float64, NaN at gaps. This is what the batched detectors are compared
with, in tests and in the benchmark.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def counted(values: Floats, complete: float = 0.5) -> tuple[Floats, Bools]:
    """Samples of the units that are there, and which of them count."""
    clean = np.where((values >= 0) & (values <= 1e18), values, np.nan)
    n = clean.shape[1]
    known = np.isfinite(clean)
    there = [i for i in range(len(clean)) if known[i].sum() >= max(0.5 * n, 1)]
    clean, known = clean[there], known[there]
    every = known.all(axis=0)
    if every.sum() < complete * n:
        every = known.sum(axis=0) >= 0.5 * len(there)
    return clean, known & every


def unassessable(values: Floats) -> str:
    """Why nothing can be said."""
    if not np.isfinite(np.where((values >= 0) & (values <= 1e18), values, np.nan)).any():
        return "no data"
    _, used = counted(values)
    n = used.any(axis=0).sum()
    if values.shape[1] < 3 or 0 < n < 3:
        return "few"
    return "gaps" if n < 0.5 * values.shape[1] else ""


def is_idle(values: Floats, device: str) -> Bools:
    return values < 0.01 if device == "cpu" else values == 0


def idle(load: Floats, dt: float, device: str = "cpu") -> dict[str, float]:
    values, used = counted(load)
    samples = int((is_idle(values, device) & used).sum())
    return {"value": samples / used.sum(), "idle_s": samples * dt}


def unused_units(values: Floats, used: Bools, device: str) -> list[int]:
    idle_units = []
    for unit in range(len(values)):
        n = used[unit].sum()
        idle_count = (is_idle(values[unit], device) & used[unit]).sum()
        busy_anywhere = (~is_idle(values[unit], device) & np.isfinite(values[unit])).sum()
        if n >= 3 and idle_count > n - 2 and busy_anywhere <= 1:
            idle_units.append(unit)
    return idle_units


def unused(load: Floats, device: str = "cpu") -> dict[str, float]:
    values, used = counted(load)
    count = len(unused_units(values, used, device))
    return {"value": count / len(values), "unused": count, "used": len(values) - count}


def imbalance(load: Floats, device: str = "cpu") -> dict[str, float]:
    values, used = counted(load)
    without = unused_units(values, used, device)
    kept = [unit for unit in range(len(values)) if unit not in without]
    return {"value": _imbalance(values, used), "used_only": _imbalance(values[kept], used[kept])}


def _imbalance(values: Floats, used: Bools) -> float:
    spreads = []
    for instant in range(values.shape[1]):
        column = values[used[:, instant], instant]
        if len(column):
            spreads.append(np.std(column, ddof=1) if len(column) > 1 else 0.0)
    return float(np.mean(spreads)) if spreads else 0.0


def imbalance_of_complete(load: Floats) -> float:
    """The same where nothing is missing: what a fast loop would do."""
    return float(np.std(load, axis=0, ddof=1).mean()) if len(load) > 1 else 0.0


def congestion(operations: Floats) -> float:
    values, used = counted(operations)
    sums = [values[used[:, i], i].sum() for i in range(values.shape[1]) if used[:, i].any()]
    return float(max(sums))


def job_series(values: Floats, *, summed: bool) -> tuple[Floats, Bools]:
    """Mean or sum over units, gaps filled on a line, and which instants had a value."""
    clean, used = counted(values, complete=0.95)
    series = np.array(
        [clean[used[:, i], i].mean() if used[:, i].any() else np.nan for i in range(clean.shape[1])]
    )
    known = np.isfinite(series)
    index = np.arange(len(series))
    filled = np.interp(index, index[known], series[known])
    return (filled * len(clean) if summed else filled), known


def phases(
    load: Floats, other: Floats, dt: float, *, gpu: bool = False, duration: float | None = None
) -> dict[str, Any]:
    """The five steps of periodic inverse phases."""
    cpu, known_load = job_series(load, summed=False)
    io, known_io = job_series(other, summed=not gpu)
    if (known_load & known_io).mean() < 0.95:
        return {"reason": "gaps"}
    return spectra(cpu, io, dt, gpu=gpu, duration=duration, known=(known_load, known_io))


def spectra(
    cpu: Floats,
    io: Floats,
    dt: float,
    *,
    gpu: bool = False,
    duration: float | None = None,
    known: tuple[Bools, Bools] | None = None,
) -> dict[str, Any]:
    n = len(cpu)
    of_load, of_io = known if known is not None else (np.ones(n, bool), np.ones(n, bool))
    io_mean = io[of_io].mean()
    c = np.round(cpu, 1)
    y = io if gpu else np.where(io < io_mean, 0.0, io)
    a = np.abs(fft.rfft(c - c.mean()))[1:]
    b = np.abs(fft.rfft(y - y.mean()))[1:]
    if a.max() < 1e-9 * n * max(c.max(), 1e-300) or b.max() < 1e-9 * n * max(y.max(), 1e-300):
        return {"reason": "flat"}
    total = a / a.max() + b / b.max()
    k = int(np.argmax(np.round(total, 9))) + 1
    return {
        "reason": "",
        "peak": total.max(),
        "median": np.median(total),
        "r": np.corrcoef(c, y)[0, 1],
        "periods": k / (n * dt) * (n * dt if duration is None else duration),
        "load_mean": cpu[of_load].mean(),
        "load_range": cpu[of_load].max() - cpu[of_load].min(),
        "other_mean": io_mean,
        "other_range": io[of_io].max() - io[of_io].min(),
    }


def is_inverse(found: Mapping[str, Any], *, least: float | None, median: float = 0.1) -> bool:
    """The published limits; ``least`` mean of the I/O, None for a GPU."""
    if found["reason"]:
        return False
    suits = found["load_mean"] >= 0.1 - 1e-9 and found["load_range"] >= 0.7 - 1e-9
    if least is None:
        suits = suits and found["other_mean"] >= 0.1 - 1e-9 and found["other_range"] >= 0.7 - 1e-9
    else:
        suits = suits and found["other_mean"] >= least
    dominant = 1.8 <= found["peak"] <= 2.0 + 1e-9 and found["median"] <= median
    return bool(suits and dominant and found["r"] <= -0.4 and found["periods"] >= 10)


def leak_geometry(time: Floats, memory: Floats) -> tuple[float, bool]:
    """Slope and verdict with the two points and P, and Euclidean distances, as on the slides."""
    t = (time - time[0]) / (time[-1] - time[0])
    y = memory / memory.max()
    m, b = np.polyfit(t, y, 1)
    if not 0.01 <= m <= 1:
        return float(m), False
    p1, p2 = np.array([0.0, b]), np.array([1.0, m + b])
    along = p2 - p1

    def distance(point: Floats) -> float:
        off = point - p1
        return float(abs(along[0] * off[1] - along[1] * off[0]) / np.hypot(*along))

    p = np.array([p1[0] + (p2[0] - p1[0]) / (m * 10), p1[1]]) if m >= 0.1 else np.array([1.0, p1[1]])
    furthest = max(distance(np.array(point)) for point in zip(t, y, strict=True))
    return float(m), furthest < distance(p)


def leak(memory: Floats) -> tuple[float, bool]:
    """The collapsed rule, of the nodes one by one: the largest slope, suspected nodes first."""
    best = (-np.inf, False)
    for node in memory:
        known = (node >= 0) & (node <= 1e18)
        if known.sum() < max(3, 0.5 * len(node)):
            continue
        index = np.flatnonzero(known)
        t, y = (index - index[0]) / (index[-1] - index[0]), node[known] / (node[known].max() or 1.0)
        m, b = np.polyfit(t, y, 1)
        suspected = 0.01 <= m <= 1 and np.abs(y - (m * t + b)).max() < min(0.1, m)
        best = max(best, (float(m), bool(suspected)), key=lambda each: (each[1], each[0]))
    return best


def collapse(rates: Floats, before: float = 0.01, after: float = 0.05) -> float:
    """Split by split, unit by unit."""
    n = rates.shape[1]
    first, last = max(2, int(np.ceil(before * n - 1e-9))), max(2, int(np.ceil(after * n - 1e-9)))
    smallest = np.inf
    for unit in rates:
        clean = np.where((unit >= 0) & (unit <= 1e18), unit, np.nan)
        if np.isfinite(clean).sum() < max(3, first + last, 0.5 * n):
            continue
        for split in range(first, n - last + 1):
            left, right = clean[:split], clean[split:]
            left, right = left[np.isfinite(left)], right[np.isfinite(right)]
            if len(left) >= first and len(right) >= last and left.mean() > 0:
                smallest = min(smallest, right.mean() / left.mean())
    return float(smallest)


def collapse_of_complete(rates: Floats, before: float = 0.01, after: float = 0.05) -> float:
    """The same where nothing is missing: what a fast loop would do."""
    n = rates.shape[1]
    first, last = max(2, int(np.ceil(before * n))), max(2, int(np.ceil(after * n)))
    k = np.arange(first, n - last + 1)
    sums = np.cumsum(rates, axis=1)
    left = sums[:, k - 1] / k
    right = (sums[:, -1:] - sums[:, k - 1]) / (n - k)
    return float((right / left).min())


def late_start(load: Floats, device: str = "cpu") -> float | None:
    """Share of the instants that count before the first unit works."""
    values, used = counted(load)
    begins = []
    for unit in values:
        busy = np.flatnonzero(~is_idle(unit, device) & np.isfinite(unit))
        if len(busy) > 1:
            begins.append(int(busy[0] if busy[1] == busy[0] + 1 else busy[1]))
    if not begins:
        return None
    instants: Bools = np.asarray(used.any(axis=0))
    return float(instants[: min(begins)].sum() / instants.sum())
