"""The page of job issues, by rule, severity, user and project."""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

SECTION = "Job issues"
_EMPTY = "No issues. Did `esjobs detect` run?"
WRONG = Where("severity", ("minor", "major", "critical"))
"""Issues to act on; tags have severity info."""
_TABLE = "issues"
MOST_ROWS = 1000
"""Most issues of the table."""


def _issues(id_: str, title: str, by: str, heading: str, *where: Where) -> Panel:
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
            metrics=(Sum("n_issues", "n_issues"),),
            sort=("-n_issues",),
        ),
        fields=(Entry(by, heading, "text", "label"), Entry("n_issues", "Issues", "count", "x")),
        most=(20,),
        empty=_EMPTY,
    )


def _idle(id_: str, title: str, rule: str, column: str) -> Panel:
    """Panel of idle hours by user, for one rule, because hours of several rules overlap."""
    return Panel(
        id_,
        title,
        "bars",
        SECTION,
        View(
            _TABLE,
            types="every",
            where=(Where("detector", (rule,)), Where("user"), Where(column)),
            by=("user",),
            metrics=(Sum(column, column),),
            sort=(f"-{column}",),
        ),
        fields=(Entry("user", "User", "text", "label"), Entry(column, "Hours", "count", "x")),
        most=(20,),
        empty=_EMPTY,
    )


BY_RULE = _issues("issues-by-rule", "Which rules fire most?", "detector", "Rule", WRONG)
BY_SEVERITY = _issues("issues-by-severity", "Issues and tags by severity", "severity", "Severity")
BY_AREA = _issues("issues-by-area", "Issues by area", "area", "Area", WRONG)
BY_USER = _issues("issues-by-user", "Issues by user", "user", "User", WRONG)
BY_PROJECT = _issues("issues-by-project", "Issues by project", "project", "Project", WRONG)
IDLE_CORES = _idle("issues-idle-cores", "Idle core-hours by user", "cpu-idle", "idle_core_h")
IDLE_GPUS = _idle("issues-idle-gpus", "Idle GPU-hours by user", "gpu-idle", "idle_gpu_h")

JOBS_TABLE = Panel(
    "issues-jobs",
    "Jobs with issues, with advice for users",
    "rows",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(WRONG,),
        sort=("-severity_rank", "-idle_core_h", "source", "job_id", "detector"),
        most=MOST_ROWS,
    ),
    fields=(
        Entry("day", "Day", "time"),
        Entry("job_id", "Job", "name"),
        Entry("user", "User", "name"),
        Entry("project", "Project", "name"),
        Entry("detector", "Rule", "name"),
        Entry("severity", "Severity", "name"),
        Entry("severity_rank", "Rank", "count"),
        Entry("value", "Value", "number"),
        Entry("threshold", "Limit", "number"),
        Entry("unit", "Seen on", "name"),
        Entry("idle_core_h", "Core-hours", "number"),
        Entry("idle_gpu_h", "GPU-hours", "number"),
        Entry("hint", "Hint", "sentence"),
    ),
    empty=_EMPTY,
    hint="open a row for details",
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
            "Hours of rules overlap, so each panel of hours uses one rule. Jobs without time series are "
            "judged by their records only.",
        ),
    ),
)

ISSUES = Page(
    "issues",
    "Job issues",
    "Which jobs need a person?",
    stacked(
        (16, ((BY_SEVERITY, 16), (BY_AREA, 16), (READ_ME, 16))),
        (20, ((BY_RULE, 48),)),
        (20, ((BY_USER, 24), (BY_PROJECT, 24))),
        (20, ((IDLE_CORES, 24), (IDLE_GPUS, 24))),
        (30, ((JOBS_TABLE, 48),)),
    ),
    choices=(
        Choice(_TABLE, "user", "User"),
        Choice(_TABLE, "project", "Project"),
        Choice(_TABLE, "detector", "Rule"),
        Choice(_TABLE, "severity", "Severity"),
        Choice(_TABLE, "queue", "Queue"),
    ),
    leads_to="people",
)
