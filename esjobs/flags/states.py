"""States of one flag: a pure function of the state before and of one night.

The flag after a night follows from the flag before it, from the verdicts of the night and from people's
notes; so repeated nights give the same. See docs/method.md for the rules in words.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

from esjobs.core.identity import content_id
from esjobs.core.tables import columns
from esjobs.core.words import JUDGED
from esjobs.flags import sentences
from esjobs.flags.settings import WatchSettings
from esjobs.schema.flags import STANDING_OPEN

State = Literal["new", "open", "acknowledged", "resolved"]
Kind = Literal[
    "noticed",
    "opened",
    "closed",
    "reopened",
    "withdrawn",
    "acknowledged",
    "expired",
    "answered",
    "declaration_changed",
    "vanished",
    "returned",
]


@dataclass(frozen=True)
class Evidence:
    """A set of jobs. ``first``: their earliest day; ``text``: description."""

    first: date
    text: str


@dataclass(frozen=True)
class NewDeclaration:
    """A new declared value and its first day."""

    corepower: float
    since: date


@dataclass(frozen=True)
class Sighting:
    """Verdicts of one night about a name; missing numbers are None.

    ``again``: other jobs that confirm a confirmed deviation. ``calm``: windows whose interval lies inside the
    limit by the margin; empty unless the followed one is among them. ``declared``: set if the declaration
    changed.
    """

    verdict: str
    confirmed: bool | None
    sentence: str
    run: str
    window_start: datetime
    window_end: datetime
    window_days: int
    site: str | None = None
    k: float | None = None
    k_err: float | None = None
    corepower: float | None = None
    benchmark: str | None = None
    origin: str | None = None
    deviation: float | None = None
    deviation_low: float | None = None
    deviation_high: float | None = None
    proposed_corepower: float | None = None
    again: tuple[Evidence, ...] = ()
    calm: tuple[Evidence, ...] = ()
    declared: NewDeclaration | None = None

    @property
    def compared(self) -> bool:
        """True if the name was compared with its declaration."""
        return self.verdict in JUDGED and self.deviation is not None


@dataclass(frozen=True)
class Note:
    """Note about a name; ``processing_type`` None: about all of its flags."""

    note_id: str
    level: str
    processing_type: str | None
    name: str
    kind: str
    entered_by: str
    until: date | None
    text: str
    entered_at: datetime
    night: date
    account: str | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        """Sort key of notes: order of entry."""
        return self.entered_at, self.note_id


@dataclass(frozen=True)
class Flag:
    """One flag after a night; the columns of ``flag_states``."""

    level: str
    processing_type: str
    name: str
    site: str | None = None
    state: State | None = None
    since: date | None = None
    until: date | None = None
    nights: int = 0
    k: float | None = None
    k_err: float | None = None
    corepower: float | None = None
    deviation: float | None = None
    deviation_low: float | None = None
    deviation_high: float | None = None
    proposed_corepower: float | None = None
    verdict: str | None = None
    confirmed: bool | None = None
    evidence: str | None = None
    window_start: datetime | None = None
    window_end: datetime | None = None
    window_days: int | None = None
    run: str | None = None
    night: date | None = None
    acknowledged_by: str | None = None
    acknowledged_until: date | None = None
    note: str | None = None
    last_event: str | None = None
    sentence: str | None = None
    compared_on: date | None = None
    quiet_nights: int = 0
    absent_nights: int = 0
    opened_on: date | None = None
    opened_until: date | None = None
    opened_deviation: float | None = None
    closed_on: date | None = None
    ack_id: str | None = None
    benchmark: str | None = None

    @property
    def is_open(self) -> bool:
        """True if opened and not closed, acknowledged or not."""
        return self.state in STANDING_OPEN

    @property
    def watched(self) -> bool:
        """True if the flag is not final."""
        return self.state is not None and self.state != "resolved"


_VALUES = columns(
    "site deviation deviation_low deviation_high proposed_corepower run window_start window_end window_days "
    "verdict"
)
_SEEN = (*_VALUES, *columns("confirmed k k_err"))  # columns of a flag from the night
_OF_FLAG = (*_VALUES, *columns("level processing_type name corepower since nights benchmark"))  # of an event


@dataclass
class Night:
    """A flag during one night, with its events so far."""

    flag: Flag
    night: date
    events: list[dict[str, Any]] = field(default_factory=list)

    def happened(
        self,
        kind: Kind,
        sentence: str,
        evidence: str | None = None,
        to_state: State | None = None,
        **more: object,
    ) -> None:
        """Add an event; without ``to_state`` the state stays. ``more``: further columns of the event."""
        flag = self.flag
        to_state = to_state or flag.state
        # from what it is about, so that a night run again gives its events the same ids
        event = content_id(
            {
                "level": flag.level,
                "processing_type": flag.processing_type,
                "name": flag.name,
                "night": self.night.isoformat(),
                "kind": kind,
            }
        )
        concerns_open = flag.is_open or to_state in STANDING_OPEN
        self.events.append(
            {
                "event": event,
                "night": self.night,
                "kind": kind,
                "from_state": flag.state,
                "to_state": to_state,
                "confirmed": concerns_open,
                "sentence": sentence,
                "evidence": evidence,
                "position": len(self.events) + 1,
                **{name: getattr(flag, name) for name in _OF_FLAG},
                **more,
            }
        )
        self.flag = replace(flag, state=to_state, last_event=event)

    def set(self, **values: Any) -> None:
        """Replace values of the flag."""
        self.flag = replace(self.flag, **values)


def after(
    flag: Flag, seen: Sighting | None, notes: Sequence[Note], night: date, settings: WatchSettings
) -> tuple[Flag, list[dict[str, Any]]]:
    """Return the flag after a night, and its rows of ``flag_events``.

    ``flag``: as of the night before, without a state if never flagged. ``seen``: None if the name has no
    verdict. ``notes``: about it, in any order. A flag that was never flagged and is not now keeps no state.
    """
    at = Night(flag, night)
    if seen is None or not seen.compared:
        _not_compared(at, seen, settings)
    else:
        _compared(at, seen, settings)
    if at.flag.state is None:
        return flag, []
    # last, so that a flag which opened tonight can be acknowledged tonight
    _acknowledge(at, notes)
    _answers(at, notes)
    at.set(night=night, sentence=sentences.of_state(at.flag, seen))
    return at.flag, at.events


def _not_compared(at: Night, seen: Sighting | None, settings: WatchSettings) -> None:
    # A night without a comparison opens and closes nothing; after some such nights an event says so.
    at.set(
        verdict=None if seen is None else seen.verdict,
        confirmed=None,
        absent_nights=at.flag.absent_nights + 1,
    )
    if at.flag.watched and at.flag.absent_nights == settings.absent_nights:
        if at.flag.state == "new":
            _resolve(at, "withdrawn", sentences.withdrawn(at.flag), sentences.absence(at.flag, seen))
        else:
            at.happened("vanished", sentences.vanished(at.flag), sentences.absence(at.flag, seen))


def _compared(at: Night, seen: Sighting, settings: WatchSettings) -> None:
    before = at.flag
    at.set(**{name: getattr(seen, name) for name in _SEEN}, compared_on=at.night, absent_nights=0)
    if before.watched and before.absent_nights >= settings.absent_nights:
        at.happened("returned", sentences.returned(at.flag))
    # before the verdict: an event of it speaks of the value declared now
    _declaration(at, seen)
    deviates = seen.verdict == "deviates"
    if deviates and not before.watched:  # a new one, or again after it was resolved
        at.set(since=at.night, until=None, nights=0, evidence=None)
    at.set(nights=at.flag.nights + deviates, quiet_nights=0 if deviates else at.flag.quiet_nights + 1)
    if deviates:
        _deviates(at, seen)
    elif at.flag.state == "new" and (seen.verdict == "ok" or at.flag.quiet_nights >= settings.quiet_nights):
        _resolve(at, "withdrawn", sentences.withdrawn(at.flag), None)
    elif at.flag.is_open and (calm := _calm(at.flag, seen)) is not None:
        _resolve(at, "closed", sentences.closed(at.flag), calm.text)


def _declaration(at: Night, seen: Sighting) -> None:
    before, new = at.flag, seen.declared
    at.set(benchmark=seen.benchmark)
    if new is None:
        at.set(corepower=seen.corepower if before.corepower is None else before.corepower)
        return
    at.set(corepower=new.corepower)
    if before.watched and before.corepower is not None:
        at.happened(
            "declaration_changed",
            sentences.declared(at.flag, before.corepower, new.since),
            corepower_before=before.corepower,
            changed_on=new.since,
        )


def _deviates(at: Night, seen: Sighting) -> None:
    flag = at.flag
    again = _again(flag, seen)
    turned = flag.is_open and not same_side(flag.opened_deviation, seen.deviation)
    if flag.is_open and (again is None or not turned):
        return
    if again is None:
        lacking = sentences.lacking(seen.confirmed)
        at.set(evidence=lacking)
        if not flag.watched:
            at.happened("noticed", sentences.noticed(flag), lacking, to_state="new")
        return
    if turned:
        # what was acknowledged was another deviation
        before = at.night - timedelta(days=1)
        at.set(since=at.night, nights=1, closed_on=before, **_UNACKNOWLEDGED)
    # to the other side it is another deviation, not the same again
    is_same = flag.opened_on is not None and same_side(flag.opened_deviation, seen.deviation)
    opened = sentences.opened(at.flag, again=is_same)
    at.happened("reopened" if is_same else "opened", opened, again.text, to_state="open")
    at.set(evidence=again.text, opened_on=at.night, opened_until=at.night, opened_deviation=seen.deviation)


def same_side(left: float | None, right: float | None) -> bool:
    """True if both deviations have the same sign; False if one is missing.

    >>> same_side(-0.3, -0.4), same_side(-0.3, 0.4), same_side(None, 0.4)
    (True, False, False)
    """
    if left is None or right is None:
        return False
    return math.copysign(1.0, left) == math.copysign(1.0, right)


def _again(flag: Flag, seen: Sighting) -> Evidence | None:
    # Of a closed flag only evidence later than its end counts.
    if seen.confirmed is not True:
        return None
    closed = flag.closed_on if flag.opened_on is not None else None
    return next((item for item in seen.again if closed is None or item.first > closed), None)


def _calm(flag: Flag, seen: Sighting) -> Evidence | None:
    # Only jobs later than those that opened the flag count.
    opened = flag.opened_until
    return next((item for item in seen.calm if opened is None or item.first > opened), None)


_UNACKNOWLEDGED: dict[str, Any] = dict.fromkeys(columns("acknowledged_by acknowledged_until note ack_id"))


def _resolve(at: Night, kind: Kind, sentence: str, evidence: str | None) -> None:
    at.happened(kind, sentence, evidence, to_state="resolved")
    at.set(until=at.night, closed_on=at.night, evidence=evidence, **_UNACKNOWLEDGED)


def _acknowledge(at: Night, notes: Sequence[Note]) -> None:
    # The newest acknowledgement since the last close holds until its day; closing ends it.
    flag = at.flag
    if not flag.is_open:
        return
    notes_in_force = [
        note
        for note in notes
        if note.kind == "ack"
        and note.night <= at.night
        and (flag.closed_on is None or note.night > flag.closed_on)
    ]
    newest = max(notes_in_force, key=lambda note: note.order, default=None)
    in_force = newest if newest is not None and newest.until and at.night < newest.until else None
    if in_force is not None and in_force.note_id != flag.ack_id:
        at.set(
            acknowledged_by=in_force.entered_by,
            acknowledged_until=in_force.until,
            note=in_force.text,
            ack_id=in_force.note_id,
        )
        at.happened(
            "acknowledged",
            sentences.acknowledged(at.flag),
            to_state="acknowledged",
            entered_by=in_force.entered_by,
            acknowledged_until=in_force.until,
            text=in_force.text,
        )
    elif in_force is None and flag.state == "acknowledged":
        at.happened(
            "expired",
            sentences.expired(flag, at.night),
            to_state="open",
            entered_by=flag.acknowledged_by,
            acknowledged_until=flag.acknowledged_until,
            text=flag.note,
        )
        at.set(**_UNACKNOWLEDGED)


def _answers(at: Night, notes: Sequence[Note]) -> None:
    # Several answers of one night are one event; those of nights without verdicts wait for the next one.
    since = at.flag.night
    notes_in_force = sorted(
        (
            note
            for note in notes
            if note.kind == "answer"
            and note.night <= at.night
            and (note.night == at.night or (since is not None and note.night > since))
        ),
        key=lambda note: note.order,
    )
    if notes_in_force:
        at.happened(
            "answered",
            sentences.answered(at.flag, [(note.entered_by, note.text) for note in notes_in_force]),
            entered_by=notes_in_force[-1].entered_by,
            text="\n".join(note.text for note in notes_in_force),
        )


def notes_of(flag: Flag, notes: Sequence[Note]) -> Iterator[Note]:
    """Yield the notes about a flag."""
    kinds = (None, flag.processing_type)
    for note in notes:
        if (note.level, note.name) == (flag.level, flag.name) and note.processing_type in kinds:
            yield note
