"""The result tables: names, columns, units, meanings. The one place for these facts.

A table is an index in Elasticsearch (``esjobs-<name>``) and a table in DuckDB, with the same columns.
Rows are replaced a partition at a time (a day of buckets, a run of results, a load) and become visible in
one atomic switch. Columns may be added at the end; none is renamed or dropped within a major version.
"""

from dataclasses import dataclass

from esjobs.core.errors import UsageError
from esjobs.core.fields import Field, FieldType
from esjobs.core.words import FALSE_DISCOVERY_RATE, VERDICTS


@dataclass(frozen=True)
class Table:
    """A result table.

    ``partition``: the column whose value is replaced as a whole. ``entered``: holds what people enter
    (imported declarations); no run ever replaces it. ``time``: the column by which a query's window chooses
    rows, a time or a day; empty where rows belong to no moment.
    """

    name: str
    meaning: str
    partition: str
    columns: tuple[Field, ...]
    entered: bool = False
    time: str = ""

    def column(self, name: str) -> Field:
        """A column by its name, or :class:`UsageError` that lists them all."""
        for candidate in self.columns:
            if candidate.name == name:
                return candidate
        raise UsageError(f"table '{self.name}' has no column '{name}'; it has {', '.join(self.column_names)}")

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in the order in which they are shown."""
        return tuple(column.name for column in self.columns)


def _c(name: str, kind: FieldType, meaning: str, unit: str = "") -> Field:
    return Field(name, kind, unit, meaning, groupable=kind in _GROUPABLE)


_GROUPABLE = ("keyword", "integer", "boolean", "day")
"""What queries over results may group by: values that are equal or not, in every engine alike."""

_RUN = _c("run", "keyword", "run id: hash of window, rules, settings, method and versions")
_LEVEL = _c("level", "keyword", "site (the queues that jobs name) or cpu_model")
_TYPE = _c("processing_type", "keyword", "kind of work, or all for every type together")
_METHOD = _c(
    "method",
    "keyword",
    "gamma (quasi-likelihood, robust, fixed cost taken out) or paper (the article's, as it was published)",
)
_TASK = (
    _c("task_id", "keyword", "task"),
    _c("core_class", "keyword", "single or multi"),
    _c("task_type", "keyword", "processing type of the task's jobs; null when the records name none"),
    _c("work_kind", "keyword", "kind of work, where a mixed task was split"),
)
_UNITS = "units of A (task x core class x processing type; x kind of work where a task was split)"
_DISTINCT_TASKS = _c(
    "n_distinct_tasks",
    "integer",
    "the tasks behind n_tasks, each counted once; a proposal needs two",
    "tasks",
)
_PROVENANCE = (
    _c("window_start", "time", "start of the window", "UTC"),
    _c("window_end", "time", "end of the window, not included", "UTC"),
    _c("program_version", "keyword", "version of esjobs that wrote the row"),
)

BUCKETS = Table(
    "buckets",
    "sums over the jobs of one day, task, core class, queue, CPU model and processing type",
    "day",
    (
        _c("day", "day", "day of the end time", "UTC"),
        _c("task_id", "keyword", "task"),
        _c("core_class", "keyword", "single or multi"),
        _c("site", "keyword", "queue, as jobs name it"),
        _c("cpu_model", "keyword", "canonical CPU model; null when the record names none"),
        _c("processing_type", "keyword", "kind of work; null when the record names none"),
        _c("n_jobs", "integer", "jobs", "jobs"),
        _c("events", "number", "sum of events", "events"),
        _c("events_sq", "number", "sum of squared events", "events²"),
        _c("cpu_s", "number", "sum of CPU time", "s"),
        _c("cpu_s_sq", "number", "sum of squared CPU time", "s²"),
        _c("events_cpu_s", "number", "sum of events x CPU time", "events s"),
        _c("wall_s", "number", "sum of wall-clock time", "s"),
        _c("core_s", "number", "sum of wall-clock time x cores", "core s"),
        _c("cpe_sum", "number", "sum over jobs of CPU time per event", "s"),
        _c("cpe_sq", "number", "sum over jobs of squared CPU time per event", "s²"),
    ),
    time="day",
)

DAYS = Table(
    "days",
    "the books of one aggregated day: jobs in = binned + dropped, and what the buckets were made from",
    "day",
    (
        _c("day", "day", "day of the end time", "UTC"),
        _c("outcome", "keyword", "binned, a drop reason, or a note such as 'state unknown'"),
        _c("kind", "keyword", "binned, dropped, or note (a note counts jobs that are also binned)"),
        _c("n_jobs", "integer", "jobs", "jobs"),
        _c("mark", "keyword", "fingerprint of the day's jobs when they were aggregated"),
        _c("rules", "keyword", "digest of the cleaning rules"),
        _c("resolver", "keyword", "version of the CPU model resolver"),
    ),
    time="day",
)

FACTORS = Table(
    "factors",
    "speed factor of a queue or CPU model; only ratios inside one component mean anything",
    "run",
    (
        _RUN,
        _LEVEL,
        _c("name", "keyword", "queue or CPU model"),
        _TYPE,
        _METHOD,
        _c("k", "number", "speed factor; per component they sum to their count; null unless status is ok"),
        _c("k_err", "number", "standard error: statistics and queue x task interaction"),
        _c("k_err_stat", "number", "part from the scatter of jobs inside buckets"),
        _c("k_err_sandwich", "number", "robust error clustered by task; null below 20 tasks"),
        _c("k_raw", "number", "factor without correction for fixed cost per job"),
        _c(
            "rho",
            "number",
            "fixed cost per job that was taken out, mean over its jobs; null when none was",
            "events",
        ),
        _c("component", "integer", "component; factors of different ones cannot be compared; 0 the largest"),
        _c("n_tasks", "integer", f"{_UNITS} that determine the factor", "units"),
        _c("n_buckets", "integer", "buckets in the fit", "buckets"),
        _c("n_jobs", "integer", "jobs in those buckets", "jobs"),
        _c(
            "status",
            "keyword",
            "ok, no common task, too few jobs, mixed task, fixed cost unknown, no dof, fit failed",
        ),
        _c("reason", "text", "why there is no factor"),
        _c("k_err_int", "number", "part from the queue x task interaction"),
        _c("k_err_model", "number", "error from the Hessian scaled by the residual spread S"),
        _c(
            "rc_site",
            "keyword",
            "WLCG site behind a queue, imported or guessed; siblings share it",
        ),
        _c("rc_site_guessed", "boolean", "whether rc_site was guessed from the queue's name"),
        _c(
            "events_per_job",
            "number",
            "mean events of a job in the fit (or of all its jobs, without a factor)",
            "events",
        ),
        _c("efficiency", "number", "CPU time over wall-clock time x cores of the same jobs"),
        _c("via", "keyword", "the one name through which it hangs on the others; null with sound bridges"),
        _c("method_shift", "number", "k by the article's objective on the same sums over k, minus 1"),
        _c("method_sigmas", "number", "the same in standard errors of k: the systematic of the method"),
        _DISTINCT_TASKS,
        *_PROVENANCE,
    ),
    time="window_end",
)

FITS = Table(
    "fits",
    "one fit: what went in, how well it closed, what Minuit says",
    "run",
    (
        _RUN,
        _LEVEL,
        _TYPE,
        _METHOD,
        _c("status", "keyword", "ok, no factors, failed"),
        _c("reason", "text", "why the fit has no factors or failed"),
        _c("n_names", "integer", "names with a factor", "names"),
        _c("n_names_without", "integer", "names without one", "names"),
        _c("n_components", "integer", "components that were fitted"),
        _c("n_tasks", "integer", f"{_UNITS} in the fit", "units"),
        _c("n_buckets", "integer", "buckets in the fit", "buckets"),
        _c("n_jobs", "integer", "jobs in the fit", "jobs"),
        _c("n_jobs_dropped", "integer", "binned jobs left out of the fit", "jobs"),
        _c("f", "number", "objective at the minimum"),
        _c("dof", "integer", "independent loops: buckets - tasks - names + components"),
        _c("spread", "number", "S, the relative spread of residuals; no error below dof 10"),
        _c("chi2", "number", "residuals over their estimated variance"),
        _c("sigma_int", "number", "queue x task interaction, relative"),
        _c("sigma_int_err", "number", "its standard error; null when assumed"),
        _c("sigma_int_kind", "keyword", "estimated or assumed"),
        _c("minuit_valid", "boolean", "Minuit accepts every component's minimum"),
        _c("minuit_accurate", "boolean", "Minuit's covariance is accurate in every component"),
        _c("minuit_edm", "number", "largest estimated distance to the minimum"),
        _c("minuit_calls", "integer", "function calls of Minuit"),
        _c("n_jobs_set_aside", "integer", "jobs of tasks that were set aside; among those left out", "jobs"),
        _c("n_rejected", "integer", "buckets that count for nothing, because they are too far off"),
        _c("pull_width", "number", "standard deviation of the pulls of the buckets; 1 if errors are right"),
        _c("pulls", "text", "their histogram: counts from -5 to 5 in steps of 0.5, JSON; ends hold the rest"),
        _c("seconds", "number", "time of the fit", "s"),
        *_PROVENANCE,
    ),
    time="window_end",
)

TASK_RESULTS = Table(
    "tasks",
    "one task as the fits saw it: what a job costs before its first event, whether it is one kind of work",
    "run",
    (
        _RUN,
        *_TASK,
        _c("n_jobs", "integer", "binned jobs", "jobs"),
        _c("n_sites", "integer", "queues with enough jobs to enter", "queues"),
        _c("decision", "keyword", "kept, corrected, split, mixed task, fixed cost unknown"),
        _c("reason", "text", "why"),
        _c("rho", "number", "fixed cost of a job; null when unknown", "events"),
        _c("rho_err", "number", "its standard error", "events"),
        _c(
            "slope",
            "number",
            "of ln(CPU time per event) on ln(events) inside queues: 0 proportional, -1 fixed",
        ),
        _c("slope_err", "number", "its standard error"),
        _c("events_per_job", "number", "mean events of a job", "events"),
        _c("events_ratio", "number", "largest over smallest mean events per job of its queues"),
        _c("kinds_ratio", "number", "factor between two kinds of work inside it; null when none was seen"),
        _c("kinds_share", "number", "share of the smaller kind"),
        *_PROVENANCE,
    ),
    time="window_end",
)

RESIDUALS = Table(
    "residuals",
    "what the headline fit of all types leaves of a bucket: the tasks of most jobs, and the worst buckets",
    "run",
    (
        _RUN,
        _LEVEL,
        _METHOD,
        *_TASK,
        _c("name", "keyword", "queue or CPU model"),
        _c("n_jobs", "integer", "jobs", "jobs"),
        _c("events_per_job", "number", "mean events of a job", "events"),
        _c("cpu_s_per_event", "number", "CPU time per event as it was recorded", "s"),
        _c("expected_cpu_s_per_event", "number", "what the fit expects, fixed cost included", "s"),
        _c("deviation", "number", "expected over measured CPU time, minus 1: above 0 ran faster here"),
        _c("pull", "number", "the deviation in its own standard deviations; null without loops"),
        _c("status", "keyword", "used, rejected, one unit, no fit"),
        _c("rank", "integer", "place among the ten most deviating buckets, from 1; null for others"),
        *_PROVENANCE,
    ),
    time="window_end",
)

COMPONENTS = Table(
    "components",
    "a set of names connected through common tasks, or a name that stands alone",
    "run",
    (
        _RUN,
        _LEVEL,
        _TYPE,
        _METHOD,
        _c("component", "integer", "0 the largest"),
        _c("n_names", "integer", "names", "names"),
        _c("n_tasks", "integer", _UNITS, "units"),
        _c("n_buckets", "integer", "buckets", "buckets"),
        _c("n_jobs", "integer", "jobs", "jobs"),
        _c("dof", "integer", "independent loops"),
        _c("spread", "number", "S of this component"),
        _c("minuit_valid", "boolean", "Minuit accepts the minimum"),
        _c("names", "text", "the names, most jobs first"),
        _c("link", "text", "what would connect it with the largest component"),
        *_PROVENANCE,
    ),
    time="window_end",
)

LINES = Table(
    "lines",
    "line through the origin: speed factor = slope x declared corepower",
    "run",
    (
        _RUN,
        _LEVEL,
        _TYPE,
        _METHOD,
        _c("benchmark", "keyword", "HS06 or HS23"),
        _c("component", "integer", "component the line was fitted in: the largest"),
        _c("status", "keyword", "ok, too few sites, too few"),
        _c("reason", "text", "why no verdict rests on the line"),
        _c("slope", "number", "robust slope: speed factor per unit of corepower"),
        _c("slope_err", "number", "its standard error"),
        _c("slope_ols", "number", "unweighted least squares, for comparison with the article"),
        _c("slope_wls", "number", "weighted by 1/k_err², for comparison only"),
        _c("tau", "number", "scatter about the line beyond the errors, relative"),
        _c("n_names", "integer", "names with a factor and a declared value", "names"),
        _c("n_entries", "integer", "entries of the line: one per WLCG site and declared value"),
        _c("n_sites", "integer", "WLCG sites behind the queues; of CPU models, the models", "sites"),
        _c("pearson", "number", "Pearson's r over names"),
        _c("spearman", "number", "Spearman's rho over names"),
        _c("pearson_sites", "number", "Pearson's r over WLCG sites"),
        _c("spearman_sites", "number", "Spearman's rho over WLCG sites"),
        *_PROVENANCE,
    ),
    time="window_end",
)

FLAGS = Table(
    "flags",
    "a name's deviation from what its declared corepower promises, and the verdict",
    "run",
    (
        _RUN,
        _LEVEL,
        _c("name", "keyword", "queue or CPU model"),
        _TYPE,
        _METHOD,
        _c("corepower", "number", "declared benchmark score per core", "benchmark per core"),
        _c("benchmark", "keyword", "HS06 or HS23"),
        _c("origin", "keyword", "own, inherited, default, changed, none"),
        _c("k", "number", "speed factor"),
        _c("k_err", "number", "its standard error"),
        _c("expected_k", "number", "what the line expects, without the whole WLCG site of the name"),
        _c("deviation", "number", "k / expected_k - 1"),
        _c("deviation_err", "number", "its standard error: statistics, interaction, line"),
        _c("verdict", "keyword", ", ".join(VERDICTS)),
        _c(
            "significant",
            "boolean",
            f"survives Benjamini-Hochberg at {100 * FALSE_DISCOVERY_RATE:.0f} % over the run's tests",
        ),
        _c("q_value", "number", "Benjamini-Hochberg q-value of |deviation| > limit"),
        _c("stable", "boolean", "the verdict does not change under any tried change"),
        _c(
            "proposed_corepower",
            "number",
            "what the others' level would declare; only where confirmed",
        ),
        _c("proposed_corepower_err", "number", "its error, never below 5 %"),
        _c("sentence", "text", "the verdict in one sentence that may be sent"),
        _c("n_tasks", "integer", _UNITS, "units"),
        _c("n_jobs", "integer", "jobs", "jobs"),
        _c("component", "integer", "component"),
        _c("rc_site", "keyword", "WLCG site behind a queue"),
        _c("corepower_records", "number", "value found in the records when it differs by more than 1 %"),
        _c("corepower_parent", "number", "value of the parent or WLCG site, shown, never substituted"),
        _c("unstable_under", "text", "the change under which the verdict is another"),
        _c("events_per_job", "number", "mean events of a job", "events"),
        _c("deviation_raw", "number", "deviation without correction for fixed cost per job"),
        _c("deviation_err_stat", "number", "part of the error from the scatter of jobs"),
        _c("deviation_err_int", "number", "part from the queue x task interaction"),
        _c("deviation_err_line", "number", "part from the line"),
        _c("via", "keyword", "the one name through which it hangs on the others; null with sound bridges"),
        _DISTINCT_TASKS,
        *_PROVENANCE,
        _c(
            "confirmed",
            "boolean",
            "deviates, significant and stable: it may be sent; null where nothing was compared",
        ),
        _c("finding", "text", "the sentence without what it asks to be done"),
        _c("advice", "text", "what the sentence asks to be done, alike for many names; null where nothing"),
    ),
    time="window_end",
)

CONCLUSIONS = Table(
    "conclusions",
    "what the flags of one fit say together",
    "run",
    (
        _RUN,
        _LEVEL,
        _TYPE,
        _METHOD,
        _c("n_names", "integer", "names judged", "names"),
        _c("n_deviates", "integer", "verdicts 'deviates'", "names"),
        _c("n_stable", "integer", "those of them that no tried change turns", "names"),
        _c("n_ok", "integer", "verdicts 'ok'", "names"),
        _c("n_undecided", "integer", "verdicts 'undecided'", "names"),
        _c("n_undeclared", "integer", "verdicts 'undeclared'", "names"),
        _c("n_others", "integer", "every other verdict", "names"),
        _c("sentence", "text", "what can be concluded; rests on what is confirmed"),
        *_PROVENANCE,
        _c("n_comparable", "integer", "names that were compared: deviates, ok or undecided", "names"),
        _c("n_confirmed", "integer", "verdicts 'deviates' that are significant and stable", "names"),
        _c("n_candidates", "integer", "every other verdict 'deviates'", "names"),
        _c("n_on_one_task", "integer", "comparable names that rest on a single task", "names"),
        _c("n_with_factor", "integer", "names with a speed factor", "names"),
        _c("n_too_few", "integer", "verdicts 'too few'", "names"),
        _c("n_mixed", "integer", "verdicts 'mixed'", "names"),
        _c("n_implausible", "integer", "verdicts 'implausible'", "names"),
        _c("n_not_comparable", "integer", "verdicts 'not comparable'", "names"),
        _c("evidence", "text", "what makes deviations confirmed, what candidates lack; null without any"),
    ),
    time="window_end",
)

COREPOWER = Table(
    "corepower",
    "declared corepower as imported, by date",
    "import_id",
    (
        _c("import_id", "keyword", "hash of the imported file and options"),
        _LEVEL,
        _c("name", "keyword", "queue or CPU model"),
        _c("corepower", "number", "declared benchmark score per core; null: the table declares none"),
        _c("benchmark", "keyword", "HS06 or HS23"),
        _c("valid_from", "time", "start of validity", "UTC"),
        _c("rc_site", "keyword", "WLCG site behind the queue"),
        _c("parent_corepower", "number", "value of the parent or WLCG site"),
        _c("served_corepower", "number", "value that the information system serves to jobs"),
        _c("source", "text", "file or table it came from"),
        _c("imported_at", "time", "when it was imported", "UTC"),
    ),
    entered=True,
)

REJECTS = Table(
    "rejects",
    "an input row that was refused, or many of a kind; n_rows adds up to what the load rejected",
    "load_id",
    (
        _c("load_id", "keyword", "load"),
        _c("reason", "keyword", "why"),
        _c("file", "keyword", "file"),
        _c("line", "integer", "line or row number, from 1"),
        _c("field", "keyword", "field that offends"),
        _c("detail", "text", "what was found and what is accepted"),
        _c("excerpt", "text", "start of the row"),
        _c(
            "n_rows",
            "integer",
            "rows that the entry stands for: 1, or all further ones of a file with this reason and field "
            "after the first 1,000 (line: the first of them); null, written by an earlier version: 1",
            "rows",
        ),
    ),
)

LOADS = Table(
    "loads",
    "files read by one call of ingest; reading them again leaves the first account as it is",
    "load_id",
    (
        _c("load_id", "keyword", "hash of the files' contents, the format and what --set filled in"),
        _c("state", "keyword", "started or complete"),
        _c("format", "keyword", "input format"),
        _c("files", "text", "file names"),
        _c("filled", "text", "fields filled by --set"),
        _c("rows_in", "integer", "rows read", "rows"),
        _c("stored", "integer", "new jobs", "rows"),
        _c("updated", "integer", "rows of jobs that were there, of an equal or newer end time", "rows"),
        _c("rejected", "integer", "rows refused", "rows"),
        _c("first_end", "time", "earliest end time", "UTC"),
        _c("last_end", "time", "latest end time", "UTC"),
        _c("loaded_at", "time", "when", "UTC"),
        _c("without_task_id", "integer", "accepted rows without a task id", "rows"),
        _c("without_events", "integer", "accepted rows without a number of events", "rows"),
        _c("without_cores", "integer", "accepted rows without a number of cores", "rows"),
        _c("without_cpu_raw", "integer", "accepted rows without a CPU string", "rows"),
        _c("jobs_changed", "integer", "jobs with updated rows of which a field changed", "jobs"),
    ),
)

RUNS = Table(
    "runs",
    "the report of one step",
    "run_step",
    (
        _c("run_step", "keyword", "run id and step"),
        _RUN,
        _c("step", "keyword", "aggregate, fit, correlate, flag"),
        _c("at", "time", "when the step ended", "UTC"),
        _c("seconds", "number", "how long it took", "s"),
        _c("rows_in", "integer", "rows in"),
        _c("rows_out", "integer", "rows out"),
        _c("dropped", "text", "rows dropped by reason, JSON"),
        _c("counts", "text", "other counts, JSON"),
        _c("notes", "text", "what a reader should know, JSON"),
        _c("window_start", "time", "start of the window", "UTC"),
        _c("window_end", "time", "end of the window", "UTC"),
        _c("settings", "text", "rules and settings of the run, JSON"),
        _c("program_version", "keyword", "version of esjobs"),
    ),
)

TABLES: tuple[Table, ...] = (
    BUCKETS,
    DAYS,
    FACTORS,
    FITS,
    TASK_RESULTS,
    RESIDUALS,
    COMPONENTS,
    LINES,
    FLAGS,
    CONCLUSIONS,
    COREPOWER,
    REJECTS,
    LOADS,
    RUNS,
)
"""Every result table; a store lays out exactly these."""


def table(name: str) -> Table:
    """Look a table up by name, or raise :class:`UsageError` that lists them all."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no table '{name}'; there are {', '.join(t.name for t in TABLES)}")
