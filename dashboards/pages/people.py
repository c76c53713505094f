"""The page of users and projects: idle core-hours, scores, jobs."""

from dashboards.panels.efficiency import RANKINGS
from dashboards.spec import WASTED_IS, Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

SECTION = "Projects and users"
_EMPTY = "No scored jobs in this selection; run: esjobs score."
_TABLE = "scores"
MOST_ROWS = 1000
"""Most jobs of a panel."""
_SHOWN = 25


_OWN_ROWS = Where("job_id")


def _wasted(by: str, heading: str) -> Panel:
    return Panel(
        f"people-wasted-by-{by}",
        f"Idle core-hours by {by}",
        "bars",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(Where(by),),
            by=(by,),
            metrics=(Sum("idle_core_h", "idle_core_h"),),
            sort=("-idle_core_h",),
        ),
        f"Of scored jobs. {WASTED_IS}",
        fields=(
            Entry(by, heading, "text", "label"),
            Entry("idle_core_h", "Core-hours", "count", "x"),
        ),
        most=(20,),
        empty=_EMPTY,
    )


_SCORES = (
    Entry("score_cpu", "score_cpu", "number"),
    Entry("score_mem", "score_mem", "number"),
    Entry("score_mpi", "score_mpi", "number"),
    Entry("score_io", "score_io", "number"),
)


def _worst(id_: str, title: str, about: str, column: str, heading: str) -> Panel:
    return Panel(
        id_,
        title,
        "worst",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(Where(column), _OWN_ROWS),
            sort=(f"-{column}", "source", "job_id"),
            most=MOST_ROWS,
        ),
        about,
        fields=(
            Entry(column, heading, "number", "x"),
            *_SCORES,
            *(Entry(name, title, "number") for name, title in _HOURS if name != column),
        ),
        most=(_SHOWN,),
        empty=_EMPTY,
    )


_HOURS = (("node_h", "Node-hours"), ("idle_core_h", "Idle core-hours"))

WORST = _worst(
    "people-worst",
    "25 worst jobs by total score",
    "Bar: sum of all scores of the job; dots: the scores. Jobs with more scores have a larger sum.",
    "score_sum",
    "Sum of scores",
)
WASTEFUL = _worst(
    "people-wasteful",
    "25 most wasteful jobs",
    "Idle core-hours: wall-clock time × cores minus CPU time.",
    "idle_core_h",
    "Idle core-hours",
)

CPU_OVER_HOURS = Panel(
    "people-cpu-over-hours",
    "Are large jobs efficient?",
    "of-jobs",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(Where("score_cpu"), Where("node_h", above=0)),
        sort=("-node_h", "source", "job_id"),
        most=MOST_ROWS,
    ),
    "score_cpu (0 best, 100 worst) of the 1,000 largest jobs; start with the upper right.",
    fields=(
        Entry("node_h", "Node-hours", "number", "x"),
        Entry("score_cpu", "score_cpu", "number", "y"),
        Entry("user", "User", "name"),
        Entry("project", "Project", "name"),
        Entry("job_id", "Job", "name"),
    ),
    most=(MOST_ROWS,),
    empty="No jobs with score_cpu in this selection; esjobs score needs hardware counters.",
)

JOBS_TABLE = Panel(
    "people-jobs",
    "Jobs by idle core-hours",
    "rows",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(Where("idle_core_h"), _OWN_ROWS),
        sort=("-idle_core_h", "source", "job_id"),
        most=MOST_ROWS,
    ),
    fields=(
        Entry("job_id", "Job", "name", "label"),
        Entry("project", "Project", "name"),
        Entry("user", "User", "name"),
        Entry("queue", "Queue", "name"),
        Entry("end_time", "Ended", "time"),
        Entry("node_h", "Node-hours", "number"),
        Entry("idle_core_h", "Idle core-hours", "number"),
        Entry("cpu_efficiency", "CPU efficiency", "fraction"),
        *_SCORES,
        Entry("score_gpu", "score_gpu", "number"),
        Entry("score_gpumem", "score_gpumem", "number"),
    ),
    few=("job_id", "user", "queue", "idle_core_h", "cpu_efficiency"),
    empty=_EMPTY,
)

PREDICTED = Panel(
    "people-predicted",
    "Predicted scores (excluded from means)",
    "rows",
    SECTION,
    View(
        "predicted_scores",
        types="every",
        where=(Where("value"),),
        sort=("-value", "source", "job_id", "score_name"),
        most=MOST_ROWS,
    ),
    fields=(
        Entry("job_id", "Job", "name"),
        Entry("project", "Project", "name"),
        Entry("user", "User", "name"),
        Entry("queue", "Queue", "name"),
        Entry("end_time", "Ended", "time"),
        Entry("node_h", "Node-hours", "number"),
        Entry("score_name", "Score", "name"),
        Entry("value", "Predicted", "number"),
        Entry("error_68", "± (68 %)", "number"),
        Entry("error_95", "± (95 %)", "number"),
        Entry("n_neighbours", "From jobs", "count"),
        Entry("spread", "Their spread", "number"),
        Entry("approach", "Approach", "name"),
    ),
    empty="No predictions in this selection; run: esjobs similar predict.",
)

READ_ME = Panel(
    "people-about",
    "How to use this page",
    "markdown",
    SECTION,
    text=(
        (
            "Project, user, job",
            "Click a project, then a user; the tables show their jobs. Remove the filters at the top.",
        ),
        (
            "Scores",
            "0 best, 100 worst. Means over jobs, weighted by node-hours; in brackets the fraction with "
            "a score. Dashed: all jobs. Sorted by the lower limit of 95 % intervals, for independent jobs; "
            "names with five scored jobs or more. Definitions differ between CPU families (esjobs rank).",
        ),
    ),
)

PEOPLE = Page(
    "people",
    "Users and projects",
    "Who leaves the most core-hours idle?",
    stacked(
        (9, ((READ_ME, 48),)),
        (16, ((_wasted("project", "Project"), 24), (_wasted("user", "User"), 24))),
        *((16, tuple((panel, 24) for panel in pair)) for pair in RANKINGS),
        (22, ((WORST, 24), (CPU_OVER_HOURS, 24))),
        (26, ((WASTEFUL, 48),)),
        (20, ((JOBS_TABLE, 48),)),
        (18, ((PREDICTED, 48),)),
    ),
    choices=(
        Choice(_TABLE, "project", "Project"),
        Choice(_TABLE, "user", "User"),
        Choice(_TABLE, "application", "Application"),
        Choice(_TABLE, "queue", "Queue"),
    ),
    leads_to="people",
    beyond=(
        *(READ_ME.id, WASTEFUL.id, PREDICTED.id),
        *(panel.id for pair in RANKINGS[1:] for panel in pair),
    ),
)
