"""The page of efficiency: what jobs make of the cores that they are given.

Most panels are about the jobs themselves, all of them, and ask their index; detectors and scores of jobs add
theirs here.
"""

from dashboards.panels.efficiency import (
    CPU_AGAINST_MEM,
    CPU_BY_PROJECT,
    CPU_BY_USER,
    MEMORY_USED,
    SPREAD_CPU,
    SPREAD_EFFICIENCY,
    TIME_USED,
)
from dashboards.spec import JOBS, WASTED_IS, Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Count, Moment, Sum, SumProduct
from esjobs.core.states import CANCELLED, FAILED, FINISHED

SECTION = "Efficiency"
_EMPTY = "No job of the chosen time and filters says this, or the index of jobs lacks a field of a filter."

CORE_S = SumProduct("wall_s", "cores", "core_s")
ALL_STATES = (Where("cpu_s"), Where("wall_s"), Where("cores", above=0))
"""Jobs of which CPU time, wall-clock time and cores are known: a ratio of sums is over the same jobs."""
_SUMS = (
    Sum("cpu_s", "cpu_s"),
    CORE_S,
    Moment(("cpu_s", "cpu_s"), "cpu_s_sq"),
    Moment(("cpu_s", "wall_s", "cores"), "cpu_s_x_core_s"),
    Moment(("wall_s", "wall_s", "cores", "cores"), "core_s_sq"),
    Count(),
)
_WASTED_SUMS = (Sum("cpu_s", "cpu_s"), CORE_S, Count())
_OF_200 = "Of the 200 with most jobs. "
_INDEPENDENT = (
    "95 % intervals take jobs for independent: those of one task are not quite. Names with five jobs or more."
)
_ABOUT = f"{_OF_200}CPU time over wall-clock time × cores, of all jobs that say all three. {_INDEPENDENT}"


def _shares(name: str, what: str, column: str, heading: str, most: int) -> Panel:
    return Panel(
        f"efficiency-by-{name}",
        f"CPU time over core time by {what}, most core time first, with 95 % intervals (dashed: all of them)",
        "shares",
        SECTION,
        View(JOBS.name, where=ALL_STATES, by=(column,), metrics=_SUMS, sort=("-n_jobs",)),
        _ABOUT,
        fields=(
            Entry(column, heading, "name", "label"),
            Entry("cpu_s", "CPU efficiency", "fraction", "x", per="core_s"),
        ),
        most=(most,),
        empty=_EMPTY,
    )


def _wasted(name: str, what: str, column: str, heading: str, most: int) -> Panel:
    return Panel(
        f"efficiency-wasted{name}",
        f"Core-hours without CPU time by {what}, the most first",
        "waste",
        SECTION,
        View(JOBS.name, where=ALL_STATES, by=(column,), metrics=_WASTED_SUMS, sort=("-n_jobs",)),
        _OF_200 + WASTED_IS,
        fields=(
            Entry(column, heading, "name", "label"),
            Entry("cpu_s", "Core-hours without CPU time", "number", "x", per="core_s"),
        ),
        most=(most,),
        empty=_EMPTY,
    )


BY_QUEUE = _shares("queue", "queue", "queue", "Queue", 25)
BY_TYPE = _shares("type", "processing type", "processing_type", "Processing type", 20)
BY_USER = _shares("user", "user", "user", "User", 20)
BY_PROJECT = _shares("project", "project", "project", "Project", 20)
WASTED = _wasted("", "queue", "queue", "Queue", 25)
WASTED_BY_USER = _wasted("-by-user", "user", "user", "User", 20)

LOST_HOURS = Panel(
    "efficiency-lost",
    "Core-hours lost in jobs that failed, by queue and how they ended; cancelled beside",
    "ends",
    SECTION,
    View(
        JOBS.name,
        where=(Where("state", (*FAILED, *CANCELLED)), Where("wall_s"), Where("cores", above=0)),
        by=("queue", "state"),
        metrics=(CORE_S, Count()),
        sort=("-n_jobs",),
    ),
    _OF_200 + "Wall-clock time × cores. What was cancelled is not lost, and told apart.",
    fields=(
        Entry("queue", "Queue", "name", "label"),
        Entry("core_s", "Core-hours", "number", "x"),
    ),
    most=(25,),
    empty="No job of the chosen time and filters failed, or the index of jobs lacks a field of a filter.",
)

_AGAINST_REST = f"By the lower end. {_INDEPENDENT}"

ENDS = Panel(
    "efficiency-ends",
    "Share of jobs that failed by queue, the surely highest first (dashed: all of them)",
    "rates",
    SECTION,
    View(
        JOBS.name,
        where=(Where("state", (*FINISHED, *FAILED)),),
        by=("queue", "state"),
        metrics=(Count(),),
        sort=("-n_jobs",),
    ),
    _OF_200 + "Of the jobs that finished or failed. " + _AGAINST_REST,
    fields=(Entry("queue", "Queue", "name", "label"), Entry("state", "Share of jobs", "name", "x")),
    most=(25,),
    empty="No job of the chosen time and filters finished or failed, or the index of jobs lacks a field of a "
    "filter.",
)

WAITING = Panel(
    "efficiency-waiting",
    "Mean waiting of a job between submission and start by queue, h (dashed: all of them)",
    "rates",
    SECTION,
    View(
        JOBS.name,
        where=(Where("queue_s"),),
        by=("queue",),
        metrics=(Sum("queue_s", "queue_s"), SumProduct("queue_s", "queue_s", "queue_s_sq"), Count()),
        sort=("-n_jobs",),
    ),
    _OF_200 + "A mean over jobs: a few that waited for days raise it. " + _AGAINST_REST,
    fields=(
        Entry("queue", "Queue", "name", "label"),
        Entry("queue_s", "Mean waiting, h", "number", "x", per="n_jobs"),
    ),
    most=(25,),
    empty="No job of the chosen time and filters says how long it waited.",
)

BUSY = Panel(
    "efficiency-cores",
    "Cores given against cores kept busy (dashed: all busy; area: core-hours)",
    "busy",
    SECTION,
    View(
        JOBS.name,
        where=ALL_STATES,
        by=("cores",),
        metrics=(Sum("cpu_s", "cpu_s"), Sum("wall_s", "wall_s"), Count()),
        sort=("-n_jobs",),
    ),
    "CPU time over wall-clock time of the jobs with each number of cores.",
    fields=(Entry("cores", "Cores given", "count", "x"),),
    empty=_EMPTY,
)

COVERAGE = Panel(
    "efficiency-coverage",
    "Of how many jobs each quantity is known: what these pages rest on",
    "coverage",
    SECTION,
    View(JOBS.name, metrics=(Count(),)),
    fields=(
        Entry("cpu_s", "CPU time", "fraction"),
        Entry("wall_s", "wall-clock time", "fraction"),
        Entry("cores", "cores", "fraction"),
        Entry("state", "state", "fraction"),
        Entry("queue_s", "waiting", "fraction"),
        Entry("user", "user", "fraction"),
        Entry("project", "project", "fraction"),
        Entry("cpu_raw", "CPU model", "fraction"),
        Entry("max_rss_b", "memory", "fraction"),
    ),
    empty="There are no jobs in the chosen time and with the chosen filters.",
)

BY_MODEL = Panel(
    "efficiency-by-model",
    "CPU time over core time by CPU model, jobs of the fits (dashed: all of them)",
    "shares",
    SECTION,
    View(
        "buckets",
        types="every",
        by=("cpu_model",),
        metrics=(Sum("cpu_s", "cpu_s"), Sum("core_s", "core_s"), Sum("n_jobs", "n_jobs")),
        sort=("-core_s",),
    ),
    "Summed over the jobs that count in the fits; filters by user, project and state do not reach them.",
    fields=(
        Entry("cpu_model", "CPU model", "name", "label"),
        Entry("cpu_s", "CPU efficiency", "fraction", "x", per="core_s"),
    ),
    most=(20,),
    empty="No aggregated day lies in the chosen time, or none has jobs of the chosen filters.",
)

READ_ME = Panel(
    "efficiency-about",
    "What these numbers are about",
    "markdown",
    SECTION,
    text=(
        (
            "Which jobs",
            "All jobs of the chosen time, failed ones too, as far as they say what a panel needs. The panel "
            "by CPU model is about the jobs that count in the fits, those below it about jobs that were "
            "scored (esjobs score).",
        ),
        (
            "Ratios",
            "A ratio of sums: a job counts by its core time. Compare no two without looking at the coverage.",
        ),
        (
            "Lost and wasted",
            "Lost: core-hours of jobs that failed, ran into a limit or lost their node; cancelled jobs are "
            "told apart. Wasted: core-hours without CPU time, whatever became of the job.",
        ),
    ),
)

EFFICIENCY = Page(
    "efficiency",
    "Efficiency",
    "What do jobs make of the cores that they are given, who leaves core-hours unused, how many are lost in "
    "failures, and of how many jobs is that known?",
    stacked(
        (16, ((COVERAGE, 26), (READ_ME, 22))),
        (22, ((BY_QUEUE, 24), (WASTED, 24))),
        (18, ((BY_USER, 24), (WASTED_BY_USER, 24))),
        (18, ((BY_PROJECT, 24), (BY_TYPE, 24))),
        (22, ((ENDS, 24), (LOST_HOURS, 24))),
        (22, ((WAITING, 24), (BUSY, 24))),
        (16, ((BY_MODEL, 48),)),
        (16, ((SPREAD_EFFICIENCY, 24), (SPREAD_CPU, 24))),
        (20, ((CPU_BY_USER, 24), (CPU_BY_PROJECT, 24))),
        (20, ((CPU_AGAINST_MEM, 48),)),
        (18, ((TIME_USED, 24), (MEMORY_USED, 24))),
    ),
    choices=(
        Choice(JOBS.name, "queue", "Queue"),
        Choice(JOBS.name, "processing_type", "Processing type"),
        Choice(JOBS.name, "project", "Project"),
        Choice(JOBS.name, "user", "User"),
        Choice(JOBS.name, "state", "State"),
    ),
)
