"""The page of job issues, by rule, severity, user and project."""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

SECTION = "Job issues"
_EMPTY = "No issues in this selection, or esjobs detect has not run."
WRONG = Where("severity", ("minor", "major", "critical"))
"""Issues to act on; tags have severity info."""
_TABLE = "issues"
_BY_SEVERITY = (
    *("-severity_rank", "-lost_node_h", "-weighted_node_h", "-idle_core_h"),
    *("source", "job_id", "detector"),
)
MOST_ROWS = 1000
"""Most issues of the table."""


_JOBS = ("n_jobs", "Jobs")


def _issues(id_: str, title: str, by: str, heading: str, of: tuple[str, str], *where: Where) -> Panel:
    column, unit = of
    return Panel(
        id_,
        title,
        "bars",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(*where, Where(by)),
            by=(by,),
            metrics=(Sum(column, column),),
            sort=(f"-{column}",),
        ),
        fields=(Entry(by, heading, "text", "label"), Entry(column, unit, "count", "x")),
        most=(20,),
        empty=_EMPTY,
    )


def _idle(id_: str, title: str, column: str) -> Panel:
    """Panel of lost or idle hours by user: of each job the largest of its issues."""
    return Panel(
        id_,
        title,
        "bars",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(WRONG, Where("user"), Where(column)),
            by=("user",),
            metrics=(Sum(column, column),),
            sort=(f"-{column}",),
        ),
        fields=(Entry("user", "User", "text", "label"), Entry(column, "Hours", "count", "x")),
        most=(20,),
        empty=_EMPTY,
    )


BY_RULE = _issues("issues-by-rule", "Jobs by rule", "detector", "Rule", ("n_issues", "Jobs"), WRONG)
BY_SEVERITY = _issues("issues-by-severity", "Jobs by their worst severity", "severity", "Severity", _JOBS)
BY_AREA = _issues("issues-by-area", "Jobs by area of their worst issue", "area", "Area", _JOBS, WRONG)
BY_USER = _issues("issues-by-user", "Jobs with issues by user", "user", "User", _JOBS, WRONG)
BY_PROJECT = _issues("issues-by-project", "Jobs with issues by project", "project", "Project", _JOBS, WRONG)
LOST = _idle("issues-lost-by-user", "Lost node-hours of jobs with issues, by user", "job_lost_node_h")
IDLE_CORES = _idle("issues-idle-cores", "Idle core-hours of jobs with issues, by user", "job_idle_core_h")
IDLE_GPUS = _idle("issues-idle-gpus", "Idle GPU-hours of jobs with issues, by user", "job_idle_gpu_h")


def _summed(by: str, heading: str) -> Panel:
    return Panel(
        f"issues-sums-by-{by}",
        f"Jobs with issues by {by}",
        "table",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(WRONG, Where(by)),
            by=(by,),
            metrics=tuple(Sum(column, column) for column, _ in (_JOBS, *_LOST)),
            sort=("-n_jobs",),
        ),
        "A job loses the largest share that one of its issues leaves idle; risks lose nothing.",
        fields=(
            Entry(by, heading, "name", "label"),
            Entry(*_JOBS, "count"),
            *(Entry(column, title, "number") for column, title in _LOST),
        ),
        most=(100,),
        empty=_EMPTY,
    )


_LOST = (
    ("job_lost_node_h", "Lost node-hours"),
    ("job_idle_core_h", "Idle core-hours"),
    ("job_idle_gpu_h", "Idle GPU-hours"),
)

JOBS_TABLE = Panel(
    "issues-jobs",
    "Jobs with issues, most severe first",
    "rows",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(WRONG,),
        sort=_BY_SEVERITY,
        most=MOST_ROWS,
    ),
    fields=(
        Entry("day", "Day", "time"),
        Entry("job_id", "Job", "name", "label"),
        Entry("user", "User", "name"),
        Entry("project", "Project", "name"),
        Entry("detector", "Rule", "name"),
        Entry("severity", "Severity", "name"),
        Entry("severity_rank", "Rank", "count"),
        Entry("lost_node_h", "Lost node-hours", "number"),
        Entry("value", "Value", "number"),
        Entry("threshold", "Limit", "number"),
        Entry("unit", "Seen on", "name"),
        Entry("idle_core_h", "Idle core-hours", "number"),
        Entry("idle_gpu_h", "Idle GPU-hours", "number"),
        Entry("hint", "Hint", "sentence"),
    ),
    few=("job_id", "user", "detector", "severity", "idle_core_h"),
    empty=_EMPTY,
)

READ_ME = Panel(
    "issues-about",
    "How to read this page",
    "markdown",
    SECTION,
    text=(
        (
            "Issues",
            "One row per job and rule (esjobs rules show). Detectors use the time series of a job, tags its "
            "requests and usage. Report on one job: esjobs job JOBID.",
        ),
        (
            "Hours",
            "Panels count jobs. A job loses the largest share of cores or GPUs that an issue leaves idle, "
            "times its node-hours; risks lose nothing. Hours of rules overlap: never add rows. Jobs "
            "without time series are judged by their records only.",
        ),
    ),
)

ISSUES = Page(
    "issues",
    "Job issues",
    "Which jobs need attention?",
    stacked(
        (13, ((BY_SEVERITY, 16), (BY_AREA, 16), (READ_ME, 16))),
        (16, ((BY_RULE, 48),)),
        (20, ((JOBS_TABLE, 48),)),
        (18, ((LOST, 16), (BY_USER, 16), (BY_PROJECT, 16))),
        (16, ((IDLE_CORES, 24), (IDLE_GPUS, 24))),
    ),
    choices=(
        Choice(_TABLE, "user", "User"),
        Choice(_TABLE, "project", "Project"),
        Choice(_TABLE, "detector", "Rule"),
        Choice(_TABLE, "severity", "Severity"),
        Choice(_TABLE, "queue", "Queue"),
    ),
    leads_to="people",
    # a server has one table of users, and one of projects, in the place of bars for each kind of hours
    beyond=(READ_ME.id, LOST.id, BY_USER.id, BY_PROJECT.id, IDLE_CORES.id, IDLE_GPUS.id),
    served=stacked((11, ((_summed("user", "User"), 48),)), (11, ((_summed("project", "Project"), 48),))),
)
