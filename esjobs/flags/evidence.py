"""Verdicts of one night per name, and their confirmation on disjoint sets of jobs.

Disjoint are windows of one length that do not overlap, and two kinds of work in one window (each task is of
one kind, and each kind has a fit of its own). Leaving out one task after the other is not such evidence: the
remaining jobs overlap.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
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

Key = tuple[str, str, str]  # Level, processing type and name
Rows = Mapping[Key, Mapping[str, Any]]  # The flags of one run by the headline method
# An earlier window may end so many days before the later one begins: nights may be missing
_MOST_EARLIER_DAYS = 7
_SIGHTED = columns("verdict confirmed site k k_err corepower benchmark origin deviation proposed_corepower")
_COLUMNS = (*columns("run method level processing_type name sentence deviation_err"), *_SIGHTED)


@dataclass(frozen=True)
class NightRuns:
    """Runs of one night: the followed one, and shorter ones with the same end."""

    night: date
    followed: StoredRun
    shorter: tuple[StoredRun, ...] = ()

    @property
    def all(self) -> tuple[StoredRun, ...]:
        """All runs, from long to short."""
        return self.followed, *self.shorter


class StoredVerdicts:
    """Runs and flags behind nights, each read once."""

    def __init__(self, store: JobStore, window_days: int, margin: float) -> None:
        self._store = store
        self._window_days = window_days
        self._margin = margin
        self._runs: dict[date, list[StoredRun]] = {}
        self._rows: dict[str, Rows] = {}

    def runs_of(self, night: date) -> NightRuns | None:
        """Return the complete unrestricted runs whose windows end with a night; None without any.

        The longest up to the length in the settings is followed, else the shortest. Of several runs of one
        window the newest counts.
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
        ends = (Window.of_days(night, night).end.isoformat() for night in wanted)
        where = [In("window_end", tuple(ends))]
        found = runs_of(read_table(self._store, RUNS, where, COLUMNS).to_pylist(), SPEED)
        for night in wanted:
            self._runs[night] = []
        for run in found:
            goes_on_beyond_data = run.end < run.window.end  # such a run belongs to no night yet
            if run.complete and run.scope == EVERYTHING and not goes_on_beyond_data:
                self._runs[run.window.last_day].append(run)

    def sightings(self, runs: NightRuns) -> dict[Key, Sighting]:
        """Return the verdicts of a night by name, from the followed run.

        A name that this run could not compare is taken from the longest shorter window that could. If its
        speed changed inside the window, its jobs scatter as if the records were wrong; a window after the
        change compares it again.
        """
        # one request for all earlier windows, then one for all flags
        self.look_ahead(chain.from_iterable(map(_nights_before, runs.all)))
        earlier = [self._earlier(run) for run in runs.all]
        self._read_flags([*runs.all, *filter(None, earlier)])
        limit = float(runs.followed.settings.get("fit", {}).get("deviation_limit", DEVIATION_LIMIT))
        tables = [self._verdicts(run, limit) for run in runs.all]
        before = [None if other is None else self._verdicts(other, limit) for other in earlier]
        kinds = [verdicts.confirmed_kinds() for verdicts in tables]
        found = {}
        for key in tables[0].rows:
            # the longest window that compares it; shorter ones confirm
            index = next((n for n, verdicts in enumerate(tables) if verdicts.compares(key)), 0)
            found[key] = _sighting(key, runs.all[index], tables[index:], before[index:], kinds[index:])
        return found

    def _ending(self, night: date) -> Sequence[StoredRun]:
        self.look_ahead([night])
        return self._runs[night]

    def _earlier(self, run: StoredRun) -> StoredRun | None:
        # The newest run of the same length that ends before this one begins.
        similar = (
            other
            for night in _nights_before(run)
            for other in self._ending(night)
            if other.window.days == run.window.days
        )
        return next(similar, None)

    def _verdicts(self, run: StoredRun, limit: float) -> "_Verdicts":
        return _Verdicts(run.window, self._rows[run.run], limit, self._margin)

    def _read_flags(self, runs: Iterable[StoredRun]) -> None:
        wanted = {run.run: run.headline for run in runs if run.run not in self._rows}
        if not wanted:
            return
        where = [In("run", tuple(sorted(wanted)))]
        methods = {method for method in wanted.values() if method is not None}
        # a run without a headline is read whole, and the others with it
        if len(methods) == len(set(wanted.values())):
            where.append(In("method", tuple(sorted(methods))))
        found: dict[str, dict[Key, Mapping[str, Any]]] = {run: {} for run in wanted}
        for row in read_table(self._store, FLAGS, where, _COLUMNS).to_pylist():
            if wanted[row["run"]] in (None, row["method"]):
                found[row["run"]][row["level"], row["processing_type"], row["name"]] = row
        self._rows |= found


@dataclass(frozen=True)
class _Verdicts:
    window: Window
    rows: Rows
    limit: float
    margin: float

    def compares(self, key: Key) -> bool:
        row = self.rows.get(key)
        return row is not None and row["verdict"] in JUDGED and row["deviation"] is not None

    def confirms(self, key: Key, deviation: float) -> bool:
        row = self.rows.get(key)
        return row is not None and row["confirmed"] is True and same_side(row["deviation"], deviation)

    def confirmed_kinds(self) -> Mapping[tuple[str, str], Sequence[tuple[str, float]]]:
        """Return the types whose deviation is confirmed, with it, by level and name."""
        found = defaultdict(list)
        for (level, kind, name), row in self.rows.items():
            if kind != ALL_TYPES and row["confirmed"] is True and row["deviation"] is not None:
                found[level, name].append((kind, float(row["deviation"])))
        return {key: sorted(kinds) for key, kinds in found.items()}

    def is_calm(self, key: Key) -> bool:
        """True if the interval of a name lies inside the limit by the margin."""
        row = self.rows.get(key)
        if row is None or row["verdict"] != "ok":
            return False
        low, high = interval(row)
        return low is not None and high is not None and max(-low, high) <= self.limit - self.margin


def interval(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the ends of the 90 % interval of a deviation; None without one.

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
        **{name: row[name] for name in _SIGHTED},
        sentence=row["sentence"] or "",
        run=run.run,
        window_start=run.window.start,
        window_end=run.window.end,
        window_days=run.window.days,
        deviation_low=low,
        deviation_high=high,
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
    """Yield disjoint sets of jobs that confirm a deviation confirmed in the followed window."""
    level, kind, name = key
    for verdicts, earlier, of_kinds in zip(tables, before, kinds, strict=True):
        if not verdicts.confirms(key, deviation):
            continue
        window = verdicts.window
        if earlier is not None and earlier.confirms(key, deviation):
            text = f"confirmed in {_days(window)} and, on disjoint jobs, in {_days(earlier.window)}"
            yield Evidence(earlier.window.first_day, text)
        similar = [each for each, size in of_kinds.get((level, name), ()) if same_side(size, deviation)]
        if kind == ALL_TYPES and len(similar) > 1:
            text = f"confirmed in {_days(window)}, separately for {', '.join(similar[:-1])} and {similar[-1]}"
            yield Evidence(window.first_day, text)


def _days(window: Window) -> str:
    return day_range(window.start, window.end)


def _nights_before(run: StoredRun) -> list[date]:
    # The last nights of disjoint earlier windows, newest first.
    last = run.window.first_day - timedelta(days=1)
    return [last - timedelta(days=back) for back in range(_MOST_EARLIER_DAYS)]
