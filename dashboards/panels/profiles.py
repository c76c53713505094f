"""Panels that are laid out before the page: sites one by one, and numbers over weeks."""

from dashboards.spec import Panel, View

PROFILES = Panel(
    "profiles",
    "Sites one by one",
    "profiles",
    "Sites one by one",
    View("flags", level="queue"),
    "Sites with a queue that deviates or whose verdict is open, the largest deviations first: verdicts and "
    "what would decide them, causes, CPU models, efficiency beside the others, tasks, history. Of any other: "
    "esjobs site NAME.",
    empty="No queue deviates, and none is undecided.",
    optional=True,
    on_request=True,
    headline_only=True,
)

TRENDS = Panel(
    "trends",
    "Over time",
    "trends",
    "Over time",
    View("flags", level="queue"),
    "All jobs of each week up to the end of the window, whatever became of them; the first and the last week "
    "may be incomplete. Below them confirmed queues in windows of one length.",
    empty="The store holds jobs of less than three weeks.",
    optional=True,
    on_request=True,
    headline_only=True,
)
