"""The result tables of the speed factors, in the order of the steps that write them."""

from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.columns import LEVEL, PROVENANCE, RUN, RUN_BEFORE, SCOPE, TYPE
from esjobs.core.numbers import exact_percent
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, FALSE_DISCOVERY_RATE, LEVELS, STANDINGS, VARIED, VERDICTS
from esjobs.schema.kinds import Kind

METHOD = column(
    "method",
    "keyword",
    "gamma (quasi-likelihood, robust, fixed cost taken out) or paper (the article's, as it was published)",
)
TASK = (
    column("task_id", "keyword", "task"),
    column("core_class", "keyword", "single or multi"),
    column("task_type", "keyword", "processing type of the task's jobs; null when the records name none"),
    column("work_kind", "keyword", "kind of work, where a mixed task was split"),
)
UNITS = "units of A (task x core class x processing type; x kind of work where a task was split)"
N_TASKS = column("n_tasks", "integer", "distinct tasks behind it; a proposal needs two", "tasks")

RANKED = (
    column(
        "grade",
        "keyword",
        "A the fastest, at most six: of the pairs in different grades at most 5 % are expected to be in the "
        "wrong order; null for other methods, and where fewer jobs do not tell",
    ),
    column("rank_low", "integer", "lower end of the 90 % interval of its rank by speed; 1 is the fastest"),
    column("rank_high", "integer", "upper end of it"),
    column("k_likely", "number", "speed factor drawn to the other names as far as its error reaches"),
    column("k_likely_low", "number", "lower end of its 90 % interval"),
    column("k_likely_high", "number", "upper end of it"),
)

FACTORS = Table(
    "factors",
    "speed factor of a queue or CPU model; only ratios inside one component mean anything",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue or CPU model"),
        TYPE,
        METHOD,
        column(
            "k", "number", "speed factor; per component they sum to their count; null unless status is ok"
        ),
        column("k_err", "number", "standard error: statistics and queue x task interaction"),
        column("k_err_stat", "number", "part from the scatter of jobs inside buckets"),
        column("k_err_sandwich", "number", "robust error clustered by task; null below 20 tasks"),
        column("k_raw", "number", "factor without correction for fixed cost per job"),
        column(
            "rho",
            "number",
            "fixed cost per job that was taken out, mean over its jobs; null when none was",
            "events",
        ),
        column(
            "component", "integer", "component; factors of different ones cannot be compared; 0 the largest"
        ),
        N_TASKS,
        column("n_buckets", "integer", "buckets in the fit", "buckets"),
        column("n_jobs", "integer", "jobs in those buckets", "jobs"),
        column(
            "status",
            "keyword",
            "ok, no common task, too few jobs, mixed task, fixed cost unknown, no dof, fit failed",
        ),
        column("reason", "text", "why there is no factor"),
        column("k_err_int", "number", "part from the queue x task interaction"),
        column(
            "k_err_model",
            "number",
            "error from the Hessian scaled by the residual spread S; of method paper that of HESSE",
        ),
        column(
            "site",
            "keyword",
            "site of a queue, imported or guessed; siblings share it",
        ),
        column("site_guessed", "boolean", "whether site was guessed from the queue's name"),
        column(
            "events_per_job",
            "number",
            "mean events of a job in the fit (or of all its jobs, without a factor)",
            "events",
        ),
        column("efficiency", "number", "CPU time over wall-clock time x cores of the same jobs"),
        column(
            "sole_link",
            "keyword",
            "the one name through which it hangs on the others, or 'few jobs': fewer than 50 link it, or the "
            "group that it belongs to, with most others; null with sound bridges",
        ),
        column(
            "method_shift", "number", "k by the other method's objective on the same sums over k, minus 1"
        ),
        column("method_sigmas", "number", "the same in standard errors of k: the systematic of the method"),
        column("n_units", "integer", f"{UNITS} that determine the factor", "units"),
        *PROVENANCE,
        column("k_err_type", "number", "part of k_err_int: what the name does to all tasks of a type alike"),
        column("k_err_class", "number", "part of k_err_int: what it does to all tasks of a core class alike"),
        column("k_err_cost", "number", "part of k_err_int: what is unknown of the fixed cost of its jobs"),
        column(
            "k_err_shift", "number", "part of k_err_int: how far it moves where a test of the model fails"
        ),
        column(
            "cost_factor",
            "number",
            "fixed cost of its jobs over that of the same tasks elsewhere; null where its jobs do not tell",
        ),
        column("cost_factor_err", "number", "its relative standard error"),
        column("cost_stands_out", "boolean", "the fixed cost is four errors away from that of the others"),
        *SCOPE,
        column("records_doubt", "text", "why the records of the name are in doubt; null where they are not"),
        column(
            "mix_k",
            "number",
            "of a queue of the largest component, all types together, headline: the factor that its CPU "
            "models predict, each by its share of the CPU time, in the scale where the median queue runs as "
            "predicted",
        ),
        column("mix_k_err", "number", "its standard error: that of the factors of the CPU models"),
        column("mix_share", "number", "share of its CPU time on CPU models that have a factor"),
        *RANKED,
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "level name processing_type method k k_err grade rank_low rank_high component sole_link n_tasks "
        "n_jobs status reason"
    ),
    order=columns("level processing_type method name"),
)

FITS = Table(
    "fits",
    "one fit: what went in, how well it closed, what Minuit found",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        METHOD,
        column("status", "keyword", "ok, no factors, failed"),
        column("reason", "text", "why the fit has no factors or failed"),
        column("n_names", "integer", "names with a factor", "names"),
        column("n_names_without", "integer", "names without one", "names"),
        column("n_components", "integer", "components that were fitted"),
        column("n_units", "integer", f"{UNITS} in the fit", "units"),
        column("n_buckets", "integer", "buckets in the fit", "buckets"),
        column("n_jobs", "integer", "jobs in the fit", "jobs"),
        column("n_jobs_dropped", "integer", "binned jobs left out of the fit", "jobs"),
        column("objective", "number", "objective at the minimum"),
        column("dof", "integer", "independent loops: buckets - tasks - names + components"),
        column("rel_spread", "number", "S, the relative spread of residuals; no error below dof 10"),
        column("chi2", "number", "residuals over their estimated variance"),
        column("sigma_int", "number", "queue x task interaction, relative"),
        column("sigma_int_err", "number", "its standard error; null when assumed"),
        column("sigma_int_kind", "keyword", "estimated or assumed"),
        column(
            "minuit_valid",
            "boolean",
            "of method paper: MIGRAD, from k = 1, calls the minimum of every component valid",
        ),
        column(
            "minuit_accurate",
            "boolean",
            "HESSE's covariance is accurate throughout; null above 1000 names",
        ),
        column("minuit_edm", "number", "MIGRAD's largest estimated distance to the minimum, in chi2"),
        column("minuit_calls", "integer", "function calls of MIGRAD and HESSE"),
        column("minuit_objective", "number", "objective at the minimum that MIGRAD found"),
        column(
            "minuit_agreement",
            "number",
            "largest distance of ln k between MIGRAD's minimum and our own search's, in standard errors",
        ),
        column(
            "found_by",
            "keyword",
            "whose minimum is the result: minuit, from k = 1, or own, from the convex start, where MIGRAD "
            "ended more than 0.05 standard errors away and higher",
            values=("minuit", "own"),
        ),
        column(
            "n_jobs_set_aside", "integer", "jobs of tasks that were set aside; among those left out", "jobs"
        ),
        column("n_rejected", "integer", "buckets that count for nothing, because they are too far off"),
        column(
            "pull_width", "number", "standard deviation of the pulls of the buckets; 1 if errors are right"
        ),
        column(
            "seconds",
            "number",
            "null, so that a repeated run gives equal rows: how long a step took stands in runs",
            "s",
        ),
        *PROVENANCE,
        column("jobs_share", "number", "share of the binned jobs that entered"),
        column("sigma_type", "number", "what a name does to all tasks of a type, relative; beside sigma_int"),
        column("sigma_type_err", "number", "its standard error; null when assumed"),
        column(
            "sigma_type_kind", "keyword", "estimated or assumed (one type, or too few names with several)"
        ),
        column("sigma_class", "number", "what a name does to all tasks of a core class; null where not told"),
        column("sigma_class_err", "number", "its standard error"),
        column("sigma_cost", "number", "scatter of ln(fixed cost of a job) between names; null without any"),
        column("sigma_cost_err", "number", "its standard error; null when assumed"),
        column("sigma_cost_kind", "keyword", "estimated, corrected (name by name, beyond doubt) or assumed"),
        column("only_type", "keyword", "the processing type of all jobs in the fit, where it is one"),
        column("sigma_inner", "number", "sigma_int without what names do to types and core classes"),
        column(
            "left_out", "text", "why less than half of the jobs, or of the tasks, are in the fit; else null"
        ),
        column(
            "p_time",
            "number",
            "p of the test that tasks cost the same all the time; null where it cannot be made",
        ),
        column("shift_time", "number", "largest change of ln k if tasks have a level per week"),
        column(
            "p_factor",
            "number",
            "p of the test that nothing but noise is left of task x name, and for queues of task x CPU model",
        ),
        column("sigma_factor", "number", "size of the pattern that is left, relative"),
        column(
            "p_power", "number", "p of the test that CPU time is proportional to events after a fixed cost"
        ),
        column("power", "number", "power of the events that CPU time goes with, if there were no fixed cost"),
        column("model_doubt", "text", "the tests of the model that fail (p < 0.001), in words; else null"),
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "level processing_type method status n_names n_units n_buckets n_jobs rel_spread dof "
        "sigma_int sigma_int_kind minuit_valid reason"
    ),
    order=columns("level processing_type method"),
)

TASK_RESULTS = Table(
    "tasks",
    "one task as the fits saw it: what a job costs before its first event, whether it is one kind of work",
    "run",
    (
        RUN,
        *TASK,
        column("n_jobs", "integer", "binned jobs", "jobs"),
        column("n_queues", "integer", "queues with enough jobs to enter", "queues"),
        column("decision", "keyword", "kept, corrected, split, mixed task, fixed cost unknown"),
        column("reason", "text", "why"),
        column("rho", "number", "fixed cost of a job; null when unknown", "events"),
        column("rho_err", "number", "its standard error", "events"),
        column(
            "slope",
            "number",
            "of ln(CPU time per event) on ln(events) inside queues: 0 proportional, -1 fixed",
        ),
        column("slope_err", "number", "its standard error"),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("events_ratio", "number", "largest over smallest mean events per job of its queues"),
        column(
            "kinds_ratio", "number", "factor between two kinds of work inside it; null when none was seen"
        ),
        column("kinds_share", "number", "share of the smaller kind"),
        *PROVENANCE,
        column("share", "number", "of the fixed cost in a mean job, drawn to that of tasks of its kind"),
        column("share_err", "number", "its standard error"),
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "task_id core_class task_type work_kind n_jobs n_queues events_per_job events_ratio "
        "rho rho_err slope slope_err decision reason"
    ),
    order=columns("-n_jobs task_id core_class task_type work_kind"),
)

RESIDUALS = Table(
    "residuals",
    "what the headline fit of all types leaves of a bucket: the tasks of most jobs, and the worst buckets",
    "run",
    (
        RUN,
        LEVEL,
        METHOD,
        *TASK,
        column("name", "keyword", "queue or CPU model"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("cpu_s_per_event", "number", "CPU time per event as it was recorded", "s"),
        column("expected_cpu_s_per_event", "number", "what the fit expects, fixed cost included", "s"),
        column("deviation", "number", "expected over measured CPU time, minus 1: above 0 ran faster here"),
        column("pull", "number", "the deviation in its own standard deviations; null without loops"),
        column("status", "keyword", "used, rejected, one unit, no fit"),
        column("rank", "integer", "place among the ten most deviating buckets, from 1; null for others"),
        *PROVENANCE,
        column("rho", "number", "fixed cost of a job of the task, as in tasks; null when unknown", "events"),
        column("decision", "keyword", "what was decided about the task, as in tasks"),
        *SCOPE,
        column("site", "keyword", "site of a queue"),
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "level method rank task_id core_class task_type work_kind name n_jobs events_per_job "
        "cpu_s_per_event expected_cpu_s_per_event deviation pull status"
    ),
    order=columns("level method rank name task_id"),
)

STABILITY_CHECKS = Table(
    "stability_checks",
    "the factors of the headline fits under what can be wrong: per name and kind of change the extremes",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue or CPU model, of the largest component"),
        TYPE,
        METHOD,
        column("change", "keyword", "what is changed: " + ", ".join(VARIED), values=VARIED),
        column("n_variants", "integer", "changes of that kind under which it has a factor, or lost it"),
        column("k_low", "number", "the lowest factor, where the median name keeps its own"),
        column("low_change", "text", "the change that gives it"),
        column("k_high", "number", "the highest factor, in the same scale"),
        column("high_change", "text", "the change that gives it"),
        column(
            "disconnecting_task",
            "text",
            "a task without which nothing links it with most others; null without",
        ),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "level name processing_type change n_variants k_low low_change k_high high_change disconnecting_task"
    ),
    order=columns("level processing_type method name change"),
)

CPU_MIX = Table(
    "cpu_mix",
    "what a queue ran on: its CPU models by the time that jobs of the fits had cores of them",
    "run",
    (
        RUN,
        column("queue", "keyword", "queue, as jobs name it"),
        column("site", "keyword", "site of the queue"),
        column("cpu_model", "keyword", "canonical CPU model; null: the records name none"),
        column("n_jobs", "integer", "binned jobs", "jobs"),
        column("core_s", "number", "wall-clock time x cores", "core s"),
        column("share", "number", "of the core time of the queue"),
        column(
            "k",
            "number",
            "speed factor that a queue of this CPU model alone would have, on the scale of queues; null "
            "where the model has none or cannot be compared",
        ),
        column("k_err", "number", "its standard error"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns("queue site cpu_model share core_s n_jobs k k_err"),
    order=columns("queue -core_s cpu_model"),
    named="queue",
)

PULL_HISTOGRAMS = Table(
    "pull_histograms",
    "one bar of the histogram of the pulls of a fit's buckets; none where a fit has no independent loops",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        METHOD,
        column(
            "low", "number", "lower end of the bar in standard deviations; the first holds all below, too"
        ),
        column("high", "number", "upper end of the bar; the last holds all above, too"),
        column("n_buckets", "integer", "buckets whose pull lies in the bar", "buckets"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns("level processing_type method low high n_buckets"),
    order=columns("level processing_type method low"),
)

COMPONENTS = Table(
    "components",
    "a set of names connected through common tasks, or a name that stands alone",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        METHOD,
        column("component", "integer", "0 the largest"),
        column("n_names", "integer", "names", "names"),
        column("n_units", "integer", UNITS, "units"),
        column("n_buckets", "integer", "buckets", "buckets"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("dof", "integer", "independent loops"),
        column("rel_spread", "number", "S of this component"),
        column("minuit_valid", "boolean", "of method paper: MIGRAD calls its minimum valid"),
        column("names", "text", "the names, most jobs first"),
        column("link", "text", "what would connect it with the largest component"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="fit",
    shown=columns("level processing_type method component n_names n_units n_jobs names link"),
    order=columns("level processing_type method component"),
)

LINES = Table(
    "lines",
    "line through the origin: speed factor = slope x declared corepower",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        METHOD,
        column("benchmark", "keyword", "HS06 or HS23"),
        column("component", "integer", "component the line was fitted in: the largest"),
        column("status", "keyword", "ok, too few sites, too few"),
        column("reason", "text", "why no verdict rests on the line"),
        column("slope", "number", "robust slope: speed factor per unit of corepower"),
        column("slope_err", "number", "its standard error"),
        column("slope_ols", "number", "unweighted least squares, for comparison with the article"),
        column("slope_wls", "number", "weighted by 1/k_err², for comparison only"),
        column("tau", "number", "scatter about the line beyond the errors, relative"),
        column("n_names", "integer", "names with a factor and a declared value", "names"),
        column("n_entries", "integer", "entries of the line: one per site and declared value"),
        column("n_groups", "integer", "sites of the queues; of CPU models, the models", "groups"),
        column("pearson", "number", "Pearson's r over names"),
        column("spearman", "number", "Spearman's rho over names"),
        column("pearson_groups", "number", "Pearson's r over sites"),
        column("spearman_groups", "number", "Spearman's rho over sites"),
        *PROVENANCE,
        *SCOPE,
        column(
            "groups_ratio",
            "number",
            "where declarations fall into two groups: k/corepower of one over that of the other",
        ),
    ),
    time="window_end",
    made_by="correlate",
    shown=columns(
        "level processing_type method benchmark status slope slope_err tau n_names n_groups "
        "pearson pearson_groups reason"
    ),
    order=columns("level processing_type method component"),
)

FLAGS = Table(
    "flags",
    "a name's deviation from what its declared corepower promises, and the verdict",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue or CPU model"),
        TYPE,
        METHOD,
        column("corepower", "number", "declared benchmark score per core", "benchmark per core"),
        column("benchmark", "keyword", "HS06 or HS23"),
        column("origin", "keyword", "own, inherited, default, changed, none"),
        column("k", "number", "speed factor"),
        column("k_err", "number", "its standard error"),
        column("expected_k", "number", "what the line expects, without the whole site of the name"),
        column("deviation", "number", "k / expected_k - 1"),
        column("deviation_err", "number", "its standard error: statistics, interaction, line"),
        column("verdict", "keyword", ", ".join(VERDICTS), values=VERDICTS),
        column(
            "significant",
            "boolean",
            f"survives Benjamini-Hochberg at {exact_percent(FALSE_DISCOVERY_RATE)} over the run's tests",
        ),
        column("q_value", "number", "Benjamini-Hochberg q-value of |deviation| > limit"),
        column(
            "stable",
            "boolean",
            "the verdict survives every change in `variants`: of 'deviates' the sign and half the limit, of "
            "'ok' the limit; null for every other verdict and for methods other than the headline",
        ),
        column(
            "proposed_corepower",
            "number",
            "what the others' level would declare; only where confirmed",
        ),
        column("proposed_corepower_err", "number", "its standard error; the interval is that of `estimate`"),
        column("sentence", "text", "the verdict in one sentence that may be sent"),
        N_TASKS,
        column("n_jobs", "integer", "jobs", "jobs"),
        column("component", "integer", "component"),
        column("site", "keyword", "site of a queue"),
        column(
            "corepower_from_records", "number", "value found in the records when it differs by more than 1 %"
        ),
        column("corepower_parent", "number", "value of the parent or site, shown, never substituted"),
        column(
            "unstable_under",
            "text",
            "the change that the verdict does not survive, the deviation then",
        ),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("deviation_raw", "number", "deviation without correction for fixed cost per job"),
        column("deviation_err_stat", "number", "part of the error from the scatter of jobs"),
        column("deviation_err_int", "number", "part from the queue x task interaction"),
        column("deviation_err_line", "number", "part from the line"),
        column(
            "sole_link",
            "keyword",
            "the one name through which it hangs on the others, or 'few jobs': fewer than 50 link it, or the "
            "group that it belongs to, with most others; null with sound bridges",
        ),
        column("n_units", "integer", UNITS, "units"),
        *PROVENANCE,
        column(
            "confirmed",
            "boolean",
            "deviates, significant and stable: it may be sent; null where nothing was compared",
        ),
        column("finding", "text", "the sentence without what it asks to be done"),
        column(
            "advice", "text", "what the sentence asks to be done, alike for many names; null where nothing"
        ),
        column(
            "status_shown",
            "keyword",
            "what people read for the verdict: for 'deviates' confirmed or candidate, else the verdict",
            values=STANDINGS,
        ),
        *SCOPE,
        column(
            "estimate",
            "number",
            "the corepower at which it would lie on the line of the others: also of what is ok, inherited, a "
            "default or undeclared; an estimate, no proposal",
            "benchmark per core",
        ),
        column("estimate_low", "number", "lower end of its interval", "benchmark per core"),
        column("estimate_high", "number", "upper end of its interval", "benchmark per core"),
        column("estimate_level", "number", "how often such an interval holds the true value"),
        column("estimate_benchmark", "keyword", "HS06 or HS23"),
        RUN_BEFORE,
        column(
            "verdict_before",
            "keyword",
            "its verdict in the run before; null without one, or where it was not in it",
            values=VERDICTS,
        ),
        column("status_shown_before", "keyword", "what people read for that verdict", values=STANDINGS),
        column("k_before", "number", "its speed factor in the run before, in the scale of that run"),
        column("corepower_before", "number", "what it declared in the run before", "benchmark per core"),
        column("country", "keyword", "country of the queue, as an imported table tells it; else null"),
        column(
            "rank",
            "integer",
            "1 is read first: confirmed, then by |deviation|; over all verdicts of the run, so that those of "
            "one level, type and method follow each other with gaps",
        ),
        *RANKED,
    ),
    time="window_end",
    made_by="flag",
    key=columns("level name processing_type method"),
    before=columns("verdict status_shown k corepower"),
    shown=columns(
        "level name processing_type method verdict deviation corepower benchmark origin "
        "proposed_corepower grade rank_low rank_high n_tasks n_jobs"
    ),
    order=columns("level processing_type method rank name component"),
)

FIT_SUMMARIES = Table(
    "fit_summaries",
    "what the flags of one fit say together",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        METHOD,
        column("n_names", "integer", "names judged", "names"),
        column("n_deviates", "integer", "verdicts 'deviates'", "names"),
        column("n_stable", "integer", "those of them that no tried change turns", "names"),
        column("n_ok", "integer", "verdicts 'ok'", "names"),
        column("n_undecided", "integer", "verdicts 'undecided'", "names"),
        column("n_undeclared", "integer", "verdicts 'undeclared'", "names"),
        column("n_others", "integer", "every other verdict", "names"),
        column("sentence", "text", "what can be concluded; rests on what is confirmed"),
        *PROVENANCE,
        column("n_comparable", "integer", "names that were compared: deviates, ok or undecided", "names"),
        column("n_confirmed", "integer", "verdicts 'deviates' that are significant and stable", "names"),
        column("n_candidates", "integer", "every other verdict 'deviates'", "names"),
        column("n_on_one_task", "integer", "comparable names that rest on a single task", "names"),
        column("n_with_factor", "integer", "names with a speed factor", "names"),
        column("n_too_few", "integer", "verdicts 'too few'", "names"),
        column("n_mixed", "integer", "verdicts 'mixed'", "names"),
        column("n_implausible", "integer", "verdicts 'implausible'", "names"),
        column("n_not_comparable", "integer", "verdicts 'not comparable'", "names"),
        column("evidence", "text", "what makes deviations confirmed, what candidates lack; null without any"),
        *SCOPE,
    ),
    time="window_end",
    made_by="flag",
    shown=columns(
        "level processing_type method n_comparable n_confirmed n_candidates n_ok n_undecided "
        "n_on_one_task sentence"
    ),
    order=columns("level processing_type method"),
)


METHOD_VERSION = "5"
"""Raised when a change of method changes numbers; part of every run id."""


def _preferred(settings: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    methods = settings.get("fit", {}).get("methods", ())
    return {"level": LEVELS, "processing_type": (ALL_TYPES,), "method": methods}


SPEED = Kind(
    "speed",
    (
        FACTORS,
        FITS,
        TASK_RESULTS,
        RESIDUALS,
        PULL_HISTOGRAMS,
        STABILITY_CHECKS,
        CPU_MIX,
        COMPONENTS,
        LINES,
        FLAGS,
        FIT_SUMMARIES,
    ),
    sections=("rules", "fit"),
    versions={"method_version": METHOD_VERSION},
    preferred=_preferred,
    named=False,
    command="esjobs run",
)
"""Tables of the speed of queues and CPU models, and of deviating names."""

TABLES = SPEED.tables
KINDS = (SPEED,)
