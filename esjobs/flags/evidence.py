"""What the verdicts of one night say of every name, and which jobs apart from others say so, too.

Two sets of jobs are apart when none is in both: windows of one length that do not overlap, or two kinds of
work in one window (each task is of one kind, and each kind has a fit of its own). Leaving out one task after
the other is no such evidence: what is left overlaps.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from esjobs.core.numbers import day_range
from esjobs.core.query import In
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT, HALF_WIDTH_90, JUDGED
from esjobs.flags.states import Evidence, Sighting, same_side
from esjobs.publish.publication import read_table
from esjobs.publish.stored import COLUMNS, EVERYTHING, StoredRun, runs_of
from esjobs.schema.runs import RUNS
from esjobs.schema.speed import FLAGS, SPEED
from esjobs.store.base import JobStore

Key = tuple[str, str, str]
"""Level, processing type and name."""
Rows = Mapping[Key, Mapping[str, Any]]
"""The flags of one run by the headline method."""

_MOST_EARLIER_DAYS = 7
"""An earlier window may end so many days before the later one begins: nights may be missing."""

_COLUMNS = columns(
    "run method level processing_type name site verdict confirmed sentence corepower benchmark origin "
    "k k_err deviation deviation_err proposed_corepower"
)


@dataclass(frozen=True)
class NightRuns:
    """The runs of one night: the one that is followed, and the shorter ones that end with it."""

    night: date
    followed: StoredRun
    shorter: tuple[StoredRun, ...] = ()

    @property
    def all(self) -> tuple[StoredRun, ...]:
        """The followed one first, then from long to short."""
        return self.followed, *self.shorter


class StoredVerdicts:
    """The runs and flags that nights rest on, each read once."""

    def __init__(self, store: JobStore, window_days: int, margin: float) -> None:
        self._store = store
        self._window_days = window_days
        self._margin = margin
        self._runs: dict[date, list[StoredRun]] = {}
        self._rows: dict[str, Rows] = {}

    def runs_of(self, night: date) -> NightRuns | None:
        """The complete runs of everything whose windows end with a night; None without any.

        Followed is the longest of at most the settings' length; where all are longer, the shortest. Of
        several runs of one window the one that was made last counts.
        """
        newest: dict[int, StoredRun] = {}
        for run in self._ending(night):
            newest.setdefault(run.window.days, run)
        if not newest:
            return None
        short_enough = [days for days in newest if days <= self._window_days]
        followed = max(short_enough, default=min(newest))
        shorter = sorted((days for days in newest if days < followed), reverse=True)
        return NightRuns(night, newest[followed], tuple(newest[days] for days in shorter))

    def look_ahead(self, nights: Iterable[date]) -> None:
        """Read the runs that end with these nights in one request."""
        wanted = [night for night in nights if night not in self._runs]
        if not wanted:
            return
        ends = [_end(night) for night in wanted]
        where = [In("window_end", tuple(end.isoformat() for end in ends))]
        found = runs_of(read_table(self._store, RUNS, where, COLUMNS).to_pylist(), SPEED)
        for night in wanted:
            self._runs[night] = []
        for run in found:
            goes_on_beyond_data = run.end < run.window.end
            if run.complete and run.scope == EVERYTHING and not goes_on_beyond_data:
                self._runs[run.window.last_day].append(run)

    def sightings(self, runs: NightRuns) -> dict[Key, Sighting]:
        """What a night says of every name in the verdicts of the run that is followed.

        A name that this run could not compare is followed in the longest shorter window that could. So a
        queue whose speed changed, of which jobs before and after are in one window and scatter as if its
        records were wrong, is known again as soon as a window holds only jobs after it.
        """
        self.look_ahead(night for run in runs.all for night in _nights_before(run))
        earlier = {run.run: self._earlier(run) for run in runs.all}
        self._read_flags([*runs.all, *(run for run in earlier.values() if run is not None)])
        limit = float(runs.followed.settings.get("fit", {}).get("deviation_limit", DEVIATION_LIMIT))
        tables = [_Verdicts(run.window, self._rows[run.run], limit, self._margin) for run in runs.all]
        before = [
            None if other is None else _Verdicts(other.window, self._rows[other.run], limit, self._margin)
            for run in runs.all
            for other in [earlier[run.run]]
        ]
        kinds = [verdicts.confirmed_kinds() for verdicts in tables]
        found = {}
        for key in tables[0].rows:
            place = next((n for n, verdicts in enumerate(tables) if verdicts.compares(key)), 0)
            found[key] = _sighting(key, runs.all[place], tables[place:], before[place:], kinds[place:])
        return found

    def _ending(self, night: date) -> Sequence[StoredRun]:
        self.look_ahead([night])
        return self._runs[night]

    def _earlier(self, run: StoredRun) -> StoredRun | None:
        """The newest run of a window as long that ends before another begins; None without a near one."""
        alike = (
            other
            for night in _nights_before(run)
            for other in self._ending(night)
            if other.window.days == run.window.days
        )
        return next(alike, None)

    def _read_flags(self, runs: Iterable[StoredRun]) -> None:
        """The flags of runs by their headline method, in one request."""
        wanted = {run.run: run.headline for run in runs if run.run not in self._rows}
        if not wanted:
            return
        where = [In("run", tuple(sorted(wanted)))]
        methods = {method for method in wanted.values() if method is not None}
        if methods and None not in wanted.values():
            where.append(In("method", tuple(sorted(methods))))
        found: dict[str, dict[Key, Mapping[str, Any]]] = {run: {} for run in wanted}
        for row in read_table(self._store, FLAGS, where, _COLUMNS).to_pylist():
            if wanted[row["run"]] in (None, row["method"]):
                found[row["run"]][row["level"], row["processing_type"], row["name"]] = row
        self._rows |= found


@dataclass(frozen=True)
class _Verdicts:
    """The flags of one window."""

    window: Window
    rows: Rows
    limit: float
    margin: float

    def compares(self, key: Key) -> bool:
        """Whether a name was held against what it declares."""
        row = self.rows.get(key)
        return row is not None and row["verdict"] in JUDGED and row["deviation"] is not None

    def confirms(self, key: Key, deviation: float) -> bool:
        """Whether a deviation to the same side is confirmed."""
        row = self.rows.get(key)
        return row is not None and row["confirmed"] is True and same_side(row["deviation"], deviation)

    def confirmed_kinds(self) -> Mapping[tuple[str, str], Sequence[tuple[str, float]]]:
        """Per level and name, the kinds of work in which a deviation is confirmed, with the deviation."""
        found = defaultdict(list)
        for (level, kind, name), row in self.rows.items():
            if kind != ALL_TYPES and row["confirmed"] is True and row["deviation"] is not None:
                found[level, name].append((kind, float(row["deviation"])))
        return {key: sorted(kinds) for key, kinds in found.items()}

    def is_calm(self, key: Key) -> bool:
        """Whether the interval of a name lies inside the limit by the margin."""
        row = self.rows.get(key)
        if row is None or row["verdict"] != "ok":
            return False
        low, high = interval(row)
        return low is not None and high is not None and max(-low, high) <= self.limit - self.margin


def interval(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The ends of the 90 % interval of a deviation; None without one.

    >>> interval({"deviation": 0.5, "deviation_err": 0.0}), interval({"deviation": None, "deviation_err": 1})
    ((0.5, 0.5), (None, None))
    """
    deviation, error = row["deviation"], row["deviation_err"]
    if deviation is None or error is None:
        return None, None
    return deviation - HALF_WIDTH_90 * error, deviation + HALF_WIDTH_90 * error


def _sighting(
    key: Key,
    run: StoredRun,
    tables: Sequence[_Verdicts],
    before: Sequence[_Verdicts | None],
    kinds: Sequence[Mapping[tuple[str, str], Sequence[tuple[str, float]]]],
) -> Sighting:
    """What the first of these windows says of a name, with the evidence of all of them."""
    row = tables[0].rows[key]
    low, high = interval(row)
    deviation = row["deviation"]
    again: tuple[Evidence, ...] = ()
    if row["confirmed"] is True and deviation is not None:
        again = tuple(_again(key, float(deviation), tables, before, kinds))
    calm: tuple[Evidence, ...] = ()
    if tables[0].is_calm(key):
        calm = tuple(
            Evidence(verdicts.window.first_day, f"within the limit in {_days(verdicts.window)}")
            for verdicts in tables
            if verdicts.is_calm(key)
        )
    return Sighting(
        verdict=row["verdict"],
        confirmed=row["confirmed"],
        sentence=row["sentence"] or "",
        run=run.run,
        window_start=run.window.start,
        window_end=run.window.end,
        window_days=run.window.days,
        site=row["site"],
        k=row["k"],
        k_err=row["k_err"],
        corepower=row["corepower"],
        benchmark=row["benchmark"],
        origin=row["origin"],
        deviation=deviation,
        deviation_low=low,
        deviation_high=high,
        proposed_corepower=row["proposed_corepower"],
        again=again,
        calm=calm,
    )


def _again(
    key: Key,
    deviation: float,
    tables: Sequence[_Verdicts],
    before: Sequence[_Verdicts | None],
    kinds: Sequence[Mapping[tuple[str, str], Sequence[tuple[str, float]]]],
) -> Iterable[Evidence]:
    """Which jobs apart from each other confirm a deviation that the followed window confirms."""
    level, kind, name = key
    for verdicts, earlier, of_kinds in zip(tables, before, kinds, strict=True):
        if not verdicts.confirms(key, deviation):
            continue
        window = verdicts.window
        if earlier is not None and earlier.confirms(key, deviation):
            text = f"confirmed in {_days(window)} and, on other jobs, in {_days(earlier.window)}"
            yield Evidence(earlier.window.first_day, text)
        alike = [each for each, size in of_kinds.get((level, name), ()) if same_side(size, deviation)]
        if kind == ALL_TYPES and len(alike) > 1:
            text = f"confirmed in {_days(window)}, apart in {', '.join(alike[:-1])} and {alike[-1]}"
            yield Evidence(window.first_day, text)


def _days(window: Window) -> str:
    return day_range(window.start, window.end)


def _nights_before(run: StoredRun) -> list[date]:
    """The nights with which a window can end that is apart from another, the newest first."""
    last = run.window.first_day - timedelta(days=1)
    return [last - timedelta(days=back) for back in range(_MOST_EARLIER_DAYS)]


def _end(night: date) -> datetime:
    return datetime.combine(night + timedelta(days=1), time(0), UTC)
