"""Panels about flags with memory: what stands open, since when, and what it is beside a verdict."""

from dashboards.panels.columns import COREPOWER, NAME, OF_SITE, SENTENCE
from dashboards.spec import Entry, Panel, View, Where

STATE = Entry(
    "state",
    "Flag",
    "name",
    note="what the memory over nights says: new until jobs apart confirm it, open, acknowledged or resolved",
    table="flag_states",
)
SINCE = Entry("since", "Since", note="night on which the deviation was first seen", table="flag_states")

OPEN_FLAGS = Panel(
    "open-flags",
    "Other open flags: confirmed on jobs apart, and not closed",
    "table",
    "What deviates",
    View(
        "flag_states",
        where=(Where("state", ("open", "acknowledged")),),
        level="queue",
        sort=("since", "name"),
    ),
    "A flag opens when a deviation is confirmed on jobs that do not overlap, and closes when later jobs are "
    "within the limit by a margin. Who acknowledged it hears of it again on the day that is given.",
    fields=(
        NAME,
        OF_SITE,
        Entry("state", "State", "name"),
        Entry("since", "Since"),
        Entry("nights", "Nights", "count", note="nights since then on which it deviated"),
        Entry("deviation", "Deviation", "percent"),
        Entry("deviation_low", "from", "percent"),
        Entry("deviation_high", "to (90 %)", "percent"),
        COREPOWER,
        Entry("acknowledged_by", "Acknowledged by"),
        Entry("acknowledged_until", "Until"),
        Entry("note", "Note", "sentence"),
        SENTENCE,
    ),
    empty="No other flag is open.",
    optional=True,
    besides="deviating",
)
