"""The page of one site or queue; names on other pages lead to it."""

from dataclasses import replace

from dashboards.pages.sites import TYPE
from dashboards.panels.columns import JOBS as N_JOBS
from dashboards.panels.columns import LEVEL, NAME, OF_SITE, RANKS, TASKS, VERDICT, K
from dashboards.panels.today import INCIDENTS
from dashboards.spec import JOBS, Choice, Entry, Join, Mean, Page, Panel, Tile, View, Where, stacked
from esjobs.core.query import Count, Maximum, Sum
from esjobs.core.states import FAILED, FINISHED

_COMPARED = (
    Entry("status_shown", "Verdict", "name"),
    Entry("deviation", "Deviation", "percent", error="deviation_err"),
    Entry("corepower", "Declared", "declared"),
    Entry("estimate", "Measured", "estimate"),
    Entry("estimate_low", "from", "estimate"),
    Entry("estimate_high", "to (90 %)", "estimate"),
    Entry("k", "k", "number", error="k_err"),
)

QUEUES = Panel(
    "site-queues",
    "Queues of this site: declared and measured",
    "table",
    "One site",
    View("flags", level="queue", sort=("rank",)),
    fields=(
        NAME,
        OF_SITE,
        *_COMPARED,
        *RANKS,
        N_JOBS,
    ),
    few=("name", "status_shown", "deviation", "corepower", "estimate"),
    empty="The latest run has no such queue; clear a filter.",
)

COMBINED = Panel(
    "site-combined",
    "The site as a whole",
    "table",
    "One site",
    View("flags", level="site", sort=("rank",)),
    "Declared: mean of the queues, weighted by their core time.",
    fields=(
        Entry("site", "Site", "name", "label"),
        *_COMPARED,
        N_JOBS,
    ),
    empty="The latest run has no such site; clear a filter.",
)

CHECKED = Panel(
    "site-checked",
    "What the deviations survive",
    "table",
    "One site",
    View("flags", where=(Where("checks"),), level="queue", sort=("rank",)),
    "Each check with its number: what was counted, or the deviation under it.",
    fields=(
        NAME,
        Entry("deviation", "Deviation", "percent", error="deviation_err"),
        Entry("checks", "Checked", "sentence"),
        Entry("refuted_by", "Refuted by", "sentence"),
    ),
    empty="No queue in this selection deviates.",
)

HOW_MANY = Panel(
    "site-how-many",
    "Selection",
    "caption",
    "One site",
    QUEUES.view,
    tiles=(
        Tile(
            "queues selected. Charts over time draw at most 8, the first by verdict or number of jobs. "
            "Select a site or queue above.",
            one="queue selected.",
        ),
    ),
    empty="The latest run has no such queue; clear a filter.",
)

WRONG_TODAY = replace(
    INCIDENTS,
    id="site-incidents",
    kind="rows",
    title="What is wrong at this site?",
    section="One site",
    view=replace(INCIDENTS.view, where=(), sort=("since", "site")),
    empty="No incident of this site in the last nights.",
    optional=False,
    few=("site", "state", "since", "cost_core_h", "sentence"),
)


def _days(metric: str, title: str, heading: str) -> Panel:
    return Panel(
        f"site-days-{metric}",
        title,
        "days",
        "One site",
        View("today_days", where=(Where("metric", (metric,)),), sort=("-day",)),
        "Band: expected before the day was known. Shaded: incident. Hollow: few jobs. Lines: a declared "
        "value changed or an incident was acknowledged. Of several sites the first is drawn.",
        fields=(
            *(Entry("site", "Site", "name", "label"), Entry("day", "Day", "time", "x")),
            *(Entry("observed", heading, "fraction", "y"), Entry("expected", "expected", "fraction")),
            *(Entry("low", "from", "fraction"), Entry("high", "to", "fraction")),
            *(Entry("in_incident", "Incident", "yesno"), Entry("partial", "Few jobs", "yesno")),
            Entry("mark", "Mark", "sentence"),
        ),
        empty="Days are judged for sites, not for queues: select a site, or run: esjobs today --update",
    )


EFFICIENCY_DAYS = _days("efficiency", "Is the efficiency as expected?", "CPU efficiency")
FAILED_DAYS = _days("failed", "Do more jobs fail than expected?", "Failed")

BY_TYPE = Panel(
    "site-by-type",
    "Is it slow for every processing type?",
    "dots-with-errors",
    "One site",
    View("flags", where=(Where("k"),), level="queue", types="every", sort=("rank",)),
    fields=(
        Entry("name", "Queue", "name", "label"),
        Entry("processing_type", "Type", "name", "group"),
        Entry("k", "Speed factor k", "number", "x", error="k_err"),
        VERDICT,
        N_JOBS,
        TASKS,
    ),
    most=(30,),
    empty="No queue in this selection has a speed factor in the latest run.",
)


def _over_time(name: str, title: str, table: str, column: str, heading: str, show: str, error: str) -> Panel:
    metrics: list[Mean | Maximum] = [Mean(column, column), Maximum("n_jobs", "n_jobs")]
    if error:
        metrics.append(Mean(error, error))
    return Panel(
        name,
        title,
        "trend",
        "One site",
        View(
            table,
            where=(Where(column), Where("scope", ("all", None))),
            level="queue",
            by=("name",),
            metrics=tuple(metrics),
            runs="every",
            over="window_end",
        ),
        fields=(
            Entry("name", "Queue", "name", "label"),
            Entry("window_end", "End of the window", "time", "x"),
            Entry(column, heading, show, "y", error=error or None),  # type: ignore[arg-type]
            N_JOBS,
        ),
        most=(8,),
        empty="No runs with this name in the selected period.",
    )


K_OVER_TIME = _over_time(
    "site-k-over-time",
    "Has the speed changed?",
    "flags",
    "k",
    "Speed factor k",
    "number",
    "k_err",
)

DECLARED_OVER_TIME = _over_time(
    "site-declared-over-time",
    "Declared score over time",
    "flags",
    "corepower",
    "Declared corepower",
    "declared",
    "",
)

EFFICIENCY_OVER_TIME = _over_time(
    "site-efficiency-over-time",
    "CPU efficiency over time",
    "factors",
    "efficiency",
    "CPU efficiency",
    "fraction",
    "",
)

MIX = Panel(
    "site-mix",
    "Which CPUs do the work?",
    "amounts",
    "One site",
    View("cpu_mix", by=("cpu_model",), metrics=(Sum("core_s", "core_s"),), sort=("-core_s",)),
    "Core-hours in the latest run. Jobs without a CPU model are excluded.",
    fields=(
        Entry("cpu_model", "CPU model", "name", "label"),
        Entry("core_s", "Core-hours", "number", "x"),
    ),
    most=(20,),
    empty="Records of these queues do not name the CPU.",
)

BY_MIX = Panel(
    "site-by-mix",
    "Is it the CPUs, or something else?",
    "scatter",
    "One site",
    View("factors", where=(Where("k"), Where("mix_k")), level="queue", sort=("-n_jobs",)),
    "Queues off the dashed line differ by more than their CPU models: check SMT, overcommitment, memory. "
    "Bars: one standard error.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        Entry("mix_k", "Predicted by the CPU models", "number", "x", error="mix_k_err"),
        Entry("k", "Speed factor k", "number", "y", error="k_err"),
        Entry("mix_share", "CPU time on known models", "fraction"),
        Entry("component", "Component", "count", "category"),
        N_JOBS,
    ),
    empty="The CPU models of these queues have no factors, or records do not name the CPU.",
)


def _beside(name: str, title: str, column: str, heading: str, show: str, view: View) -> Panel:
    return Panel(
        name,
        title,
        "beside",
        "One site",
        view,
        "Select a queue, not a site: jobs record only their queue.",
        fields=(
            Entry("end_time", "Day", "time", "x"),
            Entry(column, heading, show, "y"),  # type: ignore[arg-type]
        ),
        joins=(Join("all", view, "end_time", ()),),
        empty="No jobs of this queue in the selected period. Select a queue, not a site.",
    )


FAILURES = _beside(
    "site-failures",
    "Failure rate per day: selected jobs and all jobs",
    "n_jobs",
    "Failed",
    "fraction",
    View(
        JOBS.name,
        where=(Where("state", (*FINISHED, *FAILED)),),
        by=("state",),
        metrics=(Count(),),
        over="end_time",
    ),
)

WAITING = _beside(
    "site-waiting",
    "Mean waiting time per day: selected jobs and all jobs",
    "queue_s",
    "Mean waiting time, h",
    "number",
    View(
        JOBS.name,
        where=(Where("queue_s"),),
        metrics=(Sum("queue_s", "queue_s"), Count()),
        over="end_time",
    ),
)

TASK_ROWS = Panel(
    "site-tasks",
    "Which tasks does this rest on?",
    "rows",
    "One site",
    View("residuals", level="queue", sort=("-n_jobs",)),
    "Deviation: expected over measured CPU time, minus 1; positive is faster. Pull: in standard errors.",
    fields=(
        NAME,
        Entry("task_id", "Task", "name"),
        Entry("task_type", "Type", "name"),
        Entry("deviation", "Deviation", "percent"),
        Entry("pull", "Pull", "number"),
        N_JOBS,
        Entry("cpu_s_per_event", "CPU s per event", "number"),
        Entry("expected_cpu_s_per_event", "Expected s", "number"),
        Entry("status", "Status", "name"),
    ),
    empty="No task residuals stored for this name.",
)

SITE_ROWS = Panel(
    "site-rows",
    "Verdicts by processing type",
    "rows",
    "One site",
    View("flags", types="every", sort=("rank",)),
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        TYPE,
        Entry("status_shown", "Verdict", "name"),
        Entry("deviation", "Deviation", "percent"),
        K,
        Entry("unstable_under", "Changes with"),
        Entry("sentence", "In words", "sentence"),
    ),
    empty="The latest run has no verdict for this name.",
)

SITE = Page(
    "site",
    "Site",
    "How fast is this site, why, and is it changing?",
    stacked(
        (3, ((HOW_MANY, 48),)),
        (12, ((QUEUES, 48),)),
        (8, ((COMBINED, 48),)),
        (8, ((WRONG_TODAY, 48),)),
        (13, ((EFFICIENCY_DAYS, 24), (FAILED_DAYS, 24))),
        (10, ((CHECKED, 48),)),
        (20, ((BY_TYPE, 24), (K_OVER_TIME, 24))),
        (16, ((MIX, 24), (BY_MIX, 24))),
        (15, ((DECLARED_OVER_TIME, 24), (EFFICIENCY_OVER_TIME, 24))),
        (15, ((FAILURES, 24), (WAITING, 24))),
        (16, ((TASK_ROWS, 48),)),
        (16, ((SITE_ROWS, 48),)),
    ),
    choices=(
        Choice("flags", "site", "Site", single=True),
        Choice("flags", "name", "Queue"),
    ),
    leads_to="efficiency",
    hint="Fields in the search bar: site (site) and name (queue).",
    beyond=(
        *(COMBINED.id, CHECKED.id, DECLARED_OVER_TIME.id, EFFICIENCY_OVER_TIME.id),
        *(TASK_ROWS.id, SITE_ROWS.id),
        # of sites alone; a server has them on the first page
        *(WRONG_TODAY.id, EFFICIENCY_DAYS.id, FAILED_DAYS.id),
        # of queues alone; a server has them on the page of efficiency
        *(FAILURES.id, WAITING.id),
    ),
)
