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

SECTION = "For experts"

_FASTER = "expected over measured CPU time, minus 1; above 0: faster here than expected from the name's k"
_TASK = (
    Entry("task_id", "Task", "name", "group"),
    Entry("core_class", "Cores", "name"),
    Entry("task_type", "Type", "name"),
    Entry("work_kind", "Kind of work", "name", note="if a mixed task was split"),
)
_EVENTS = Entry("events_per_job", "Events per job", "number", "x")
_MEASURED = Entry("cpu_s_per_event", "CPU s per event", "number", "y", note="as recorded")
_EXPECTED = Entry(
    "expected_cpu_s_per_event", "Expected s", "number", note="expected by the fit, start-up time included"
)
_RESIDUAL = Entry("deviation", "Deviation", "percent", note=_FASTER)
_PULL = Entry(
    "pull",
    "Pull",
    "number",
    note="deviation over its standard deviation; above 0: faster; none without loops",
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
    "One chart per task, one mark per queue, larger with more jobs. Lower: faster processor. The curve "
    "shows the effect of the task's start-up time on one processor: proportional to 1 + ρ / events per job, "
    "through the median queue. Marks on the curve: short jobs are the reason, not the machine. k is "
    "corrected for this.",
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
    empty="The run stored no residuals of tasks.",
    on_request=True,
    headline_only=True,
)

TASK_TABLE = Panel(
    "tasks",
    "All tasks: start-up time and decision",
    "table",
    SECTION,
    View("tasks", sort=("-n_jobs", "task_id")),
    "Slope of ln(CPU time per event) against ln(events per job) inside queues. 0: CPU time is proportional "
    "to events. −1: a job costs the same for any number of events.",
    fields=(
        *_TASK,
        Entry("decision", "Decision", "name"),
        Entry("rho", "ρ, events", "number", error="rho_err", note="start-up time, with standard error"),
        Entry("slope", "Slope", "number", error="slope_err", note="with standard error"),
        JOBS,
        Entry("n_queues", "Queues", "count", note="queues with enough jobs for the fit"),
        EVENTS_PER_JOB,
        Entry("events_ratio", "Max/min", "number", note="of the mean events per job of its queues"),
        Entry("kinds_ratio", "Kinds ratio", "number", note="factor between its two kinds of work"),
        Entry("kinds_share", "Kinds share", "fraction", note="share of the smaller kind"),
        Entry("reason", "Reason", "sentence"),
    ),
    most=(400,),
    empty="The run stored no decisions about tasks.",
    folded=True,
    on_request=True,
    headline_only=True,
)

MATRIX = Panel(
    "matrix",
    "Where does each queue deviate, by task?",
    "matrix",
    SECTION,
    View(
        "residuals",
        level="queue",
        sort=("-n_jobs", "name"),
    ),
    "Deviation from the speed expected from the queue's k, in percent: blue faster, orange slower. A whole "
    "row of one colour is impossible, because k would absorb it; a single strong cell is a task that ran "
    "differently at this queue. Queues from fast to slow, with k; tasks with most jobs first. The only task "
    "of a queue shows 0 by construction. Framed cells were rejected by the fit, grey ones are not in it.",
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
    empty="No residuals: the run stored none, or all are 0 by construction (no redundancy).",
    on_request=True,
    headline_only=True,
)

ERRORS = Panel(
    "errors",
    "Verdicts and parts of their errors",
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
    empty="No verdict has an error.",
    folded=True,
    on_request=True,
)

FIT_QUALITY = Panel(
    "fit-quality",
    "How well do the fits converge?",
    "table",
    SECTION,
    View(
        "fits",
        where=(Where("dof"),),
        types="every",
    ),
    "An estimated σ int makes χ²/dof 1 by construction, so neither this nor pulls of width 1 nor S near 1 "
    "prove that the errors are right. With an assumed σ int, χ²/dof above 1 shows that they are too small. "
    "The shape and tails of the pulls, and the sandwich errors of k, are tests in both cases.",
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
        Entry("n_rejected", "Rejected", "count", note="excluded buckets: too far off"),
        Entry(
            "n_jobs_excluded",
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
    "Deviations of buckets over their standard deviations, all types together; right of 0: faster than "
    "expected from k. The line is a normal distribution of width 1 and equal area; the bars at both ends "
    "contain everything beyond. If σ int is estimated, the width is 1 by construction: check shape and "
    "tails.",
    fields=(
        LEVEL,
        Entry("low", "From", "number", "x"),
        Entry("high", "To", "number"),
        Entry("n_buckets", "Number of buckets", "count", "y"),
    ),
    empty="No pulls: the fits have no redundancy, so each residual is 0 by construction.",
    on_request=True,
)

ONE_TASK = Panel(
    "one-task",
    "Names without a test",
    "name-list",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("n_units", (1,))),
        sort=("-level", "name"),
    ),
    fields=(Entry("name", "Name", "name", "label"), LEVEL),
    empty="Every name has at least two units in the fit, so each residual is a test.",
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
    "Queues of one site often run on the same hardware. Events per job are means over all tasks of a queue. "
    "If the queues of a site ran the same tasks and those with longer jobs look faster, the reason is "
    "start-up time, not the hosts. If they ran different tasks, events per job have no relation to factors. "
    "Both axes are relative to the mean of the site; a thin line connects its queues.",
    fields=(
        Entry("site", "Site", "name", "group"),
        Entry("name", "Queue", "name", "label"),
        Entry("k", "k", "number", "y", error="k_err", note="start-up time corrected, with standard error"),
        K_RAW,
        RHO,
        Entry("corepower", "Declared", "declared", unit="benchmark", table="flags"),
        Entry("origin", "Origin", note="source of the declared value", table="flags"),
        Entry("events_per_job", "Events/job", "number", "x"),
        Entry("efficiency", "CPU eff.", "fraction"),
        JOBS,
        TASKS,
        Entry("component", "Comp.", "count", "category"),
        Entry(
            "site_guessed",
            "Guessed",
            "yesno",
            note="if the site is guessed from the queue's name",
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
    "Fit of all types, queues and CPU models. A bucket is the work of one name in one task; above 0: faster "
    "than expected from the name's k.",
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
    empty="No deviating buckets: the run stored no list, or each residual is 0 by construction.",
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
    "A speed factor uses CPU time only. Overcommitted cores and waiting for data show in the efficiency. If "
    "slow queues are also inefficient, suspect load before a wrong declaration.",
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
    "Each verdict is tested with other methods, start-up times, types and tasks. These verdicts change in "
    "the named stability check: do not send them.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        VERDICT,
        Entry("unstable_under", "Changes with"),
        Entry("deviation_raw", "Raw", "percent", note="without correction for start-up time per job"),
        DEVIATION,
        JOBS,
        TASKS,
        VIA,
    ),
    empty="All verdicts pass all stability checks.",
    folded=True,
    on_request=True,
)

METHOD_SHIFT = Panel(
    "method-shift",
    "Effect of the published objective",
    "extremes",
    SECTION,
    View(
        "factors",
        where=(Where("k"), Where("method_sigmas")),
        sort=("-|method_sigmas|", "name"),
    ),
    "Least squares of the published method on the same sums, over the default k, minus 1, in standard "
    "errors of k: the systematic error of the method without corrections.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        K,
        Entry("method_shift", "Shift", "shift", note="k by the published objective over k, minus 1"),
        Entry("method_sigmas", "In σ", "number", "x", note="in standard errors of k"),
        JOBS,
        TASKS,
    ),
    most=(15,),
    empty="The published objective was not computed on the same sums.",
    on_request=True,
    headline_only=True,
)
