"""Made-up sums of days of a grid, with incidents planted into them, for ``benchmarks.incidents``.

Sites of 50 to 50,000 jobs a day, kinds of work with tasks that live some days, weekends, volumes that wander,
heavy-tailed days of sites, slow drift, bursts of failures, new sites, late records; campaigns change the mix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from benchmarks.incidents_metrics import Shift, shifts, with_metrics
from esjobs.schema.today import OWNERS, WAITED
from esjobs.today.sums import ADDED, Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FIRST = date(2026, 1, 5)
N_SITES, N_DAYS, FIRST_INCIDENT = 60, 60, 29
KINDS = ("evgen", "simul", "pile", "reprocessing", "analysis")
EFFICIENCY = np.array([0.93, 0.9, 0.78, 0.84, 0.65])
TASK_SPREAD = np.array([0.04, 0.05, 0.06, 0.06, 0.22])
CORES = np.array([1.0, 8.0, 8.0, 8.0, 1.0])
HOURS = np.array([6.0, 9.0, 7.0, 6.0, 2.5])
KIND_WEIGHT = np.array([0.12, 0.33, 0.25, 0.1, 0.2])
CATEGORIES = ("lost heartbeat", "stage-in", "stage-out", "payload", "memory", "timeout", "pilot", "software")
TASKS_ALIVE = 60
JOB_SD = 0.45
QUEUE_SD = (0.04, 0.3)  # Of queues of a site, of efficiency and of failures, in ln
TASK_AT_SITE_SD = (0.04, 0.3)  # Of a task at a site as long as it lives


@dataclass(frozen=True)
class Plant:
    """Incident: where it is (dimension and name), from when to when in days, how large.

    ``metric``: efficiency falls by ``size``, or so many of the jobs fail. ``category``: of the failures;
    None: the usual ones.
    """

    metric: str
    size: float
    start: float
    end: float
    where: tuple[tuple[str, str], ...]
    category: str | None = None

    def part(self, day: int) -> float:
        """Return the part of a day that it takes."""
        return max(0.0, min(self.end, day + 1) - max(self.start, day))


@dataclass
class Made:
    """Sums of all days, late ones included; ``missing``: per site and day, the share that is late at night.

    ``lost``: per plant and day, true core s lost. ``week``: per site, core s of a usual week. ``due``: CPU s,
    then failures of each category, by site and day, without incidents of the site and days' scatter.
    """

    sums: Sums
    missing: Floats
    plants: list[Plant]
    lost: Floats
    week: Floats
    due: Floats
    rng: np.random.Generator
    n_rows: int = field(init=False)
    shifts: list[Shift] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n_rows = len(self.sums.day)

    def seen(self, night: int) -> Sums:
        """Return the sums as a night sees them: its own day lacks what is late."""
        sums, today = self.sums, self.sums.day == night
        keep = np.ones(self.n_rows)
        part = 1 - self.missing[sums.codes["site"][today], night - FIRST.toordinal()]
        jobs = sums.n_jobs[today]
        kept = np.random.default_rng([night, self.n_rows]).binomial(jobs.astype(np.int64), part)
        keep[today] = np.divide(kept, jobs, out=np.zeros(len(jobs)), where=jobs > 0)
        return thinned(sums, keep)


def thinned(sums: Sums, keep: Floats) -> Sums:
    """Return a part of the jobs of each row."""
    parts = {name: getattr(sums, name) * keep for name in ADDED}
    parts["n_jobs"] = np.rint(parts["n_jobs"])
    return replace(sums, **parts, waited=sums.waited * keep[:, None]).rows(parts["n_jobs"] > 0)


def make(seed: int, *, campaigns: bool, incidents: bool, shifted: bool = False, owned: bool = False) -> Made:
    """Make the sums of a grid.

    ``shifted``: with planted deviations of other metrics. ``owned``: with incidents of all tasks of a user,
    of a project and of a release.
    """
    rng = np.random.default_rng([seed, 36])
    grid = _Grid(rng, campaigns)
    plants = grid.plants() if incidents else grid.owned_plants(seed) if owned else []
    made = grid.days(plants)
    other = np.random.default_rng([seed, 78])
    old = np.flatnonzero((grid.born == 0) & (grid.size > 150)).tolist()
    made.shifts = shifts(other, old, FIRST_INCIDENT, N_DAYS) if shifted else []
    sums, left = with_metrics(made.sums, FIRST.toordinal(), seed, made.shifts)
    made.sums = thinned(sums, left)
    made.n_rows = len(made.sums.day)
    return made


class _Grid:
    def __init__(self, rng: np.random.Generator, campaigns: bool) -> None:
        self.rng, self.campaigns = rng, campaigns
        self.size = np.exp(rng.uniform(np.log(50), np.log(50_000), N_SITES))
        self.size *= 400_000 / self.size.sum()
        self.queues: list[tuple[int, float]] = []
        for site in range(N_SITES):
            shares = rng.dirichlet(np.full(rng.integers(1, 5), 1.2))
            self.queues += [(site, float(share)) for share in shares]
        self.site_of = np.array([site for site, _ in self.queues])
        self.queue_names = [f"S{site:02d}_Q{number:03d}" for number, (site, _) in enumerate(self.queues)]
        self.site_names = [f"S{site:02d}" for site in range(N_SITES)]
        self.born = np.zeros(N_SITES, np.int64)
        self.born[rng.choice(N_SITES, 5, replace=False)] = rng.integers(15, 45, 5)
        self.likes = rng.dirichlet(KIND_WEIGHT * 12, N_SITES)
        self.factor = np.exp(
            0.05 * rng.standard_normal((N_SITES, 1)) + 0.02 * rng.standard_normal((N_SITES, 5))
        )
        drift = np.cumsum(0.002 * rng.standard_normal((N_SITES, N_DAYS)), axis=1)
        self.drift = np.exp(drift)
        self.day_factor = np.exp(drift + 0.018 * rng.standard_t(4, (N_SITES, N_DAYS)) / np.sqrt(2))
        self.fail = np.exp(np.log(0.03) + 0.6 * rng.standard_normal(N_SITES))
        burst = 0.25 * rng.standard_t(4, (N_SITES, N_DAYS)) / np.sqrt(2)
        self.fail_day = np.exp(np.clip(burst, -1.0, 1.0))
        self.categories = rng.dirichlet(np.full(8, 0.8), N_SITES)
        self._make_tasks()
        self._make_owners(np.random.default_rng([len(self.kind), int(self.size[0]), 79]))
        self._make_volumes()
        apart = rng.spawn(1)[0]
        self.of_queue, self.of_task = (
            [np.exp(sd * apart.standard_normal(shape)) for sd in sds]
            for sds, shape in ((QUEUE_SD, len(self.queues)), (TASK_AT_SITE_SD, (N_SITES, len(self.kind))))
        )

    def _make_tasks(self) -> None:
        rng = self.rng
        starts: list[int] = []
        ends: list[int] = []
        kinds: list[int] = []
        while sum(s <= N_DAYS for s in starts) < 330:
            life = int(rng.integers(4, 22))
            starts.append(int(rng.integers(-20, N_DAYS)))
            ends.append(starts[-1] + life)
            kinds.append(int(rng.choice(5, p=KIND_WEIGHT)))
        self.start, self.end, self.kind = (np.array(each) for each in (starts, ends, kinds))
        n = len(starts)
        self.task_factor = np.exp(TASK_SPREAD[self.kind] * rng.standard_normal(n))
        self.task_fail = np.exp(0.6 * rng.standard_normal(n))
        self.task_category = rng.dirichlet(np.full(8, 0.6), n)
        self.weight = np.exp((1.2 if self.campaigns else 0.5) * rng.standard_normal(n))
        self.runs_at = rng.random((n, N_SITES)) < np.clip(0.15 + 0.1 * np.log10(self.size / 50), 0.15, 0.6)
        self.task_names = [f"{4000 + number}\x1f{KINDS[kind]}" for number, kind in enumerate(self.kind)]

    def _make_owners(self, rng: np.random.Generator) -> None:
        """Give each task a user, a project and a release; production has one user."""
        analysis = self.kind == 4
        user = np.where(analysis, 2 + rng.integers(0, 25, len(self.kind)), 1)
        project = np.where(analysis, 1 + user % 5, 6 + rng.integers(0, 3, len(self.kind)))
        release = 1 + 3 * self.kind + rng.integers(0, 3, len(self.kind))
        self.owner = {"user": user, "project": project, "release": release}
        self.owner_names = {
            name: ["", *(f"{name}-{number}" for number in range(1, int(codes.max()) + 1))]
            for name, codes in self.owner.items()
        }

    def owned_plants(self, seed: int) -> list[Plant]:
        """Return an incident of the tasks of one owner of each sort, one after the other."""
        rng = np.random.default_rng([seed, 80])
        plants = []
        for number, name in enumerate(OWNERS):
            day = FIRST_INCIDENT + 3 + 9 * number
            alive = (self.start < day - 2) & (self.end > day + 3) & (self.runs_at.sum(axis=1) >= 6)
            tasks = np.bincount(self.owner[name][alive], minlength=len(self.owner_names[name]))
            several = np.flatnonzero(tasks >= 2)
            if name == "user":
                several = several[several > 1]
            if not len(several):
                continue
            code = int(rng.choice(several))
            metric = ("failed", "efficiency")[int(rng.integers(2))]
            start = day + float(rng.random() * 0.5)
            where = ((name, self.owner_names[name][code]),)
            plants.append(Plant(metric, float(rng.uniform(0.25, 0.6)), start, start + 3.0, where))
        return plants

    def _make_volumes(self) -> None:
        rng = self.rng
        wander = np.zeros((N_SITES, N_DAYS))
        for day in range(1, N_DAYS):
            wander[:, day] = 0.7 * wander[:, day - 1] + 0.14 * rng.standard_normal(N_SITES)
        weekday = np.array(
            [0.8 if (FIRST + timedelta(days=day)).weekday() >= 5 else 1.0 for day in range(N_DAYS)]
        )
        weekday[rng.integers(30, N_DAYS)] *= 0.7
        self.volume = self.size[:, None] * np.exp(wander) * weekday
        self.volume *= np.arange(N_DAYS) >= self.born[:, None]
        missing = rng.uniform(0.01, 0.05, (N_SITES, N_DAYS))
        late = rng.random((N_SITES, N_DAYS)) < 0.02
        self.missing = np.where(late, rng.uniform(0.3, 0.7, (N_SITES, N_DAYS)), missing)

    def plants(self) -> list[Plant]:
        """Return incidents of twelve sites, and four of everywhere."""
        rng = self.rng
        old = np.flatnonzero(self.born == 0)
        found = []
        for site in rng.choice(old, 12, replace=False):
            start = float(rng.uniform(FIRST_INCIDENT, N_DAYS - 12))
            length = float(np.exp(rng.uniform(np.log(3 / 24), np.log(10))))
            size = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
            metric = "efficiency" if rng.random() < 0.5 else "failed"
            where = [("site", self.site_names[site])]
            kind = rng.random()
            mine = np.flatnonzero(self.site_of == site)
            if kind < 0.25 and len(mine) > 1:
                largest = max(mine, key=lambda queue: self.queues[queue][1])
                where.append(("queue", self.queue_names[largest]))
            elif kind < 0.4:
                where.append(("kind", KINDS[int(np.argmax(self.likes[site]))]))
            category = None
            if metric == "failed" and rng.random() < 0.6:
                category = CATEGORIES[int(rng.integers(8))]
            found.append(Plant(metric, size, start, start + length, tuple(where), category))
        return [*found, *self._wide()]

    def _wide(self) -> list[Plant]:
        rng = self.rng
        days = rng.choice(np.arange(FIRST_INCIDENT, N_DAYS - 6), 4, replace=False)
        plants = []
        for number, day in enumerate(days):
            start = float(day + rng.random() * 0.5)
            end = start + float(rng.uniform(1, 4))
            if number < 2:
                alive = (self.start < day) & (self.end > day + 1) & (self.runs_at.sum(axis=1) >= 6)
                task = int(rng.choice(np.flatnonzero(alive), p=self.weight[alive] / self.weight[alive].sum()))
                metric = ("failed", "efficiency")[number]
                size = float(rng.uniform(0.25, 0.6))
                plants.append(Plant(metric, size, start, end, (("task", self.task_names[task]),)))
            elif number == 2:
                category = CATEGORIES[int(rng.integers(8))]
                plants.append(Plant("failed", float(rng.uniform(0.05, 0.15)), start, end, (), category))
            else:
                plants.append(Plant("efficiency", float(rng.uniform(0.08, 0.2)), start, start + 1.0, ()))
        return plants

    def days(self, plants: Sequence[Plant]) -> Made:
        """Return the sums of all days."""
        rows: dict[str, list[Floats]] = {name: [] for name in _ROWS}
        lost = np.zeros((len(plants), N_DAYS))
        usual = np.zeros((N_SITES, N_DAYS))
        due = np.zeros((1 + len(CATEGORIES), N_SITES, N_DAYS))
        for day in range(N_DAYS):
            cells = self._cells(day)
            self._day(day, cells, plants, rows, lost, usual, due)
        columns = {name: np.concatenate(values) for name, values in rows.items()}
        codes = {
            name: columns[name].astype(np.int64) for name in ("site", "queue", "kind", "task", "outcome")
        }
        codes |= {name: code[codes["task"]] for name, code in self.owner.items()}
        names = {
            "site": self.site_names,
            "queue": self.queue_names,
            "kind": list(KINDS),
            "task": self.task_names,
            "outcome": ["finished", *CATEGORIES],
            **self.owner_names,
        }
        numbers = [columns[name] for name in ("n", "core", "measured", "measured_core", "cpu")]
        nothing = np.zeros(len(columns["day"]))
        others = (*[nothing] * 4, np.zeros((len(nothing), len(WAITED))))
        sums = Sums(columns["day"].astype(np.int64), codes, names, *numbers, *others)
        days = np.maximum((usual > 0).sum(axis=1), 1)
        return Made(sums, self.missing, list(plants), lost, usual.sum(axis=1) / days * 7, due, self.rng)

    def _cells(self, day: int) -> tuple[Ints, Ints, Ints]:
        """Return task, queue and number of jobs of the cells of a day."""
        rng = self.rng
        week = day // 7
        alive = np.flatnonzero((self.start <= day) & (self.end > day))
        mix = np.ones(5)
        if self.campaigns:
            mix = np.random.default_rng([week, int(self.size[0])]).dirichlet(np.full(5, 2.0)) * 5
        weight = (
            self.runs_at[alive].T
            * self.weight[alive]
            * self.likes[:, self.kind[alive]]
            * mix[self.kind[alive]]
        )
        weight += 1e-9
        weight /= weight.sum(axis=1, keepdims=True)
        # jobs of several cores and hours are fewer
        jobs = self.volume[:, day][:, None] * weight
        of_queue = jobs[self.site_of] * np.array([share for _, share in self.queues])[:, None]
        number = rng.poisson(of_queue)
        queue, task = np.nonzero(number)
        return alive[task], queue, number[queue, task]

    def _day(
        self,
        day: int,
        cells: tuple[Ints, Ints, Ints],
        plants: Sequence[Plant],
        rows: dict[str, list[Floats]],
        lost: Floats,
        usual: Floats,
        due: Floats,
    ) -> None:
        rng = self.rng
        task, queue, n = cells
        site, kind = self.site_of[queue], self.kind[task]
        lasting = [self.of_queue[number][queue] * self.of_task[number][site, task] for number in (0, 1)]
        usual_rate = np.minimum(self.fail[site] * self.task_fail[task] * lasting[1], 0.6)
        rate = self.fail[site] * self.fail_day[site, day] * self.task_fail[task] * lasting[1]
        rate = np.minimum(rate, 0.6)
        rate = np.minimum(rate * np.exp(0.3 * rng.standard_normal(len(n))), 0.7)
        failed = rng.binomial(n, rate)
        shares = 0.7 * self.categories[site] + 0.3 * self.task_category[task]
        shares /= shares.sum(axis=1, keepdims=True)
        by_category = rng.multinomial(failed, shares)
        fails = (n * usual_rate)[:, None] * shares
        per_job = CORES[kind] * HOURS[kind] * 3600
        usual[:, day] = np.bincount(site, n * per_job, minlength=N_SITES)
        ratio, elsewhere = np.ones((2, len(n)))
        for number, plant in enumerate(plants):
            part = plant.part(day)
            if part == 0:
                continue
            inside = self._inside(plant, site, queue, kind, task)
            wide = "site" not in dict(plant.where)
            if plant.metric == "efficiency":
                good = (n - by_category.sum(axis=1)) * per_job
                slower = np.where(inside, 1 - plant.size * part, 1.0)
                ratio = ratio * slower
                elsewhere = elsewhere * slower if wide else elsewhere
                lost[number, day] = float((good * plant.size * part)[inside].sum())
                continue
            good = np.where(inside, n - by_category.sum(axis=1), 0)
            more = rng.binomial(good, plant.size * part)
            if wide:
                of = shares if plant.category is None else np.eye(8)[CATEGORIES.index(plant.category)]
                fails = fails + (good * plant.size * part)[:, None] * of
            if plant.category is None:
                by_category += rng.multinomial(more, shares)
            else:
                by_category[:, CATEGORIES.index(plant.category)] += more
            lost[number, day] = float((more * per_job * 0.6).sum())
        finished = n - by_category.sum(axis=1)
        core = (
            per_job
            * finished
            * np.exp(JOB_SD * rng.standard_normal(len(n)) / np.sqrt(np.maximum(finished, 1)))
        )
        noise = np.exp(
            0.04 * rng.standard_normal(len(n))
            + 0.15 * rng.standard_normal(len(n)) / np.sqrt(np.maximum(finished, 1))
        )
        level = EFFICIENCY[kind] * self.task_factor[task] * self.factor[site, kind]
        efficiency = np.clip(level * self.day_factor[site, day] * lasting[0] * ratio * noise, 0.02, 1.1)
        cpu = core * level * self.drift[site, day] * lasting[0] * elsewhere
        for number, column in enumerate((cpu, *fails.T)):
            due[number, :, day] = np.bincount(site, column, minlength=N_SITES)
        base = {
            "day": np.full(len(n), FIRST.toordinal() + day),
            "site": site,
            "queue": queue,
            "kind": kind,
            "task": task,
        }
        _add(rows, base, 0, finished, core, efficiency)
        for category in range(8):
            _add(
                rows,
                base,
                category + 1,
                by_category[:, category],
                by_category[:, category] * per_job * 0.6,
                None,
            )

    def _inside(self, plant: Plant, site: Ints, queue: Ints, kind: Ints, task: Ints) -> NDArray[np.bool_]:
        names = {"site": self.site_names, "queue": self.queue_names, "kind": KINDS, "task": self.task_names}
        names |= self.owner_names
        codes = {"site": site, "queue": queue, "kind": kind, "task": task}
        codes |= {name: code[task] for name, code in self.owner.items()}
        inside = np.ones(len(site), np.bool_)
        for dimension, name in plant.where:
            inside &= codes[dimension] == list(names[dimension]).index(name)
        return inside


_ROWS = ("day", "site", "queue", "kind", "task", "outcome", "n", "core", "measured", "measured_core", "cpu")


def _add(
    rows: dict[str, list[Floats]],
    base: dict[str, Ints],
    outcome: int,
    n: Ints,
    core: Floats,
    efficiency: Floats | None,
) -> None:
    used = n > 0
    for name, values in base.items():
        rows[name].append(values[used].astype(np.float64))
    rows["outcome"].append(np.full(int(used.sum()), float(outcome)))
    rows["n"].append(n[used].astype(np.float64))
    rows["core"].append(core[used])
    measured = used if efficiency is not None else np.zeros(len(n), np.bool_)
    rows["measured"].append(np.where(measured, n, 0)[used].astype(np.float64))
    rows["measured_core"].append(np.where(measured, core, 0.0)[used])
    cpu = core * efficiency if efficiency is not None else np.zeros(len(n))
    rows["cpu"].append(cpu[used])
