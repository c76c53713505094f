"""The page of data quality: missing days and runs, dropped jobs, fits."""

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
    "Jobs per day",
    "trend",
    "Trust",
    View(
        "day_books",
        where=(Where("kind", ("binned", "dropped")),),
        by=("kind",),
        metrics=(Sum("n_jobs", "n_jobs"),),
        over="day",
    ),
    description="In buckets or dropped. Gaps are missing days.",
    fields=(
        Entry("kind", "Jobs", "name", "label"),
        Entry("day", "Day", "time", "x"),
        Entry("n_jobs", "Jobs", "count", "y"),
    ),
    most=(5,),
    empty="No aggregated days in the selected period.",
)

OUTCOMES = Panel(
    "trust-outcomes",
    "Why were jobs dropped?",
    "bars",
    "Trust",
    View(
        "day_books",
        where=(Where("kind", ("dropped",)),),
        by=("outcome",),
        metrics=(Sum("n_jobs", "n_jobs"),),
        sort=("-n_jobs",),
    ),
    fields=(Entry("outcome", "Reason", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    most=(20,),
    empty="No job was dropped in this period.",
)

NIGHTS = Panel(
    "trust-nights",
    "Verdicts per run, of all levels and types",
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
    empty="No runs in the selected period.",
)

LEDGER = Panel(
    "trust-ledger",
    "Nightly runs: failures and reasons",
    "rows",
    "Trust",
    View("nights", sort=("-night",)),
    fields=(
        Entry("night", "Night", "time", "label"),
        Entry("state", "State", "name"),
        Entry("reason", "Reason"),
        Entry("jobs", "Jobs", "count"),
        Entry("jobs_dropped", "Dropped", "count"),
        Entry("late_days", "Late days", "count"),
        Entry("seconds", "Seconds", "number"),
    ),
    few=("night", "state", "reason", "jobs", "jobs_dropped"),
    empty="No nightly runs in this period; start the service: esjobs serve.",
)

FITS = Panel(
    "trust-fits",
    "Did the fits converge?",
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
    few=("processing_type", "status", "n_names", "n_jobs", "pull_width"),
    empty="The latest run has no fit.",
)

SHIFT = Panel(
    "trust-method-shift",
    "How much depends on the method?",
    "ranked",
    "Trust",
    View("factors", where=(Where("k"), Where("method_sigmas")), level="queue", sort=("-n_jobs",)),
    "The 15 largest shifts of k in standard errors; right: faster by the published method. Same jobs. gamma "
    "carries the verdicts because a χ² whose σ is proportional to the mean is biased where queues scatter "
    "unequally.",
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
    title="Are the errors right? (residual pulls)",
    empty="No pulls: the fit has no redundancy (no closed loops of tasks).",
)

COMPONENT_TABLE = replace(
    COMPONENTS,
    id="trust-components",
    title="Which queues are comparable?",
    kind="rows",
    empty="No two queues ran the same task.",
    fields=tuple(
        replace(field, role="label") if field.column == "component" else field
        for field in COMPONENTS.fields
        if field.column != "names"
    ),
    few=("component", "n_names", "n_jobs", "link"),
)

DROPPED_OF_RUN = Panel(
    "trust-reasons",
    "Dropped rows by step and reason",
    "rows",
    "Trust",
    View("run_counts", where=(Where("kind", ("dropped",)),), sort=("-n",)),
    fields=(
        Entry("window_end", "Window end", "time", "label"),
        Entry("run", "Run", "name"),
        Entry("step", "Step", "name"),
        Entry("name", "Reason", "name"),
        Entry("n", "Rows", "count"),
        Entry("scope", "Scope", "name"),
    ),
    few=("window_end", "step", "name", "n"),
    empty="No dropped rows.",
)

TRUST = Page(
    "trust",
    "Data quality",
    "Is anything missing or broken?",
    stacked(
        (7, ((LIGHT, 48),)),
        (14, ((PER_DAY, 24), (OUTCOMES, 24))),
        (13, ((FITS, 48),)),
        (13, ((LEDGER, 24), (NIGHTS, 24))),
        (16, ((PULLS_PANEL, 24), (COMPONENT_TABLE, 24))),
        (14, ((SHIFT, 20), (DROPPED_OF_RUN, 28))),
        (18, ((INDICES, 48),)),
    ),
    beyond=(INDICES.id,),
)
