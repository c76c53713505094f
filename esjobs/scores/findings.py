"""Issues, footprints and reports of TALP of a day as input of scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import job_keys
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, In, Present, Query, Sum, SumProduct
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.issues import FEWEST_SAMPLES, FOOTPRINTS, ISSUES, LEAST_COVERED, MEASURES, NOTHING_FOUND
from esjobs.schema.pop import POP
from esjobs.scores import formulas
from esjobs.scores.reasons import Reasons, codes_of, first
from esjobs.scores.scoring import Scored
from esjobs.scores.settings import EfficiencySettings
from esjobs.store.base import JobStore

SCORED_AREAS = {"score_mpi": "mpi", "score_io": "io"}
"""Scores made from issues, and the issue area of each."""
# Detectors of an area: a job that none of them could judge is not without issues
_DETECTORS = {"mpi": (), "io": ("metadata-congestion", "io-blocking")}
NOT_JUDGED = {
    "mpi": "communication was not measured (TALP)",
    "io": "no detector of input and output could judge it",
}
_BUSY_GPUS, _BUSY_CORES = "gpu_load", "cpu_load"
# without counters of warps: the share of time in which anything ran
_GPU_SCORES = {"score_gpu": "gpu_sm_active", "score_gpumem": "gpu_mem_active"}
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Findings:
    """Issues, footprints and reports of a day; arrays run beside ``jobs``, keys of :func:`job_keys`.

    ``issues``: per area job, weight and share of each issue. ``judged``: jobs by area that a detector could
    judge. ``communication``: job, share of the time outside MPI and CPU-time of each report of TALP.
    ``gpu``: means of metrics of GPUs. ``busy_cores``: mean number of busy cores of the job, and true
    where it is the load average of nodes.
    """

    issues: dict[str, tuple[pa.Array, Floats, Floats]]
    judged: dict[str, pa.Array]
    communication: tuple[pa.Array, Floats, Floats]
    gpu: dict[str, tuple[pa.Array, Floats]]
    busy_cores: tuple[pa.Array, Floats, Mask]


def findings_of(store: JobStore, day: date, settings: EfficiencySettings) -> Findings:
    """Read issues and footprints of a day."""
    on_day = Days("day", day, day)
    areas = In("area", tuple(SCORED_AREAS.values()))
    columns = ["source", "job_id", "area", "severity", "share_frac"]
    found = read_table(store, ISSUES, [on_day, areas], columns)
    on_gpus = (_BUSY_GPUS, *_GPU_SCORES.values())
    figures = ["source", "job_id", "metric", "scope", "mean", "job_mean", "n_samples", "n_units", "gap_frac"]
    seen = read_table(store, FOOTPRINTS, [on_day, In("metric", (*on_gpus, _BUSY_CORES))], figures)
    # few samples count as none: an unobserved job has no score
    seen = seen.filter(pa.array(~_thin(seen)))
    issues, judged = {}, {}
    for area, detectors in _DETECTORS.items():
        mine = found.filter(pc.equal(found.column("area"), area))
        weights = [settings.weights.get(name, 0.0) for name in mine.column("severity").to_pylist()]
        # an issue whose share of the time is not known may concern all of it
        shares = mine.column("share_frac").combine_chunks().fill_null(1.0).to_numpy(zero_copy_only=False)
        keys, weight = job_keys(mine), np.array(weights, np.float64)
        issues[area] = keys, weight, np.asarray(shares, np.float64)
        # information says nothing about lost time
        judged[area] = pc.unique(
            pa.concat_arrays([_judged(store, on_day, detectors), keys.filter(pa.array(weight > 0))])
        )
    gpu = {}
    for metric in on_gpus:
        rows = seen.filter(pc.equal(seen.column("metric"), metric))
        gpu[metric] = job_keys(rows), _numbers(rows, "mean")
    return Findings(issues, judged, _communication(store, day), gpu, _busy_cores(seen))


def _judged(store: JobStore, on_day: Days, detectors: tuple[str, ...]) -> pa.Array:
    """Return the keys of jobs whose findings count and that a detector could judge."""
    if not detectors:
        return pa.array([], pa.string())
    where = [on_day, In("detector", detectors)]
    rows = read_table(store, MEASURES, where, ["source", "job_id", "value", "eligible", "reason"])
    looked = pc.or_(
        pc.is_valid(rows.column("value")), pc.is_in(rows.column("reason"), pa.array(NOTHING_FOUND))
    )
    return job_keys(rows.filter(pc.and_(looked, pc.fill_null(rows.column("eligible"), False))))


def _communication(store: JobStore, day: date) -> tuple[pa.Array, Floats, Floats]:
    """Return job, MPI parallel efficiency and CPU time of the reports of a day's jobs.

    A report may be written on the day before the end of its job, or after it.
    """
    days = Days("day", day - _ONE_DAY, day + _ONE_DAY)
    where = [days, In("level", ("application",)), Present("mpi_parallel_efficiency")]
    columns = ["source", "job_id", "main", "mpi_parallel_efficiency", "elapsed_s", "cpus"]
    rows = read_table(store, POP, where, columns)
    rows = rows.filter(pc.fill_null(rows.column("main"), False))
    weight = _numbers(rows, "elapsed_s") * np.nan_to_num(_numbers(rows, "cpus"), nan=1.0)
    return job_keys(rows), _numbers(rows, "mpi_parallel_efficiency"), weight


def _numbers(rows: pa.Table, name: str) -> Floats:
    column = rows.column(name).cast(pa.float64()).combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _busy_cores(seen: pa.Table) -> tuple[pa.Array, Floats, Mask]:
    loads = seen.filter(pc.equal(seen.column("metric"), _BUSY_CORES))
    # an unknown scope may be that of a node
    of_node = pc.equal(loads.column("scope"), "node").combine_chunks().fill_null(True)
    return job_keys(loads), _numbers(loads, "job_mean"), of_node.to_numpy(zero_copy_only=False)


def _thin(seen: pa.Table) -> Mask:
    """Return the mask of footprints with too few samples: no issue in them does not mean none."""
    n, units, gaps = (_numbers(seen, name) for name in ("n_samples", "n_units", "gap_frac"))
    with np.errstate(invalid="ignore"):
        thin: Mask = (n < FEWEST_SAMPLES * units) | (gaps > 1 - LEAST_COVERED)
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
        Query(("day", "detector", "eligible", "reason"), (Count("n"),), where=(days,), over=MEASURES),
    )
    rows: dict[date, list[str]] = {}
    for day, text in _reports(store, days):
        # the report of a job may be of the day before or after
        for near in (day - _ONE_DAY, day, day + _ONE_DAY):
            rows.setdefault(near, []).append(text)
    for query in queries:
        for row in store.aggregate(query).table.to_pylist():
            # engines add up in the order in which their threads come
            sums = [None if row.get(name) is None else f"{row[name]:.9e}" for name in ("share", "squares")]
            rows.setdefault(row["day"], []).append(repr([row[key] for key in query.keys] + [row["n"], *sums]))
    return {day: content_id({"rows": sorted(texts)}) for day, texts in rows.items()}


def _reports(store: JobStore, days: Days) -> Iterator[tuple[date, str]]:
    """Yield day and digest of the reports of TALP near some days."""
    around = Days("day", days.first - _ONE_DAY, days.last + _ONE_DAY)
    query = Query(("day", "fingerprint"), (Count("n"),), where=(around,), over=POP)
    for row in store.aggregate(query).table.to_pylist():
        yield row["day"], repr(("pop", row["day"], row["fingerprint"], row["n"]))


def scores_of_issues(keys: pa.Array, findings: Findings, mode: str, reasons: Reasons) -> dict[str, Scored]:
    """Return ``score_mpi`` and ``score_io`` of jobs; missing where no issue could have been found."""
    scored = {}
    for name, area in SCORED_AREAS.items():
        issue_keys, weights, shares = findings.issues[area]
        # a batch holds some of the day's jobs: issues of the other jobs are skipped
        job, mine = _shared_rows(issue_keys, keys)
        value = formulas.score_issues(weights[mine], shares[mine], job, len(keys), mode)
        codes = codes_of(len(keys))
        judged = pc.is_in(keys, findings.judged[area]).to_numpy(zero_copy_only=False)
        first(codes, ~judged, reasons.code(NOT_JUDGED[area]))
        scored[name] = Scored(np.where(judged, value, np.nan), codes)
    return scored


def communication_of(keys: pa.Array, findings: Findings) -> Floats:
    """Return 100 x (1 - MPI parallel efficiency) of jobs, launches weighted by CPU time; NaN if unknown."""
    its_keys, efficiencies, weights = findings.communication
    job, mine = _shared_rows(its_keys, keys)
    # a job may have started several programs, one report each
    lost = np.bincount(job, weights[mine] * (1.0 - efficiencies[mine]), len(keys))
    total = np.bincount(job, weights[mine], len(keys))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, 100.0 * lost / total, np.nan), np.float64)


def gpu_load_of(keys: pa.Array, findings: Findings, counters: pa.MapArray) -> Floats:
    """Return the mean GPU load of jobs, from series, else the record; NaN if unknown."""
    return _gpu_mean(keys, findings, counters, _BUSY_GPUS)


def gpu_scores_of(keys: pa.Array, findings: Findings, counters: pa.MapArray) -> dict[str, Floats]:
    """Return GPU scores of jobs from series, else the activity in the record; NaN if unknown.

    ``score_gpu``: 100 x (1 - time of multiprocessors with work); ``score_gpumem``: 100 x time that the memory
    moved data.
    """
    active, memory = (100.0 * _gpu_mean(keys, findings, counters, metric) for metric in _GPU_SCORES.values())
    return dict(zip(_GPU_SCORES, (100.0 - active, memory), strict=True))


def _gpu_mean(keys: pa.Array, findings: Findings, counters: pa.MapArray, metric: str) -> Floats:
    recorded = pc.map_lookup(counters, pa.scalar(f"{metric}.mean"), "first")
    mean = np.array(recorded.fill_null(np.nan).to_numpy(zero_copy_only=False), np.float64)
    its_keys, values = findings.gpu[metric]
    job, mine = _shared_rows(its_keys, keys)
    # a series counts before a number in the record
    mean[job] = values[mine]
    return mean


def busy_cores_of(keys: pa.Array, findings: Findings, exclusive: Mask) -> Floats:
    """Return the mean number of busy cores of jobs, NaN if unknown.

    The load average of a node is that of all its jobs and counts only where a job has the node alone.
    """
    busy = np.full(len(keys), np.nan)
    its_keys, loads, of_node = findings.busy_cores
    job, mine = _shared_rows(its_keys, keys)
    busy[job] = np.where(of_node[mine] & ~exclusive[job], np.nan, loads[mine])
    return busy


def _shared_rows(of: pa.Array, keys: pa.Array) -> tuple[Ints, Ints]:
    """Return positions in ``keys`` and in ``of`` of the keys that both have."""
    if not len(of):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    index = pc.index_in(of, keys).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    mine = np.flatnonzero(index >= 0)
    return index[mine], mine
