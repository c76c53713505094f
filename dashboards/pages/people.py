"""The page of projects and users: who used what, how well, and which jobs are behind it."""

from dashboards.panels.efficiency import RANKINGS
from dashboards.spec import WASTED_IS, Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

SECTION = "Projects and users"
_EMPTY = "No job of the chosen time and filters is scored: esjobs score makes scores."
_TABLE = "scores"
FOREMOST = 1000
"""Jobs that are looked at one by one at most, the first by what a panel is about."""
_SHOWN = 25


def _wasted(by: str, heading: str) -> Panel:
    """Core-hours without CPU time, per name."""
    return Panel(
        f"people-wasted-by-{by}",
        f"Core-hours without CPU time by {by}, the 20 with most: click one",
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
    """The first jobs by a column, a bar each."""
    return Panel(
        id_,
        title,
        "worst",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(Where(column),),
            sort=(f"-{column}", "source", "job_id"),
            most=FOREMOST,
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


_HOURS = (("node_h", "Node-hours"), ("idle_core_h", "Core-hours without CPU time"))

WORST = _worst(
    "people-worst",
    "The 25 jobs with the highest sum of scores (bar: sum; dots: the scores it is made of)",
    "A sum over the scores that a job has, of GPUs too: one of more scores adds up to more. A job of a user "
    "who is named often is hardly a single case.",
    "score_sum",
    "Sum of scores",
)
WASTEFUL = _worst(
    "people-wasteful",
    "The 25 jobs that wasted most core-hours",
    "Core-hours without CPU time: wall-clock time × cores less CPU time.",
    "idle_core_h",
    "Core-hours without CPU time",
)

CPU_OVER_HOURS = Panel(
    "people-cpu-over-hours",
    "score_cpu over node-hours, a mark per job (0 best, 100 worst)",
    "of-jobs",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(Where("score_cpu"), Where("node_h", above=0)),
        sort=("-node_h", "source", "job_id"),
        most=FOREMOST,
    ),
    "The 1,000 jobs of most node-hours that have the score. Above on the right: look at these first.",
    fields=(
        Entry("node_h", "Node-hours", "number", "x"),
        Entry("score_cpu", "score_cpu", "number", "y"),
        Entry("user", "User", "name"),
        Entry("project", "Project", "name"),
        Entry("job_id", "Job", "name"),
    ),
    most=(FOREMOST,),
    empty="No job of the chosen time and filters has score_cpu: esjobs score makes it, of counters.",
)

JOBS_TABLE = Panel(
    "people-jobs",
    "Jobs that wasted most core-hours",
    "rows",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(Where("idle_core_h"),),
        sort=("-idle_core_h", "source", "job_id"),
        most=FOREMOST,
    ),
    fields=(
        Entry("job_id", "Job", "name"),
        Entry("project", "Project", "name"),
        Entry("user", "User", "name"),
        Entry("queue", "Queue", "name"),
        Entry("end_time", "Ended", "time"),
        Entry("node_h", "Node-hours", "number"),
        Entry("idle_core_h", "Core-hours wasted", "number"),
        Entry("cpu_efficiency", "CPU efficiency", "fraction"),
        *_SCORES,
        Entry("score_gpu", "score_gpu", "number"),
        Entry("score_gpumem", "score_gpumem", "number"),
    ),
    empty=_EMPTY,
    hint="open a row for all of it",
)

PREDICTED = Panel(
    "people-predicted",
    "Predicted scores of jobs that were not measured, worst first: in no mean and no ranking above",
    "rows",
    SECTION,
    View(
        "predicted_scores",
        types="every",
        where=(Where("value"),),
        sort=("-value", "source", "job_id", "score_name"),
        most=FOREMOST,
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
    empty="No score of the chosen time and filters is predicted: esjobs similar predict makes them.",
    hint="open a row for all of it",
)

READ_ME = Panel(
    "people-about",
    "How to go on from here",
    "markdown",
    SECTION,
    text=(
        (
            "Project, user, job",
            "Click the bar of a project among the core-hours below: its users and jobs are left. Click the "
            "bar of a user: the jobs of that user. What was chosen stands above and is taken back there.",
        ),
        (
            "Scores",
            "0 best, 100 worst. Means over jobs, weighted by node-hours; in brackets the part of these of "
            "which the score is known: compare no two without looking at it. Dashed: all together. Order: by "
            "the lower end of 95 % intervals, which take jobs for independent; five scored jobs or more. "
            "Scores of several families of CPUs are of several definitions; esjobs rank says which.",
        ),
    ),
)

PEOPLE = Page(
    "people",
    "Projects and users",
    "Who leaves core-hours unused, whose jobs score worst, and which jobs are behind it?",
    stacked(
        (9, ((READ_ME, 48),)),
        (18, ((_wasted("project", "Project"), 24), (_wasted("user", "User"), 24))),
        *((16, tuple((panel, 24) for panel in pair)) for pair in RANKINGS),
        (26, ((WORST, 24), (WASTEFUL, 24))),
        (20, ((CPU_OVER_HOURS, 48),)),
        (24, ((JOBS_TABLE, 48),)),
        (18, ((PREDICTED, 48),)),
    ),
    choices=(
        Choice(_TABLE, "project", "Project"),
        Choice(_TABLE, "user", "User"),
        Choice(_TABLE, "application", "Application"),
        Choice(_TABLE, "queue", "Queue"),
    ),
    leads_to="people",
)
