"""Planted incidents: told by the night on which they had cost so much, false ones, causes.

    python -m benchmarks.incidents [--seeds 101,102/201,202] [--out benchmarks/results/incidents.md]

Made-up sums of days (``incidents_grid``), judged night after night as ``esjobs today`` does; another grid for
each seed. Quiet grids and grids with campaigns have no incident: everything told there is false. Beside the
incidents of sites stands what an oracle tells (``incidents_oracle``).
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np

from benchmarks.incidents_grid import FIRST, FIRST_INCIDENT, N_DAYS, Made, Plant, make
from benchmarks.incidents_metrics import DAYS, SIZES, Shift
from benchmarks.incidents_oracle import Oracle, Tries
from benchmarks.machine import describe
from esjobs.schema.today import EVERYWHERE, LASTING, OWNERS
from esjobs.today.sentences import literals_of
from esjobs.today.settings import TodaySettings
from esjobs.today.states import Incident
from esjobs.today.sums import DAYS_BACK
from esjobs.today.watching import Watch

OUT = Path(__file__).parent / "results" / "incidents.md"
KINDS = ("quiet", "campaigns", "incidents", "shifts", "owners")
BANDS = ((0.01, 0.02), (0.02, 0.04), (0.04, 0.08), (0.08, np.inf))
LARGE = 0.04
FIRST_JUDGED = DAYS_BACK
TARGETS = {
    "site: on the night that passes 1 %, cost so far 1 to 2 %": 0.5,
    "site: on the night that passes 1 %, cost so far 2 to 4 %": 0.85,
    "site: by the first night above 4 %": 0.95,
    "everywhere: by the first night above 4 %": 0.95,
    "site: cause": 0.88,
    "everywhere: cause": 0.95,
}
SECTIONS = {
    "At sites": ("site",),
    "Everywhere": ("everywhere",),
    "Other metrics": (*SIZES, *(f"{metric} x {size:g}" for metric, size in SIZES.items())),
}
MOST_FALSE = 0.2
AFTER = 3  # Nights after an incident on which it may still be told


@dataclass
class Count:
    """Hits of some tries."""

    hits: int = 0
    tries: int = 0

    def add(self, hit: bool) -> None:
        self.hits += hit
        self.tries += 1

    def __str__(self) -> str:
        return f"{self.hits / self.tries:.2f} ({self.hits} of {self.tries})" if self.tries else "–"

    @property
    def interval(self) -> str:
        """Interval of Wilson of the share, 95 %."""
        n, share, z2 = self.tries, self.hits / self.tries, 1.96**2
        middle, half = share + z2 / (2 * n), 1.96 * (share * (1 - share) / n + z2 / (4 * n**2)) ** 0.5
        low, high = ((middle + sign * half) / (1 + z2 / n) for sign in (-1, 1))
        return f"{max(low, 0.0):.2f} to {min(high, 1.0):.2f}"


@dataclass
class Result:
    """Counts of one grid."""

    told: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    false: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    site_nights: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0
    nights: int = 0
    details: list[str] = field(default_factory=list)
    best: Tries = field(default_factory=Tries)

    def __add__(self, other: "Result") -> "Result":
        for name, count in other.told.items():
            self.told[name].hits += count.hits
            self.told[name].tries += count.tries
        for mine, theirs in ((self.false, other.false), (self.site_nights, other.site_nights)):
            for name, number in theirs.items():
                mine[name] += number
        self.seconds += other.seconds
        self.nights += other.nights
        self.details += other.details
        self.best += other.best
        return self


def judged(made: Made, settings: TodaySettings) -> tuple[list[list[Incident]], float]:
    """Return the incidents of every night, and the processor seconds of judging."""
    first, last = FIRST - timedelta(days=DAYS_BACK), FIRST + timedelta(days=N_DAYS - 1)
    watch = Watch(made.sums.names["site"], first, last, settings)
    found, seconds = [], 0.0
    for number in range(N_DAYS):
        night = FIRST + timedelta(days=number)
        sums = made.seen(night.toordinal())
        began = time.process_time()
        watch.night(night, sums, {})
        seconds += time.process_time() - began
        found.append(watch.incidents)
    return found, seconds


def measured(seed: int, kind: str, settings: TodaySettings) -> Result:
    """Judge one grid: ``quiet``, ``campaigns``, or with ``incidents`` or the like besides campaigns."""
    made = make(
        seed,
        campaigns=kind != "quiet",
        incidents=kind == "incidents",
        shifted=kind == "shifts",
        owned=kind == "owners",
    )
    nights, seconds = judged(made, settings)
    result = Result(seconds=seconds, nights=N_DAYS)
    affected = _affected(made)
    _false(kind, made, affected, nights, result)
    oracle = Oracle(made, affected, result.best)
    for number, plant in enumerate(made.plants):
        _told(plant, made.lost[number], oracle, nights, result)
    for one in made.shifts:
        _shift_told(one, made, nights, result)
    return result


def _shift_told(one: Shift, made: Made, nights: Sequence[Sequence[Incident]], result: Result) -> None:
    site = made.sums.names["site"][one.site]
    opened = [
        (night, each)
        for night in range(one.start, one.start + DAYS)
        for each in nights[night]
        if each.site == site and each.metric == one.metric and each.state in LASTING
    ]
    result.told[f"{one.metric} x {SIZES[one.metric]:g}: within its {DAYS} days"].add(bool(opened))
    if opened:
        first = (opened[0][1].since - FIRST).days
        result.told[f"{one.metric}: first day right"].add(first == one.start)


def _site(plant: Plant) -> str | None:
    return dict(plant.where).get("site")


def _affected(made: Made) -> dict[str, set[int]]:
    """Return the nights of incidents, and those after them, by site."""
    affected: dict[str, set[int]] = defaultdict(set)
    for plant in made.plants:
        days = set(range(int(plant.start), int(plant.end) + 1 + AFTER))
        affected[_site(plant) or EVERYWHERE] |= days
    return affected


def _false(
    kind: str,
    made: Made,
    affected: Mapping[str, set[int]],
    nights: Sequence[Sequence[Incident]],
    result: Result,
) -> None:
    volume = np.zeros((len(made.sums.names["site"]), N_DAYS))
    np.add.at(volume, (made.sums.codes["site"], made.sums.day - FIRST.toordinal()), made.sums.n_jobs)
    last_told: dict[str, int] = {}
    for night in range(FIRST_JUDGED, N_DAYS):
        for number, site in enumerate(made.sums.names["site"]):
            if volume[number, night] and night not in affected.get(site, ()):
                result.site_nights[kind] += 1
        for one in nights[night]:
            if one.change not in ("opened", "reopened") or night in affected.get(one.site, ()):
                continue
            what = "everywhere" if one.site == EVERYWHERE else "sites"
            if _is_shift(one, made, night):
                continue
            what = "other metrics" if one.what else what
            key = f"{one.site} {one.cause_key if one.site == EVERYWHERE else one.group}"
            if night - last_told.get(key, -99) > 7:
                result.false[f"{kind}: {what}"] += 1
                result.false[f"{kind}: {what}, {one.metric}"] += 1
                result.details.append(f"{kind} night {night} {one.surprise:.2f} {one.sentence}")
            last_told[key] = night


def _is_shift(one: Incident, made: Made, night: int) -> bool:
    names = made.sums.names["site"]
    return any(
        names[each.site] == one.site and each.start <= night <= each.start + DAYS + AFTER
        for each in made.shifts
    )


def _told(
    plant: Plant, lost: np.ndarray, oracle: Oracle, nights: Sequence[Sequence[Incident]], result: Result
) -> None:
    made, site = oracle.made, _site(plant)
    wide = site is None
    week = (
        float(made.week.sum()) / len(made.week)
        if wide
        else float(made.week[made.sums.names["site"].index(site)])
    )
    so_far = np.cumsum(lost) / week
    end = int(plant.end) + AFTER
    owner = next((name for name in OWNERS if name in dict(plant.where)), None)
    where = f"everywhere, of a {owner}" if owner else "everywhere" if wide else "site"
    first: tuple[int, Incident] | None = None
    for night in range(int(plant.start), min(end + 1, N_DAYS)):
        mine = [one for one in nights[night] if _is(one, plant, wide) and not _of_other(one, plant, made)]
        # several may be open everywhere: one of them must be it
        mine.sort(key=lambda one: not _right(one, plant, made))
        if mine and (first is None or _right(mine[0], plant, made)):
            first = (night, mine[0])
        if first is not None and _right(first[1], plant, made):
            break
    for number, (low, _high) in enumerate(BANDS):
        if not (so_far > low).any():
            continue
        passing = int(np.argmax(so_far > low))
        told = first is not None and first[0] <= passing
        rows = [f"{where}: by the first night above {_LOW[number]}"]
        rows += [f"{where}, {plant.metric}: by the first night above {_LOW[number]}"] * (not wide)
        if number == 0:
            share = so_far[passing]
            band = next(
                name for name, (least, most) in zip(_NAMES, BANDS, strict=True) if least < share <= most
            )
            rows.append(f"{where}: on the night that passes 1 %, cost so far {band}")
        for row in rows:
            result.told[row].add(told)
            if site is not None:
                windows = oracle.until(plant, made.sums.names["site"].index(site), passing)
                result.best.planted[row].append(windows)
        if not told and low == LARGE:
            result.details.append(
                f"late: {plant} {so_far[passing]:.3f} first {first and first[0]} passing {passing}"
            )
    if first is not None:
        right = _right(first[1], plant, made)
        result.told[f"{where}: cause"].add(right)
        result.told[f"{where}: metric"].add(first[1].metric == plant.metric)
        days = abs((first[1].since - FIRST).days - int(plant.start))
        result.told[f"{where}: first day within one"].add(days <= 1)
        if not right:
            result.details.append(f"cause: {plant} got {first[1].cause_key} {first[1].cause_share}")


_NAMES = ("1 to 2 %", "2 to 4 %", "4 to 8 %", "above 8 %")
_LOW = ("1 %", "2 %", "4 %", "8 %")


def _is(one: Incident, plant: Plant, wide: bool) -> bool:
    if one.state not in LASTING:
        return False
    if not wide:
        return one.site == _site(plant) and not one.what
    began = (one.since - FIRST).days >= int(plant.start) - 1
    return one.site == EVERYWHERE and one.metric == plant.metric and began


def _of_other(one: Incident, plant: Plant, made: Made) -> bool:
    """True if the named part is another planted one."""
    others = (each for each in made.plants if each != plant and _site(each) is None)
    is_other = any(each.metric == one.metric and _right(one, each, made) for each in others)
    return is_other and one.site == EVERYWHERE and not _right(one, plant, made)


def _right(one: Incident, plant: Plant, made: Made) -> bool:
    """True if the named part is the planted one, by the jobs in it."""
    metric, literals = literals_of(one.cause_key or "")
    named = dict(literals)
    true = {name: value for name, value in plant.where if name != "site"}
    category = named.pop("category", None)
    if metric != plant.metric or category != plant.category:
        return False
    return _overlap(made, _site(plant), named, true) >= 0.8


def _overlap(made: Made, site: str | None, named: Mapping[str, str], true: Mapping[str, str]) -> float:
    sums = made.sums
    rows = np.ones(len(sums.day), np.bool_)
    if site is not None:
        rows &= sums.codes["site"] == sums.names["site"].index(site)
    sets = []
    for part in (named, true):
        inside = rows.copy()
        for dimension, name in part.items():
            inside &= sums.codes[dimension] == list(sums.names[dimension]).index(name)
        sets.append(inside)
    both = float(sums.core_s[sets[0] & sets[1]].sum())
    either = float(sums.core_s[sets[0] | sets[1]].sum())
    return both / either if either else 0.0


def _one(task: tuple[int, str, TodaySettings]) -> Result:
    return measured(*task)


def run(seeds: Iterable[int], kinds: Sequence[str], processes: int, settings: TodaySettings) -> Result:
    """Judge grids of all seeds and kinds."""
    tasks = [(seed, kind, settings) for seed in seeds for kind in kinds]
    if processes == 1:
        return sum(map(_one, tasks), Result())
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(_one, tasks), Result())


def text(results: Sequence[Result], sets: Sequence[Sequence[int]]) -> str:
    """Return the page of the results of some sets of seeds."""
    machine = describe("scipy")
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("python", "numpy", "scipy", "pyarrow", "esjobs")
    )
    total, names = sum(results, Result()), [f"{seeds[0]} to {seeds[-1]}" for seeds in sets]
    lines = [
        "# Incidents: found, false, and why",
        "",
        f"{machine['cpu']}; `python -m benchmarks.incidents`; {versions}. Seeds "
        f"{', '.join(names)}; the method was tuned on others. Grids of a seed (``--kinds``): a quiet one, "
        "one with campaigns, and others with campaigns and 16 incidents, 10 shifts of other metrics, or an "
        "incident of all tasks of an owner (a user, a project and a release); the last table names those "
        f"that were made. {N_DAYS} days of 60 sites, judged from day {FIRST_JUDGED} on; incidents begin from "
        f"day {FIRST_INCIDENT} on. Costs are true ones, as shares of the core-hours of the site's week; "
        "those everywhere of the week of a mean site. Queues of a site differ, and so does a task at a site "
        "as long as it lives.",
        "",
        "95 %: interval of Wilson, of all seeds. Oracle: told by the sums of the site if its expectation "
        "without days' scatter, the metric, the error and the first day are known, with 0.1 false ones per "
        "100 nights of each metric.",
        "",
        *_found(results, total, names),
        "## False ones",
        "",
        f"Target of sites: at most {MOST_FALSE} per 100 site-nights.",
        "",
        "| grids | site-nights | false ones of sites per 100 | efficiency | failures | everywhere, number | "
        "other metrics per 100 | of waiting, throughput, memory, CPU models, number |",
        "|---|---|---|---|---|---|---|---|",
        *(row for name, each in zip(names, results, strict=True) for row in _false_rows(name, each)),
        "",
        f"One night: {total.seconds / max(total.nights, 1):.2f} s of processor time.",
        "",
    ]
    return "\n".join(lines)


def _found(results: Sequence[Result], total: Result, names: Sequence[str]) -> Iterator[str]:
    """Yield the tables of what was found, one a section."""
    best = total.best.told()
    header = f"| in time, or right | {' | '.join(names)} | all | 95 % | oracle | target |"
    for title, subjects in SECTIONS.items():
        rows = sorted(name for name in total.told if name.partition(":")[0].partition(",")[0] in subjects)
        if rows:
            yield from (f"## {title}", "", header, "|---" * (len(names) + 5) + "|")
        for name in rows:
            count, (hits, tries) = total.told[name], best.get(name, (0, 0))
            oracle = f"{hits / tries:.2f}" if tries else ""
            of_sets = " | ".join(str(each.told.get(name, Count())) for each in results)
            yield f"| {name} | {of_sets} | {count} | {count.interval} | {oracle} | {_target(name, count)} |"
        yield from ("",) * bool(rows)


def _false_rows(name: str, result: Result) -> Iterator[str]:
    for kind in KINDS:
        nights = result.site_nights[kind]
        if not nights:
            continue
        rates = [result.false[f"{kind}: sites{more}"] for more in ("", ", efficiency", ", failed")]
        shares = " | ".join(f"{100 * rate / nights:.2f}" for rate in rates)
        other = f"{kind}: other metrics"
        by_metric = ", ".join(
            str(result.false[f"{other}, {metric}"]) for metric in SIZES if metric != "arrivals"
        )
        yield (
            f"| {kind}, {name} | {nights:,} | {shares} | {result.false[f'{kind}: everywhere']} | "
            f"{100 * result.false[other] / nights:.2f} | {by_metric} |"
        )


def _target(name: str, count: Count) -> str:
    target = TARGETS.get(name)
    if target is None or not count.tries:
        return ""
    return f"{target:g}, {'met' if count.hits >= target * count.tries else 'missed'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="101,102,103,104")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--details", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    sets = [[int(seed) for seed in seeds.split(",")] for seeds in options.seeds.split("/")]
    kinds, settings = options.kinds.split(","), TodaySettings()
    results = [run(seeds, kinds, options.processes, settings) for seeds in sets]
    page = text(results, sets)
    if options.details:
        print("\n".join(line for each in results for line in each.details), flush=True)
    print(page)
    if options.out is not None:
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
