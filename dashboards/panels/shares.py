"""Panels about hardware or site: by what the speeds of queues scatter, and what is left of each queue."""

from dashboards.panels.columns import JOBS, NAME
from dashboards.spec import Entry, Panel, View, Where

SHARES = Panel(
    "variance-shares",
    "Is it the hardware or the site?",
    "sentence",
    "Hardware or site",
    View("variance_shares", where=(Where("part", ("all",)),), level="queue"),
    fields=(Entry("sentence", "Shares"),),
    empty="Too few queues share tasks and CPU models, or esjobs decompose has not run.",
)

RESTS = Panel(
    "queue-rests",
    "Queues beside their CPU models",
    "table",
    "Hardware or site",
    View("queue_rests", level="queue", sort=("-|likely|", "name")),
    "Speed over that of the same CPU models elsewhere, less 1, drawn to 0 as far as its error reaches. SMT, "
    "overcommit and storage are in it.",
    fields=(
        NAME,
        Entry("likely", "Likely", "percent"),
        Entry("likely_low", "from", "percent"),
        Entry("likely_high", "to (90 %)", "percent"),
        Entry("rest", "As estimated", "percent", error="rest_err"),
        JOBS,
    ),
    most=(15,),
    empty="No queue can be separated from its CPU models.",
    folded=True,
    optional=True,
)
