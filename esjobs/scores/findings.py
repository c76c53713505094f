"""Issues and footprints of a day as input of scores: issues by area, and which jobs were monitored."""

from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.identity import content_id
from esjobs.core.metrics import METRICS
from esjobs.core.query import Count, Days, In, Query, Sum, SumProduct
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.issues import FOOTPRINTS, ISSUES
from esjobs.scores import formulas
from esjobs.scores.formulas import Floats
from esjobs.scores.reasons import Reasons, codes_of, first
from esjobs.scores.scoring import Rows, Scored
from esjobs.scores.settings import EfficiencySettings
from esjobs.store.base import JobStore

SCORED_AREAS = {"score_mpi": "mpi", "score_io": "io"}
"""Scores made from issues, and the issue area of each."""
# The metrics of which a job must have one, so that no issue of an area means none
_WATCHED = {
    "mpi": tuple(metric.name for metric in METRICS if metric.area == "network"),
    "io": tuple(metric.name for metric in METRICS if metric.area == "io"),
}
_NOT_WATCHED = {"mpi": "no monitoring data of the network", "io": "no monitoring data of input and output"}
_BUSY_GPUS, _BUSY_CORES = "gpu_load", "cpu_load"
# Samples of a unit without which nobody can be said to have watched; rules do without them, too
_FEWEST_SAMPLES = 3
# Share of the samples that may be missing for the same
_MOST_MISSING = 0.5


@dataclass(frozen=True)
class Findings:
    """Issues and footprints of a day; arrays run beside ``jobs``, keys of :func:`job_keys`.

    ``issues``: per area job, weight and share of each issue. ``watched``: monitored jobs by area.
    ``gpu_load``: mean GPU load. ``busy_cores``: mean number of busy cores of the job, and true
    where it is the load average of nodes.
    """

    issues: dict[str, tuple[pa.Array, Floats, Floats]]
    watched: dict[str, pa.Array]
    gpu_load: tuple[pa.Array, Floats]
    busy_cores: tuple[pa.Array, Floats, npt.NDArray[np.bool_]]


def job_keys(sources: pa.Array, jobs: pa.Array) -> pa.Array:
    """Return a unique text per job, from source and id."""
    return pc.binary_join_element_wise(sources.cast(pa.string()), jobs.cast(pa.string()), "\x1f")


def findings_of(store: JobStore, day: date, settings: EfficiencySettings) -> Findings:
    """Read issues and footprints of a day."""
    on_day = Days("day", day, day)
    areas = In("area", tuple(SCORED_AREAS.values()))
    columns = ["source", "job_id", "area", "severity", "share_frac"]
    found = read_table(store, ISSUES, [on_day, areas], columns)
    metrics = In("metric", (*_WATCHED["mpi"], *_WATCHED["io"], _BUSY_GPUS, _BUSY_CORES))
    figures = ["source", "job_id", "metric", "scope", "mean", "job_mean", "n_samples", "n_units", "gap_frac"]
    seen = read_table(store, FOOTPRINTS, [on_day, metrics], figures)
    seen = seen.filter(pa.array(~_thin(seen)))
    keys, its_metric = _keys(seen), seen.column("metric").combine_chunks()
    issues, watched = {}, {}
    for area, names in _WATCHED.items():
        mine = found.filter(pc.equal(found.column("area"), area))
        weights = [settings.weights.get(name, 0.0) for name in mine.column("severity").to_pylist()]
        # an issue whose share of the time is not known may concern all of it
        shares = mine.column("share_frac").combine_chunks().fill_null(1.0).to_numpy(zero_copy_only=False)
        issues[area] = _keys(mine), np.array(weights, np.float64), np.asarray(shares, np.float64)
        of_area = keys.filter(pc.is_in(its_metric, pa.array(names)))
        watched[area] = pc.unique(pa.concat_arrays([of_area, issues[area][0]]))
    gpus = pc.equal(its_metric, _BUSY_GPUS)
    load = seen.column("mean").combine_chunks().filter(gpus).to_numpy(zero_copy_only=False)
    return Findings(issues, watched, (keys.filter(gpus), np.asarray(load, np.float64)), _busy_cores(seen))


def _busy_cores(seen: pa.Table) -> tuple[pa.Array, Floats, npt.NDArray[np.bool_]]:
    loads = seen.filter(pc.equal(seen.column("metric"), _BUSY_CORES))
    busy = loads.column("job_mean").combine_chunks().to_numpy(zero_copy_only=False)
    of_node = pc.equal(loads.column("scope"), "node").combine_chunks().fill_null(True)
    return _keys(loads), np.asarray(busy, np.float64), of_node.to_numpy(zero_copy_only=False)


def _thin(seen: pa.Table) -> npt.NDArray[np.bool_]:
    """Return the mask of footprints with too few samples: no issue in them does not mean none."""
    n, units, gaps = (
        seen.column(name).cast(pa.float64()).combine_chunks().to_numpy(zero_copy_only=False)
        for name in ("n_samples", "n_units", "gap_frac")
    )
    with np.errstate(invalid="ignore"):
        thin: npt.NDArray[np.bool_] = (n < _FEWEST_SAMPLES * units) | (gaps > _MOST_MISSING)
    return thin


def fingerprints_of(store: JobStore, window: Window) -> dict[date, str]:
    """Return by day a digest that changes with the data behind :func:`findings_of`."""
    days = Days.of_window(window)
    areas = In("area", tuple(SCORED_AREAS.values()))
    queries = (
        Query(
            ("day", "area", "severity"),
            (Count("n"), Sum("share_frac", "share"), SumProduct("share_frac", "share_frac", "squares")),
            where=(days, areas),
            over=ISSUES,
        ),
        Query(("day", "metric"), (Count("n"), Sum("mean", "share")), where=(days,), over=FOOTPRINTS),
    )
    rows: dict[date, list[str]] = {}
    for query in queries:
        for row in store.aggregate(query).table.to_pylist():
            # engines add up in the order in which their threads come
            sums = [None if row.get(name) is None else f"{row[name]:.9e}" for name in ("share", "squares")]
            rows.setdefault(row["day"], []).append(repr([row[key] for key in query.keys] + [row["n"], *sums]))
    return {day: content_id({"rows": sorted(texts)}) for day, texts in rows.items()}


def scores_of_issues(keys: pa.Array, findings: Findings, mode: str, reasons: Reasons) -> dict[str, Scored]:
    """Return ``score_mpi`` and ``score_io`` of jobs; missing where nothing was monitored."""
    scored = {}
    for name, area in SCORED_AREAS.items():
        issue_keys, weights, shares = findings.issues[area]
        job, mine = _shared_rows(issue_keys, keys)
        value = formulas.score_issues(weights[mine], shares[mine], job, len(keys), mode)
        codes = codes_of(len(keys))
        watched = pc.is_in(keys, findings.watched[area]).to_numpy(zero_copy_only=False)
        first(codes, ~watched, reasons.code(_NOT_WATCHED[area]))
        scored[name] = Scored(np.where(watched, value, np.nan), codes)
    return scored


def gpu_load_of(keys: pa.Array, findings: Findings) -> Floats:
    """Return the mean GPU load of jobs, NaN if unknown."""
    load = np.full(len(keys), np.nan)
    job, mine = _shared_rows(findings.gpu_load[0], keys)
    load[job] = findings.gpu_load[1][mine]
    return load


def busy_cores_of(keys: pa.Array, findings: Findings, exclusive: npt.NDArray[np.bool_]) -> Floats:
    """Return the mean number of busy cores of jobs, NaN if unknown.

    The load average of a node is that of all its jobs and counts only where a job has the node alone.
    """
    busy = np.full(len(keys), np.nan)
    its_keys, loads, of_node = findings.busy_cores
    job, mine = _shared_rows(its_keys, keys)
    busy[job] = np.where(of_node[mine] & ~exclusive[job], np.nan, loads[mine])
    return busy


def _shared_rows(of: pa.Array, keys: pa.Array) -> tuple[Rows, Rows]:
    """Return positions in ``keys`` and in ``of`` of the keys that both have."""
    if not len(of):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    index = pc.index_in(of, keys).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    mine = np.flatnonzero(index >= 0)
    return index[mine], mine


def _keys(rows: pa.Table) -> pa.Array:
    return job_keys(rows.column("source").combine_chunks(), rows.column("job_id").combine_chunks())
