"""Incidents that are none of a site: parts of the jobs that moved at several sites together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.schema.today import EFFICIENCY, EVERYWHERE, FAILED, OWNERS
from esjobs.today.causes import Leaves, Term, main_code, partitions_of, scan, term_of
from esjobs.today.days import Day, Followed
from esjobs.today.expected import LEAST_SURPRISE, MOST_SURPRISE, Surprise, count_z, sum_by
from esjobs.today.findings import Finding, Literals, Range
from esjobs.today.settings import TodaySettings
from esjobs.today.streams import GRID_SD, Expectations, past_shares

LEAST_SITES = 3  # Sites of an incident that is none of a site
NOISE = 1.5  # Standard deviations that a site of it lost at least
OUTSIDE = 0.1  # Least part of its loss outside of the site that lost most
LEAST_SHARE = 0.2  # Of the loss everywhere; a smaller part is not an incident of its own
ONE_TASK = 0.95  # Of the loss of a part; a task with as much is what is wrong
MERGED = 0.8  # Of the loss of a part; as much in an open incident makes it one with that
SURPRISE = 4.2
FAILURES_MORE = 0.11  # Overdispersion of failures that no past of tasks shows: what is new comes in bursts
LEAST_FAILURES = 0.002  # Expected of a leaf; leaves without failures of which fewer are expected are left out
RARE = 0.05  # Variance of the failures of a leaf whose expectation hardly any past supports
LEAF_SD = 0.06  # Scatter of a leaf beyond that of its cell


@dataclass(frozen=True)
class Wide:
    """Part of the jobs that moved everywhere; one inside of another incident has no finding of its own."""

    metric: str
    term: Term
    finding: Finding | None


def efficiency_leaves(day: Day, of: Expectations) -> Leaves:
    """Return CPU time by queue and task, expected from the past alone."""
    sums = day.sums
    part = sums.rows(sums.finished & (sums.measured_core_s > 0) & day.now)
    at = day.position(of.cells, part)
    weight = part.measured_core_s * of.levels[part.codes["queue"]]
    due = of.expected.past[at] * weight / of.cells.leveled[of.cells.now][at]
    variance = due**2 * (of.expected.leaf[at] + LEAF_SD**2)
    new, steady = of.expected.new[at], of.expected.steady[at]
    return Leaves(part.cpu_s, due, np.maximum(variance, 1e-12), part.codes, new, steady)


def failure_leaves(day: Day, of: Expectations) -> Leaves:
    """Return failures by queue, task and category, expected from the past alone.

    Leaves without failures of which hardly any are expected are left out.
    """
    sums = day.sums
    part = sums.rows(day.now)
    n_categories = len(sums.names["outcome"]) - 1
    key = part.codes["queue"] * day.shape[1] + part.codes["task"]
    for name in OWNERS:
        key = np.unique(key, return_inverse=True)[1] * len(sums.names[name]) + part.codes[name]
    keys, first, code = np.unique(key, return_index=True, return_inverse=True)
    jobs = sum_by(code, part.n_jobs, len(keys))
    seen = np.zeros((len(keys), n_categories + 1))
    np.add.at(seen, (code, part.codes["outcome"]), part.n_jobs)
    cell = {name: codes[first] for name, codes in part.codes.items()}
    at = np.searchsorted(
        of.cells.site[of.cells.now] * day.shape[1] + of.cells.task[of.cells.now],
        cell["site"] * day.shape[1] + cell["task"],
    )
    due = of.expected.past[at] * jobs * of.levels[cell["queue"]] / of.cells.leveled[of.cells.now][at]
    shares = past_shares(day)[cell["site"], 1:]
    mean = (due[:, None] * shares).ravel()
    value = seen[:, 1:].ravel()
    row = np.arange(len(jobs)).repeat(n_categories)
    used = (value > 0) | (mean > LEAST_FAILURES)
    codes = {name: cell[name][row][used] for name in ("site", "queue", "kind", "task", *OWNERS)}
    codes["category"] = np.tile(np.arange(1, n_categories + 1), len(jobs))[used]
    mean = np.maximum(mean[used], LEAST_FAILURES)
    new, steady = (values[at][row][used] for values in (of.expected.new, of.expected.steady))
    variance = mean * (1 + 0.05 * mean) + RARE
    return Leaves(value[used], mean, variance, codes, new, steady, jobs[row][used], shares.ravel()[used])


class Everywhere:
    """Incidents that are none of a site: parts that moved at several sites, and those that are followed."""

    def __init__(
        self, day: Day, leaves: Mapping[str, Leaves], overall: Surprise, settings: TodaySettings
    ) -> None:
        """``overall``: the surprise of the efficiency of all jobs."""
        self.day, self.leaves, self.overall, self.settings = day, leaves, overall, settings

    def parts(self) -> Iterator[Wide]:
        """Yield the parts that moved at several sites, and those of incidents that are open."""
        for metric, of in self.leaves.items():
            names = ("site", "kind", "category", "task", *self.day.owners)
            partitions = partitions_of(
                [name for name in names if name in of.codes], everything=True, owned=True
            )
            found: dict[Literals, Finding] = {}
            terms: list[tuple[Term, Literals | None]] = []
            followed = [(one, _rows(self.day, one, of)) for one in self._open(metric)]
            for each in scan(of, partitions):
                term = _of_one_task(of, each)
                if not _is_wide(of, term) or any(_is_part(of, term, one, rows) for one, rows in followed):
                    continue
                literals = named(self.day, term.literals)
                finding = self._finding(metric, term, literals)
                around = next((name for name in found if name and {*name} <= {*literals}), None)
                if around is None or any(one.literals == literals for one, _ in followed):
                    found[literals] = finding
                    terms.append((term, literals))
                else:
                    # what is clear of a part of its jobs is clear of an incident
                    found[around] = _both(found[around], finding)
                    terms.append((term, None))
            for one, rows in followed:
                if one.literals not in found and of.expected[rows].sum() > 0:
                    codes = tuple((name, self.day.code(name, value)) for name, value in one.literals)
                    term = term_of(of, codes, rows)
                    found[one.literals] = self._finding(metric, term, one.literals)
                    terms.append((term, one.literals))
            for term, name in terms:
                yield Wide(metric, term, None if name is None else found[name])

    def _open(self, metric: str) -> Iterator[Followed]:
        yield from (one for one in self.day.followed if one.metric == metric and not one.ended)

    def _finding(self, metric: str, term: Term, literals: Literals) -> Finding:
        day, settings = self.day, self.settings
        part = self.leaves[metric].part(term.rows)
        observed, due = float(part.value.sum()), float(part.expected.sum())
        variance, sd = _variance(part, due)
        base, per_failure = _base(day, metric, literals)
        if metric == EFFICIENCY:
            cost = base * (1 - observed / due)
            z = float(np.clip(-np.log(max(observed, 1e-9) / due) / sd, LEAST_SURPRISE, MOST_SURPRISE))
            if not literals:
                # all jobs together have days of the past to be compared with
                z, sd = float(self.overall.z[-1]), float(self.overall.sd[-1])
        else:
            size = 1.15 * variance + FAILURES_MORE
            z = float(count_z(*(np.array([each]) for each in (observed, due, size)))[0])
            cost = (observed - due) * per_failure
        level, width = (due / base if base > 0 else 0.0), float(np.exp(2 * min(sd, 3.0)))
        shown = Range(observed / base if base > 0 else 0.0, level, level / width, min(level * width, 1.0))
        week = float(day.week[-1])
        return Finding(
            EVERYWHERE,
            metric,
            surprising=z >= SURPRISE,
            # as much as opens an incident of a site of mean size
            costly=term.share >= LEAST_SHARE and cost >= settings.night_cost * week / max(day.n_sites, 1),
            z=z,
            surprise=z / SURPRISE,
            cost=cost,
            week=week,
            efficiency=shown if metric == EFFICIENCY else None,
            failed=shown if metric == FAILED else None,
            literals=literals,
            share=term.share,
            n_sites=len(np.unique(part.codes["site"][part.excess > 0])),
        )


def named(day: Day, literals: Sequence[tuple[str, int]]) -> Literals:
    """Return a part of the jobs by names."""
    return tuple(
        (name, day.sums.names["outcome" if name == "category" else name][code]) for name, code in literals
    )


def _rows(day: Day, one: Followed, of: Leaves) -> Mask:
    rows = np.ones(len(of.value), np.bool_)
    for dimension, name in one.literals:
        rows &= of.codes[dimension] == day.code(dimension, name)
    return rows


def _both(one: Finding, part: Finding) -> Finding:
    """Return a finding that is as surprising as a part of it."""
    return replace(
        one,
        surprising=one.surprising or part.surprising,
        z=max(one.z, part.z),
        surprise=max(one.surprise, part.surprise),
    )


def _is_wide(of: Leaves, term: Term) -> bool:
    """True if several sites lost by a part, and not nearly all of it one of them."""
    lost, variance = (
        sum_by(of.codes["site"][term.rows], values[term.rows], 1) for values in (of.excess, of.variance)
    )
    # what one site lost is not everywhere because others have a failure more
    beyond_noise = lost > NOISE * np.sqrt(variance)
    lost = np.where(beyond_noise, lost, 0.0)
    outside = 1 - lost.max(initial=0.0) / max(float(lost.sum()), 1e-300)
    return bool(beyond_noise.sum() >= LEAST_SITES and outside >= OUTSIDE)


def _of_one_task(of: Leaves, term: Term) -> Term:
    """Return the part of a task in place of one that is hardly more: a new error of its jobs is its own."""
    if "task" in dict(term.literals):
        return term
    found = main_code(of.part(term.rows), "task", ONE_TASK)
    if found is None:
        return term
    literals = (("task", found[0]),)
    return replace(term_of(of, literals, of.codes["task"] == found[0]), score=term.score, share=term.share)


def _is_part(of: Leaves, term: Term, one: Followed, rows: Mask) -> bool:
    """True if a part lost what an open incident of some other part loses, which goes on under its name."""
    if not one.literals:
        return False
    excess = np.maximum(of.excess, 0.0)
    return float(excess[term.rows & rows].sum()) >= MERGED * float(excess[term.rows].sum())


def _variance(part: Leaves, due: float) -> tuple[float, float]:
    """Return the relative variance of the sum of a part, and the standard deviation of its logarithm."""
    of_task = sum_by(part.codes["task"], part.expected, 1) / due
    new = sum_by(part.codes["task"], part.expected * part.new, 1) / due
    unknown = float((of_task * new).sum())
    steady = float((of_task * sum_by(part.codes["task"], part.expected * part.steady, 1) / due).sum())
    if part.counts:
        variance = steady + unknown + GRID_SD
        return variance, float(np.sqrt(variance + 1 / due))
    own = float(part.variance.sum()) / due**2
    # a part of one task has nothing to even its days out
    variance = own + GRID_SD**2 + steady + unknown
    return variance, float(np.sqrt(variance))


def _base(day: Day, metric: str, literals: Literals) -> tuple[float, float]:
    """Return the denominator of the share of a part, and the core s of a failed job in it."""
    sums, rows = day.sums, day.now
    for dimension, name in literals:
        if dimension != "category":
            rows = rows & (sums.codes[dimension] == day.code(dimension, name))
    failed = rows & ~sums.finished
    jobs = float(sums.n_jobs[failed].sum())
    core = float(sums.core_s[failed].sum()) / jobs if jobs else 0.0
    if metric == EFFICIENCY:
        return float(sums.measured_core_s[rows & sums.finished].sum()), core
    return float(sums.n_jobs[rows].sum()), core


def of_tasks(day: Day, wide: Sequence[Wide]) -> Mask:
    """Return the mask of rows of the day whose failures a wide incident of their task or owner explains."""
    mask = np.zeros(len(day.age), np.bool_)
    for one in wide:
        for name, code in one.term.literals:
            if one.metric == FAILED and name in ("task", *OWNERS):
                mask |= day.now & (day.sums.codes[name] == code)
    return mask


def factors(day: Day, of: Leaves, wide: Sequence[Wide], metric: str, rows: Mask | None = None) -> Floats:
    """Return by place what wide incidents do to the sum of its leaves, each measured at all other sites.

    ``rows``: of some leaves. Everywhere has 1: its expectation is that of the past.
    """
    n = day.n_sites
    site = of.codes["site"]
    corrected = of.expected.copy()
    for one in wide:
        if one.metric == metric:
            corrected = _elsewhere(of, one.term, corrected, n)
    chosen = np.ones(len(site), np.bool_) if rows is None else rows
    now, before = (sum_by(site[chosen], values[chosen], n) for values in (corrected, of.expected))
    return np.append(np.divide(now, before, out=np.ones(n), where=before > 0), 1.0)


def usual_day(day: Day, of: Leaves, wide: Sequence[Wide], metric: str) -> Day:
    """Return the day with a metric as it would be without wide incidents."""
    expected, parts = of.expected, list[tuple[Sequence[tuple[str, int]], float]]()
    for one in wide:
        if one.metric == metric:
            after = one.term.expect(of, expected)
            sums = (float(each[one.term.rows].sum()) for each in (expected, after))
            parts.append((one.term.literals, next(sums) / max(next(sums), 1e-9)))
            expected = after
    return day.without(metric, parts) if parts else day


def _elsewhere(of: Leaves, term: Term, expected: Floats, n: int) -> Floats:
    """Return the expectation once a part is taken into account as it is at all other sites."""
    site, exposed = of.codes["site"], of.exposed(dict(term.literals))
    sums = (sum_by(site[term.rows], values[term.rows], n) for values in (of.value, expected, exposed))
    seen, due, jobs = (each.sum() - each for each in sums)
    soft = 3.0 if of.counts else 0.05 * float(expected[term.rows].sum())
    if not term.added:
        return np.where(term.rows, expected * ((seen + soft) / (due + soft))[site], expected)
    added = np.maximum(seen - due, 0.0) / (jobs * (1 + soft / np.maximum(due, 1e-9)) + 1e-9)
    return np.where(term.rows, expected + added[site] * exposed, expected)
