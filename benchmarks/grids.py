"""Made-up grids whose truth is known, as records of jobs: what real grids do to the assumptions of the fits.

A grid is a set of knobs; :func:`make_jobs` draws its records, one column each, :func:`table_of` puts them
into the canonical columns that ``esjobs ingest jobs`` reads.
"""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.records.demo.cpus import CPU_MODELS

FIRST_DAY = date(2026, 3, 2)
HONEST_SCATTER = 0.03
"""Relative scatter of honest declarations."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """The knobs of a grid; the default one keeps every assumption of the fits.

    ``noise``: scatter of ln(CPU time) of jobs. ``interaction``: of site and task. ``rho``: CPU time before
    the first event, in mean jobs of a task; ``rho_scatter``: of ln(rho) between sites; ``rho_spread``:
    between tasks. ``lengths``: ratio of the longest to the shortest mean jobs of a task's sites;
    ``length_scatter``: of ln(events) inside a site. ``type_effect``, ``core_effect``: relative scatter of
    what a site does to all tasks of a type, a core class. ``wrong_events``, ``garbage``: sites with wrong
    numbers of events in 30 % of their jobs, with CPU times that mean nothing in 50 %. ``stray``: share of
    buckets that are wrong by a factor of 3 to 30. ``bimodal``: share of the sites with two kinds of nodes
    1.3x apart. ``misdeclared``: share of sites that declare wrong by 1.3 to 2; ``overstating``: share that
    declares 1.3 to 1.6 times too much; ``alike``: share that declares 1.6 times too much. ``limited``: slow
    sites at which a limit on wall time ends 10 to 70 % of the jobs of a task. ``two_speeds``: sites where a
    quarter to half of the tasks (``speeds_part``) run on nodes 1.5 to 2.2 times slower (``speeds_ratio``);
    what they declare is the mean. ``speeds_by``: ``task``: whole tasks are slow; ``model``: the same, and the
    slow nodes have another CPU model; ``mixed``: of every task some jobs, with another CPU model.
    ``speeds_by_nodes``: tasks land on nodes by chance, and the mean of the nodes is declared, not that of the
    jobs.
    ``wrong_cores``: sites whose 8-core jobs are recorded with 4. ``sparse``: share of the buckets that have
    one to three jobs only, whatever ``jobs`` says.
    ``days``: of the window. ``task_drift``: scatter of what tasks become slower or faster by over the window,
    while sites are active at different times of it. ``wide_vectors``: half of the tasks is slower by this on
    half of the CPU models. ``load``: the same on half of the sites, whatever their CPU models. ``power``: of
    the events that CPU time grows with.
    """

    sites: int = 40
    models: int = 12
    tasks: int = 60
    sites_per_task: int = 15
    types: int = 3
    multi: float = 0.5
    jobs: float = 20.0
    noise: float = 0.3
    interaction: float = 0.05
    rho: float = 0.0
    rho_scatter: float = 0.0
    rho_spread: float = 0.3
    lengths: float = 1.0
    length_scatter: float = 0.4
    type_effect: float = 0.0
    core_effect: float = 0.0
    wrong_events: int = 0
    garbage: int = 0
    stray: float = 0.0
    bimodal: float = 0.0
    misdeclared: float = 0.1
    overstating: float = 0.0
    alike: float = 0.0
    limited: int = 0
    two_speeds: int = 0
    speeds_part: tuple[float, float] = (0.25, 0.45)
    speeds_ratio: tuple[float, float] = (1.5, 2.2)
    speeds_by: str = "task"
    speeds_by_nodes: bool = False
    wrong_cores: int = 0
    sparse: float = 0.0
    days: int = 3
    task_drift: float = 0.0
    wide_vectors: float = 0.0
    load: float = 0.0
    power: float = 1.0

    def but(self, **changes: Any) -> "Grid":
        """The same grid with other knobs."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Truth:
    """What was planted, by site: ``k`` up to a common scale, ``wrong``: factor by which it declares wrong.

    ``broken``: sites whose records are wrong. ``k_of_type``: the factor for tasks of the first type.
    ``two_speeds``: sites with nodes of two speeds.
    """

    name: list[str]
    k: Floats
    declared: Floats
    wrong: Floats
    broken: npt.NDArray[np.bool_]
    k_of_type: Floats
    two_speeds: npt.NDArray[np.bool_]


def make_jobs(grid: Grid, seed: int) -> tuple[pa.Table, Truth]:
    """Draw the records of a grid in canonical columns, and its truth."""
    rng = np.random.default_rng(seed)
    n_queues, n_tasks = grid.sites, grid.tasks
    model = rng.integers(0, grid.models, n_queues)
    k = np.exp(rng.normal(0, 0.15, grid.models)[model] + rng.normal(0, 0.1, n_queues))
    type_of = np.arange(n_tasks) % grid.types
    is_multi = rng.random(n_tasks) < grid.multi
    per_task = min(grid.sites_per_task, n_queues)
    site = np.concatenate([rng.permutation(n_queues)[:per_task] for _ in range(n_tasks)])
    task = np.repeat(np.arange(n_tasks), per_task)
    n_buckets = site.size
    jobs = _jobs_per_bucket(rng, grid, n_buckets)
    mean_events = np.exp(rng.uniform(np.log(30), np.log(2000), n_tasks))
    span = 0.5 * np.log(grid.lengths)
    shift = rng.uniform(-span, span, n_queues)[site] if grid.lengths > 1 else np.zeros(n_buckets)
    effect, of_type = _effects(rng, grid, site, type_of[task], is_multi[task])
    rho = grid.rho * mean_events * np.exp(rng.normal(0, grid.rho_spread, n_tasks))
    start = np.exp(rng.normal(0, 1, n_queues) * grid.rho_scatter)
    effect += _stray(rng, grid, n_buckets)
    slow_rng = np.random.default_rng([seed, 1])
    ln_slow, slow_share, slow_part = _slow_shares(slow_rng, grid, site)

    of = np.repeat(np.arange(n_buckets), jobs)
    where, what = site[of], task[of]
    size = of.size
    events = np.exp(np.log(mean_events[what]) + shift[of] + rng.normal(0, grid.length_scatter, size))
    events = np.maximum(np.rint(events), 1.0)
    pattern, ln_late, day = _unlike(np.random.default_rng([seed, 4]), grid, model, site, task, of)
    level = np.exp(rng.uniform(np.log(20), np.log(200), n_tasks))
    cpu_s = level[what] * (_powers(grid, events, mean_events[what]) + rho[what] * start[where]) / k[where]
    is_slow = slow_rng.random(size) < slow_share[of]
    cpu_s *= np.exp(
        effect[of]
        + ln_late
        + is_slow * ln_slow[where]
        + rng.normal(0, grid.noise, size)
        - 0.5 * grid.noise**2
    )
    nodes = np.where(rng.random(n_queues) < grid.bimodal, np.log(1.3), 0.0)
    cpu_s *= np.exp(nodes[where] * (rng.random(size) < 0.5))
    events, cpu_s, broken = _broken(rng, grid, where, events, cpu_s)

    wrong = _wrong(rng, grid, broken)
    declared = np.round(10 * k * wrong * np.exp(rng.normal(0, HONEST_SCATTER, n_queues)), 2)
    names = [f"GRID{number:03d}" for number in range(n_queues)]
    slow = np.log1p(slow_share * np.expm1(ln_slow[site]))
    mean_slow = np.bincount(site, slow * jobs, n_queues) / np.maximum(np.bincount(site, jobs, n_queues), 1)
    declared = np.round(declared * np.exp(-(slow_part * ln_slow if grid.speeds_by_nodes else mean_slow)), 2)
    speed = k * np.exp(-0.5 * nodes - 0.5 * pattern - mean_slow)
    truth = Truth(names, speed, declared, wrong, broken, speed * np.exp(-of_type[:, 0]), ln_slow > 0)
    cores = np.where(is_multi[what], 8, 1)
    wall_s = np.maximum(cpu_s / cores / rng.uniform(0.85, 0.95, size), 61.0)
    late, limit = _limits(np.random.default_rng([seed, 3]), grid, k, site, of, wall_s)
    cpu_s, wall_s = np.where(late, cpu_s * limit / wall_s, cpu_s), np.where(late, limit, wall_s)
    hs06_s = wall_s * cores * declared[where]
    miscounted = np.random.default_rng([seed, 2]).permutation(n_queues)[: grid.wrong_cores]
    cores = np.where(np.isin(where, miscounted) & (cores == 8), 4, cores)
    table = table_of(
        {
            "task_id": _texts([str(15_000_000 + number) for number in range(n_tasks)], what),
            "queue": _texts(names, where),
            "cpu_raw": _texts(
                [item.raw[0] for item in CPU_MODELS[: grid.models]], _models(grid, model[where], is_slow)
            ),
            "processing_type": _texts(_TYPES[: grid.types], type_of[what]),
        },
        cores=cores,
        events=events,
        cpu_s=cpu_s,
        wall_s=wall_s,
        hs06_s=hs06_s,
        day=day if grid.task_drift else rng.integers(0, grid.days, size),
        state=np.where(late, "failed", "finished"),
    )
    return table, truth


def _effects(
    rng: np.random.Generator, grid: Grid, site: Ints, type_of: Ints, is_multi: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """ln(slower) of each bucket, and of each site and type."""
    effect = rng.normal(0, grid.interaction, site.size)
    of_type = rng.normal(0, 1, (grid.sites, grid.types)) * grid.type_effect
    effect += of_type[site, type_of]
    effect += rng.normal(0, 1, (grid.sites, 2))[site, is_multi.astype(int)] * grid.core_effect
    return effect, of_type


def _unlike(
    rng: np.random.Generator, grid: Grid, model: Ints, site: Ints, task: Ints, of: Ints
) -> tuple[Floats, Floats, Ints]:
    """ln(slower) of the tasks that suffer at each site, of each job, and its day where tasks drift."""
    slow_model = rng.permutation(grid.models) < grid.models // 2
    slow_site = rng.permutation(grid.sites) < grid.sites // 2
    pattern = np.log1p(grid.wide_vectors) * slow_model[model] + np.log1p(grid.load) * slow_site
    middle = rng.uniform(0, grid.days, grid.sites)
    day = np.clip(rng.normal(middle[site[of]], 0.3 * grid.days), 0, grid.days - 1).astype(np.int64)
    slope = rng.normal(0, 1, grid.tasks)[task[of]] * grid.task_drift
    ln_late = slope * ((day + 0.5) / grid.days - 0.5) + (pattern[site] * (task % 2 == 0))[of]
    return pattern, ln_late, day


def _powers(grid: Grid, events: Floats, mean_events: Floats) -> Floats:
    return events if grid.power == 1.0 else mean_events * (events / mean_events) ** grid.power


def _stray(rng: np.random.Generator, grid: Grid, n: int) -> Floats:
    """ln(slower) of buckets that are wrong; 0 for the others."""
    stray = rng.random(n) < grid.stray
    size = rng.choice([-1.0, 1.0], n) * rng.uniform(np.log(3), np.log(30), n)
    return np.where(stray, size, 0.0)


def _broken(
    rng: np.random.Generator, grid: Grid, where: Ints, events: Floats, cpu_s: Floats
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Events and CPU times with those of broken sites, and which sites are broken."""
    broken = np.zeros(grid.sites, np.bool_)
    chosen = rng.permutation(grid.sites)
    counting, random = chosen[: grid.wrong_events], chosen[grid.wrong_events :][: grid.garbage]
    broken[counting] = broken[random] = True
    size = where.size
    hit = np.isin(where, counting) & (rng.random(size) < 0.3)
    # Events of a job that stopped early, or those of its whole input: neither is what the CPU time was for.
    events = np.where(hit, np.maximum(np.rint(events * np.exp(rng.uniform(-2.5, 2.5, size))), 1.0), events)
    hit = np.isin(where, random) & (rng.random(size) < 0.5)
    return events, np.where(hit, cpu_s * np.exp(rng.uniform(-3.0, 3.0, size)), cpu_s), broken


def _slow_shares(rng: np.random.Generator, grid: Grid, site: Ints) -> tuple[Floats, Floats, Floats]:
    """ln(slower) of the slow nodes of each site, the share of jobs on them in each bucket, and of nodes."""
    ln_slow, parts, share = np.zeros(grid.sites), np.zeros(grid.sites), np.zeros(site.size)
    for queue in rng.permutation(grid.sites)[: grid.two_speeds]:
        mine = np.flatnonzero(site == queue)
        part = rng.uniform(*grid.speeds_part)
        if grid.speeds_by == "mixed":
            share[mine] = rng.beta(part, 1 - part, mine.size)
        elif grid.speeds_by_nodes:
            share[mine] = rng.random(mine.size) < part
        else:
            share[rng.permutation(mine)[: round(part * mine.size)]] = 1.0
        ln_slow[queue], parts[queue] = rng.uniform(*np.log(grid.speeds_ratio)), part
    return ln_slow, share, parts


def _models(grid: Grid, model: Ints, is_slow: npt.NDArray[np.bool_]) -> Ints:
    """CPU model of each job: where the records tell it, slow nodes have the next one."""
    told = is_slow & (grid.speeds_by != "task")
    return np.where(told, (model + 1) % grid.models, model)


def _limits(
    rng: np.random.Generator, grid: Grid, k: Floats, site: Ints, of: Ints, wall_s: Floats
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which jobs a limit ends, and after what wall time: at slow sites, of four in five of their tasks."""
    limit = np.full(site.size, np.inf)
    slow = rng.permutation(np.argsort(k)[: grid.sites // 2])[: grid.limited]
    ends = np.searchsorted(of, np.arange(site.size + 1))
    for bucket in np.flatnonzero(np.isin(site, slow) & (rng.random(site.size) < 0.8)):
        mine = wall_s[ends[bucket] : ends[bucket + 1]]
        limit[bucket] = np.quantile(mine, 1 - rng.uniform(0.1, 0.7))
    return wall_s > limit[of], limit[of] * rng.uniform(1.0, 1.01, of.size)


_TYPES = ["evgen", "simul", "reprocessing", "pile", "deriv", "fullchain"]


def _jobs_per_bucket(rng: np.random.Generator, grid: Grid, n: int) -> Ints:
    """Around ``jobs`` in each bucket where there are several, exactly 1 to 3 where it says so."""
    if grid.jobs <= 3:
        jobs = np.full(n, round(grid.jobs), np.int64)
    else:
        jobs = np.maximum(rng.poisson(grid.jobs * np.exp(rng.normal(0, 0.5, n) - 0.125)), 1).astype(np.int64)
    return np.where(rng.random(n) < grid.sparse, rng.integers(1, 4, n), jobs)


def _wrong(rng: np.random.Generator, grid: Grid, broken: npt.NDArray[np.bool_]) -> Floats:
    """By how much each site declares wrong; 1 for honest ones. Broken sites are honest."""
    wrong = np.ones(grid.sites)
    able = rng.permutation(np.flatnonzero(~broken))
    n_wrong, n_over = round(grid.misdeclared * grid.sites), round(grid.overstating * grid.sites)
    n_alike = round(grid.alike * grid.sites)
    size = np.exp(rng.uniform(np.log(1.3), np.log(2.0), n_wrong))
    wrong[able[:n_wrong]] = np.where(rng.random(n_wrong) < 0.5, size, 1 / size)
    wrong[able[n_wrong : n_wrong + n_over]] = rng.uniform(1.3, 1.6, n_over)
    wrong[able[n_wrong + n_over :][:n_alike]] = 1.6
    return wrong


def table_of(
    texts: dict[str, pa.Array],
    *,
    cores: Ints,
    day: Ints,
    events: Floats,
    state: npt.NDArray[np.str_] | None = None,
    **seconds: Floats,
) -> pa.Table:
    """Columns of jobs as a table of canonical records, each with an id and an end inside its day.

    ``state``: how each job ended; None: all finished.
    """
    size = len(cores)
    midnight = int(datetime.combine(FIRST_DAY, time(), UTC).timestamp()) * 1_000_000
    ends = midnight + day * 86_400_000_000 + np.arange(size) % 86_000 * 1_000_000
    return pa.table(
        {
            "job_id": pa.array(np.arange(size)).cast(pa.string()),
            **texts,
            "state": pa.repeat(pa.scalar("finished"), size) if state is None else pa.array(state),
            "end_time": pa.array(ends).cast(pa.timestamp("us", tz="UTC")),
            "cores": pa.array(np.asarray(cores, np.int64)),
            "events": pa.array(np.asarray(events, np.int64)),
            **{name: pa.array(values) for name, values in seconds.items()},
        }
    )


def window(days: int = 3) -> str:
    """The days on which the jobs of a grid end."""
    return f"{FIRST_DAY}/{FIRST_DAY + timedelta(days=days)}"


def _texts(names: list[str], codes: Ints) -> pa.Array:
    return pa.array(names).take(pa.array(codes)).cast(pa.string())
