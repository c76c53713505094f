"""Panels about flags with memory: what stands open, since when, and what it is beside a verdict."""

from dashboards.panels.columns import COREPOWER, NAME, OF_SITE, SENTENCE
from dashboards.spec import Entry, Panel, View, Where

STATE = Entry(
    "state",
    "Flag",
    "name",
    note="state over nights: new until disjoint jobs confirm it, then open, acknowledged or resolved",
    table="flag_states",
)
SINCE = Entry("since", "Since", note="first night of the deviation", table="flag_states")

OPEN_FLAGS = Panel(
    "open-flags",
    "Other open flags: confirmed on disjoint jobs, not closed",
    "table",
    "What deviates",
    View(
        "flag_states",
        where=(Where("state", ("open", "acknowledged")),),
        level="queue",
        sort=("since", "name"),
    ),
    "A flag opens when disjoint sets of jobs confirm a deviation. It closes when later jobs are within the "
    "limit by a margin. An acknowledged flag opens again on the given date.",
    fields=(
        NAME,
        OF_SITE,
        Entry("state", "State", "name"),
        Entry("since", "Since"),
        Entry("nights", "Nights", "count", note="nights with a deviation since then"),
        Entry("deviation", "Deviation", "percent"),
        Entry("deviation_low", "from", "percent"),
        Entry("deviation_high", "to (90 %)", "percent"),
        COREPOWER,
        Entry("acknowledged_by", "Acknowledged by"),
        Entry("acknowledged_until", "Until"),
        Entry("note", "Note", "sentence"),
        SENTENCE,
    ),
    empty="No other open flags.",
    optional=True,
    besides="deviating",
)
