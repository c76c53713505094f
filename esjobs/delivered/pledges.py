"""Pledges of federations in a window, and the federation of a site."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.core.numbers import many
from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.publish.publication import newest, read_table
from esjobs.records.ingest.formats.pledges import quarter_start
from esjobs.schema.delivered import FEDERATION_SITES, PLEDGES
from esjobs.store.base import JobStore

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
"""Start of validity of a row that names none."""
_HOUR = timedelta(hours=1)
_LISTED = 5  # Names in a note


@dataclass(frozen=True)
class Pledge:
    """Capacity that a federation pledged for an interval, in a benchmark."""

    benchmark: str
    cpu: float
    interval: Window


@dataclass(frozen=True)
class Pledges:
    """Pledges of one VO by federation, and federations of sites by lower-case name.

    ``vo``: None if several VOs have pledges in the window and none was chosen. ``several``: sites in more
    than one federation. ``fractions``: share of a site in the pledge of its federation.
    """

    vo: str | None = None
    vos: tuple[str, ...] = ()
    of: Mapping[str, tuple[Pledge, ...]] = field(default_factory=dict)
    federations: Mapping[str, str] = field(default_factory=dict)
    several: frozenset[str] = frozenset()
    fractions: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def federation(self, site: str | None) -> str | None:
        """Return the federation of a site; None without one, and if it is in several."""
        return None if site is None else self.federations.get(site.lower())

    def fraction(self, federation: str, site: str | None) -> float:
        """Return the share of a site in the pledge of its federation, 1 for None, 0 if it is not divided."""
        return 1.0 if site is None else self.fractions.get((federation, site.lower()), 0.0)

    def hours(self, federation: str, window: Window) -> dict[str, float] | None:
        """Return the pledged hours of a window by benchmark; None unless pledges cover all of the window.

        Sum over days of capacity x 24 h x share of the day in the window; a pledge is constant in a quarter.
        """
        hours: dict[str, float] = defaultdict(float)
        # what is left of it after all pledges is not covered
        missing = window.end - window.start
        for pledge in self.of.get(federation, ()):
            shared = min(pledge.interval.end, window.end) - max(pledge.interval.start, window.start)
            if shared > timedelta(0):
                missing -= shared
                hours[pledge.benchmark] += pledge.cpu * (shared / _HOUR)
        return None if missing else dict(hours)


def pledge_quarter(day: datetime) -> tuple[int, int]:
    """Return pledge year and quarter of a day: the year begins on 1 April.

    >>> pledge_quarter(datetime(2026, 3, 31)), pledge_quarter(datetime(2026, 4, 1))
    ((2025, 4), (2026, 1))
    """
    return day.year - (day.month <= 3), (day.month - 4) % 12 // 3 + 1


def read_pledges(store: JobStore, window: Window, vo: str | None) -> Pledges:
    """Return the pledges of a VO that touch a window, and the federations of its sites; two reads.

    ``vo`` None: the only VO with pledges in the window. Raises :class:`UsageError` for a VO without pledges.
    """
    # January to March belong to the pledge year before
    first, last = pledge_quarter(window.start)[0], pledge_quarter(window.end)[0]
    years = In("year", tuple(range(first, last + 1)))
    rows = newest(PLEDGES, read_table(store, PLEDGES, [years]).to_pylist())
    vos = tuple(sorted({row["vo"] for row in rows}))
    chosen = _chosen(vo, vos, window)
    sites = _sites(read_table(store, FEDERATION_SITES).to_pylist(), window, chosen)
    # how the work of a site in two federations divides is not recorded
    single = {site: next(iter(of.items())) for site, of in sites.items() if len(of) == 1}
    return Pledges(
        chosen,
        vos,
        _of_federations(row for row in rows if row["vo"] == chosen),
        {site: federation for site, (federation, _) in single.items()},
        frozenset(sites) - frozenset(single),
        {(federation, site): share for site, (federation, share) in single.items() if share},
    )


def _chosen(vo: str | None, vos: Sequence[str], window: Window) -> str | None:
    if vo is None:
        return vos[0] if len(vos) == 1 else None
    if vos and vo.lower() not in vos:
        raise UsageError(f"no pledges of '{vo}' in {window}; use one of: {', '.join(vos)}")
    return vo.lower()


def _of_federations(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Pledge, ...]]:
    by_year: dict[tuple[str, int], dict[int | None, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        by_year[row["federation"], row["year"]][row["quarter"]] = row
    found: dict[str, list[Pledge]] = defaultdict(list)
    for (federation, year), quarters in by_year.items():
        for quarter in range(1, 5):
            # a row of the quarter counts before that of the year
            counting = quarters.get(quarter) or quarters.get(None)
            if counting is not None:
                found[federation].append(_pledge(counting, year, quarter))
    return {federation: tuple(pledges) for federation, pledges in found.items()}


def _pledge(row: Mapping[str, Any], year: int, quarter: int) -> Pledge:
    interval = Window(quarter_start(year, quarter), quarter_start(year, quarter + 1))
    return Pledge(row["benchmark"], row["cpu"], interval)


def _sites(
    rows: Iterable[Mapping[str, Any]], window: Window, vo: str | None
) -> dict[str, dict[str, float | None]]:
    """Return the federations of each site with its share; rows of the newest date and import count."""
    latest: dict[str, tuple[datetime, datetime]] = {}
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    for row in rows:
        since = row["valid_from"] or LONG_AGO
        if since >= window.end or (vo is not None and row["vo"] not in (vo, None)):
            continue
        site, age = row["site"].lower(), (since, row["imported_at"])
        # a newer list of a site replaces the older one as a whole: sites leave federations
        if age < latest.get(site, age):
            continue
        if age > latest.setdefault(site, age):
            found[site], latest[site] = {}, age
        found[site][row["federation"]] = row["fraction"]
    return found


def pledged(
    pledges: Pledges,
    by: Sequence[str],
    keys: Iterable[tuple[Any, ...]],
    window: Window,
    renamed: Callable[[str], str | None],
    extra: Iterable[str],
) -> dict[tuple[Any, ...], float]:
    """Return the pledged hours of groups; those with a pledge in a benchmark that they lack are added.

    ``by``: federation, and site or month; a key has their values, then the benchmark. ``renamed``: name of
    the benchmark in the keys. ``extra``: federations that have groups even without jobs.
    """
    at = by.index("federation")
    # without the benchmark: a pledge has its own, whatever the jobs were counted in
    places = {key[:-1] for key in keys if key[at] is not None}
    for federation, month in product(extra, months_of(window) if "month" in by else [""]):
        places.add(tuple({"federation": federation, "month": month}[name] for name in by))
    found: dict[tuple[Any, ...], float] = defaultdict(float)
    for place in places:
        group = dict(zip(by, place, strict=True))
        fraction = pledges.fraction(group["federation"], group.get("site"))
        hours = pledges.hours(group["federation"], part_of(window, group.get("month"))) if fraction else None
        for benchmark, value in (hours or {}).items():
            found[(*place, renamed(benchmark))] += fraction * value
    return dict(found)


def months_of(window: Window) -> Iterator[str]:
    """Yield the months that a window touches, as 2026-04."""
    day = window.start.replace(day=1)
    while day < window.end:
        yield f"{day:%Y-%m}"
        # 31 days after a first is always in the next month
        day = (day + timedelta(days=31)).replace(day=1)


def part_of(window: Window, month: str | None) -> Window:
    """Return the part of a window in a month, None: all of it."""
    if month is None:
        return window
    of_month = Window.parse(month)
    return Window(max(window.start, of_month.start), min(window.end, of_month.end))


def pledge_notes(
    pledges: Pledges, mixed: Collection[str], without: Collection[str], *, restricted: bool
) -> Iterator[str]:
    """Yield sentences about what pledges are compared with.

    ``mixed``: federations with work in a benchmark other than the pledge's; ``without``: those without jobs.
    """
    if not pledges.vos:
        yield "no pledges in the window; import them: esjobs ingest pledges"
    elif pledges.vo is None:
        yield f"pledges of {', '.join(pledges.vos)}: choose the VO of these jobs with --vo; pledge_h is empty"
    elif restricted:
        yield f"pledges of {pledges.vo} are those of complete federations; conditions restrict only the work"
    else:
        yield f"pledges of {pledges.vo}"
        if len(pledges.vos) > 1:
            yield "work of all jobs: their records name no VO; restrict it by --where, such as source=NAME"
    if pledges.several:
        yield (
            f"{many(len(pledges.several), 'site')} in several federations: work that cannot be divided "
            "counts for none of them"
        )
    if mixed:
        yield (
            f"{_listed(mixed)}: work and pledge in different benchmarks are not compared; --one-scale adds "
            "HS06-hours and HS23-hours one to one, as WLCG does"
        )
    if without:
        yield f"{many(len(without), 'federation')} with a pledge, without jobs: {_listed(without)}"


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
