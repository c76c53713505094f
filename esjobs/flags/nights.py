"""Update of flags through a night, and through the later nights that are done.

The flag after a night follows from the flag before it and from the night's verdicts. So a repeated night is
followed by all nights after it: the result does not depend on the order of runs. Usually a night is the last
one: one step, whatever the history.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from typing import Any

from esjobs.core.errors import NoResultError
from esjobs.core.query import Count, Days, In, Query
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.words import LEVELS
from esjobs.flags.evidence import Key, NightRuns, StoredVerdicts
from esjobs.flags.settings import WatchSettings
from esjobs.flags.states import Flag, NewDeclaration, Note, Sighting, after, notes_of
from esjobs.publish.latest import latest_run
from esjobs.publish.publication import read_table, replaced, tidy
from esjobs.records.declared.origin import DISAGREEMENT, same_value
from esjobs.records.names.cpu_models import canonical
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_EVENTS, FLAG_HISTORY, FLAG_NOTES, FLAG_STATES
from esjobs.schema.speed import SPEED
from esjobs.store.base import Change, Hide, JobStore

Flags = Mapping[Key, Flag]


def watch(
    store: JobStore,
    night: date | None,
    settings: WatchSettings,
    window_days: int,
    *,
    entered: Sequence[Note] = (),
    also: Sequence[Change] = (),
) -> RunReport:
    """Bring states and events of flags up to a night (None: that of the latest run), in one switch.

    Reads the verdicts of the runs whose windows end with the night, and of those a window earlier; fits must
    be published. ``window_days``: length of the followed window, or the longest below it; shorter ones are
    evidence. ``entered``: notes that become visible in the same switch, by ``also``. A night older than the
    replay limit is final: nothing changes, and a note says so. Raises :class:`NoResultError` if no complete
    unrestricted run ends with the night.
    """
    began = time.perf_counter()
    latest = latest_run(store, SPEED)
    if latest is None:
        raise NoResultError("no complete run, so flags cannot be updated; run: esjobs run")
    last = latest.window.last_day if latest.end == latest.window.end else None
    requested = night or last
    if requested is None:
        raise NoResultError(
            f"{latest.title} ends after its data, so it belongs to no night; run: esjobs watch --night DATE"
        )
    verdicts = StoredVerdicts(store, window_days, settings.margin)
    # nights after the requested one are made again: each follows from the one before
    walk = Walk(store, requested, max(requested, last or requested), settings, verdicts, entered)
    store.publish([*also], walk.changes)
    tidy(store)
    return walk.report(time.perf_counter() - began)


class Walk:
    """Update from one night to the last one, made while we may publish."""

    def __init__(
        self,
        store: JobStore,
        night: date,
        last: date,
        settings: WatchSettings,
        verdicts: StoredVerdicts,
        entered: Sequence[Note],
    ) -> None:
        self._store = store
        self._night = night
        self._last = last
        self._settings = settings
        self._verdicts = verdicts
        self._entered = entered
        self._notes: dict[tuple[str, str], list[Note]] = defaultdict(list)
        self._remarks: list[str] = []
        self._seen = 0
        self._run = "-"
        self._events: Sequence[Mapping[str, Any]] = ()
        self._flags: Flags = {}

    def changes(self) -> list[Change]:
        """Return the changes of the tables; no other process publishes meanwhile."""
        remembered = remembered_nights(self._store)
        newest = max([self._last, *remembered])
        settled = newest - timedelta(days=self._settings.replay_nights)
        if remembered and self._night <= settled:
            self._remarks.append(
                f"flags of {self._night} are final (only the last {self._settings.replay_nights} nights up "
                f"to {newest} can change); they were not updated"
            )
            self._flags = self._stored(FLAG_STATES)
            return []
        verdicts = self._verdicts
        nights = [self._night + timedelta(days=ahead) for ahead in range((newest - self._night).days + 1)]
        verdicts.look_ahead(nights)
        if verdicts.runs_of(self._night) is None and self._night not in remembered:
            raise NoResultError(
                f"no complete unrestricted run ends on {self._night}, so flags cannot be updated; list runs: "
                "esjobs show runs"
            )
        self._read_notes()
        written = self._through(nights, remembered)
        # the newest settled night is what the first one that can be run again goes on from
        base = max((night for night in remembered if night <= settled), default=settled)
        written += [Hide(FLAG_HISTORY, night.isoformat()) for night in sorted(remembered) if night < base]
        for level in LEVELS:
            of_level = [flag for flag in self._flags.values() if flag.level == level]
            written.append(replaced(self._store, FLAG_STATES, level, rows_of(of_level)))
        return written

    def _through(self, nights: Sequence[date], remembered: Collection[date]) -> list[Change]:
        earlier = max((other for other in remembered if other < self._night), default=None)
        flags: Flags = {} if earlier is None else self._stored(FLAG_HISTORY, earlier)
        written: list[Change] = []
        for night in nights:
            runs = self._verdicts.runs_of(night)
            if runs is not None:
                flags, events = self._step(flags, runs)
                written += [
                    replaced(self._store, FLAG_HISTORY, night.isoformat(), rows_of(flags.values())),
                    replaced(self._store, FLAG_EVENTS, night.isoformat(), events),
                ]
            elif night in remembered:  # its verdicts were removed: what follows goes on from what is stored
                self._remarks.append(f"the runs of night {night} no longer exist; its flags were not updated")
                flags = self._stored(FLAG_HISTORY, night)
        self._flags = flags
        return written

    def report(self, seconds: float) -> RunReport:
        """Return the report of the requested night."""
        states = Counter(str(flag.state) for flag in self._flags.values())
        kinds = Counter(str(event["kind"]) for event in self._events)
        return RunReport(
            "watch",
            self._run,
            self._seen,
            len(self._flags),
            seconds,
            rows_are="verdicts",
            rows_become="flags",
            counts={
                **{f"state {state}": count for state, count in sorted(states.items())},
                **{f"event {kind}": count for kind, count in sorted(kinds.items())},
            },
            notes=tuple(self._remarks),
            window=str(self._night),
        )

    def _step(self, flags: Flags, runs: NightRuns) -> tuple[Flags, list[dict[str, Any]]]:
        seen = self._declared(flags, runs.night, self._verdicts.sightings(runs))
        keys = {*flags, *(key for key, sighting in seen.items() if sighting.verdict == "deviates")}
        updated: dict[Key, Flag] = {}
        events: list[dict[str, Any]] = []
        for key in sorted(keys):
            flag = flags.get(key) or Flag(*key)
            notes = list(notes_of(flag, self._notes[key[0], key[2]]))
            flag, happened = after(flag, seen.get(key), notes, runs.night, self._settings)
            events += happened
            if flag.state is not None:
                updated[key] = flag
        if runs.night == self._night:
            self._seen, self._run, self._events = len(seen), runs.followed.run, events
        return updated, events

    def _declared(self, flags: Flags, night: date, seen: Mapping[Key, Sighting]) -> dict[Key, Sighting]:
        """Add the new declaration to sightings of names that declare another value than before.

        A value that follows from records moves with the window while it covers two values: it is new once it
        is constant.
        """
        found = dict(seen)
        changed = [
            (key, flag) for key, flag in flags.items() if key in seen and _declares_other(flag, seen[key])
        ]
        if not changed:
            return found
        since = _imported_since(self._store, {key[0] for key, _ in changed})
        for key, flag in changed:
            value = float(seen[key].corepower or 0.0)
            imported = since[key[0], key[2]]
            valid = [day for number, day in imported if day <= night and same_value(number, value)]
            if valid or not same_value(flag.corepower, value, DISAGREEMENT):
                new = NewDeclaration(value, max(valid, default=night))
                found[key] = replace(seen[key], declared=new)
        return found

    def _read_notes(self) -> None:
        stored = read_notes(self._store)
        new = {note.note_id: note for note in self._entered}
        # those entered now are not stored yet, or are there already where this is tried again
        for note in {**{note.note_id: note for note in stored}, **new}.values():
            self._notes[note.level, note.name].append(note)

    def _stored(self, table: Table, night: date | None = None) -> Flags:
        where = [] if night is None else [Days("night", night, night)]
        rows = read_table(self._store, table, where).to_pylist()
        flags = (Flag(**row) for row in rows)
        return {(flag.level, flag.processing_type, flag.name): flag for flag in flags}


def _declares_other(flag: Flag, seen: Sighting) -> bool:
    # the mean of a site moves with the core time of its queues, a published score with SMT states and tables
    if flag.corepower is None or seen.corepower is None or seen.origin in ("changed", "mean", "reference"):
        return False
    return not same_value(flag.corepower, seen.corepower)


def states_of(store: JobStore, night: date) -> list[Change]:
    """Return the changes that restore the flag states of the newest remembered night up to ``night``."""
    newest = max((other for other in remembered_nights(store) if other <= night), default=None)
    where = [] if newest is None else [Days("night", newest, newest)]
    rows = [] if newest is None else read_table(store, FLAG_HISTORY, where).to_pylist()
    return [
        replaced(store, FLAG_STATES, level, [row for row in rows if row["level"] == level])
        for level in LEVELS
    ]


def rows_of(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Return rows of ``flag_states``, sorted by level, type and name."""
    ordered = sorted(flags, key=lambda flag: (flag.level, flag.processing_type, flag.name))
    return [asdict(flag) for flag in ordered]


def remembered_nights(store: JobStore) -> set[date]:
    """Return the nights with stored flags; counted by the store."""
    nights = store.aggregate(Query(("night",), (Count("n_flags"),), over=FLAG_HISTORY)).table
    return {night for night in nights.column("night").to_pylist() if night is not None}


def read_notes(store: JobStore, names: Sequence[str] = ()) -> list[Note]:
    """Return the notes in the order of entry; ``names``: about these only."""
    where = [In("name", tuple(names))] if names else []
    rows = read_table(store, FLAG_NOTES, where).to_pylist()
    return sorted((Note(**row) for row in rows), key=lambda note: note.order)


def _imported_since(
    store: JobStore, levels: Iterable[str]
) -> Mapping[tuple[str, str], Sequence[tuple[float, date]]]:
    # Imported declared values with their first days, by level and name.
    where = [In("level", tuple(sorted(levels)))]
    rows = read_table(store, COREPOWER, where, ["level", "name", "corepower", "valid_from"]).to_pylist()
    found: dict[tuple[str, str], list[tuple[float, date]]] = defaultdict(list)
    for row in rows:
        if row["corepower"] is not None and row["valid_from"] is not None:
            found[row["level"], canonical(row)].append((row["corepower"], row["valid_from"].date()))
    return found
