"""The page of job issues: what is wrong, by rule and severity, whose jobs they are, what to tell them."""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

SECTION = "Job issues"
_EMPTY = "No job of the chosen time and filters has issues of this kind: esjobs detect looks for them."
WRONG = Where("severity", ("minor", "major", "critical"))
"""What somebody should look at: tags that only say what a job is like are of severity info."""
_TABLE = "issues"
FOREMOST = 1000
"""Issues that are listed one by one at most."""


def _issues(id_: str, title: str, by: str, heading: str, *where: Where) -> Panel:
    """Issues counted per name."""
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
    """Hours that users' jobs left unused, by one rule: those of several overlap."""
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


BY_RULE = _issues(
    "issues-by-rule", "Issues by rule, without tags of severity info", "detector", "Rule", WRONG
)
BY_SEVERITY = _issues("issues-by-severity", "Issues and tags by severity", "severity", "Severity")
BY_AREA = _issues("issues-by-area", "Issues by what they are about", "area", "Area", WRONG)
BY_USER = _issues("issues-by-user", "Issues by user", "user", "User", WRONG)
BY_PROJECT = _issues("issues-by-project", "Issues by project", "project", "Project", WRONG)
IDLE_CORES = _idle(
    "issues-idle-cores", "Core-hours in which cores did nothing, by user", "cpu-idle", "idle_core_h"
)
IDLE_GPUS = _idle(
    "issues-idle-gpus", "GPU-hours in which GPUs did nothing, by user", "gpu-idle", "idle_gpu_h"
)

JOBS_TABLE = Panel(
    "issues-jobs",
    "Jobs with issues, the worst first, with what to tell their users",
    "rows",
    SECTION,
    View(
        _TABLE,
        types="every",
        where=(WRONG,),
        sort=("-severity_rank", "-idle_core_h", "source", "job_id", "detector"),
        most=FOREMOST,
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
    empty="No job of the chosen time and filters has issues: esjobs detect looks for them.",
    hint="open a row for all of it",
)

READ_ME = Panel(
    "issues-about",
    "How to read this page",
    "markdown",
    SECTION,
    text=(
        (
            "Issues",
            "A row per job and rule (esjobs rules show). Detectors look at the time series of a job, tags at "
            "what it used and asked for. Everything about one job: esjobs job JOBID.",
        ),
        (
            "Hours",
            "Hours of several rules overlap: each panel of hours is about one rule. Nothing found is not the "
            "same as efficient: jobs without time series are judged by their records alone.",
        ),
    ),
)

ISSUES = Page(
    "issues",
    "Job issues",
    "Which jobs waste what they were given, whose are they, and what can be done?",
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
