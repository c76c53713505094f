"""Panels about why queues deviate: the largest part of what their deviations are made of."""

from dashboards.panels.columns import NAME
from dashboards.spec import Entry, Panel, View, Where

WHY = Entry("sentence", "Why", "sentence", table="decomposition")

REASONS = Panel(
    "reasons",
    "Why other queues deviate: the largest part of each deviation",
    "table",
    "What deviates",
    View(
        "decomposition",
        where=(Where("verdict", ("deviates",)), Where("largest", (True,))),
        level="queue",
        sort=("-|deviation|",),
    ),
    "What a queue declares, held against its mix of CPU models, their state of SMT, and how fast the same "
    "models run elsewhere. Parts add up to the deviation; beside one above 100 % others are against it.",
    fields=(
        NAME,
        Entry("deviation", "Deviation", "percent"),
        Entry("corepower", "Declared", "declared", note="benchmark score per core"),
        Entry("part", "Largest part", "name"),
        Entry("share", "Share ± 90 %", "percent", error="share_err", note="of the deviation, in logarithms"),
        Entry("reason", "In words", "sentence"),
    ),
    empty="No other queue deviates.",
    optional=True,
    besides="deviating",
)
