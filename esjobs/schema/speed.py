"""The result tables of the speed factors, in the order of the steps that write them."""

from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.columns import LEVEL, ORIGIN, PROVENANCE, RUN, RUN_BEFORE, SCOPE, TYPE
from esjobs.core.numbers import exact_percent
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, LEVELS, STANDINGS, SURE, VARIED, VERDICTS
from esjobs.schema.kinds import Kind

METHOD = column("method", "keyword", "gamma (robust, start-up time corrected) or paper (as published)")
_OF_FIT = (RUN, LEVEL, TYPE, METHOD)
_OF_NAME = (RUN, LEVEL, column("name", "keyword", "queue, site or CPU model"), TYPE, METHOD)
TASK = (
    column("task_id", "keyword", "task"),
    column("core_class", "keyword", "single or multi"),
    column("task_type", "keyword", "processing type of the task's jobs; null if unknown"),
    column("work_kind", "keyword", "kind of work, if a mixed task was split"),
)
SPEED_RUN = column("speed_run", "keyword", "run of the speed factors used")
UNITS = "task units"
N_TASKS = column("n_tasks", "integer", "distinct tasks behind it; a proposal requires two", "tasks")

RANKED = (
    column("grade", "keyword", "grade, A is the fastest; default method"),
    column("rank_low", "integer", "lower end of the 90 % interval of its rank by speed; 1 is the fastest"),
    column("rank_high", "integer", "upper end of the 90 % interval of its rank"),
    column("k_likely", "number", "speed factor shrunk to the other names according to its error"),
    column("k_likely_low", "number", "lower end of its 90 % interval"),
    column("k_likely_high", "number", "upper end of the 90 % interval of k_likely"),
)

FACTORS = Table(
    "factors",
    "speed factor of a queue, site or CPU model; only ratios inside one component mean anything",
    "run",
    (
        *_OF_NAME,
        # the scale of a component is free, as only ratios are measured: the sum fixes it
        column("k", "number", "speed factor; per component they sum to their count"),
        column("k_err", "number", "standard error: statistics and queue x task interaction"),
        column("k_err_stat", "number", "part of k_err from the scatter of jobs inside buckets"),
        # compared with k_err it tells whether the model of the errors holds; too few clusters say nothing
        column("k_err_sandwich", "number", "robust error clustered by task; null below 20 tasks"),
        column("k_raw", "number", "factor without correction for start-up time per job"),
        column("rho", "number", "corrected start-up time, mean over its jobs", "events"),
        column("component", "integer", "only factors of one component are comparable; 0 is the largest"),
        N_TASKS,
        column("n_buckets", "integer", "buckets in the fit", "buckets"),
        column("n_jobs", "integer", "jobs in those buckets", "jobs"),
        column(
            "status",
            "keyword",
            "ok, no common task, too few jobs, mixed task, start-up time unknown, cut off, no dof, or "
            "fit failed",
        ),
        column("reason", "text", "reason for a missing factor"),
        column("k_err_int", "number", "part of k_err from the queue x task interaction"),
        column("k_err_model", "number", "error from the Hessian, scaled by S; method paper: from HESSE"),
        column("site", "keyword", "site of the queue, or the site itself; null for CPU models"),
        column("site_guessed", "boolean", "true if the site is guessed from the queue's name"),
        column("events_per_job", "number", "mean events of a job in the fit, or of all its jobs", "events"),
        column("efficiency", "number", "CPU time over wall-clock time x cores of the same jobs"),
        column("sole_link", "keyword", "only name that links it to the others, or 'few jobs' (below 50)"),
        column("method_shift", "number", "k by the objective of the other method over k, minus 1"),
        column("method_sigmas", "number", "method_shift in standard errors of k: error of the method"),
        column("n_units", "integer", f"{UNITS} that determine the factor", "units"),
        *PROVENANCE,
        column("k_err_type", "number", "part of k_err_int: effect on all tasks of a type"),
        column("k_err_class", "number", "part of k_err_int: effect on all tasks of a core class"),
        column("k_err_cost", "number", "part of k_err_int: uncertainty of the start-up time of its jobs"),
        column("k_err_shift", "number", "part of k_err_int: shift where a test of the model fails"),
        column("k_err_queues", "number", "part of k_err_int of CPU models: their queues"),
        column("cost_factor", "number", "start-up time of its jobs over that of the same tasks elsewhere"),
        column("cost_factor_err", "number", "relative standard error of cost_factor"),
        # start-up times change slowly: disjoint earlier windows add what one window cannot measure
        column("cost_prior", "number", "cost_factor as disjoint earlier windows tell it; null without any"),
        column("cost_prior_err", "number", "relative standard error of cost_prior"),
        column("cost_stands_out", "boolean", "true if its start-up time is four errors from others"),
        *SCOPE,
        # records that cannot be right make a verdict implausible: no speed explains them
        column("records_doubt", "text", "reason for doubt about the records"),
        column("mix_k", "number", "factor of a queue predicted from its CPU models; all types"),
        column("mix_k_err", "number", "standard error of mix_k, from the factors of the CPU models"),
        column("mix_share", "number", "share of its CPU time on CPU models with a factor"),
        *RANKED,
        column("k_via", "number", "factor of an unlinked queue, by its CPU models"),
        column("k_via_err", "number", "its standard error"),
        column("n_rejected", "integer", "buckets that the fit rejected as strays", "buckets"),
        column("n_cut", "integer", "task units excluded because a limit on wall time cuts them off", "units"),
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
    "one fit: inputs, quality, and the result of Minuit",
    "run",
    (
        *_OF_FIT,
        column("status", "keyword", "ok, no factors, failed"),
        column("reason", "text", "reason for missing factors or a failed fit"),
        column("n_names", "integer", "names with a factor", "names"),
        column("n_names_without", "integer", "names without a factor", "names"),
        column("n_components", "integer", "fitted components"),
        column("n_units", "integer", f"{UNITS} in the fit", "units"),
        column("n_buckets", "integer", "buckets in the fit", "buckets"),
        column("n_jobs", "integer", "jobs in the fit", "jobs"),
        column("n_jobs_dropped", "integer", "binned jobs excluded from the fit", "jobs"),
        column("objective", "number", "objective at the minimum"),
        # without a loop every bucket is fitted exactly, and residuals say nothing about errors
        column("dof", "integer", "independent loops: buckets - tasks - names + components"),
        column("rel_spread", "number", "S, relative scatter of residuals; not an error below dof 10"),
        column("chi2", "number", "residuals over their estimated variance"),
        column("sigma_int", "number", "queue x task interaction, relative"),
        column("sigma_int_err", "number", "standard error of sigma_int; null if assumed"),
        column("sigma_int_kind", "keyword", "estimated or assumed"),
        column("minuit_valid", "boolean", "of method paper: true if MIGRAD finds every minimum valid"),
        column("minuit_accurate", "boolean", "true if HESSE's covariance is accurate; null above 1000 names"),
        column("minuit_edm", "number", "MIGRAD's largest estimated distance to the minimum, in chi2"),
        column("minuit_calls", "integer", "function calls of MIGRAD and HESSE"),
        column("minuit_objective", "number", "objective at the minimum that MIGRAD found"),
        column("minuit_agreement", "number", "largest distance of MIGRAD's minima from ours, in errors"),
        column("found_by", "keyword", "minuit, or own if MIGRAD ended higher", values=("minuit", "own")),
        column("n_jobs_excluded", "integer", "jobs of excluded tasks; part of n_jobs_dropped", "jobs"),
        column("n_rejected", "integer", "buckets excluded as outliers"),
        column("pull_width", "number", "standard deviation of the pulls; 1 if errors are right"),
        # kept empty: the same question must give the same rows, and durations differ
        column("seconds", "number", "null; durations are in runs", "s"),
        *PROVENANCE,
        column("jobs_share", "number", "share of binned jobs in the fit"),
        column("sigma_type", "number", "effect of names on all tasks of a type, relative"),
        column("sigma_type_err", "number", "standard error of sigma_type; null if assumed"),
        column("sigma_type_kind", "keyword", "estimated or assumed"),
        column("sigma_class", "number", "effect of names on all tasks of a core class"),
        column("sigma_class_err", "number", "its standard error"),
        column("sigma_cost", "number", "scatter of ln(start-up time) between names; null without any"),
        column("sigma_cost_err", "number", "standard error of sigma_cost; null if assumed"),
        column("sigma_cost_kind", "keyword", "estimated, corrected (each name individually) or assumed"),
        column("cost_prior_runs", "text", "runs of earlier windows that tell start-up times, oldest first"),
        column("only_type", "keyword", "processing type of all jobs in the fit, if there is only one"),
        column("sigma_inner", "number", "sigma_int without effects of names on types and core classes"),
        column("left_out", "text", "reason why less than half of the jobs or tasks are in the fit"),
        # the tests behind model_doubt; each fails once in a thousand fits of a model that is right
        column("p_time", "number", "p of the test that tasks cost the same all the time"),
        column("shift_time", "number", "largest change of ln k if tasks have a level per week"),
        column("p_factor", "number", "p of the test that task x name is noise"),
        column("sigma_factor", "number", "size of the pattern that is left, relative"),
        column("p_power", "number", "p of the test that CPU time follows events"),
        column("power", "number", "mean slope of ln(CPU time) on ln(events) inside buckets"),
        column("model_doubt", "text", "tests of the model that fail (p < 0.001), in words"),
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
    "one task in the fits: its start-up time, and whether it mixes kinds of work",
    "run",
    (
        RUN,
        *TASK,
        column("n_jobs", "integer", "binned jobs", "jobs"),
        column("n_queues", "integer", "queues with enough jobs for the fit", "queues"),
        column("decision", "keyword", "kept, corrected, split, mixed task, start-up time unknown"),
        column("reason", "text", "why"),
        column("rho", "number", "start-up time of a job; null if unknown", "events"),
        column("rho_err", "number", "its standard error", "events"),
        column("slope", "number", "of ln(CPU time per event) on ln(events): 0 proportional, -1 constant"),
        column("slope_err", "number", "its standard error"),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("events_ratio", "number", "largest over smallest mean events per job of its queues"),
        column("kinds_ratio", "number", "factor between its two kinds of work; null: none found"),
        column("kinds_share", "number", "share of the smaller kind"),
        *PROVENANCE,
        column("share", "number", "share of the start-up time in a mean job, shrunk to tasks of its kind"),
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
    "residuals of the default fit of all types: tasks with most jobs, and the worst buckets",
    "run",
    (
        RUN,
        LEVEL,
        METHOD,
        *TASK,
        column("name", "keyword", "queue, site or CPU model"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("cpu_s_per_event", "number", "CPU time per event as recorded", "s"),
        column("expected_cpu_s_per_event", "number", "expected by the fit, start-up time included", "s"),
        column("deviation", "number", "expected over measured CPU time, minus 1; above 0: faster here"),
        column("pull", "number", "deviation over its standard deviation; null without loops"),
        column("status", "keyword", "used, rejected, one unit, no fit"),
        column("rank", "integer", "rank among the ten most deviating buckets, from 1; null for others"),
        *PROVENANCE,
        column("rho", "number", "start-up time that the fit took out of each job", "events"),
        column("decision", "keyword", "decision about the task, as in tasks"),
        *SCOPE,
        column("site", "keyword", "site of the queue, or the site itself; null for CPU models"),
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
    "extremes of the factors of the default fits under the stability checks, per name and kind of check",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue, site or CPU model, of the largest component"),
        TYPE,
        METHOD,
        column("change", "keyword", "kind of the check", values=VARIED),
        column("n_variants", "integer", "checks of that kind with a factor, or with a lost one"),
        column("k_low", "number", "lowest factor, on the scale where the median name is unchanged"),
        column("low_change", "text", "check with the lowest factor"),
        column("k_high", "number", "highest factor, on the same scale"),
        column("high_change", "text", "check with the highest factor"),
        # without it the name has no factor: a verdict then rests on one task
        column("disconnecting_task", "text", "only task that links it with most others"),
        *ORIGIN,
    ),
    time="window_end",
    made_by="fit",
    shown=columns(
        "level name processing_type change n_variants k_low low_change k_high high_change disconnecting_task"
    ),
    order=columns("level processing_type method name change"),
    packed="alone",
)

CPU_MIX = Table(
    "cpu_mix",
    "CPU models of a queue, by core time of the jobs in the fits",
    "run",
    (
        RUN,
        column("queue", "keyword", "queue, as jobs name it"),
        column("site", "keyword", "site of the queue"),
        column("cpu_model", "keyword", "canonical CPU model; null: unknown"),
        column("n_jobs", "integer", "binned jobs", "jobs"),
        column("core_s", "number", "wall-clock time x cores", "core s"),
        column("share", "number", "share of the core time of the queue"),
        column("k", "number", "speed factor of a queue with this CPU model only"),
        column("k_err", "number", "its standard error"),
        *ORIGIN,
    ),
    time="window_end",
    made_by="fit",
    shown=columns("queue site cpu_model share core_s n_jobs k k_err"),
    order=columns("queue -core_s cpu_model"),
    named="queue",
)

PULL_HISTOGRAMS = Table(
    "pull_histograms",
    "one bar of the histogram of residual pulls of a fit; none without redundancy",
    "run",
    (
        *_OF_FIT,
        column("low", "number", "lower end in standard deviations; the first includes everything below"),
        column("high", "number", "upper end of the bar; the last includes everything above"),
        column("n_buckets", "integer", "buckets in the bar", "buckets"),
        *ORIGIN,
    ),
    time="window_end",
    made_by="fit",
    shown=columns("level processing_type method low high n_buckets"),
    order=columns("level processing_type method low"),
)

COMPONENTS = Table(
    "components",
    "names connected through common tasks, or a name on its own",
    "run",
    (
        *_OF_FIT,
        column("component", "integer", "0 is the largest"),
        column("n_names", "integer", "names", "names"),
        column("n_units", "integer", UNITS, "units"),
        column("n_buckets", "integer", "buckets", "buckets"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("dof", "integer", "independent loops"),
        column("rel_spread", "number", "S of this component"),
        column("minuit_valid", "boolean", "of method paper: true if MIGRAD finds its minimum valid"),
        column("names", "text", "names, most jobs first"),
        column("link", "text", "missing link to the largest component"),
        *ORIGIN,
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
        *_OF_FIT,
        column("benchmark", "keyword", "HS06 or HS23"),
        column("component", "integer", "component the line was fitted in: the largest"),
        column("status", "keyword", "ok, too few sites, too few"),
        column("reason", "text", "why no verdict rests on the line"),
        column("slope", "number", "slope of honest declarations: speed factor per unit of corepower"),
        column("slope_err", "number", "its standard error"),
        column("slope_ols", "number", "by unweighted least squares, as the published method; to compare"),
        column("slope_wls", "number", "weighted by 1/k_err², for comparison only"),
        # Paule and Mandel's estimator: without it one site with tiny errors would drag the line
        column("tau", "number", "scatter of honest declarations about the line beyond the errors, relative"),
        column("n_names", "integer", "names with a factor and a declared value", "names"),
        # queues of a site that declare one value are one decision of one site, and count once
        column("n_entries", "integer", "entries of the line: one per site and declared value"),
        column("n_groups", "integer", "sites of the queues; of CPU models, the models", "groups"),
        column("pearson", "number", "Pearson's r over names"),
        column("spearman", "number", "Spearman's rho over names"),
        column("pearson_groups", "number", "Pearson's r over sites"),
        column("spearman_groups", "number", "Spearman's rho over sites"),
        *ORIGIN,
        column("groups_ratio", "number", "with two groups: k/corepower of the smaller over that of the line"),
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
    "deviation of a name from its declared corepower, and the verdict",
    "run",
    (
        *_OF_NAME,
        column("corepower", "number", "declared benchmark score per core", "benchmark per core"),
        column("benchmark", "keyword", "HS06 or HS23"),
        column("origin", "keyword", "own, inherited, default, changed, reference, none"),
        column("k", "number", "speed factor"),
        column("k_err", "number", "its standard error"),
        # leave-one-out: a wrong declaration must not pull the line towards itself
        column("expected_k", "number", "factor expected from the line without the whole site of the name"),
        column("deviation", "number", "k / expected_k - 1"),
        column("deviation_err", "number", "standard error of the deviation: statistics, interaction, line"),
        column("verdict", "keyword", ", ".join(VERDICTS), values=VERDICTS),
        column("significant", "boolean", f"p_off above {exact_percent(SURE)}; the line tells who is wrong"),
        # Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289: many names are judged at once
        column("q_value", "number", "share of false verdicts to expect among names at least as sure"),
        column("stable", "boolean", "true if the verdict passes every stability check"),
        column("proposed_corepower", "number", "declaration that agrees with other sites; if confirmed"),
        column("proposed_corepower_err", "number", "its standard error; the interval is of `estimate`"),
        column("sentence", "text", "verdict in words, ready to send"),
        N_TASKS,
        column("n_jobs", "integer", "jobs", "jobs"),
        column("component", "integer", "component"),
        column("site", "keyword", "site of the queue, or the site itself; null for CPU models"),
        column("corepower_from_records", "number", "value implied by records, if over 1 % apart"),
        # a parent's value often differs from its queues': substituting it would invent a declaration
        column("corepower_parent", "number", "value of the parent or site; shown, never substituted"),
        column("unstable_under", "text", "failed stability check, with the deviation under it"),
        column("events_per_job", "number", "mean events of a job", "events"),
        column("deviation_raw", "number", "deviation without correction for start-up time per job"),
        column("deviation_err_stat", "number", "part of the error from the scatter of jobs"),
        column("deviation_err_int", "number", "part from the queue x task interaction"),
        column("deviation_err_line", "number", "part from the line"),
        # a verdict that rests on one link inherits every fault of the name at its other end
        column("sole_link", "keyword", "only name that links it to the others, or 'few jobs' (below 50)"),
        column("n_units", "integer", UNITS, "units"),
        *PROVENANCE,
        column("confirmed", "boolean", "true if cleared to send: deviates, significant and stable"),
        # apart from the advice, which many names share: mails print it once
        column("finding", "text", "sentence without the advice"),
        column("advice", "text", "advice of the sentence, equal for many names; null: none"),
        column("status_shown", "keyword", "verdict; 'deviates': confirmed or candidate", values=STANDINGS),
        *SCOPE,
        column("estimate", "number", "corepower on the line of other sites", "benchmark per core"),
        column("estimate_low", "number", "lower end of the interval of estimate", "benchmark per core"),
        column("estimate_high", "number", "upper end of the interval of estimate", "benchmark per core"),
        column("estimate_level", "number", "coverage of the interval"),
        column("estimate_benchmark", "keyword", "HS06 or HS23"),
        RUN_BEFORE,
        column("verdict_before", "keyword", "verdict in the run before; null: none", values=VERDICTS),
        column("status_shown_before", "keyword", "displayed verdict in the run before", values=STANDINGS),
        column("k_before", "number", "speed factor in the run before, on the scale of that run"),
        column("corepower_before", "number", "declared value in the run before", "benchmark per core"),
        column("country", "keyword", "country of the queue, from an imported table; else null"),
        # dashboards sort by a number: neither the verdicts' order nor |deviation| is a column of an index
        column("rank", "integer", "reading order: confirmed first, then by |deviation|"),
        column("p_off", "number", "probability that the declared value is off by more than the limit"),
        *RANKED,
        column("checks", "text", "checks of a deviation, with their numbers"),
        column("refuted_by", "text", "what would refute the deviation"),
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
    "summary of the flags of one fit",
    "run",
    (
        *_OF_FIT,
        column("n_names", "integer", "names judged", "names"),
        column("n_deviates", "integer", "verdicts 'deviates'", "names"),
        column("n_stable", "integer", "of these, stable under all stability checks", "names"),
        column("n_ok", "integer", "verdicts 'ok'", "names"),
        column("n_undecided", "integer", "verdicts 'undecided'", "names"),
        column("n_undeclared", "integer", "verdicts 'undeclared'", "names"),
        column("n_others", "integer", "all other verdicts", "names"),
        column("sentence", "text", "conclusion; based on confirmed deviations"),
        *PROVENANCE,
        column("n_comparable", "integer", "compared names: deviates, ok or undecided", "names"),
        column("n_confirmed", "integer", "verdicts 'deviates' that are significant and stable", "names"),
        column("n_candidates", "integer", "all other verdicts 'deviates'", "names"),
        # such a factor is right for one task; other work may see another speed
        column("n_on_one_task", "integer", "comparable names with a single task", "names"),
        column("n_with_factor", "integer", "names with a speed factor", "names"),
        column("n_too_few", "integer", "verdicts 'too few'", "names"),
        column("n_mixed", "integer", "verdicts 'mixed'", "names"),
        column("n_implausible", "integer", "verdicts 'implausible'", "names"),
        column("n_not_comparable", "integer", "verdicts 'not comparable'", "names"),
        column("evidence", "text", "what makes deviations confirmed, what candidates lack; null without any"),
        column("n_via_cpu_models", "integer", "verdicts 'via CPU models'", "names"),
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
    # the methods of the run's own settings, the headline first
    preferred=_preferred,
    named=False,
    command="esjobs run",
)
"""Tables of the speed of queues, sites and CPU models, and of deviating names."""

TABLES = SPEED.tables
KINDS = (SPEED,)
