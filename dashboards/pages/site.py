"""The page of one site: choose a site or a queue, or come from a name on another page."""

from dashboards.pages.sites import TYPE
from dashboards.panels.columns import JOBS as N_JOBS
from dashboards.panels.columns import LEVEL, NAME, OF_SITE, TASKS, VERDICT, K
from dashboards.spec import JOBS, Choice, Entry, Join, Mean, Page, Panel, Tile, View, Where, stacked
from esjobs.core.query import Count, Maximum, Sum
from esjobs.core.states import FAILED, FINISHED

QUEUES = Panel(
    "site-queues",
    "Queues of the chosen site: speed against declared corepower (±: one standard error)",
    "table",
    "One site",
    View("flags", level="queue", sort=("rank",)),
    fields=(
        NAME,
        OF_SITE,
        Entry("status_shown", "Verdict", "name"),
        Entry("deviation", "Deviation", "percent", error="deviation_err"),
        Entry("corepower", "Declared", "declared"),
        Entry("estimate", "Ran like", "estimate"),
        Entry("estimate_low", "from", "estimate"),
        Entry("estimate_high", "to (90 %)", "estimate"),
        Entry("k", "k", "number", error="k_err"),
        N_JOBS,
    ),
    empty="The latest run has no queue of this name.",
)

HOW_MANY = Panel(
    "site-how-many",
    "How many queues are chosen",
    "caption",
    "One site",
    QUEUES.view,
    tiles=(
        Tile(
            "queues are chosen; charts over time draw 8 at most, the first by verdict or of most jobs. "
            "Choose a site or a queue above, or in the search bar.",
            one="queue is chosen.",
        ),
    ),
    empty="The latest run has no queue of this name: take a filter away, or choose another name.",
)

BY_TYPE = Panel(
    "site-by-type",
    "Speed factor by processing type, each fitted alone (bars: one standard error)",
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
    empty="No queue of this name has a speed factor in the latest run.",
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
        empty="No run in the chosen time has a value for this name.",
    )


K_OVER_TIME = _over_time(
    "site-k-over-time",
    "Speed factor, run by run (bars: one standard error)",
    "flags",
    "k",
    "Speed factor k",
    "number",
    "k_err",
)

DECLARED_OVER_TIME = _over_time(
    "site-declared-over-time",
    "Declared corepower, run by run: when it was changed",
    "flags",
    "corepower",
    "Declared corepower",
    "declared",
    "",
)

EFFICIENCY_OVER_TIME = _over_time(
    "site-efficiency-over-time",
    "CPU time over wall-clock time × cores of fitted jobs, run by run",
    "factors",
    "efficiency",
    "CPU efficiency",
    "fraction",
    "",
)

MIX = Panel(
    "site-mix",
    "CPU models by core-hours, jobs of the latest run",
    "amounts",
    "One site",
    View("cpu_mix", level="queue", by=("cpu_model",), metrics=(Sum("core_s", "core_s"),), sort=("-core_s",)),
    "Core-hours of jobs whose records name no CPU model are left out.",
    fields=(
        Entry("cpu_model", "CPU model", "name", "label"),
        Entry("core_s", "Core-hours", "number", "x"),
    ),
    most=(20,),
    empty="No record of the chosen queues names a CPU model.",
)

BY_MIX = Panel(
    "site-by-mix",
    "Speed factor against that which the CPU models predict (bars: one standard error; dashed: as predicted)",
    "scatter",
    "One site",
    View("factors", where=(Where("k"), Where("mix_k")), level="queue", sort=("-n_jobs",)),
    "Far from the dashed line it is not the CPU models: look at SMT, overcommitment, memory.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        Entry("mix_k", "Predicted by the CPU models", "number", "x", error="mix_k_err"),
        Entry("k", "Speed factor k", "number", "y", error="k_err"),
        Entry("mix_share", "CPU time on known models", "fraction"),
        Entry("component", "Component", "count", "category"),
        N_JOBS,
    ),
    empty="The CPU models of the chosen queues have no factors, or their records name none.",
)

_DAILY = "Day by day. Jobs know their queue alone: choose a queue rather than a site."


def _beside(name: str, title: str, column: str, heading: str, show: str, view: View) -> Panel:
    return Panel(
        name,
        title,
        "beside",
        "One site",
        view,
        _DAILY,
        fields=(
            Entry("end_time", "Day", "time", "x"),
            Entry(column, heading, show, "y"),  # type: ignore[arg-type]
        ),
        joins=(Join("all", view, "end_time", ()),),
        empty="No job of the chosen time has this queue: " + _DAILY.partition(". ")[2],
    )


FAILURES = _beside(
    "site-failures",
    "Share of jobs that failed, of those that finished or failed, day by day: chosen queue and all jobs",
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
    "Mean waiting between submission and start, day by day: chosen queue and all jobs",
    "queue_s",
    "Mean waiting, h",
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
    "Contributing tasks of the chosen queue: CPU time per event against what its speed factor promises",
    "rows",
    "One site",
    View("residuals", level="queue", sort=("-n_jobs",)),
    "Deviation: expected over measured CPU time, less 1; above 0 ran faster here. Pull: in standard errors.",
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
    empty="The run kept no residuals of this name.",
)

SITE_ROWS = Panel(
    "site-rows",
    "The verdicts behind it, of every processing type",
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
        Entry("unstable_under", "Changes under"),
        Entry("sentence", "In words", "sentence"),
    ),
    empty="The latest run has no verdict on this name.",
    hint="open a row for all of it",
)

SITE = Page(
    "site",
    "One site",
    "How fast are the queues of one site, for each kind of work and over time, and what does that rest on? "
    "Choose a site or a queue.",
    stacked(
        (3, ((HOW_MANY, 48),)),
        (13, ((QUEUES, 48),)),
        (24, ((BY_TYPE, 24), (K_OVER_TIME, 24))),
        (18, ((MIX, 24), (BY_MIX, 24))),
        (15, ((DECLARED_OVER_TIME, 24), (EFFICIENCY_OVER_TIME, 24))),
        (15, ((FAILURES, 24), (WAITING, 24))),
        (16, ((TASK_ROWS, 48),)),
        (16, ((SITE_ROWS, 48),)),
    ),
    choices=(
        Choice("flags", "site", "Site", single=True),
        Choice("flags", "name", "Queue"),
    ),
    hint="In the search bar these are site and name.",
)
