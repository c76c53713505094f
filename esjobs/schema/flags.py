"""Memory of flags: states, their changes, and what people entered."""

from esjobs.core.columns import LEVEL, TYPE
from esjobs.core.tables import Table, column, columns

STATES = ("new", "open", "acknowledged", "resolved")
"""States of a flag."""
STANDING_OPEN = ("open", "acknowledged")
"""The states of a flag that was opened and is not closed."""
# declaration_changed: an edit of the declared value may resolve a deviation, but changes no speed
EVENT_KINDS = columns(
    "noticed opened closed reopened withdrawn acknowledged expired answered declaration_changed vanished "
    "returned"
)
"""Events of a flag."""
NOTE_KINDS = ("ack", "answer")
"""Kinds of notes that people enter."""

_NAME = column("name", "keyword", "queue, site or CPU model")
_SITE = column("site", "keyword", "site of the queue, or the site itself; null for CPU models")
_DEVIATION = (
    column("deviation", "number", "relative deviation in the followed window at the last comparison"),
    column("deviation_low", "number", "lower end of its 90 % interval"),
    column("deviation_high", "number", "upper end of its 90 % interval"),
)
_PROPOSAL = column("proposed_corepower", "number", "proposed corepower of the verdict, or null")
_WINDOW = (
    column("window_start", "time", "start of the followed window", "UTC"),
    column("window_end", "time", "end of the followed window, not included", "UTC"),
)

_STATE_COLUMNS = (
    LEVEL,
    TYPE,
    _NAME,
    _SITE,
    column("state", "keyword", ", ".join(STATES), values=STATES),
    column("since", "day", "first night of the present deviation"),
    column("until", "day", "night of the resolution; null before"),
    # nights, and not days: a night that failed neither confirms nor resolves
    column("nights", "integer", "nights since then with the verdict 'deviates'", "nights"),
    column("k", "number", "speed factor at the last comparison"),
    column("k_err", "number", "its standard error"),
    column("corepower", "number", "declared benchmark score per core at the last comparison"),
    *_DEVIATION,
    _PROPOSAL,
    column("verdict", "keyword", "verdict of the night in the followed window"),
    column("confirmed", "boolean", "true if that verdict is confirmed, as in flags"),
    # two confirmations must not share jobs, or one bad week would count twice
    column("evidence", "text", "evidence for the state: the disjoint sets of jobs"),
    *_WINDOW,
    column("window_days", "integer", "length of that window", "days"),
    column("run", "keyword", "run of the last compared verdict"),
    column("night", "day", "last night before this state"),
    column("acknowledged_by", "keyword", "person who acknowledged it; null unless acknowledged"),
    column("acknowledged_until", "day", "night on which it opens again"),
    column("note", "text", "note of the acknowledgement"),
    column("last_event", "keyword", "last event that changed it, in flag_events"),
    column("sentence", "text", "state and verdict in words"),
    column("compared_on", "day", "night of the last comparison"),
    column("quiet_nights", "integer", "compared nights since its last deviation", "nights"),
    # no comparison is not the same as no deviation: the state stays, and this counts
    column("absent_nights", "integer", "consecutive nights without a comparison", "nights"),
    column("opened_on", "day", "night of the last opening; null if it was never open"),
    column("opened_until", "day", "last day of the jobs that opened it"),
    column("opened_deviation", "number", "deviation at the last opening"),
    column("closed_on", "day", "night of the last resolution or change of sign"),
    column("ack_id", "keyword", "acknowledgement in force, in flag_notes"),
    column("benchmark", "keyword", "HS06 or HS23"),
)

FLAG_STATES = Table(
    "flag_states",
    "present and past flags as of the last night: new, open, acknowledged or resolved, and since when",
    "level",
    _STATE_COLUMNS,
    made_by="watch",
    shown=columns(
        "level processing_type name site state since nights deviation deviation_low deviation_high "
        "acknowledged_until"
    ),
    order=columns("level name processing_type"),
)

# a night that is run again starts from the states before it, and so gives the same events
FLAG_HISTORY = Table(
    "flag_history",
    "flag_states of each recent night, from which a rerun night continues",
    "night",
    _STATE_COLUMNS,
    time="night",
    made_by="watch",
    shown=columns("night level processing_type name state since nights deviation verdict"),
    order=("-night", *columns("level name processing_type")),
)

FLAG_EVENTS = Table(
    "flag_events",
    "one change of a flag: state before, state after, and evidence",
    "night",
    (
        column("event", "keyword", "derived from level, type, name, night and kind"),
        column("night", "day", "night of the event: the aggregated day"),
        LEVEL,
        TYPE,
        _NAME,
        _SITE,
        column("kind", "keyword", ", ".join(EVENT_KINDS), values=EVENT_KINDS),
        column("from_state", "keyword", "state before; null if it was never flagged"),
        column("to_state", "keyword", "state after", values=STATES),
        *_DEVIATION,
        column("corepower", "number", "declared benchmark score per core"),
        _PROPOSAL,
        column("confirmed", "boolean", "true if cleared to send: the flag was open before or after"),
        column("run", "keyword", "run of the followed verdict"),
        *_WINDOW,
        column("sentence", "text", "event in words"),
        column("evidence", "text", "evidence: the disjoint sets of jobs"),
        column("window_days", "integer", "length of the window", "days"),
        # events of a night have no clock time: a rerun must give the same rows
        column("position", "integer", "position among the events of its flag in this night, from 1"),
        column("since", "day", "first night of the deviation"),
        column("nights", "integer", "nights since then with the verdict 'deviates'", "nights"),
        column("verdict", "keyword", "verdict of the night in the followed window"),
        column("entered_by", "keyword", "person who acknowledged or answered"),
        column("acknowledged_until", "day", "of an acknowledgement: night on which the flag opens again"),
        column("text", "text", "text of the note or answer"),
        column("corepower_before", "number", "of a changed declaration: the declared value before"),
        column("changed_on", "day", "start of validity of the new declaration"),
        column("benchmark", "keyword", "HS06 or HS23"),
    ),
    time="night",
    made_by="watch",
    shown=columns("night level processing_type name kind from_state to_state deviation sentence"),
    order=("-night", *columns("level name processing_type position")),
)

FLAG_NOTES = Table(
    "flag_notes",
    "entered data about flags: acknowledgements and answers of sites",
    "note_id",
    (
        column("note_id", "keyword", "derived from the entry and its time"),
        LEVEL,
        column("processing_type", "keyword", "processing type of the entry; null: all"),
        _NAME,
        column("kind", "keyword", "ack or answer", values=NOTE_KINDS),
        column("entered_by", "keyword", "person who entered it, or who answered"),
        column("until", "day", "of an acknowledgement: night on which the flag opens again"),
        column("text", "text", "text of the note or answer"),
        column("entered_at", "time", "time of entry", "UTC"),
        column("night", "day", "last night at that time; the entry counts from this night on"),
        # the name is what a person typed, the account what the system knows
        column("account", "keyword", "account of the cluster or the machine that entered it"),
    ),
    entered=True,
    made_by="flags ack",
    shown=columns("entered_at kind level processing_type name entered_by until text note_id"),
    order=columns("-entered_at name kind"),
)

TABLES = (FLAG_STATES, FLAG_EVENTS, FLAG_NOTES, FLAG_HISTORY)
