"""The judged day of a grid with the days before it, as sums by site and task."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.schema.today import EFFICIENCY, FAILED, OWNERS
from esjobs.today.expected import LAG, Cells, Expected, Past, Prior, decay, divided, expect, sum_by
from esjobs.today.findings import Literals
from esjobs.today.scatter import covariances, overlaps, queue_levels, shared
from esjobs.today.sums import DAYS_BACK, Sums

SUSPECT = 4.0  # Surprise of a site whose day says nothing about tasks, and is not learned from
PARTIAL = 0.5  # Of the usual jobs; a day with fewer is partial
LEAST_DAYS = 7  # Days with jobs before the first that is judged
WEEK = 7


@dataclass(frozen=True)
class Remembered:
    """Streams of earlier days: per metric a row per site (the last one everywhere), oldest day first.

    NaN where nothing is stored. ``frozen``: days of open incidents of efficiency and failures; ``apart``: of
    those of other metrics.
    """

    observed: Mapping[str, Floats] = field(default_factory=dict)
    expected: Mapping[str, Floats] = field(default_factory=dict)
    variance: Mapping[str, Floats] = field(default_factory=dict)
    z: Mapping[str, Floats] = field(default_factory=dict)
    frozen: Mask | None = None
    apart: Mapping[str, Mask] = field(default_factory=dict)

    def frozen_of(self, metric: str, places: int) -> Mask:
        """Return the days of open incidents of a metric."""
        # an open incident of one of them has spoilt the days of the other, too
        costs = metric.partition(":")[0] in (EFFICIENCY, FAILED)
        frozen = self.frozen if costs else self.apart.get(metric)
        return np.zeros((places, DAYS_BACK), np.bool_) if frozen is None else frozen

    def of(self, what: Mapping[str, Floats], metric: str, places: int) -> Floats:
        """Return the numbers of a metric, NaN where there are none."""
        return what.get(metric, np.full((places, DAYS_BACK), np.nan))

    def past(self, metric: str, places: int) -> Past:
        """Return the days of a metric that are learned from."""
        frozen = self.frozen_of(metric, places)
        observed, expected, variance = (
            np.where(frozen, np.nan, self.of(what, metric, places))
            for what in (self.observed, self.expected, self.variance)
        )
        return Past(observed, expected, variance)


@dataclass(frozen=True)
class Followed:
    """Incident everywhere that is open or was of late: its part of the jobs, nights since its first day.

    ``ended``: nights since its last day; 0 while it is open.
    """

    literals: Literals
    metric: str
    age: int
    ended: int = 0

    def touches(self, age: Ints) -> Mask:
        """Return the mask of days before the judged one that belong to it."""
        days: Mask = (age >= max(self.ended, 1)) & (age <= self.age)
        return days


class Day:
    """The judged day. ``age``: of each row in days; ``week``: core s of the week before, by site and of all.

    ``partial``: sites with few jobs on the day; all of a day that is not over. ``so_far``: the part of a
    day's jobs that is expected, by site. ``ready``: True if there is enough of a past. ``cpu``, ``failed``:
    CPU s and failed jobs of each row; of an error that was an incident everywhere, as many as usual.
    """

    def __init__(
        self,
        sums: Sums,
        day: int,
        past: Remembered,
        followed: Sequence[Followed] = (),
        so_far: Mapping[str, float] | None = None,
    ) -> None:
        age = day - sums.day
        inside = (age >= 0) & (age <= DAYS_BACK)
        self.sums = sums.rows(inside)
        self.age: Ints = age[inside]
        self.now: Mask = self.age == 0
        self.past, self.followed = past, followed
        self.sites = tuple(sums.names["site"])
        self.n_sites = len(self.sites)
        # at least one, so that a grid without tasks has sums as well
        self.shape = (self.n_sites, max(len(sums.names["task"]), 1), max(len(sums.names["kind"]), 1))
        self.ready = len(np.unique(self.age[~self.now])) >= LEAST_DAYS
        self.week, self.partial = self._volumes()
        # a site without a part usually has no job by this hour
        self.so_far = np.array([1.0 if so_far is None else so_far.get(name, 0.0) for name in self.sites])
        if so_far is not None:
            # a day that is not over has few jobs everywhere
            self.partial[:] = True
        self.learned = self._learned()
        self.cpu = self.sums.cpu_s
        self.failed = np.where(self.sums.finished, 0.0, self.sums.n_jobs) * self._usual_errors()

    def without(self, metric: str, parts: Sequence[tuple[Sequence[tuple[str, int]], float]]) -> "Day":
        """Return the day with the numbers of a metric as they were without its incidents everywhere.

        ``parts``: dimensions and codes of these, and their expectation without over that with it.
        """
        kept = np.ones(len(self.age))
        for literals, ratio in parts:
            rows = self.now
            for name, code in literals:
                # categories of errors are codes of outcomes
                rows = rows & (self.sums.codes["outcome" if name == "category" else name] == code)
            kept = np.where(rows, kept * ratio, kept)
        day = copy(self)
        day.cpu, day.failed = (
            numbers * kept if metric == of else numbers
            for of, numbers in ((EFFICIENCY, self.cpu), (FAILED, self.failed))
        )
        return day

    def past_of(self, metric: str) -> Past:
        """Return the earlier days of a metric by site, then everywhere."""
        return self.past.past(metric, self.n_sites + 1)

    def surprises(self, metric: str) -> Floats:
        """Return the surprises of earlier days, those of open incidents too."""
        return self.past.of(self.past.z, metric, self.n_sites + 1)

    @property
    def owners(self) -> list[str]:
        """Owners of jobs that tell the jobs of the day apart."""
        return [name for name in OWNERS if len(np.unique(self.sums.codes[name][self.now])) > 1]

    def code(self, dimension: str, name: str) -> int:
        """Return the code of a name; -1 for one without jobs in these days."""
        names = self.sums.names["outcome" if dimension == "category" else dimension]
        return names.index(name) if name in names else -1

    def cells(self, rows: Mask, over: Floats, under: Floats, n: Floats, level: Floats | None = None) -> Cells:
        """Return sums by site, task and day of rows, sorted. ``level``: of each row, from its queue."""
        codes, (n_sites, n_tasks, _) = self.sums.codes, self.shape
        key = (self.age * n_sites + codes["site"]) * n_tasks + codes["task"]
        keys, first, code = np.unique(key[rows], return_index=True, return_inverse=True)
        levels = np.ones(len(key)) if level is None else level
        added = [sum_by(code, values[rows], len(keys)) for values in (over, under, n, under * levels)]
        added[3] = added[3] / np.maximum(added[1], 1e-300)
        age, pair = np.divmod(keys, n_sites * n_tasks)
        return Cells(age, pair // n_tasks, pair % n_tasks, codes["kind"][rows][first], *added)

    def levels(self, rows: Mask, over: Floats, under: Floats, soft: float) -> Floats:
        """Return the level of each queue over that of its site, from the days that a base is learned from."""
        codes = self.sums.codes
        weight = rows * (self.age > LAG) * self.learned[codes["site"], self.age] * decay(self.age)
        queue, site, task = (codes[name] for name in ("queue", "site", "task"))
        return queue_levels(queue, site, task, over * weight, under * weight, soft)

    def covariance(self, cells: Cells, metric: str) -> Floats:
        """Return the covariance of the surprises of the latest nights, by site, then everywhere."""
        overlap = overlaps(cells, self.n_sites, self.shape[1], DAYS_BACK + 1)
        frozen = self.past.frozen_of(metric, self.n_sites + 1)
        z = np.where(frozen, np.nan, self.surprises(metric))[: self.n_sites]
        of_sites = shared(z, overlap[:, 1:])
        alone = np.zeros((1, *overlap.shape[1:]))
        return covariances(np.append(of_sites, 0.0), np.concatenate([overlap, alone]))

    def expected(self, cells: Cells, prior: Prior, metric: str, suspects: Mask) -> Expected:
        """Return the expectation of the cells of the day."""
        skip = self.learned[cells.site, cells.age] * self._not_followed(cells, metric)
        return expect(cells, prior, self.shape, skip, suspects)

    def position(self, cells: Cells, part: Sums) -> Ints:
        """Return the cell of the day of each row."""
        n_tasks = self.shape[1]
        key = cells.site[cells.now] * n_tasks + cells.task[cells.now]
        return np.searchsorted(key, part.codes["site"] * n_tasks + part.codes["task"])

    def by_site(self, rows: Mask, values: Floats) -> Floats:
        """Return sums of rows by site, and of all."""
        sums = sum_by(self.sums.codes["site"][rows], values[rows], self.n_sites)
        return np.append(sums, sums.sum())

    def by_day(self, values: Floats) -> Floats:
        """Return sums of all rows, a row per site, a column per age."""
        code = self.sums.codes["site"] * (DAYS_BACK + 1) + self.age
        return sum_by(code, values, self.n_sites * (DAYS_BACK + 1)).reshape(self.n_sites, -1)

    def _volumes(self) -> tuple[Floats, Mask]:
        latest = ~self.now & (self.age <= WEEK)
        days = self.by_day(self.sums.n_jobs)
        n_recent = (days[:, 1 : WEEK + 1] > 0).sum(axis=1)
        core, today = (self.by_site(rows, self.sums.core_s)[:-1] for rows in (latest, self.now))
        week = np.where(n_recent > 0, core / np.maximum(n_recent, 1), today) * WEEK
        usual = np.array([np.median(row[row > 0]) if (row > 0).any() else 0.0 for row in days[:, 1:]])
        return np.append(week, week.sum()), np.append(days[:, 0] < PARTIAL * usual, False)

    def _learned(self) -> Floats:
        """Return by site and age 1, or 0 on days of open incidents and on surprising ones."""
        frozen = self.past.frozen
        bad = np.zeros((self.n_sites, DAYS_BACK), np.bool_) if frozen is None else frozen[: self.n_sites]
        for metric in (EFFICIENCY, FAILED):
            unusual = np.nan_to_num(self.surprises(metric)[: self.n_sites]) > SUSPECT
            # a level that lasts for weeks is usual
            bad = bad | (unusual & (unusual.sum(axis=1) <= DAYS_BACK // 2)[:, None])
        by_age = np.ones((self.n_sites, DAYS_BACK + 1))
        by_age[:, 1:] = np.where(bad, 0.0, 1.0)[:, ::-1]
        return by_age

    def _not_followed(self, cells: Cells, metric: str) -> Floats:
        """Return 0 for days of cells that belong to an incident everywhere."""
        keep = np.ones(len(cells.age))
        for one in self.followed:
            names = dict(one.literals)
            if one.metric != metric or names.keys() - {"task", "kind", *OWNERS}:
                continue
            mine = one.touches(cells.age)
            for dimension, name in names.items():
                theirs = self.sums.codes[dimension] == self.code(dimension, name)
                mine &= np.isin(cells.task, self.sums.codes["task"][theirs])
            keep[mine] = 0.0
        return keep

    def _usual_errors(self) -> Floats:
        """Return the part of each row that counts: of an incident of an error, its share before that."""
        sums, counts = self.sums, np.ones(len(self.age))
        for one in self.followed:
            names = dict(one.literals)
            if one.metric != FAILED or "category" not in names:
                continue
            exposed = np.ones(len(counts), np.bool_)
            for dimension in names.keys() - {"category"}:
                exposed &= sums.codes[dimension] == self.code(dimension, names[dimension])
            mine = exposed & (sums.codes["outcome"] == self.code("category", names["category"]))
            failed, jobs = (
                sum_by(self.age[rows], sums.n_jobs[rows], DAYS_BACK + 1) for rows in (mine, exposed)
            )
            usual = failed[one.age + 1 :].sum() / max(float(jobs[one.age + 1 :].sum()), 1.0)
            kept = np.minimum(divided(usual * jobs, failed), 1.0)
            counts = np.where(mine & one.touches(self.age), counts * kept[self.age], counts)
        return counts
