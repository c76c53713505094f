"""Judgement of one night: every site's efficiency and failures, their cost, and causes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from esjobs.schema.today import EFFICIENCY, EVERYWHERE, FAILED
from esjobs.today.causes import Leaves, Term, cuts_of, scan
from esjobs.today.expected import (
    CELL_SD,
    MOST_SURPRISE,
    Cells,
    Expected,
    Floats,
    Ints,
    Past,
    Prior,
    Surprise,
    combined,
    count_surprise,
    efficiency_prior,
    expect,
    failure_prior,
    of_nights,
    onset,
    ratio_surprise,
    site_variance,
    sum_by,
)
from esjobs.today.settings import TodaySettings
from esjobs.today.sums import DAYS_BACK, Sums

SUSPECT = 4.0  # Surprise of a site whose day says nothing about tasks, and is not learned from
LEAST_DAYS = 7  # Days with jobs before the first that is judged
PARTIAL = 0.5  # Of the usual jobs; a day with fewer is partial
PARTIAL_MORE = 1.5  # Surprise that a partial day needs more
WINDOWS_MORE = 0.2  # Surprise that two or three nights need more
WIDE_SITES = 3  # Sites of an incident that is none of a site
WIDE_OUTSIDE = 0.1  # Least part of its loss outside of the site that lost most
WIDE_SURPRISE = 5.0
GRID_SD = 0.02  # Scatter of a part of the grid from day to day, in ln
WEEK = 7

Bools = npt.NDArray[np.bool_]
Literals = tuple[tuple[str, str], ...]
"""Part of the jobs by dimension and name; empty: all."""


@dataclass(frozen=True)
class Range:
    """Observed share, the expected one and its range of two standard deviations."""

    observed: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """What a night says about a place: a site, or everywhere.

    ``surprising``: the tail is small enough. ``costly``: the loss is large enough. ``z``: of the night,
    ``surprise``: of up to three nights, over their thresholds if above 1. ``cost``: core s of the night;
    ``week``: of the place. ``began``: nights before in which it began, ``earlier`` their cost.
    ``literals``: the cause; ``share``: of the loss that it explains.
    """

    site: str
    metric: str
    surprising: bool
    costly: bool
    z: float
    surprise: float
    cost: float
    week: float
    partial: bool = False
    began: int = 0
    earlier: float = 0.0
    efficiency: Range | None = None
    failed: Range | None = None
    literals: Literals = ()
    share: float | None = None
    n_sites: int = 1


@dataclass(frozen=True)
class Stream:
    """One metric of places on the night: an array element per site, the last one everywhere."""

    observed: Floats
    expected: Floats
    base: Floats
    variance: Floats
    mean: Floats
    low: Floats
    high: Floats
    z: Floats
    cost: Floats


@dataclass(frozen=True)
class Judgement:
    """Streams by metric, findings, and per site the core s of its week and whether the day is partial."""

    sites: tuple[str, ...]
    streams: Mapping[str, Stream]
    findings: tuple[Finding, ...]
    week: Floats
    partial: Bools


@dataclass(frozen=True)
class Remembered:
    """Streams of earlier nights: per metric a row per site (the last one everywhere), oldest night first.

    NaN where nothing is stored. ``told``: days of open incidents.
    """

    observed: Mapping[str, Floats] = field(default_factory=dict)
    expected: Mapping[str, Floats] = field(default_factory=dict)
    variance: Mapping[str, Floats] = field(default_factory=dict)
    z: Mapping[str, Floats] = field(default_factory=dict)
    told: Bools | None = None

    def of(self, what: Mapping[str, Floats], metric: str, places: int) -> Floats:
        """Return the numbers of a metric, NaN where there are none."""
        return what.get(metric, np.full((places, DAYS_BACK), np.nan))


@dataclass(frozen=True)
class Followed:
    """Incident everywhere that is open: its part of the jobs, and nights since its first day."""

    literals: Literals
    metric: str
    age: int


class Night:
    """One night of a grid, with the days before it."""

    def __init__(
        self,
        sums: Sums,
        night: int,
        past: Remembered,
        settings: TodaySettings,
        followed: Sequence[Followed] = (),
    ) -> None:
        age = night - sums.day
        inside = (age >= 0) & (age <= DAYS_BACK)
        self.sums = sums.rows(inside)
        self.age: Ints = age[inside]
        self.past, self.settings, self.followed = past, settings, followed
        self.sites = tuple(sums.names["site"])
        self.n_sites = len(self.sites)
        self.n_kinds = max(len(sums.names["kind"]), 1)
        self.n_tasks = max(len(sums.names["task"]), 1)
        self.ready = len(np.unique(self.age[self.age > 0])) >= LEAST_DAYS
        self.week, self.partial = self._volumes()
        self.skipped = self._skipped()
        self._per_failed = self._core_of_failed()

    def judged(self) -> Judgement:
        """Return the judgement."""
        efficiency, eff_cells, eff_expected = self._efficiency()
        failed, categories, fail_cells, fail_expected = self._failures()
        streams = {EFFICIENCY: efficiency, FAILED: failed, **categories}
        leaves = {
            EFFICIENCY: self._cpu_leaves(eff_cells, eff_expected),
            FAILED: self._failure_leaves(fail_cells, fail_expected),
        }
        wide = tuple(self._wide(leaves)) if self.ready else ()
        found = (*self._of_sites(streams, leaves, [term for term, _ in wide]), *(one for _, one in wide))
        return Judgement(self.sites, streams, found, self.week, self.partial)

    def _volumes(self) -> tuple[Floats, Bools]:
        sums = self.sums
        site, before = sums.codes["site"], self.age > 0
        recent = before & (self.age <= WEEK)
        core = sum_by(site[recent], sums.core_s[recent], self.n_sites)
        days = np.zeros((self.n_sites, DAYS_BACK + 1))
        np.add.at(days, (site, self.age), sums.n_jobs)
        n_recent = (days[:, 1 : WEEK + 1] > 0).sum(axis=1)
        today = sum_by(site[~before], sums.core_s[~before], self.n_sites)
        week = np.where(n_recent > 0, core * WEEK / np.maximum(n_recent, 1), today * WEEK)
        seen = np.where(days[:, 1:] > 0, days[:, 1:], np.nan)
        usual = np.array(
            [np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else 0.0 for row in seen]
        )
        return np.append(week, week.sum()), np.append(days[:, 0] < PARTIAL * usual, False)

    def _skipped(self) -> Floats:
        """Return by site and age what is learned: 0 on days of open incidents and on surprising ones."""
        told = self.past.told
        bad = np.zeros((self.n_sites, DAYS_BACK), np.bool_) if told is None else told[: self.n_sites]
        for metric in (EFFICIENCY, FAILED):
            z = self.past.of(self.past.z, metric, self.n_sites + 1)[: self.n_sites]
            odd = np.nan_to_num(z) > SUSPECT
            # what is odd for weeks is usual
            bad = bad | (odd & (odd.sum(axis=1) <= DAYS_BACK // 2)[:, None])
        by_age = np.ones((self.n_sites, DAYS_BACK + 1))
        by_age[:, 1:] = np.where(bad, 0.0, 1.0)[:, ::-1]
        return by_age

    def _cells(self, rows: Bools, over: Floats, under: Floats, n: Floats) -> Cells:
        """Return sums by site, task and day of rows."""
        codes = self.sums.codes
        key = (self.age * self.n_sites + codes["site"]) * self.n_tasks + codes["task"]
        keys, first, code = np.unique(key[rows], return_index=True, return_inverse=True)
        added = (sum_by(code, values[rows], len(keys)) for values in (over, under, n))
        kind = codes["kind"][rows][first]
        pair = keys % (self.n_sites * self.n_tasks)
        return Cells(
            keys // (self.n_sites * self.n_tasks), pair // self.n_tasks, pair % self.n_tasks, kind, *added
        )

    def _expected(self, cells: Cells, prior: Prior, metric: str, suspects: Bools) -> Expected:
        skip = self.skipped[cells.site, cells.age] * self._not_followed(cells, metric)
        return expect(cells, prior, (self.n_sites, self.n_tasks, self.n_kinds), skip, suspects)

    def _not_followed(self, cells: Cells, metric: str) -> Floats:
        keep = np.ones(len(cells.age))
        for one in self.followed:
            names = dict(one.literals)
            if one.metric != metric or names.keys() - {"task", "kind"}:
                continue
            mine = cells.age <= one.age
            for dimension, code in (("task", cells.task), ("kind", cells.kind)):
                if dimension in names:
                    mine &= code == self._code(dimension, names[dimension])
            keep[mine & ~cells.now] = 0.0
        return keep

    def _code(self, dimension: str, name: str) -> int:
        names = self.sums.names[dimension]
        return names.index(name) if name in names else -1

    def _efficiency(self) -> tuple[Stream, Cells, Expected]:
        sums, rows = self.sums, self.sums.finished & (self.sums.measured_core_s > 0)
        cells = self._cells(rows, sums.cpu_s, sums.measured_core_s, sums.n_measured)
        prior = efficiency_prior(cells, self.n_kinds)
        suspects = np.zeros(self.n_sites, np.bool_)
        for _ in range(2):
            expected = self._expected(cells, prior, EFFICIENCY, suspects)
            sums_of = self._place_sums(cells, expected)
            surprise = ratio_surprise(*sums_of[:2], sums_of[3], self._past(EFFICIENCY))
            suspects = surprise.z[:-1] > SUSPECT
        observed, _, base, _ = sums_of
        cost = np.where(surprise.mean > 0, base * (1 - observed / np.maximum(surprise.mean, 1e-9)), 0.0)
        return self._stream(sums_of, surprise, cost), cells, expected

    def _place_sums(self, cells: Cells, expected: Expected) -> tuple[Floats, Floats, Floats, Floats]:
        """Return observed, expected, base and variance by site, and everywhere by the past alone."""
        now, n = cells.now, self.n_sites
        site = cells.site[now]
        by_site = [sum_by(site, v, n) for v in (cells.over[now], expected.value, cells.under[now])]
        variance = site_variance(site, expected.value, expected.cell, n)
        total = float(expected.past.sum())
        task = sum_by(cells.task[now], expected.past, 1)
        concentrated = float((task**2).sum()) / total**2 if total > 0 else 1.0
        grid = GRID_SD**2 + CELL_SD**2 * concentrated
        everywhere = (float(cells.over[now].sum()), total, float(cells.under[now].sum()), grid)
        observed, due, base, var = (
            np.append(values, last) for values, last in zip((*by_site, variance), everywhere, strict=True)
        )
        return observed, due, base, var

    def _past(self, metric: str) -> Past:
        past, places = self.past, self.n_sites + 1
        told = np.zeros((places, DAYS_BACK), np.bool_) if past.told is None else past.told
        hidden = [
            np.where(told, np.nan, past.of(what, metric, places))
            for what in (past.observed, past.expected, past.variance)
        ]
        return Past(*hidden)

    def _stream(self, sums: tuple[Floats, ...], surprise: Surprise, cost: Floats) -> Stream:
        observed, expected, base, variance = sums
        share = np.divide(surprise.mean, base, out=np.full_like(base, np.nan), where=base > 0)
        low, high = (share * np.exp(sign * 2 * np.minimum(surprise.sd, 3.0)) for sign in (-1, 1))
        z = np.where((base > 0) & self.ready, surprise.z, np.nan)
        return Stream(observed, expected, base, variance, share, low, np.minimum(high, 1.0), z, cost)

    def _failures(self) -> tuple[Stream, dict[str, Stream], Cells, Expected]:
        sums, n = self.sums, self.n_sites
        failures = np.where(sums.finished, 0.0, sums.n_jobs)
        cells = self._cells(np.ones(len(self.age), np.bool_), failures, sums.n_jobs, sums.n_jobs)
        prior = failure_prior(self.n_kinds)
        suspects = np.zeros(n, np.bool_)
        for _ in range(2):
            expected = self._expected(cells, prior, FAILED, suspects)
            sums_of = self._place_sums(cells, expected)
            surprise = count_surprise(*sums_of[:2], sums_of[3], self._past(FAILED))
            suspects = surprise.z[:-1] > SUSPECT
        observed, due, base, variance = sums_of
        per_job = self._per_failed
        cost = (observed - surprise.mean) * per_job
        categories: dict[str, Stream] = {}
        for number, name in enumerate(sums.names["outcome"][1:], start=1):
            metric = f"{FAILED}: {name}"
            share = self._category_share(number, cells, expected)
            rows = (sums.codes["outcome"] == number) & (self.age == 0)
            seen = sum_by(sums.codes["site"][rows], sums.n_jobs[rows], n)
            seen, mean = np.append(seen, seen.sum()), due * share
            of_category = count_surprise(seen, mean, variance, self._past(metric))
            of = (seen, mean, base, variance)
            categories[metric] = self._stream(of, of_category, (seen - of_category.mean) * per_job)
        z = np.stack([each.z for each in categories.values()], axis=1) if categories else np.zeros((n + 1, 0))
        stream = self._stream(sums_of, surprise, cost)
        both = combined(np.nan_to_num(stream.z), np.nan_to_num(z))
        shown = Stream(**{**vars(stream), "z": np.where(np.isnan(stream.z), np.nan, both)})
        return shown, categories, cells, expected

    def _core_of_failed(self) -> Floats:
        sums = self.sums
        rows = ~sums.finished & (self.age == 0)
        core, jobs = (
            sum_by(sums.codes["site"][rows], values[rows], self.n_sites)
            for values in (sums.core_s, sums.n_jobs)
        )
        core, jobs = np.append(core, core.sum()), np.append(jobs, jobs.sum())
        return np.divide(core, jobs, out=np.zeros_like(core), where=jobs > 0)

    def _category_share(self, number: int, cells: Cells, expected: Expected) -> Floats:
        """Return the expected share of a category among the failures of each place.

        Its past share at the site, softened by that of the grid, times the change of it at all other sites.
        """
        sums, n = self.sums, self.n_sites
        site = sums.codes["site"]
        learned = self.skipped[site, self.age] * (self.age > 0) * ~sums.finished * sums.n_jobs
        mine = learned * (sums.codes["outcome"] == number)
        total, own = (sum_by(site, values, n) for values in (learned, mine))
        grid = float(own.sum()) / max(float(total.sum()), 1.0)
        share = (own + 30 * grid) / (total + 30)
        now = self.age == 0
        seen = sum_by(site[now], (sums.n_jobs * (sums.codes["outcome"] == number))[now], n)
        due = sum_by(cells.site[cells.now], expected.value, n) * share
        others = (seen.sum() - seen + 3) / (due.sum() - due + 3)
        return np.append(np.minimum(share * np.clip(others, 0.1, 10.0), 1.0), grid)

    def _cpu_leaves(self, cells: Cells, expected: Expected) -> Leaves:
        sums = self.sums
        rows = sums.finished & (sums.measured_core_s > 0) & (self.age == 0)
        part = sums.rows(rows)
        position = self._position(cells, part)
        under = cells.under[cells.now][position]
        due = expected.past[position] * part.measured_core_s / under
        relative = expected.cell[position] + 0.06**2
        return Leaves(part.cpu_s, due, np.maximum(due**2 * relative, 1e-12), part.codes, counts=False)

    def _failure_leaves(self, cells: Cells, expected: Expected) -> Leaves:
        """Return leaves of every queue, task and category; those without failures and hardly any expected
        are left out.
        """
        sums, now = self.sums, self.age == 0
        part = sums.rows(now)
        n_out, n_tasks = len(sums.names["outcome"]), self.n_tasks
        key = part.codes["queue"] * n_tasks + part.codes["task"]
        keys, first, code = np.unique(key, return_index=True, return_inverse=True)
        jobs = sum_by(code, part.n_jobs, len(keys))
        seen = np.zeros((len(keys), n_out))
        np.add.at(seen, (code, part.codes["outcome"]), part.n_jobs)
        cell = part.rows(np.isin(np.arange(len(key)), first))
        order = np.argsort(first)
        seen, jobs = seen[order], jobs[order]
        position = self._position(cells, cell)
        due = expected.past[position] * jobs / cells.under[cells.now][position]
        shares = self._past_shares()[cell.codes["site"]]
        value = seen[:, 1:].ravel()
        mean = (due[:, None] * shares[:, 1:]).ravel()
        rows = np.arange(len(jobs)).repeat(max(n_out - 1, 0))
        used = (value > 0) | (mean > 0.2)
        codes = {name: cell.codes[name][rows][used] for name in ("site", "queue", "kind", "task")}
        codes["category"] = np.tile(np.arange(1, n_out), len(jobs))[used]
        mean = np.maximum(mean[used], 1e-6)
        return Leaves(value[used], mean, mean * (1 + 0.05 * mean) + 0.05, codes, counts=True)

    def _past_shares(self) -> Floats:
        sums = self.sums
        site, outcome = sums.codes["site"], sums.codes["outcome"]
        learned = self.skipped[site, self.age] * (self.age > 0) * ~sums.finished * sums.n_jobs
        counts = np.zeros((self.n_sites, len(sums.names["outcome"])))
        np.add.at(counts, (site, outcome), learned)
        grid = counts.sum(axis=0)
        whole = max(float(grid.sum()), 1.0)
        shares: Floats = (counts + 30 * grid / whole) / (counts.sum(axis=1, keepdims=True) + 30)
        return shares

    def _position(self, cells: Cells, part: Sums) -> Ints:
        """Return the cell of the night of each row."""
        key = cells.site[cells.now] * self.n_tasks + cells.task[cells.now]
        return np.searchsorted(key, part.codes["site"] * self.n_tasks + part.codes["task"])

    def _wide(self, leaves: Mapping[str, Leaves]) -> Iterator[tuple[tuple[str, Term], Finding]]:
        """Yield the terms that cross sites, each with what the night says of it."""
        for metric, of in leaves.items():
            cuts = cuts_of(
                [name for name in ("site", "kind", "category", "task") if name in of.codes], whole=True
            )
            terms = scan(of, cuts)
            for term in terms:
                by_site = sum_by(of.codes["site"][term.rows], of.excess[term.rows], 1)
                lost = np.maximum(by_site, 0.0)
                outside = 1 - lost.max(initial=0.0) / max(float(lost.sum()), 1e-300)
                if (lost > 0).sum() >= WIDE_SITES and outside >= WIDE_OUTSIDE:
                    literals = self._literals(term.literals)
                    yield (
                        (metric, term),
                        self._wide_finding(metric, of, term, literals, int((lost > 0).sum())),
                    )
            found = {(metric, self._literals(term.literals)) for term in terms}
            for one in self.followed:
                if one.metric == metric and (metric, one.literals) not in found:
                    yield from self._follow(one, of)

    def _follow(self, one: Followed, of: Leaves) -> Iterator[tuple[tuple[str, Term], Finding]]:
        rows = np.ones(len(of.value), np.bool_)
        literals = []
        for dimension, name in one.literals:
            code = self._code("outcome" if dimension == "category" else dimension, name)
            rows &= of.codes.get(dimension, np.full(len(rows), -2)) == code
            literals.append((dimension, code))
        expected = float(of.expected[rows].sum())
        if not rows.any() or expected <= 0:
            return
        ratio, excess = float(of.value[rows].sum()) / expected, float(of.excess[rows].sum())
        term = Term(tuple(literals), rows, ratio, excess, 0.0, 1.0)
        n_sites = len(np.unique(of.codes["site"][rows]))
        yield (one.metric, term), self._wide_finding(one.metric, of, term, one.literals, n_sites)

    def _wide_finding(self, metric: str, of: Leaves, term: Term, literals: Literals, n_sites: int) -> Finding:
        part = of.part(term.rows)
        observed, due = float(part.value.sum()), float(part.expected.sum())
        variance, sd = self._wide_variance(part, due)
        week = float(self.week[-1])
        mean_week = week / max(self.n_sites, 1)
        base, core = self._base(metric, literals)
        none = Past(*(np.full((1, 1), np.nan) for _ in range(3)))
        if metric == EFFICIENCY:
            z = float(np.clip(-np.log(max(observed, 1e-9) / due) / sd, -MOST_SURPRISE, MOST_SURPRISE))
            cost = base * (1 - observed / due)
        else:
            z = float(count_surprise(_one(observed), _one(due), _one(variance), none).z[0])
            cost = (observed - due) * core
        level = due / base if base > 0 else 0.0
        width = float(np.exp(2 * min(sd, 3.0)))
        shown = Range(observed / base if base > 0 else 0.0, level, level / width, min(level * width, 1.0))
        return Finding(
            EVERYWHERE,
            metric,
            surprising=z >= WIDE_SURPRISE,
            costly=cost >= self.settings.night_cost * mean_week,
            z=z,
            surprise=z / WIDE_SURPRISE,
            cost=cost,
            week=week,
            efficiency=shown if metric == EFFICIENCY else None,
            failed=shown if metric == FAILED else None,
            literals=literals,
            share=term.share,
            n_sites=n_sites,
        )

    def _wide_variance(self, part: Leaves, due: float) -> tuple[float, float]:
        """Return the relative variance of the sum of a part, and the standard deviation of its logarithm."""
        task = np.bincount(part.codes["task"], part.expected)
        of_tasks = float((task**2).sum()) / due**2
        if part.counts:
            variance = 0.15 * of_tasks + 0.02
            return variance, float(np.sqrt(variance + 1 / due))
        own = float(part.variance.sum()) / due**2
        # tasks drift, and a part of one task has nothing to even it out
        sd = np.sqrt(own + GRID_SD**2 + CELL_SD**2 * of_tasks)
        return float(sd**2), float(sd)

    def _base(self, metric: str, literals: Literals) -> tuple[float, float]:
        """Return the denominator of the share of a part, and the core s of a failed job in it."""
        sums, rows = self.sums, self.age == 0
        for dimension, name in literals:
            if dimension != "category":
                rows = rows & (sums.codes[dimension] == self._code(dimension, name))
        failed = rows & ~sums.finished
        jobs = float(sums.n_jobs[failed].sum())
        core = float(sums.core_s[failed].sum()) / jobs if jobs else 0.0
        if metric == EFFICIENCY:
            return float(sums.measured_core_s[rows & sums.finished].sum()), core
        return float(sums.n_jobs[rows].sum()), core

    def _literals(self, literals: Sequence[tuple[str, int]]) -> Literals:
        return tuple(
            (name, self.sums.names["outcome" if name == "category" else name][code])
            for name, code in literals
        )

    def _of_sites(
        self,
        streams: Mapping[str, Stream],
        leaves: Mapping[str, Leaves],
        wide: Sequence[tuple[str, Term]],
    ) -> Iterator[Finding]:
        settings, n = self.settings, self.n_sites
        limits = {EFFICIENCY: settings.efficiency_surprise, FAILED: settings.failures_surprise}
        z, over = {}, {}
        for metric, limit in limits.items():
            earlier = self.past.of(self.past.z, metric, n + 1)
            z[metric] = np.column_stack([earlier, streams[metric].z])
            windows = of_nights(z[metric])
            need = np.array([limit, limit + WINDOWS_MORE, limit + WINDOWS_MORE])
            over[metric] = windows / (need + np.where(self.partial, PARTIAL_MORE, 0.0)[:, None])
        n_jobs = streams[FAILED].base
        for site in range(n):
            ratios = {metric: float(over[metric][site].max()) for metric in limits}
            worst = max(float(np.nan_to_num(streams[metric].z[site])) for metric in limits)
            passing = [
                metric
                for metric in limits
                if ratios[metric] >= 1.0 and np.nan_to_num(streams[metric].z[site]) > 1.0
            ]
            metric = max(passing or limits, key=lambda name: float(streams[name].cost[site]))
            cost = float(sum(streams[name].cost[site] for name in (passing or limits)))
            week = float(self.week[site])
            failed_more = streams[FAILED].observed[site] - streams[FAILED].expected[site]
            many = FAILED in passing and failed_more > settings.failed_jobs * n_jobs[site]
            costly = bool(passing) and (many or self._costly(passing, over, streams, site, week))
            began = onset(z[metric][site][-14:]) if passing else 0
            literals: Literals = ()
            share = None
            if passing:
                literals, share = self._cause(metric, leaves[metric], site, wide)
            yield Finding(
                self.sites[site],
                metric,
                surprising=bool(passing),
                costly=costly,
                z=worst,
                surprise=max(ratios.values()),
                cost=cost,
                week=week,
                partial=bool(self.partial[site]),
                began=began,
                earlier=self._before(passing, site, began),
                efficiency=_range(streams[EFFICIENCY], site),
                failed=_range(streams[FAILED], site),
                literals=literals,
                share=share,
            )

    def _costly(
        self,
        passing: Sequence[str],
        over: Mapping[str, Floats],
        streams: Mapping[str, Stream],
        site: int,
        week: float,
    ) -> bool:
        """True if the night alone, or the nights of a passing window together, lost enough."""
        for metric in passing:
            cost = float(streams[metric].cost[site])
            if over[metric][site][0] >= 1.0 and cost >= self.settings.night_cost * week:
                return True
            for nights in (2, 3):
                total = cost + self._before([metric], site, nights - 1)
                if over[metric][site][nights - 1] >= 1.0 and total >= self.settings.total_cost * week:
                    return True
        return False

    def _before(self, metrics: Sequence[str], site: int, nights: int) -> float:
        """Return the cost of some nights before, from what was observed and expected on them."""
        if not nights:
            return 0.0
        total, places = 0.0, self.n_sites + 1
        for metric in metrics:
            observed, expected = (
                self.past.of(what, metric, places)[site][-nights:]
                for what in (self.past.observed, self.past.expected)
            )
            if metric == EFFICIENCY:
                lost = (1 - observed / np.maximum(expected, 1e-9)) * self.week[site] / WEEK
            else:
                lost = (observed - expected) * self._per_failed[site]
            total += float(np.nansum(lost))
        return total

    def _cause(
        self, metric: str, of: Leaves, site: int, wide: Sequence[tuple[str, Term]]
    ) -> tuple[Literals, float | None]:
        expected = of.expected.copy()
        for of_metric, term in wide:
            if of_metric == metric:
                expected[term.rows] *= term.ratio
        corrected = Leaves(of.value, expected, of.variance, of.codes, of.counts)
        mine = corrected.part(of.codes["site"] == site)
        names = [name for name in ("queue", "kind", "category", "task") if name in of.codes]
        several = [name for name in names if len(np.unique(mine.codes[name])) > 1]
        terms = scan(mine, cuts_of(several, whole=True), most=1)
        if not terms:
            return (), None
        return self._literals(terms[0].literals), terms[0].share


def _one(value: float) -> Floats:
    return np.array([value])


def _range(stream: Stream, site: int) -> Range | None:
    base = float(stream.base[site])
    if base <= 0:
        return None
    shown = (float(values[site]) for values in (stream.mean, stream.low, stream.high))
    return Range(float(stream.observed[site]) / base, *shown)
