"""Panels about incidents: what is wrong today, since when, at what cost, and why."""

from dashboards.panels.columns import SENTENCE
from dashboards.spec import Entry, Panel, View, Where

_FIELDS = (
    Entry("site", "Site", "name", "label"),
    Entry("state", "State", "name"),
    Entry("since", "Since", always=True),
    Entry("efficiency", "Efficiency", "fraction"),
    Entry("efficiency_low", "expected from", "fraction"),
    Entry("efficiency_high", "to", "fraction"),
    Entry("failed", "Failed", "fraction"),
    Entry("failed_expected", "expected", "fraction"),
    Entry("cost_core_h", "Core-hours a day", "number"),
    Entry("total_core_h", "so far", "number"),
    Entry("cause", "Cause"),
    Entry("cause_share", "Share of the loss", "fraction"),
    Entry("acknowledged_by", "Acknowledged by"),
    Entry("acknowledged_until", "Until"),
    SENTENCE,
)

INCIDENTS = Panel(
    "incidents",
    "What is wrong today",
    "table",
    "At a glance",
    View(
        "incidents",
        where=(Where("state", ("open", "acknowledged", "maintenance")),),
        sort=("-cost_core_h", "site"),
    ),
    "Efficiency and failures of sites, beside what their own past and other sites' jobs of the same tasks "
    "lead to expect. Cost: core-hours lost beyond that.",
    fields=_FIELDS,
    empty="No open incident.",
    optional=True,
)
