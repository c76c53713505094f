"""The page of efficiency. Most panels query the jobs index; others use scores of jobs."""

from dataclasses import replace

from dashboards.pages.site import FAILURES
from dashboards.pages.site import WAITING as WAITING_DAYS
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
_EMPTY = "No jobs in this selection record the fields of this panel."

CORE_S = SumProduct("wall_s", "cores", "core_s")
RATIO_TERMS = (Where("cpu_s"), Where("wall_s"), Where("cores", above=0))
"""Conditions of a ratio of sums: numerator and denominator are over the same jobs."""
_SUMS = (
    Sum("cpu_s", "cpu_s"),
    CORE_S,
    Moment(("cpu_s", "cpu_s"), "cpu_s_sq"),
    Moment(("cpu_s", "wall_s", "cores"), "cpu_s_x_core_s"),
    Moment(("wall_s", "wall_s", "cores", "cores"), "core_s_sq"),
    Count(),
)
_WASTED_SUMS = (Sum("cpu_s", "cpu_s"), CORE_S, Count())
_OF_200 = "Of the 200 names with the most jobs. "
_INDEPENDENT = "95 % intervals assume independent jobs. Names with five jobs or more. Dashed: all jobs."
_ABOUT = f"{_OF_200}CPU time over wall-clock time × cores, largest core time first. {_INDEPENDENT}"


def _shares(name: str, what: str, column: str, heading: str, most: int) -> Panel:
    return Panel(
        f"efficiency-by-{name}",
        f"CPU efficiency by {what}",
        "shares",
        SECTION,
        View(JOBS.name, where=RATIO_TERMS, by=(column,), metrics=_SUMS, sort=("-n_jobs",)),
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
        f"Idle core-hours by {what}",
        "waste",
        SECTION,
        View(JOBS.name, where=RATIO_TERMS, by=(column,), metrics=_WASTED_SUMS, sort=("-n_jobs",)),
        _OF_200 + WASTED_IS,
        fields=(
            Entry(column, heading, "name", "label"),
            Entry("cpu_s", "Idle core-hours", "number", "x", per="core_s"),
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
    "Core-hours lost in failed jobs",
    "ends",
    SECTION,
    View(
        JOBS.name,
        where=(Where("state", (*FAILED, *CANCELLED)), Where("wall_s"), Where("cores", above=0)),
        by=("queue", "state"),
        metrics=(CORE_S, Count()),
        sort=("-n_jobs",),
    ),
    _OF_200 + "Wall-clock time × cores, by final state. Cancelled jobs are shown separately.",
    fields=(
        Entry("queue", "Queue", "name", "label"),
        Entry("core_s", "Core-hours", "number", "x"),
    ),
    most=(25,),
    empty="No jobs in this selection failed.",
)

_AGAINST_REST = f"Sorted by the lower limit. {_INDEPENDENT}"

ENDS = Panel(
    "efficiency-ends",
    "Where do jobs fail most?",
    "rates",
    SECTION,
    View(
        JOBS.name,
        where=(Where("state", (*FINISHED, *FAILED)),),
        by=("queue", "state"),
        metrics=(Count(),),
        sort=("-n_jobs",),
    ),
    _OF_200 + "Fraction of finished and failed jobs. " + _AGAINST_REST,
    fields=(Entry("queue", "Queue", "name", "label"), Entry("state", "Share of jobs", "name", "x")),
    most=(25,),
    empty="No jobs in this selection finished or failed.",
)

WAITING = Panel(
    "efficiency-waiting",
    "Where do jobs wait longest?",
    "rates",
    SECTION,
    View(
        JOBS.name,
        where=(Where("queue_s"),),
        by=("queue",),
        metrics=(Sum("queue_s", "queue_s"), SumProduct("queue_s", "queue_s", "queue_s_sq"), Count()),
        sort=("-n_jobs",),
    ),
    _OF_200 + "Mean over jobs, raised by a few that wait for days. " + _AGAINST_REST,
    fields=(
        Entry("queue", "Queue", "name", "label"),
        Entry("queue_s", "Mean waiting time, h", "number", "x", per="n_jobs"),
    ),
    most=(25,),
    empty="No jobs in this selection record a waiting time.",
)

BUSY = Panel(
    "efficiency-cores",
    "Do jobs use the cores they hold?",
    "busy",
    SECTION,
    View(
        JOBS.name,
        where=RATIO_TERMS,
        by=("cores",),
        metrics=(Sum("cpu_s", "cpu_s"), Sum("wall_s", "wall_s"), Count()),
        sort=("-n_jobs",),
    ),
    "CPU time over wall-clock time, by allocated cores. Dashed: all busy; area: core-hours.",
    fields=(Entry("cores", "Allocated cores", "count", "x"),),
    empty=_EMPTY,
)

COVERAGE = Panel(
    "efficiency-coverage",
    "How complete are the records?",
    "coverage",
    SECTION,
    View(JOBS.name, metrics=(Count(),)),
    fields=(
        Entry("cpu_s", "CPU time", "fraction"),
        Entry("wall_s", "wall-clock time", "fraction"),
        Entry("cores", "cores", "fraction"),
        Entry("state", "state", "fraction"),
        Entry("queue_s", "waiting time", "fraction"),
        Entry("user", "user", "fraction"),
        Entry("project", "project", "fraction"),
        Entry("cpu_raw", "CPU model", "fraction"),
        Entry("max_rss_b", "memory", "fraction"),
    ),
    empty="No jobs in this selection.",
)

BY_MODEL = Panel(
    "efficiency-by-model",
    "CPU efficiency by CPU model",
    "shares",
    SECTION,
    View(
        "buckets",
        types="every",
        by=("cpu_model",),
        metrics=(Sum("cpu_s", "cpu_s"), Sum("core_s", "core_s"), Sum("n_jobs", "n_jobs")),
        sort=("-core_s",),
    ),
    "Jobs of the fits only; filters by user, project and state do not apply. Dashed: all.",
    fields=(
        Entry("cpu_model", "CPU model", "name", "label"),
        Entry("cpu_s", "CPU efficiency", "fraction", "x", per="core_s"),
    ),
    most=(20,),
    empty="No aggregated jobs in this selection.",
)

READ_ME = Panel(
    "efficiency-about",
    "Definitions",
    "markdown",
    SECTION,
    text=(
        (
            "Jobs",
            "All jobs of the selected period with the fields of a panel, failed ones included. The panel by "
            "CPU model uses jobs of the fits, those below it scored jobs (esjobs score).",
        ),
        (
            "Ratios",
            "Ratios of sums: jobs are weighted by core time. Check completeness before comparing two names.",
        ),
        (
            "Lost and idle",
            "Lost: core-hours of jobs that failed, hit a limit or lost their node. Idle: core-hours without "
            "CPU time, for jobs of any final state.",
        ),
    ),
)

# They speak of the jobs of a choice, as all of this page
_DAYS = tuple(
    replace(
        panel,
        id=panel.id.replace("site-", "efficiency-daily-"),
        description="",
        empty="No jobs in this selection.",
    )
    for panel in (FAILURES, WAITING_DAYS)
)

EFFICIENCY = Page(
    "efficiency",
    "Efficiency and failures",
    "Where are core-hours lost?",
    stacked(
        (20, ((BY_QUEUE, 24), (WASTED, 24))),
        (20, ((ENDS, 24), (LOST_HOURS, 24))),
        (17, ((WAITING, 24), (BUSY, 24))),
        (16, ((BY_TYPE, 24), (BY_MODEL, 24))),
        (15, ((COVERAGE, 24), (WASTED_BY_USER, 24))),
        (18, ((BY_USER, 24), (BY_PROJECT, 24))),
        (16, ((SPREAD_EFFICIENCY, 24), (SPREAD_CPU, 24))),
        (16, ((READ_ME, 48),)),
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
    beyond=(
        *(BY_USER.id, BY_PROJECT.id, SPREAD_EFFICIENCY.id, SPREAD_CPU.id, READ_ME.id, CPU_BY_USER.id),
        *(CPU_BY_PROJECT.id, CPU_AGAINST_MEM.id, TIME_USED.id, MEMORY_USED.id),
        # a server has them on the pages of users and of CPU models
        *(WASTED_BY_USER.id, BY_MODEL.id),
    ),
    served=stacked((15, tuple((panel, 24) for panel in _DAYS))),
)
