"""Panels that are laid out before the page: sites one by one, and numbers over weeks."""

from dashboards.spec import Panel, View

PROFILES = Panel(
    "profiles",
    "Individual sites",
    "profiles",
    "Individual sites",
    View("flags", level="queue"),
    "Sites with a deviating or undecided queue, largest deviations first: verdicts and what would decide "
    "them, causes, CPU models, efficiency compared with others, tasks, history. For any other site: esjobs "
    "site NAME.",
    empty="No queue deviates or is undecided.",
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
    "All jobs of each week up to the end of the window, in any state; the first and last week may be "
    "incomplete. Below: confirmed queues in windows of equal length.",
    empty="The store contains jobs of less than three weeks.",
    optional=True,
    on_request=True,
    headline_only=True,
)
