"""Footprints: summary statistics per metric, for all jobs of a block at once.

Statistics cover all samples of all units (cores, nodes, devices). Units are combined by sum or mean, as the
metric catalogue says; units with a gap, and nodes of the job without samples, are replaced by the mean of the
others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import table_schema
from esjobs.core.metrics import METRICS, largest_of
from esjobs.records.series.blocks import Block
from esjobs.schema.issues import FOOTPRINTS

_METRICS = {metric.name: metric for metric in METRICS}
_ROWS = table_schema(FOOTPRINTS)
# of a foreign metric, whose range is unknown: squares of it are still numbers
_LARGEST = 1e30
# Samples that are worked on at a time: in float64, with some copies beside, they stay near the processor
_AT_A_TIME = 1 << 18


def footprints(block: Block, nodes: Floats) -> Iterator[tuple[Ints, dict[str, Any]]]:
    """Yield per metric the rows of its jobs and their columns by name.

    ``nodes``: from the records, NaN if unknown; used for series of scope job.
    """
    for metric, values in block.values.items():
        if values.shape[1] == 0:
            continue
        step = max(1, _AT_A_TIME // max(1, values.shape[1] * values.shape[2]))
        for start in range(0, len(values), step):
            piece = values[start : start + step].astype(np.float64)
            # a fault of a sensor, as detectors take it; metrics of others may fall below 0
            least = 0.0 if metric in _METRICS else -_LARGEST
            most = min(largest_of(metric), _LARGEST)
            piece[~((piece >= least) & (piece <= most))] = np.nan
            present = np.flatnonzero(np.isfinite(piece).any(axis=(1, 2)))
            if len(present):
                chosen = present + start
                names = [block.units[metric][number] for number in chosen]
                figures = _figures(metric, piece[present], block.step_s[chosen], names, nodes[chosen])
                scopes = [block.scopes[metric][number] for number in chosen]
                yield chosen, {"metric": [metric] * len(chosen), "scope": scopes, **figures}


def _figures(
    metric: str, values: Floats, step_s: Floats, names: Sequence[Sequence[str]], nodes: Floats
) -> dict[str, Any]:
    n_jobs, _, n_samples = values.shape
    valid = np.isfinite(values)
    n = valid.sum(axis=(1, 2))
    present: Mask = np.asarray(valid.any(axis=2))
    n_units = present.sum(axis=1)
    with np.errstate(all="ignore"):
        total = np.where(valid, values, 0.0).sum(axis=(1, 2))
        mean = total / n
        squares = np.where(valid, values - mean[:, None, None], 0.0) ** 2
        sd = np.sqrt(squares.sum(axis=(1, 2)) / (n - 1))
        unit_n = valid.sum(axis=2)
        unit_mean = np.where(unit_n > 0, np.where(valid, values, 0.0).sum(axis=2) / unit_n, np.nan)
        largest = np.fmax.reduce(unit_mean, axis=1)
        unit_sum = np.where(np.isfinite(unit_mean), unit_mean, 0.0).sum(axis=1)
        # the share of unit time that would be free if all were as busy as the busiest
        imbalance = np.where((n_units > 1) & (largest > 0), 1 - unit_sum / n_units / largest, np.nan)
    quantiles = _quantiles(values.reshape(n_jobs, -1), n)
    described = _METRICS.get(metric)
    summed = described is not None and described.over_units == "sum"
    at_job, node_mean, node_max = _together(values, names, nodes, summed=summed)
    per_seen = np.ones(n_jobs)
    # not every node of a job has a GPU or a meter
    if described is not None and described.area not in ("gpu", "energy"):
        per_seen = _nodes_per_seen(present, names, nodes)
    if summed:
        # nodes that sent nothing are taken to be like the others
        at_job *= per_seen[:, None]
    job_mean = _mean(at_job)
    rate = metric.endswith("_s") or (described is not None and described.unit == "W")
    # a rate that holds for a step of time, of all units together
    total_of_job = job_mean * step_s * n_samples if rate and summed else np.full(n_jobs, np.nan)
    n_expected = np.maximum(n_units, 1) * n_samples * per_seen
    return {
        "mean": mean,
        "max": np.fmax.reduce(values, axis=(1, 2)),
        "min": np.fmin.reduce(values, axis=(1, 2)),
        "sd": np.where(n > 1, sd, np.nan),
        "p05": quantiles[0],
        "p95": quantiles[1],
        "imbalance": np.clip(imbalance, 0.0, 1.0),
        "total": total_of_job,
        "n_samples": n,
        "n_units": n_units,
        "gap_frac": 1 - n / n_expected,
        "node_mean": node_mean,
        "node_max": node_max,
        "job_mean": job_mean,
        "job_max": np.fmax.reduce(at_job, axis=1),
        "series_s": np.maximum(step_s * n_samples, 0.0),
    }


def _nodes_per_seen(present: Mask, names: Sequence[Sequence[str]], nodes: Floats) -> Floats:
    """Return the nodes of each job over those with samples; 1 where all have some, or units name no node."""
    per_seen = np.ones(len(names))
    for row in np.flatnonzero(nodes > 1).tolist():
        units = zip(names[row], present[row].tolist(), strict=False)
        seen = {name.partition("/")[0] for name, has in units if has}
        if "" not in seen:
            per_seen[row] = max(nodes[row] / max(len(seen), 1), 1.0)
    return per_seen


def _quantiles(values: Floats, n: Ints) -> Floats:
    """Return the 5 and 95 % quantiles of each row's ``n`` values, shape (2, rows)."""
    # samples are stored as float32, of which rows are sorted faster than float64 is parted; gaps come last
    ordered = np.sort(values.astype(np.float32), axis=1)
    rows = np.arange(len(values))
    quantiles = np.empty((2, len(values)))
    for unit, share in enumerate((0.05, 0.95)):
        at = share * (n - 1)
        below = np.floor(at).astype(np.int64)
        left = ordered[rows, below].astype(np.float64)
        right = ordered[rows, np.minimum(below + 1, n - 1)].astype(np.float64)
        quantiles[unit] = left + (right - left) * (at - below)
    return quantiles


def _together(
    values: Floats, names: Sequence[Sequence[str]], nodes: Floats, *, summed: bool
) -> tuple[Floats, Floats, Floats]:
    """Combine units: per instant over the job, and mean and maximum of a node."""
    at_job = units_together(values, summed=summed)
    node_mean, node_max = np.full(len(values), np.nan), np.full(len(values), np.nan)
    # jobs whose units lie on nodes in the same way are worked on together
    layouts: dict[tuple[str, ...], list[int]] = {}
    for number, units in enumerate(names):
        layouts.setdefault(tuple(unit.partition("/")[0] for unit in units), []).append(number)
    for of_units, numbers in layouts.items():
        rows = np.array(numbers)
        if set(of_units) <= {""}:
            # a series of the job as a whole: divided by its nodes, where these are known
            by = nodes[rows, None] if summed else np.ones((len(rows), 1))
            of_nodes = [at_job[rows] / by]
        else:
            of_nodes = _by_node(values, at_job, rows, of_units, summed=summed)
        means = np.array([_mean(node) for node in of_nodes])
        node_mean[rows] = _mean(means.T)
        node_max[rows] = np.fmax.reduce([np.fmax.reduce(node, axis=1) for node in of_nodes], axis=0)
    return at_job, node_mean, node_max


def _by_node(
    values: Floats, at_job: Floats, rows: Ints, of_units: Sequence[str], *, summed: bool
) -> list[Floats]:
    """Return what each node makes of its units, per instant; ``of_units``: the node of each unit."""
    nodes_of: dict[str, list[int]] = {}
    for unit, node in enumerate(of_units):
        nodes_of.setdefault(node, []).append(unit)
    # all units of a node: what they make is what the job makes
    return [
        at_job[rows]
        if len(units) == values.shape[1]
        else units_together(values[np.ix_(rows, np.array(units))], summed=summed)
        for units in nodes_of.values()
    ]


def units_together(values: Floats, *, summed: bool) -> Floats:
    """Return sum or mean over units (jobs, units, samples) at each instant, NaN without samples."""
    mean = _mean(values)
    # a unit with a gap counts as the others do: the mean of those seen, times the units with any sample
    return mean * np.isfinite(values).any(axis=2).sum(axis=1)[:, None] if summed else mean


def _mean(values: Floats) -> Floats:
    """Return the mean over the second axis without NaN; NaN if empty."""
    valid = np.isfinite(values)
    n = valid.sum(axis=1)
    with np.errstate(all="ignore"):
        mean: Floats = np.where(n > 0, np.where(valid, values, 0.0).sum(axis=1) / n, np.nan)
    return mean


def footprint_rows(jobs: Mapping[str, pa.Array], figures: Mapping[str, Any]) -> pa.RecordBatch:
    """Return table rows from statistics and leading columns (``day``, ``source``, ...)."""
    made = [field for field in _ROWS if field.name not in jobs]
    columns = {field.name: pa.array(figures[field.name], field.type, from_pandas=True) for field in made}
    return pa.RecordBatch.from_pydict({**jobs, **columns}, schema=_ROWS)
