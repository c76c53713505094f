"""Judgement of one day: every site's efficiency and failures, their cost, and causes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.schema.today import EFFICIENCY, FAILED
from esjobs.today.causes import Leaves, main_code, partitions_of, scan
from esjobs.today.days import WEEK, Day, Followed, Remembered
from esjobs.today.expected import NIGHTS, onset
from esjobs.today.findings import Finding, Literals, Range
from esjobs.today.metrics import LEAST_OF_NIGHT, METRICS, ONSET_DAYS, PARTIAL_MORE
from esjobs.today.scatter import FORETOLD, of_latest
from esjobs.today.settings import TodaySettings
from esjobs.today.streams import (
    Stream,
    efficiency,
    efficiency_stream,
    failure_streams,
    failures,
    surprise_everywhere,
)
from esjobs.today.sums import Sums
from esjobs.today.wide import (
    RARE,
    Everywhere,
    Wide,
    efficiency_leaves,
    factors,
    failure_leaves,
    named,
    of_tasks,
    usual_day,
)

LEAST_SCORE = 2.0  # Of the cause at a site that is known to have one
ONE_ERROR = 0.8  # Of the failures of a part; an error with as many is named


@dataclass(frozen=True)
class Judgement:
    """Streams by metric, findings, and by place the core s of its week and whether the day is partial."""

    sites: tuple[str, ...]
    streams: Mapping[str, Stream]
    findings: tuple[Finding, ...]
    week: Floats
    partial: Mask


def judge(
    sums: Sums,
    ordinal: int,
    past: Remembered,
    settings: TodaySettings,
    followed: Sequence[Followed] = (),
    so_far: Mapping[str, float] | None = None,
    of_sites: Mapping[str, str] | None = None,
) -> Judgement:
    """Return the judgement of a day: wide incidents first, sites by what these leave.

    ``followed``: open incidents everywhere. ``so_far``: of a day that is not over, the part of its jobs that
    is expected, by site. ``of_sites``: metrics of the open incidents of sites.
    """
    day = Day(sums, ordinal, past, followed, so_far)
    made = {EFFICIENCY: efficiency, FAILED: failures}
    first = {metric: make(day) for metric, make in made.items()}
    leaves = {
        EFFICIENCY: efficiency_leaves(day, first[EFFICIENCY]),
        FAILED: failure_leaves(day, first[FAILED]),
    }
    overall = surprise_everywhere(day, first[EFFICIENCY].sides)
    wide = tuple(Everywhere(day, leaves, overall, settings).parts()) if day.ready else ()
    usual, last, sides = {}, {}, {}
    for metric, make in made.items():
        # a task is judged by other sites without what wide incidents do there, which has a factor of its own
        usual[metric] = usual_day(day, leaves[metric], wide, metric)
        last[metric] = first[metric] if usual[metric] is day else make(usual[metric])
        expected = last[metric].sides.expected * factors(day, leaves[metric], wide, metric)
        observed = first[metric].sides.observed
        sides[metric] = replace(last[metric].sides, observed=observed, expected=expected)
    categories = {
        number: factors(day, leaves[FAILED], wide, FAILED, leaves[FAILED].codes["category"] == number)
        for number in range(1, len(sums.names["outcome"]))
    }
    explained = of_tasks(day, wide)
    streams = {
        EFFICIENCY: efficiency_stream(day, sides[EFFICIENCY]),
        **failure_streams(day, usual[FAILED], last[FAILED], sides[FAILED], categories, explained),
    }
    shared = {metric: day.covariance(of.cells, metric) for metric, of in last.items()}
    sites = Sites(day, streams, leaves, wide, settings, shared, of_sites or {})
    found = [*sites.findings(), *(one.finding for one in wide if one.finding is not None)]
    for other in METRICS:
        streams[other.name] = other.stream(day)
        found += other.findings(day, streams[other.name])
    return Judgement(day.sites, streams, tuple(found), day.week, day.partial)


class Sites:
    """Findings of sites."""

    def __init__(
        self,
        day: Day,
        streams: Mapping[str, Stream],
        leaves: Mapping[str, Leaves],
        wide: Sequence[Wide],
        settings: TodaySettings,
        shared: Mapping[str, Floats],
        followed: Mapping[str, str],
    ) -> None:
        self.day, self.streams, self.wide, self.settings = day, streams, wide, settings
        self.followed = followed
        self.leaves = {metric: self._without_wide(metric, of) for metric, of in leaves.items()}
        self.z, self.over = {}, {}
        limits = {EFFICIENCY: settings.efficiency_surprise, FAILED: settings.failures_surprise}
        for metric, limit in limits.items():
            earlier = day.surprises(metric)
            if day.past.frozen is not None:
                # nights of an incident neither prolong nor reopen it
                earlier = np.where(day.past.frozen, np.nan, earlier)
            z = np.column_stack([earlier, streams[metric].z])
            self.z[metric] = z
            # bursts of failures are no errors of an expectation
            foretold = FORETOLD if metric == EFFICIENCY else 0.0
            self.over[metric] = of_latest(z, shared[metric], foretold=foretold) / (
                limit + np.where(day.partial, PARTIAL_MORE, 0.0)[:, None]
            )

    def findings(self) -> Iterator[Finding]:
        """Yield what the day says about each site."""
        for site in range(self.day.n_sites):
            yield self._finding(site)

    def _without_wide(self, metric: str, of: Leaves) -> Leaves:
        expected = of.expected
        for one in self.wide:
            if one.metric == metric:
                expected = one.term.expect(of, expected)
        return replace(of, expected=expected)

    def _finding(self, site: int) -> Finding:
        day, streams = self.day, self.streams
        latest = {metric: float(np.nan_to_num(streams[metric].z[site])) for metric in self.over}
        ratios = {metric: float(over[site].max()) for metric, over in self.over.items()}
        passing = [
            metric for metric, ratio in ratios.items() if ratio >= 1.0 and latest[metric] >= LEAST_OF_NIGHT
        ]
        concerned = passing or list(self.over)
        metric = max(concerned, key=lambda name: float(streams[name].cost[site]))
        literals, share = self._cause(metric, site) if passing else ((), None)
        began = onset(self.z[metric][site][-ONSET_DAYS:]) if passing else 0
        return Finding(
            day.sites[site],
            metric,
            surprising=bool(passing),
            costly=any(self._costly(each, site) for each in passing),
            z=max(latest.values()),
            surprise=max(ratios.values()),
            cost=float(sum(streams[name].cost[site] for name in concerned)),
            week=float(day.week[site]),
            partial=bool(day.partial[site]),
            began=began,
            earlier=sum(self._before(each, site, began) for each in passing),
            followed=self._followed(site),
            efficiency=_range(streams[EFFICIENCY], site),
            failed=_range(streams[FAILED], site),
            literals=literals,
            share=share,
        )

    def _followed(self, site: int) -> tuple[float, float] | None:
        stream = self.streams.get(self.followed.get(self.day.sites[site], ""))
        return None if stream is None else (float(np.nan_to_num(stream.z[site])), float(stream.cost[site]))

    def _costly(self, metric: str, site: int) -> bool:
        """True if the night alone, or the nights of a passing window together, lost enough."""
        over, week, stream = self.over[metric][site], float(self.day.week[site]), self.streams[metric]
        cost = float(stream.cost[site])
        sides = stream.sides
        more = float(sides.observed[site] - sides.expected[site])
        if metric == FAILED and more > self.settings.failed_jobs * float(sides.base[site]):
            return True
        if over[0] >= 1.0 and cost >= self.settings.night_cost * week:
            return True
        totals = (cost + self._before(metric, site, nights - 1) for nights in NIGHTS[1:])
        return any(
            ratio >= 1.0 and total >= self.settings.total_cost * week
            for ratio, total in zip(over[1:], totals, strict=True)
        )

    def _before(self, metric: str, site: int, nights: int) -> float:
        """Return the cost of some nights before, from what was observed and expected on them."""
        if not nights:
            return 0.0
        past, places = self.day.past, self.day.n_sites + 1
        observed, expected = (
            past.of(what, metric, places)[site][-nights:] for what in (past.observed, past.expected)
        )
        if metric == EFFICIENCY:
            lost = (1 - observed / np.maximum(expected, 1e-9)) * self.day.week[site] / WEEK
        else:
            per_failure = self.streams[FAILED].per_failure
            lost = (observed - expected) * (0.0 if per_failure is None else per_failure[site])
        return float(np.nansum(lost))

    def _cause(self, metric: str, site: int) -> tuple[Literals, float | None]:
        of = self.leaves[metric]
        mine = of.part(of.codes["site"] == site)
        if mine.counts:
            # that something is wrong is known: rare errors need no proof of that
            mine = replace(mine, variance=mine.variance - RARE)
        names = [name for name in ("queue", "kind", "category", "task", *self.day.owners) if name in of.codes]
        several = [name for name in names if len(np.unique(mine.codes[name])) > 1]
        terms = scan(mine, partitions_of(several, everything=True), most=1, least=LEAST_SCORE)
        literals, share = (terms[0].literals, terms[0].share) if terms else ((), None)
        if metric == FAILED and "category" not in dict(literals):
            # where most fail by one error, its name says more than the part alone
            found = main_code(mine.part(terms[0].rows) if terms else mine, "category", ONE_ERROR)
            if found is not None:
                literals = (*literals, ("category", found[0]))
                share = found[1] * (1.0 if share is None else share)
        return named(self.day, literals), share


def _range(stream: Stream, site: int) -> Range | None:
    base = float(stream.sides.base[site])
    if base <= 0:
        return None
    mean, low, high = (float(values[site]) for values in (stream.mean, stream.low, stream.high))
    return Range(float(stream.sides.observed[site]) / base, mean, low, high)
