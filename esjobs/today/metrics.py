"""Metrics beside efficiency and failures: throughput, arrivals, waiting, memory, unknown CPU models. Pure.

They are incidents of their own and cost nothing: work that did not come is not lost.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.core.numbers import binary_size, core_h, count, duration, percent
from esjobs.schema.today import EVERYWHERE, THROUGHPUT, WAIT_EDGES_S
from esjobs.today.days import LEAST_DAYS, Day
from esjobs.today.expected import (
    LEAST_SURPRISE,
    MOST_SURPRISE,
    NIGHTS,
    Past,
    Surprise,
    count_surprise,
    efficiency_prior,
    of_nights,
    onset,
    ratio_surprise,
)
from esjobs.today.findings import HOUR, Finding, Range
from esjobs.today.streams import Sides, Stream, sides_of, stream_of
from esjobs.today.sums import DAYS_BACK

PARTIAL_MORE = 1.5  # Surprise that a partial day needs more
WINDOWS_MORE = 0.2  # Surprise that several nights need more
LEAST_OF_NIGHT = 1.0  # Surprise of the night itself, whatever its window says
ONSET_DAYS = 14
BUSY = 50  # Jobs a day of a site whose volume is judged
BUSY_DAYS = 20 / 28  # Part of the days on which it has as many
LEAST_HISTORY = 20  # Days before the first on which no jobs are a fault
LEAST_DUE = 20  # Jobs that are expected, of which none is a fault
LEAST_PEERS = 4  # Sites of which a median says what is common to all
LEAST_WAITS = 10  # Jobs of a kind with a median waiting time
SILENT = 0.3  # Part of the sites without jobs that is one fault of all
_LN_EDGES = np.log([WAIT_EDGES_S[0] / 2, *WAIT_EDGES_S, WAIT_EDGES_S[-1] * 2])


@dataclass(frozen=True)
class Metric:
    """Metric of sites.

    ``sides``: observed and expected sums. ``judge``: their surprise. ``text``: deviation in words.
    ``limit``: surprise from which it is reported; ``adds_up``: that of several nights counts too.
    ``matters``: by observed and expected value, True for a deviation that is worth a person's time.
    ``volume``: few jobs are the deviation itself, not a doubt about it, and all sites together are judged
    too. ``lag``: nights between its onset and its surprise.
    """

    name: str
    sides: Callable[[Day], Sides]
    judge: Callable[[Sides, Past], Surprise]
    text: Callable[[Range], str]
    matters: Callable[[Range], bool]
    limit: float
    adds_up: bool = False
    volume: bool = False
    lag: int = 0

    def stream(self, day: Day) -> Stream:
        """Return the metric of the day."""
        sides = self.sides(day)
        surprise = self.judge(sides, day.past_of(self.name))
        return stream_of(day, sides, surprise, np.full(len(sides.base), np.nan), most=np.inf)

    def findings(self, day: Day, stream: Stream) -> Iterator[Finding]:
        """Yield what the day says about the places that have the metric."""
        partial = (day.partial * (not self.volume))[:, None]
        frozen = day.past.frozen_of(self.name, day.n_sites + 1)
        z = np.column_stack([np.where(frozen, np.nan, day.surprises(self.name)), stream.z])
        windows = np.array(NIGHTS if self.adds_up else NIGHTS[:1])
        need = self.limit + np.where(windows > 1, WINDOWS_MORE, 0.0) + partial * PARTIAL_MORE
        over = (of_nights(z)[:, : len(windows)] / need).max(axis=1)
        observed = stream.sides.observed / np.maximum(stream.sides.base, 1e-9)
        values = (observed, stream.mean, stream.low, stream.high)
        for place in np.flatnonzero(np.isfinite(stream.z[: day.n_sites + self.volume])):
            shown = Range(*(float(each[place]) for each in values))
            yield Finding(
                (*day.sites, EVERYWHERE)[place],
                self.name,
                surprising=bool(over[place] >= 1.0 and stream.z[place] >= LEAST_OF_NIGHT),
                costly=self.matters(shown),
                z=float(stream.z[place]),
                surprise=float(over[place]),
                cost=0.0,
                week=float(day.week[place]),
                partial=bool(partial[place]),
                began=onset(z[place][-ONSET_DAYS:]) + self.lag,
                shown=shown,
                what=self.text(shown),
            )


def median(values: Floats, least: int) -> Floats:
    """Return the median of the last axis without NaN; NaN where fewer than ``least`` numbers are."""
    n = np.isfinite(values).sum(axis=-1)
    ordered = np.sort(values, axis=-1)
    middle = np.stack([np.maximum(n - 1, 0) // 2, n // 2], axis=-1)
    found: Floats = np.take_along_axis(ordered, middle, axis=-1).mean(axis=-1)
    return np.where(n >= max(least, 1), found, np.nan)


def _learned(day: Day, metric: str, values: Floats) -> Floats:
    """Return the values of earlier days, by age from 1; NaN in open incidents and before any jobs."""
    frozen = day.past.frozen_of(metric, day.n_sites + 1)[: day.n_sites, ::-1].copy()
    frozen[:, int(day.age.max(initial=0)) :] = True
    if values.ndim > 2:
        frozen = frozen[:, None, :]
    return np.where(frozen, np.nan, values[..., 1:])


def _usual(day: Day, metric: str, values: Floats) -> tuple[Floats, Mask]:
    """Return the median of the days with jobs of each site, and True for sites that are busy."""
    before = _learned(day, metric, values)
    jobs = _learned(day, metric, day.by_day(day.sums.n_jobs))
    days = np.isfinite(jobs).sum(axis=1)
    busy = (np.nan_to_num(jobs) >= BUSY).sum(axis=1) >= BUSY_DAYS * np.maximum(days, LEAST_DAYS)
    return np.nan_to_num(median(np.where(before > 0, before, np.nan), LEAST_DAYS)), busy


def throughput(day: Day) -> Sides:
    """Return core s: a site's median, times what all sites have more or less today.

    Late records of one day are there on the next: the night before must have been low too.
    """
    values = day.by_day(day.sums.core_s)
    usual, busy = _usual(day, THROUGHPUT, values)
    usual = usual * day.so_far
    judged = busy & (usual > 0) & (values[:, 0] > 0)
    ratio = np.where(judged, values[:, 0] / np.maximum(usual, 1e-9), np.nan)
    common = float(np.nan_to_num(median(np.log(ratio), LEAST_PEERS)))
    jobs, _ = _usual(day, THROUGHPUT, day.by_day(day.sums.n_jobs))
    observed, before = (np.append(each, each[judged].sum()) for each in values[:, :2].T)
    expected = np.append(usual * np.exp(common), usual[judged].sum())
    due = day.past.of(day.past.expected, THROUGHPUT, day.n_sites + 1)[:, -1]
    base = np.append(judged, judged.any()).astype(np.float64) * HOUR
    earlier = np.where(due > 0, expected * before / np.maximum(due, 1e-9), np.inf)
    return Sides(observed, expected, base, np.append(0.2**2 + 2 / np.maximum(jobs, 1), 0.2**2), earlier)


def _low_twice(sides: Sides, past: Past) -> Surprise:
    """Return the surprise of the better one of two nights, which say nothing about what is usual."""
    past = Past(*(each[:, :-1] for each in (past.observed, past.expected, past.variance)))
    better = sides.observed if sides.before is None else np.maximum(sides.observed, sides.before)
    return ratio_surprise(better, sides.expected, sides.variance, past)


def arrivals(day: Day) -> Sides:
    """Return jobs of busy sites, beside the median of their days."""
    values = day.by_day(day.sums.n_jobs)
    usual, busy = _usual(day, ARRIVALS, values)
    usual = usual * day.so_far
    busy = busy & (usual >= LEAST_DUE)
    observed, expected = (np.append(each, each[busy].sum()) for each in (values[:, 0], usual))
    enough = float(day.age.max(initial=0) >= LEAST_HISTORY)
    base = np.append(busy, busy.any()).astype(np.float64) * enough
    return Sides(observed, expected, base, np.full(len(base), 0.3**2))


def _none(sides: Sides, _past: Past) -> Surprise:
    """Return the surprise of no jobs at all; if many sites have none it is one of all sites."""
    silent = (sides.base[:-1] > 0) & (sides.observed[:-1] == 0)
    everywhere = silent.sum() >= max(LEAST_PEERS, SILENT * sides.base[:-1].sum())
    z = np.where(np.append(silent & ~everywhere, everywhere), MOST_SURPRISE, LEAST_SURPRISE)
    return Surprise(z, sides.expected, np.sqrt(sides.variance))


def waiting(day: Day) -> Sides:
    """Return median waiting times, expected from how those of each kind were beside other sites' before."""
    sums, (n_sites, _, n_kinds) = day.sums, day.shape
    bins = np.zeros((n_sites, n_kinds, DAYS_BACK + 1, len(_LN_EDGES) - 1))
    np.add.at(bins, (sums.codes["site"], sums.codes["kind"], day.age), sums.waited)
    level = _ln_median(bins, LEAST_WAITS)
    peers = median(np.moveaxis(level, 0, -1), LEAST_PEERS)
    # a kind that few sites run on a day cannot be told from the load of that day
    own = level - (peers if n_sites >= LEAST_PEERS else 0.0)
    risen = own[:, :, 0] - median(_learned(day, WAITING, own), LEAST_DAYS)
    n = np.where(np.isfinite(risen), bins[:, :, 0].sum(axis=-1), 0.0)
    jobs = n.sum(axis=1)
    change = (n * np.nan_to_num(risen)).sum(axis=1) / np.maximum(jobs, 1)
    of_all = (bins[:, :, 0] * (n > 0)[..., None]).sum(axis=1)
    observed = np.where(jobs > 0, np.exp(np.nan_to_num(_ln_median(of_all, 1))), 0.0)
    variance = 0.3**2 + 4 / np.maximum(jobs, 1)
    sides = (observed, observed * np.exp(-change), (jobs > 0) * 1.0, variance)
    return Sides(*(np.append(each, 0.0) for each in sides))


def _ln_median(bins: Floats, least: int) -> Floats:
    """Return the logarithm of the medians of counts in bins; NaN for fewer than ``least`` jobs."""
    total = bins.sum(axis=-1)
    below = np.cumsum(bins, axis=-1)
    at = np.argmax(below >= total[..., None] / 2, axis=-1)
    here, upto = (np.take_along_axis(each, at[..., None], axis=-1)[..., 0] for each in (bins, below))
    part = np.divide(total / 2 - (upto - here), here, out=np.zeros(at.shape), where=here > 0)
    found: Floats = _LN_EDGES[at] + part * (_LN_EDGES[at + 1] - _LN_EDGES[at])
    return np.where(total >= least, found, np.nan)


def memory(day: Day) -> Sides:
    """Return resident memory of finished jobs over their cores, expected from other sites' jobs of the tasks.

    Tasks differ by more than sites: what a site has beyond its tasks is learned from its own residuals.
    """
    sums = day.sums
    rows = sums.finished & (sums.memory_cores > 0)
    cells = day.cells(rows, sums.memory_b, sums.memory_cores, sums.n_memory)
    prior = replace(efficiency_prior(cells, day.shape[2]), own=0.0)
    return sides_of(day, cells, day.expected(cells, prior, MEMORY, np.zeros(day.n_sites, np.bool_)))


def unknown_cpu(day: Day) -> Sides:
    """Return jobs without a known CPU model: the site's past share, times its change at other sites."""
    jobs, unknown = day.by_day(day.sums.n_jobs), day.by_day(day.sums.n_unknown_cpu)
    before, unknown_before = (
        np.nan_to_num(_learned(day, UNKNOWN_CPU, each)).sum(axis=1) for each in (jobs, unknown)
    )
    grid = unknown_before.sum() / max(float(before.sum()), 1.0)
    due = jobs[:, 0] * (unknown_before + 30 * grid) / (before + 30)
    seen = unknown[:, 0]
    others = (seen.sum() - seen + 3) / (due.sum() - due + 3)
    # a few of them are no proof of a fault
    expected = np.maximum(np.minimum(due * np.clip(others, 0.1, 10.0), jobs[:, 0]), 0.3 + 0.02 * jobs[:, 0])
    base = np.where(_usual(day, UNKNOWN_CPU, jobs)[0] > 0, jobs[:, 0], 0.0)
    sides = (seen, expected, base, np.full(day.n_sites, 0.05))
    return Sides(*(np.append(each, 0.0) for each in sides))


def _high(of: Sides, past: Past) -> Surprise:
    return ratio_surprise(of.observed, of.expected, of.variance, past, bad=1)


def _counted(of: Sides, past: Past) -> Surprise:
    return count_surprise(of.observed, of.expected, of.variance, past)


def _instead(form: Callable[[float], str], before: str, after: str = "") -> Callable[[Range], str]:
    """Return a function that puts a deviation into words."""
    return lambda of: f"{before}{form(of.observed)} instead of {form(of.expected)}{after}"


ARRIVALS, WAITING = "arrivals", "waiting"
MEMORY, UNKNOWN_CPU = "memory", "unknown cpu"

METRICS = (
    Metric(
        *(THROUGHPUT, throughput, _low_twice, _instead(core_h, "only ", " a day")),
        *(lambda of: of.observed < 0.5 * of.expected, 4.3),
        volume=True,
        lag=1,
    ),
    Metric(
        *(ARRIVALS, arrivals, _none, _instead(count, "", " jobs a day"), lambda _: True, 5.0),
        volume=True,
    ),
    Metric(
        *(WAITING, waiting, _high, _instead(duration, "half of the jobs waited more than ")),
        *(lambda of: of.observed > max(2 * of.expected, 1800.0), 5.6),
        adds_up=True,
    ),
    Metric(
        *(MEMORY, memory, _high, _instead(binary_size, "memory per core ")),
        *(lambda of: of.observed > 1.2 * of.expected, 5.0),
    ),
    Metric(
        *(UNKNOWN_CPU, unknown_cpu, _counted, _instead(percent, "CPU model unknown for ", " of the jobs")),
        *(lambda of: of.observed > of.expected + 0.05, 6.0),
    ),
)
"""Metrics beside efficiency and failures; a new one is an entry here, and its sums in ``day_sums``."""
