"""Panels about why queues deviate: the largest part of what their deviations are made of."""

from dashboards.panels.columns import NAME
from dashboards.spec import Entry, Panel, View, Where

WHY = Entry("sentence", "Why", "sentence", table="decomposition")

REASONS = Panel(
    "reasons",
    "Causes of other deviations: largest part of each",
    "table",
    "What deviates",
    View(
        "decomposition",
        where=(Where("verdict", ("deviates",)), Where("largest", (True,))),
        level="queue",
        sort=("-|deviation|",),
    ),
    "Declared value of a queue against its CPU mix, the SMT state, and the speed of the same CPU models "
    "elsewhere. Parts add up to the deviation; a share above 100 % means that other parts have the opposite "
    "sign.",
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
