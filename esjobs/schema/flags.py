"""Memory of flags: states, their changes, and what people entered."""

from esjobs.core.columns import LEVEL, TYPE
from esjobs.core.tables import Table, column, columns

STATES = ("new", "open", "acknowledged", "resolved")
"""States of a flag."""
STANDING_OPEN = ("open", "acknowledged")
"""The states of a flag that was opened and is not closed."""
EVENT_KINDS = (
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
)
"""Events of a flag."""
NOTE_KINDS = ("ack", "answer")
"""Kinds of notes that people enter."""

_NAME = column("name", "keyword", "queue or CPU model")
_SITE = column("site", "keyword", "site of a queue; null of CPU models")
_DEVIATION = (
    column("deviation", "number", "relative deviation in the followed window, when it was last compared"),
    column("deviation_low", "number", "lower end of its 90 % interval"),
    column("deviation_high", "number", "upper end of its 90 % interval"),
)
_PROPOSAL = column("proposed_corepower", "number", "corepower that the verdict proposes, or null")
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
    column("since", "day", "night on which the deviation was first seen, of the last time that it was"),
    column("until", "day", "night on which it was resolved; null before"),
    column("nights", "integer", "nights since then whose verdict was 'deviates'", "nights"),
    column("k", "number", "speed factor, when it was last compared"),
    column("k_err", "number", "its standard error"),
    column("corepower", "number", "declared benchmark score per core, when it was last compared"),
    *_DEVIATION,
    _PROPOSAL,
    column("verdict", "keyword", "verdict of the night in the followed window; null without a row there"),
    column("confirmed", "boolean", "whether that verdict is confirmed, as in flags"),
    column("evidence", "text", "why it is in this state: which jobs, apart from which others, say so"),
    *_WINDOW,
    column("window_days", "integer", "length of that window", "days"),
    column("run", "keyword", "run whose verdict was last compared"),
    column("night", "day", "the night after which this is the state"),
    column("acknowledged_by", "keyword", "who acknowledged it; null unless acknowledged"),
    column("acknowledged_until", "day", "the night on which it is open again"),
    column("note", "text", "what was noted with the acknowledgement"),
    column("last_event", "keyword", "the event that changed it last, in flag_events"),
    column("sentence", "text", "state and verdict in words"),
    column("compared_on", "day", "night on which it was last compared with what it declares"),
    column("quiet_nights", "integer", "nights since it last deviated that compared it", "nights"),
    column("absent_nights", "integer", "nights in a row that could not compare it", "nights"),
    column("opened_on", "day", "night on which it was last opened; null of what was never open"),
    column("opened_until", "day", "last day of the jobs that opened it: what closes it is of later days"),
    column("opened_deviation", "number", "deviation when it was last opened"),
    column("closed_on", "day", "night on which it was last resolved, or before which it changed sides"),
    column("ack_id", "keyword", "the acknowledgement in force, in flag_notes"),
    column("benchmark", "keyword", "HS06 or HS23"),
)

FLAG_STATES = Table(
    "flag_states",
    "what is or was flagged, as of the last night: new, open, acknowledged or resolved, and since when",
    "level",
    _STATE_COLUMNS,
    made_by="watch",
    shown=columns(
        "level processing_type name site state since nights deviation deviation_low deviation_high "
        "acknowledged_until"
    ),
    order=columns("level name processing_type"),
)

FLAG_HISTORY = Table(
    "flag_history",
    "the same as of each of the last nights, from which a night that is run again goes on",
    "night",
    _STATE_COLUMNS,
    time="night",
    made_by="watch",
    shown=columns("night level processing_type name state since nights deviation verdict"),
    order=("-night", *columns("level name processing_type")),
)

FLAG_EVENTS = Table(
    "flag_events",
    "one change of a flag: what it was, what it became, and on what evidence",
    "night",
    (
        column("event", "keyword", "follows from level, type, name, night and kind: the same when run again"),
        column("night", "day", "night on which it happened: the day that was aggregated"),
        LEVEL,
        TYPE,
        _NAME,
        _SITE,
        column("kind", "keyword", ", ".join(EVENT_KINDS), values=EVENT_KINDS),
        column("from_state", "keyword", "state before; null of what was never flagged"),
        column("to_state", "keyword", "state after", values=STATES),
        *_DEVIATION,
        column("corepower", "number", "declared benchmark score per core"),
        _PROPOSAL,
        column(
            "confirmed",
            "boolean",
            "whether the flag was open before or is after it: a deviation confirmed twice, on jobs apart; "
            "only such events may be sent to a site",
        ),
        column("run", "keyword", "run whose verdict was followed"),
        *_WINDOW,
        column("sentence", "text", "what happened, in words"),
        column("evidence", "text", "which jobs say so"),
        column("window_days", "integer", "length of the window", "days"),
        column("position", "integer", "place among the events of its flag in this night, from 1"),
        column("since", "day", "night on which the deviation was first seen"),
        column("nights", "integer", "nights since then whose verdict was 'deviates'", "nights"),
        column("verdict", "keyword", "verdict of the night in the followed window"),
        column("entered_by", "keyword", "person who acknowledged or answered"),
        column("acknowledged_until", "day", "of an acknowledgement: the night on which it is open again"),
        column("text", "text", "what was noted or answered"),
        column("corepower_before", "number", "of a declaration that changed: what was declared before"),
        column("changed_on", "day", "the day from which the new declaration holds"),
        column("benchmark", "keyword", "HS06 or HS23"),
    ),
    time="night",
    made_by="watch",
    shown=columns("night level processing_type name kind from_state to_state deviation sentence"),
    order=("-night", *columns("level name processing_type position")),
)

FLAG_NOTES = Table(
    "flag_notes",
    "what people entered about flags: acknowledgements and answers of sites",
    "note_id",
    (
        column("note_id", "keyword", "follows from what was entered and when"),
        LEVEL,
        column("processing_type", "keyword", "kind of work that it is about; null: every one"),
        _NAME,
        column("kind", "keyword", "ack or answer", values=NOTE_KINDS),
        column("entered_by", "keyword", "person who entered it, or who answered"),
        column("until", "day", "of an acknowledgement: the night on which the flag is open again"),
        column("text", "text", "the note, or the answer"),
        column("entered_at", "time", "when it was entered", "UTC"),
        column("night", "day", "the last night of then: it counts from this one on"),
        column("account", "keyword", "account of the cluster, or of the machine, by which it was entered"),
    ),
    entered=True,
    made_by="flags ack",
    shown=columns("entered_at kind level processing_type name entered_by until text note_id"),
    order=columns("-entered_at name kind"),
)

TABLES = (FLAG_STATES, FLAG_EVENTS, FLAG_NOTES, FLAG_HISTORY)
