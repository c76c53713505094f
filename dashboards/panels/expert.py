"""Panels for the expert: what a verdict rests on, in the order in which a site's objections come."""

from dashboards.panels.columns import (
    DEVIATION,
    EVENTS_PER_JOB,
    JOBS,
    K_RAW,
    LEVEL,
    OF_SITE,
    RHO,
    TASKS,
    VERDICT,
    VIA,
    K,
)
from dashboards.spec import Entry, Join, Panel, View, Where
from esjobs.core.words import HALF_WIDTH_90, JUDGED

SECTION = "For the expert"

_FASTER = "expected CPU time over the measured, less 1: above 0 ran faster here than the name's k promises"
_TASK = (
    Entry("task_id", "Task", "name", "group"),
    Entry("core_class", "Cores", "name"),
    Entry("task_type", "Type", "name"),
    Entry("work_kind", "Kind of work", "name", note="where a mixed task was split"),
)
_EVENTS = Entry("events_per_job", "Events per job", "number", "x")
_MEASURED = Entry("cpu_s_per_event", "CPU s per event", "number", "y", note="as it was recorded")
_EXPECTED = Entry(
    "expected_cpu_s_per_event", "Expected s", "number", note="what the fit expects, start-up time included"
)
_RESIDUAL = Entry("deviation", "Deviation", "percent", note=_FASTER)
_PULL = Entry(
    "pull",
    "Pull",
    "number",
    note="the deviation in its own standard deviations: above 0 ran faster; none without loops",
)
_STATUS = Entry("status", "Status", "name", "category", note="used, rejected, one unit, no fit")

TASK_CURVES = Panel(
    "task-curves",
    "CPU time per event against events per job",
    "task-curves",
    SECTION,
    View(
        "residuals",
        where=(Where("events_per_job"), Where("cpu_s_per_event")),
        level="queue",
        sort=("-n_jobs", "name"),
    ),
    "One chart per task, one mark per queue, larger with more jobs. Queues with a fast processor lie lower. "
    "The curve is what the task's start-up time per job makes of one and the same processor: proportional to "
    "1 + ρ / events per job, through the median queue. Where marks follow it, short jobs are the reason, "
    "not the machine; that part is taken out of k.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        JOBS,
        _EVENTS,
        _MEASURED,
        _EXPECTED,
        _RESIDUAL,
        _PULL,
        _STATUS,
        *_TASK,
    ),
    most=(6,),
    empty="The run kept no residuals of tasks.",
    on_request=True,
    headline_only=True,
)

TASK_TABLE = Panel(
    "tasks",
    "All tasks, their start-up time, and what was decided",
    "table",
    SECTION,
    View("tasks", sort=("-n_jobs", "task_id")),
    "Slope is that of ln(CPU time per event) on ln(events per job) inside queues: 0 when CPU time is "
    "proportional to events, −1 when a job costs the same whatever it does.",
    fields=(
        *_TASK,
        Entry("decision", "Decision", "name"),
        Entry("rho", "ρ, events", "number", error="rho_err", note="start-up time, with standard error"),
        Entry("slope", "Slope", "number", error="slope_err", note="with standard error"),
        JOBS,
        Entry("n_queues", "Queues", "count", note="queues with enough jobs to enter"),
        EVENTS_PER_JOB,
        Entry("events_ratio", "Max/min", "number", note="of the mean events per job of its queues"),
        Entry("kinds_ratio", "Kinds ratio", "number", note="factor between two kinds of work inside it"),
        Entry("kinds_share", "Kinds share", "fraction", note="share of the smaller kind"),
        Entry("reason", "Reason", "sentence"),
    ),
    most=(400,),
    empty="The run kept no account of its tasks.",
    folded=True,
    on_request=True,
    headline_only=True,
)

MATRIX = Panel(
    "matrix",
    "Where each queue is off, task by task",
    "matrix",
    SECTION,
    View(
        "residuals",
        level="queue",
        sort=("-n_jobs", "name"),
    ),
    "Deviation of the speed from what the queue's k promises, in percent: blue ran faster, orange slower. A "
    "row of one colour cannot be, k would have taken it up; a single strong cell is a task that ran "
    "differently there. Queues from fast to slow, with k; tasks with most jobs first. A queue's only task "
    "shows 0 by construction. Framed cells were rejected by the fit, grey ones had no part in it.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        *_TASK,
        Entry("deviation", "Deviation", "percent", "x", note=_FASTER),
        _PULL,
        _STATUS,
        JOBS,
        EVENTS_PER_JOB,
        Entry("k", "k", "number", "y", error="k_err", table="factors"),
    ),
    joins=(Join("speed", View("factors", level="queue"), "name", ("k",)),),
    most=(40, 25),
    empty="There is no residual to show: the run kept none, or each is 0 by construction, because there "
    "are no independent loops through queues and tasks.",
    on_request=True,
    headline_only=True,
)

ERRORS = Panel(
    "errors",
    "What each verdict and its error are made of",
    "table",
    SECTION,
    View(
        "flags",
        where=(Where("verdict", JUDGED),),
        sort=("-level", "rank"),
    ),
    "Above 0 ran faster than declared. Raw is the deviation without correction for start-up time. The "
    "three parts of the error add in quadrature to one standard error; verdicts use "
    f"{HALF_WIDTH_90} of it.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        VERDICT,
        Entry("deviation_raw", "Raw", "percent", note="without correction for start-up time per job"),
        DEVIATION,
        Entry("deviation_err", "Error", "size", note="one standard error, all parts"),
        Entry("deviation_err_stat", "Statistics", "size", note="from the scatter of jobs"),
        Entry("deviation_err_int", "Interaction", "size", note="from the queue × task interaction"),
        Entry("deviation_err_line", "Line", "size", note="from the line"),
        JOBS,
        TASKS,
        EVENTS_PER_JOB,
        VIA,
    ),
    empty="No name has a verdict that rests on an error.",
    folded=True,
    on_request=True,
)

FIT_QUALITY = Panel(
    "fit-quality",
    "How well the fits close",
    "table",
    SECTION,
    View(
        "fits",
        where=(Where("dof"),),
        types="every",
    ),
    "Where σ int is estimated, it is the value that makes χ²/dof 1, so neither that nor pulls of width 1 nor "
    "S near 1 proves that the errors are right. Where it is assumed, χ²/dof above 1 says that they are too "
    "narrow. Shape and tails of the pulls and the "
    "sandwich errors beside k are tests as well.",
    fields=(
        LEVEL,
        Entry("processing_type", "Type", "name"),
        Entry("dof", "dof", "count", note="independent loops"),
        Entry(
            "rel_spread",
            "S",
            "number",
            note="√(Σ w r² / dof); gamma: in errors, σ int included; paper: relative, w = 1",
            always=True,
        ),
        Entry(
            "chi2",
            "χ²/dof",
            "number",
            note="residuals over their variance, σ int included",
            per="dof",
            fixed=("sigma_int_kind", "estimated", " by construction"),
        ),
        Entry("sigma_int", "σ int", "number", error="sigma_int_err", note="queue × task interaction"),
        Entry("sigma_int_kind", "σ int is"),
        Entry(
            "pull_width",
            "Pull width",
            "number",
            note="standard deviation of the pulls of the buckets; 0 without dof",
        ),
        Entry("n_buckets", "Buckets", "count"),
        Entry("n_rejected", "Rejected", "count", note="buckets that count for nothing: too far off"),
        Entry(
            "n_jobs_set_aside",
            "Jobs not used",
            "count",
            note="of tasks with the decision mixed task or start-up time unknown",
        ),
    ),
    empty="No fit has a factor.",
    on_request=True,
)

PULL_HISTOGRAMS = Panel(
    "pulls",
    "Pulls of the buckets",
    "pulls",
    SECTION,
    View("pull_histograms", sort=("-level", "low")),
    "Deviations of buckets in their own standard deviations, for all types together: right of 0 ran faster "
    "than k promises. The line is a normal of width 1 and the same area; the bars at both ends hold all that "
    "lies beyond. Where σ int is estimated, the width is 1 by construction; look at the shape and the tails.",
    fields=(
        LEVEL,
        Entry("low", "From", "number", "x"),
        Entry("high", "To", "number"),
        Entry("n_buckets", "Number of buckets", "count", "y"),
    ),
    empty="There are no pulls: no fit has independent loops, so each residual is 0 by construction.",
    on_request=True,
)

ONE_TASK = Panel(
    "one-task",
    "Names that cannot be tested",
    "name-list",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("n_units", (1,))),
        sort=("-level", "name"),
    ),
    fields=(Entry("name", "Name", "name", "label"), LEVEL),
    empty="Every name has at least two units of the fit, so that each residual tests something.",
    on_request=True,
)

SIBLINGS = Panel(
    "siblings",
    "Queues of one site",
    "siblings",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("site")),
        level="queue",
        sort=("site", "-k"),
    ),
    "Queues of one site often run on the same hardware. Events per job are the mean over all tasks of "
    "a queue: where the queues of a site ran the same tasks and those with longer jobs look faster, a fixed "
    "cost per job is at work rather than a difference of machines; where they ran different tasks, their "
    "events per job say nothing about their factors. Both axes are relative to the mean of the site; a "
    "thin line joins its queues.",
    fields=(
        Entry("site", "Site", "name", "group"),
        Entry("name", "Queue", "name", "label"),
        Entry("k", "k", "number", "y", error="k_err", note="start-up time taken out, with standard error"),
        K_RAW,
        RHO,
        Entry("corepower", "Declared", "declared", unit="benchmark", table="flags"),
        Entry("origin", "Origin", note="where the declared value comes from", table="flags"),
        Entry("events_per_job", "Events/job", "number", "x"),
        Entry("efficiency", "CPU eff.", "fraction"),
        JOBS,
        TASKS,
        Entry("component", "Comp.", "count", "category"),
        Entry(
            "site_guessed",
            "Guessed",
            "yesno",
            note="whether the site is a guess from the queue's name",
        ),
    ),
    empty="No site has two queues with a speed factor.",
    on_request=True,
)

WORST = Panel(
    "worst-buckets",
    "The ten most deviating buckets",
    "table",
    SECTION,
    View(
        "residuals",
        where=(Where("rank"), Where("deviation", above=1e-6)),
        sort=("-level", "rank"),
    ),
    "Of the fit of all types, for queues and for CPU models. A bucket is what one name ran of one task; "
    "above 0 it ran faster than the name's k promises.",
    fields=(
        Entry("rank", "Rank", "count"),
        LEVEL,
        Entry("name", "Name", "name", "label"),
        *_TASK,
        JOBS,
        EVENTS_PER_JOB,
        _MEASURED,
        _EXPECTED,
        _RESIDUAL,
        _PULL,
        _STATUS,
    ),
    empty="No bucket deviates: the run kept no list, or each residual is 0 by construction.",
    on_request=True,
    headline_only=True,
)

EFFICIENCY = Panel(
    "efficiency",
    "CPU efficiency beside the speed factor",
    "scatter",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("efficiency")),
        level="queue",
        sort=("-n_jobs", "name"),
    ),
    "A speed factor is made of CPU time alone. Overcommitted cores and waiting for data show in the "
    "efficiency; if slow queues were also the inefficient ones, look for load before a wrong declaration.",
    fields=(
        Entry("name", "Queue", "name", "label"),
        OF_SITE,
        Entry("efficiency", "CPU efficiency", "fraction", "x"),
        Entry("k", "Speed factor k", "number", "y", error="k_err"),
        K_RAW,
        Entry("component", "Component", "count", "category"),
        JOBS,
        TASKS,
    ),
    empty="No queue has both a speed factor and a CPU efficiency.",
    on_request=True,
)

UNSTABLE = Panel(
    "unstable",
    "Verdicts that are not stable",
    "table",
    SECTION,
    View(
        "flags",
        where=(Where("stable", (False,)),),
        sort=("-level", "rank"),
    ),
    "Each verdict is made again with other methods, limits of jobs and of tasks. These become another one "
    "under the change that is named, and should not be sent.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        VERDICT,
        Entry("unstable_under", "Changes under"),
        Entry("deviation_raw", "Raw", "percent", note="without correction for start-up time per job"),
        DEVIATION,
        JOBS,
        TASKS,
        VIA,
    ),
    empty="Every verdict stays what it is under every tried change.",
    folded=True,
    on_request=True,
)

METHOD_SHIFT = Panel(
    "method-shift",
    "What the article's objective would change",
    "extremes",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("method_sigmas")),
        sort=("-|method_sigmas|", "name"),
    ),
    "The article's least squares on the same sums, over the headline's k, less 1; in standard errors of k. "
    "That is the systematic of the method, apart from the corrections.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        K,
        Entry("method_shift", "Shift", "shift", note="k by the article's objective over k, less 1"),
        Entry("method_sigmas", "In σ", "number", "x", note="in standard errors of k"),
        JOBS,
        TASKS,
    ),
    most=(15,),
    empty="The article's objective was not tried on the same sums.",
    on_request=True,
    headline_only=True,
)
