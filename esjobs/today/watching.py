"""Watch of the sites from night to night, in memory: judged days and incidents. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from esjobs.publish.publication import finite
from esjobs.records.declared.downtimes import Outages
from esjobs.schema.today import EFFICIENCY, EVERYWHERE, FAILED
from esjobs.today.days import Followed, Remembered
from esjobs.today.findings import HOUR, Finding
from esjobs.today.judging import Judgement, judge
from esjobs.today.sentences import literals_of
from esjobs.today.settings import TodaySettings
from esjobs.today.states import Incident, Silence, after
from esjobs.today.sums import DAYS_BACK, Sums

_COLUMNS = {
    "observed": "observed_sum",
    "expected": "expected_sum",
    "variance": "variance",
    "z": "surprise",
}


class Watch:
    """State of the watch: judged days as arrays, by metric a row per site (the last one everywhere)."""

    def __init__(
        self,
        sites: Sequence[str],
        first: date,
        last: date,
        settings: TodaySettings,
        outages: Outages | None = None,
    ) -> None:
        self._row = {name: number for number, name in enumerate((*sites, EVERYWHERE))}
        self._first = first
        self._settings = settings
        self._shape = (len(self._row), (last - first).days + 1)
        self._values: dict[str, dict[str, Any]] = {name: {} for name in _COLUMNS}
        self._outages = outages or Outages()
        days = [first + timedelta(days=n) for n in range(self._shape[1])]
        out = np.array([[self._outages.covers(name, day) for day in days] for name in self._row])
        # by group of metrics: an incident of waiting says nothing about efficiency
        self._frozen: dict[str, Any] = defaultdict(out.copy)
        self._incidents: dict[tuple[str, str], Incident] = {}

    @property
    def incidents(self) -> list[Incident]:
        """Incidents after the last night, in order."""
        return [one for _, one in sorted(self._incidents.items())]

    def change(self, changed: Callable[[Incident], Incident]) -> None:
        """Replace each incident."""
        self._incidents = {key: changed(one) for key, one in self._incidents.items()}

    def resume(self, incidents: Iterable[Incident]) -> None:
        """Go on from the incidents of a night."""
        self._incidents = {one.key: one for one in incidents}

    def remember(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember rows of ``today_days``; those of sites without latest jobs are left out."""
        for row in rows:
            site = self._row.get(row["site"])
            if site is None:
                continue
            at = site, (row["day"] - self._first).days
            for name, column in _COLUMNS.items():
                values = self._values[name].setdefault(row["metric"], np.full(self._shape, np.nan))
                values[at] = np.nan if row[column] is None else row[column]
            self._frozen[_group(row["metric"])][at] |= bool(row["in_incident"])

    def night(
        self,
        night: date,
        sums: Sums,
        silences: Mapping[str, Silence],
        so_far: Mapping[str, float] | None = None,
    ) -> list[dict[str, Any]]:
        """Judge a night and bring the incidents up to it; return its rows of ``today_days``.

        ``so_far``: of a day that is not over, the part of its jobs that is expected, by site.
        """
        followed, of_sites = [], {}
        for one in self._incidents.values():
            if one.site == EVERYWHERE and one.state != "withdrawn":
                followed.append(_followed(one, night))
            elif not one.is_over and not one.what:
                of_sites[one.site] = one.stream
        past = self._before(night, sums.names["site"])
        judgement = judge(sums, night.toordinal(), past, self._settings, followed, so_far, of_sites)
        self._step(night, judgement, silences, is_over=so_far is None)
        rows = list(self._rows(night, judgement))
        self.remember(rows)
        return rows

    def _before(self, night: date, sites: Sequence[str]) -> Remembered:
        """Return the days before a night; those of open incidents from their first day on are frozen."""
        rows = [self._row[name] for name in (*sites, EVERYWHERE)]
        end = (night - self._first).days
        days = slice(end - DAYS_BACK, end)
        frozen = [one for one in self._incidents.values() if one.frozen and one.site in self._row]
        groups = {"", *self._frozen, *(one.group for one in frozen)}
        hidden = {group: self._frozen[group][:, days].copy() for group in groups}
        for one in frozen:
            age = min((night - one.since).days, DAYS_BACK)
            hidden[one.group][self._row[one.site], DAYS_BACK - age :] = True
        observed, expected, variance, z = (
            {metric: values[rows, days] for metric, values in self._values[name].items()} for name in _COLUMNS
        )
        apart = {group: days[rows] for group, days in hidden.items() if group}
        return Remembered(observed, expected, variance, z, hidden[""][rows], apart)

    def _step(
        self, night: date, judgement: Judgement, silences: Mapping[str, Silence], *, is_over: bool
    ) -> None:
        found: dict[tuple[str, str], Finding] = {
            Incident.key_of(each): each for each in judgement.findings if each.is_judged
        }
        updated = {}
        for place in sorted({*found, *self._incidents}):
            silence = silences.get(place[0])
            before, declared = self._incidents.get(place), self._outages.covers(place[0], night)
            # a task or kind of work that has no more jobs; a site without jobs may be broken
            over = is_over and place[0] == EVERYWHERE
            one = after(
                before, found.get(place), night, self._settings, silence, declared=declared, over=over
            )
            if one is not None:
                updated[place] = one
        self._incidents = updated

    def _rows(self, night: date, judgement: Judgement) -> Iterator[dict[str, Any]]:
        frozen = {(one.site, one.group) for one in self._incidents.values() if one.frozen}
        for metric, stream in judgement.streams.items():
            for number, site in enumerate((*judgement.sites, EVERYWHERE)):
                sides = stream.sides
                base = float(sides.base[number])
                if base <= 0 or (sides.observed[number] == 0 and sides.expected[number] < 0.2):
                    continue
                yield {
                    "day": night,
                    "site": site,
                    "metric": metric,
                    "observed": float(sides.observed[number]) / base,
                    "expected": finite(stream.mean[number]),
                    "low": finite(stream.low[number]),
                    "high": finite(stream.high[number]),
                    "observed_sum": float(sides.observed[number]),
                    "expected_sum": finite(sides.expected[number]),
                    "base_sum": base,
                    "variance": finite(sides.variance[number]),
                    "surprise": finite(stream.z[number]),
                    "cost_core_h": finite(stream.cost[number] / HOUR),
                    "week_core_h": finite(judgement.week[number] / HOUR),
                    "in_incident": (site, _group(metric)) in frozen,
                    "partial": bool(judgement.partial[number]),
                }


def _group(metric: str) -> str:
    return "" if metric.partition(":")[0] in (EFFICIENCY, FAILED) else metric


def _followed(one: Incident, night: date) -> Followed:
    metric, literals = literals_of(one.cause_key or "")
    ended = 0 if one.until is None else (night - one.until).days
    return Followed(literals, metric, (night - one.since).days, ended)
