"""Panels about the age of the numbers: may they be used?"""

from dataclasses import replace

from dashboards.spec import UNFILTERED, Entry, Join, Panel, View, Where
from esjobs.core.query import Maximum

LIGHT = Panel(
    "trust-light",
    "May the latest numbers be used? (newest day with jobs: 2 days green, 7 yellow)",
    "light",
    "Trust",
    View("fits", level="queue"),
    fields=tuple(
        Entry(name, name)
        for name in ("run", "status", "reason", "minuit_valid", "n_jobs", "n_names", "jobs_share")
    ),
    joins=(
        Join("runs", View("latest_runs"), "run", ("data_end",)),
        Join(
            UNFILTERED,
            View(
                "nights",
                where=(Where("state", ("failed",)),),
                by=("state",),
                metrics=(Maximum("night", "failed_night"),),
            ),
            "state",
            ("failed_night",),
        ),
    ),
    most=(1,),
    empty="No: there is no run in the chosen time. esjobs run makes one.",
)

AS_OF = replace(
    LIGHT,
    id="as-of",
    title="",
    kind="as-of",
    fields=(*LIGHT.fields, Entry("window_start", "window_start"), Entry("window_end", "window_end")),
    empty="There is no run yet: esjobs run makes one.",
)
"""The line above the panels of every page."""
