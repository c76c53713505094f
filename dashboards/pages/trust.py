"""The page of trust: may today's numbers be used, and what do they rest on?"""

from dataclasses import replace

from dashboards.panels.age import LIGHT
from dashboards.panels.columns import JOBS, UNITS
from dashboards.panels.expert import PULL_HISTOGRAMS
from dashboards.panels.factors import COMPONENTS
from dashboards.panels.provisioning import INDICES
from dashboards.spec import Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Maximum, Sum

PER_DAY = Panel(
    "trust-days",
    "Jobs per day, in buckets or dropped; a day without a mark is missing",
    "trend",
    "Trust",
    View(
        "day_books",
        where=(Where("kind", ("binned", "dropped")),),
        by=("kind",),
        metrics=(Sum("n_jobs", "n_jobs"),),
        over="day",
    ),
    fields=(
        Entry("kind", "Jobs", "name", "label"),
        Entry("day", "Day", "time", "x"),
        Entry("n_jobs", "Jobs", "count", "y"),
    ),
    most=(5,),
    empty="No day was aggregated in the chosen time.",
)

OUTCOMES = Panel(
    "trust-outcomes",
    "Jobs by what became of them: in buckets, or dropped and why",
    "bars",
    "Trust",
    View(
        "day_books",
        where=(Where("kind", ("binned", "dropped")),),
        by=("outcome",),
        metrics=(Sum("n_jobs", "n_jobs"),),
        sort=("-n_jobs",),
    ),
    fields=(Entry("outcome", "Outcome", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    most=(20,),
    empty="No day was aggregated.",
)

NIGHTS = Panel(
    "trust-nights",
    "Runs by the end of their window: verdicts made; a gap is a missing run",
    "trend",
    "Trust",
    View(
        "runs",
        where=(Where("step", ("flag",)), Where("scope", ("all", None))),
        by=("step",),
        metrics=(Maximum("rows_out", "rows_out"),),
        over="window_end",
    ),
    fields=(
        Entry("step", "Step", "name", "label"),
        Entry("window_end", "End of the window", "time", "x"),
        Entry("rows_out", "Verdicts", "count", "y"),
    ),
    most=(5,),
    empty="No run in the chosen time.",
)

LEDGER = Panel(
    "trust-ledger",
    "The nights of the service, newest first: which failed or had no jobs, and why",
    "rows",
    "Trust",
    View("nights", sort=("-night",)),
    fields=(
        Entry("night", "Night", "time"),
        Entry("state", "State", "name"),
        Entry("reason", "Reason"),
        Entry("jobs", "Jobs", "count"),
        Entry("jobs_dropped", "Dropped", "count"),
        Entry("late_days", "Late days", "count"),
        Entry("seconds", "Seconds", "number"),
    ),
    empty="No night was worked on in the chosen time: esjobs serve works on every one.",
)

FITS = Panel(
    "trust-fits",
    "The fits of queues of the latest run, each processing type alone: did they close?",
    "table",
    "Trust",
    View("fits", level="queue", types="every", sort=("-n_jobs",)),
    fields=(
        Entry("processing_type", "Processing type", "name", "label"),
        Entry("status", "Status", "name"),
        Entry("n_names", "Queues", "count"),
        Entry("n_names_without", "without k", "count"),
        Entry("n_jobs", "Jobs", "count"),
        Entry("jobs_share", "of the binned", "fraction"),
        UNITS,
        Entry("dof", "dof", "count"),
        Entry("sigma_int", "σ interaction", "size"),
        Entry("pull_width", "Width of pulls", "number"),
        Entry("n_rejected", "Rejected buckets", "count"),
        Entry("n_components", "Components", "count"),
    ),
    empty="The latest run has no fit.",
)

SHIFT = Panel(
    "trust-method-shift",
    "What the article's method would make of k, in standard errors of k: the 15 largest shifts",
    "ranked",
    "Trust",
    View("factors", where=(Where("k"), Where("method_sigmas")), level="queue", sort=("-n_jobs",)),
    "Right of 0 the other method finds a queue faster. Both methods read the same jobs.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        Entry("method_sigmas", "Shift in standard errors of k", "number", "x"),
        Entry("method_shift", "Shift of k", "shift"),
        Entry("k", "k", "number", error="k_err"),
        JOBS,
    ),
    most=(15,),
    empty="No queue has a speed factor by both methods.",
)

PULLS_PANEL = replace(
    PULL_HISTOGRAMS,
    id="trust-pulls",
    title="Pulls of the buckets against a normal of width 1",
)

COMPONENT_TABLE = replace(
    COMPONENTS,
    id="trust-components",
    title="What can be compared: queues of one component",
    kind="rows",
    fields=tuple(field for field in COMPONENTS.fields if field.column not in ("names", "minuit_valid")),
)

DROPPED_OF_RUN = Panel(
    "trust-reasons",
    "Why rows were dropped, step by step, in the runs of the chosen time",
    "rows",
    "Trust",
    View("run_counts", where=(Where("kind", ("dropped",)),), sort=("-n",)),
    fields=(
        Entry("window_end", "End of the window", "time"),
        Entry("step", "Step", "name"),
        Entry("name", "Reason", "name"),
        Entry("n", "Rows", "count"),
        Entry("scope", "Scope", "name"),
    ),
    empty="Nothing was dropped.",
)

TRUST = Page(
    "trust",
    "Trust",
    "May the latest numbers be used: are days or runs missing, what was dropped and why, did the fits close?",
    stacked(
        (7, ((LIGHT, 48),)),
        (15, ((PER_DAY, 24), (OUTCOMES, 24))),
        (13, ((FITS, 48),)),
        (14, ((LEDGER, 24), (NIGHTS, 24))),
        (16, ((PULLS_PANEL, 24), (COMPONENT_TABLE, 24))),
        (14, ((SHIFT, 22), (DROPPED_OF_RUN, 26))),
        (18, ((INDICES, 48),)),
    ),
)
