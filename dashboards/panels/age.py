"""Panels about the age of the data."""

from dataclasses import replace

from dashboards.spec import UNFILTERED, Entry, Join, Panel, View, Where
from esjobs.core.query import Maximum

LIGHT = Panel(
    "trust-light",
    "Is the data current?",
    "light",
    "Trust",
    View("fits", level="queue"),
    "Newest day with jobs: green up to 2 days ago, yellow up to 7.",
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
    empty="No runs in the selected period; run: esjobs run.",
)

AS_OF = replace(
    LIGHT,
    id="as-of",
    title="",
    kind="as-of",
    fields=(*LIGHT.fields, Entry("window_start", "window_start"), Entry("window_end", "window_end")),
    empty="No runs yet; run: esjobs run.",
)
"""The line above the panels of every page."""
