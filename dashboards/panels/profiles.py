"""The panel of sites one by one: who deviates, or may, with everything that is known of it."""

from dashboards.spec import Panel, View

PROFILES = Panel(
    "profiles",
    "Sites one by one",
    "profiles",
    "Sites one by one",
    View("flags", level="site"),
    "Sites with a queue that deviates or whose verdict is open, the largest deviations first: verdicts and "
    "what would decide them, causes, CPU models, efficiency beside the others, tasks, history. Of any other: "
    "esjobs site NAME.",
    empty="No queue deviates, and none is undecided.",
    optional=True,
    on_request=True,
    headline_only=True,
)
