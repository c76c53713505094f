"""Measurements of detectors, footprints of jobs, issues of jobs."""

from esjobs.core.columns import OF_WORK
from esjobs.core.tables import Table, column, columns

SEVERITIES = ("info", "minor", "major", "critical")
"""Severities of issues, the least first."""
SEVERITY_WEIGHTS = (0.0, 0.3, 0.6, 1.0)
"""Weight of each severity in the order of work."""
AREAS = ("cpu", "gpu", "memory", "io", "mpi", "request")
"""Subjects of issues."""
ISSUE_KINDS = ("detector", "tag")
"""Origin of an issue: a detector over time series, or a condition on footprint and record."""

FEWEST_SAMPLES = 3
"""Samples of a unit that a footprint must rest on to be judged by."""
LEAST_COVERED = 0.5
"""Share of the samples that duration and step promise that must be there for the same."""

NOTHING_FOUND = ("a series is constant", "never busy")
"""Reasons for a missing measurement of a job that was observed."""

_DAY = column("day", "day", "day of the end of the job", "UTC")
_SOURCE = column("source", "keyword", "source of the job")
_JOB = column("job_id", "keyword", "identifier of the job in its source")
_END = column("end_time", "time", "end of the job, or of its last sample if unknown", "UTC")
_METRIC = column("metric", "keyword", "metric; empty: none")
_SCOPE = column("scope", "keyword", "unit of measurement: node, socket, core, thread, accelerator")
_UNIT = column("unit", "keyword", "affected node, core or device; empty: the job")
_BEGIN = column("begin", "time", "begin of the finding; null: at no particular time", "UTC")
_UNTIL = column("until", "time", "end of the finding", "UTC")
_VARIANT = column("variant", "keyword", "definition of the detector")

MEASURES = Table(
    "measures",
    "measurements of detectors, flagged or not: thresholds are replayed on these rows",
    "day",
    (
        _DAY,
        _SOURCE,
        _JOB,
        _END,
        column("detector", "keyword", "name of the detector"),
        _VARIANT,
        column("value", "number", "measured value, in the unit of the detector; null: not assessable"),
        # jobs too short or too coarsely sampled are measured too: their limits are settings that change
        column("eligible", "boolean", "true if findings of this job count; null: unknown"),
        column("reason", "keyword", "reason why it was not assessed or is not eligible; empty: assessed"),
        _METRIC,
        _SCOPE,
        _UNIT,
        _BEGIN,
        _UNTIL,
        column("n_samples", "integer", "examined samples per unit", "samples"),
        column("numbers", "map", "further numbers by name: peak, median, r, slope, ..."),
        column("share_frac", "number", "affected share of the time of the job", "fraction"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns("day source job_id detector value eligible reason metric unit"),
    order=columns("-day source job_id detector variant"),
)

FOOTPRINTS = Table(
    "footprints",
    "resource use of a job, one row per metric: figures over all samples of all units",
    "day",
    (
        _DAY,
        _SOURCE,
        _JOB,
        _END,
        column("metric", "keyword", "metric, in base units"),
        _SCOPE,
        column("mean", "number", "mean over samples and units, in the unit of the metric"),
        column("max", "number", "largest sample of any unit"),
        column("min", "number", "smallest sample of any unit"),
        column("sd", "number", "standard deviation of all samples; null: fewer than two"),
        column("p05", "number", "5 % of the samples are below"),
        column("p95", "number", "95 % of the samples are below"),
        column("imbalance", "number", "1 - mean over units / largest unit", "fraction"),
        column("total", "number", "sum over units and time, of rates: bytes, operations, J"),
        column("n_samples", "integer", "existing samples, over all units", "samples"),
        column("n_units", "integer", "nodes, cores or devices with samples", "units"),
        column("gap_frac", "number", "share of missing samples", "fraction"),
        column("node_mean", "number", "mean over time and nodes of the sum over a node; null: unknown"),
        column("node_max", "number", "largest such sum at any time on any node"),
        column("job_mean", "number", "mean over time of the sum over all units"),
        column("job_max", "number", "largest such sum"),
        column("series_s", "number", "length of the series of the job", "s"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns("day source job_id metric scope mean max p05 p95 imbalance total gap_frac"),
    order=columns("-day source job_id metric"),
)

ISSUES = Table(
    "issues",
    "issues and tags of jobs: one row per job and finding, with evidence and a hint",
    "day",
    (
        _DAY,
        _SOURCE,
        _JOB,
        _END,
        *OF_WORK,
        column("node_h", "number", "nodes x wall time", "h"),
        column("kind", "keyword", "detector, or tag", values=ISSUE_KINDS),
        column("detector", "keyword", "name of the rule: of a detector, or the tag"),
        column("area", "keyword", "cpu, gpu, memory, io, mpi, or request", values=AREAS),
        column("severity", "keyword", "info, minor, major, or critical", values=SEVERITIES),
        column("value", "number", "value found, in the unit of the rule"),
        column("threshold", "number", "exceeded limit"),
        _METRIC,
        _SCOPE,
        _UNIT,
        _BEGIN,
        _UNTIL,
        column("share_frac", "number", "affected share of the time of the job", "fraction"),
        column("idle_core_h", "number", "core-hours that could be saved; null: unknown", "h"),
        column("idle_gpu_h", "number", "GPU-hours that could be saved; null: unknown", "h"),
        column("lost_node_h", "number", "node_h x larger idle share of cores or GPUs; 0: a risk", "h"),
        column("weighted_node_h", "number", "node_h x weight of the severity: 1, 0.6, 0.3, 0 (info)", "h"),
        # a job with three findings lost its hours once: sums over rows count it on its worst finding only
        column("job_lost_node_h", "number", "lost_node_h of the job; on its worst finding only", "h"),
        column("job_idle_core_h", "number", "idle_core_h of the job; on its worst finding only", "h"),
        column("job_idle_gpu_h", "number", "idle_gpu_h of the job; on its worst finding only", "h"),
        column("n_jobs", "integer", "1 on the worst finding of a job, 0 on others; panels add it up", "jobs"),
        column("hint", "text", "meaning and advice for the user of the job"),
        _VARIANT,
        # dashboards sort by numbers: the words would sort by letter
        column("severity_rank", "integer", "0 info, 1 minor, 2 major, 3 critical"),
        column("n_issues", "integer", "1; panels add it up", "issues"),
        column("job_name", "keyword", "name that the user gave the job"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns(
        "day job_id user project detector severity lost_node_h value threshold unit idle_core_h idle_gpu_h "
        "hint"
    ),
    order=columns("-lost_node_h -weighted_node_h -idle_core_h -severity_rank source job_id detector"),
)

ISSUE_DAYS = Table(
    "issue_days",
    "inputs of the judgement of a day, and numbers of judged jobs",
    "day",
    (
        _DAY,
        column("fingerprint", "keyword", "digest of the jobs, series, rules and descriptions used"),
        column("rules", "keyword", "digest of the rules"),
        column("n_jobs", "integer", "examined jobs", "jobs"),
        column("n_with_series", "integer", "of these with time series", "jobs"),
        column("n_without_record", "integer", "jobs with series but without a record", "jobs"),
        column("n_eligible", "integer", "jobs with series whose detector findings count", "jobs"),
        column("not_eligible", "text", "reasons why other jobs do not count, with numbers, JSON"),
        column("n_issues", "integer", "findings, without those of severity info", "issues"),
        column("infos", "text", "findings of severity info in jobs without series, by rule, JSON: no rows"),
        column("n_resampled", "integer", "jobs whose series have different sampling intervals", "jobs"),
    ),
    time="day",
    made_by="detect",
    shown=columns("day n_jobs n_with_series n_eligible not_eligible n_issues infos rules"),
    order=columns("-day"),
)

RUNNING_ISSUES = Table(
    "running_issues",
    "findings in jobs that run, by job and rule; a week after their end they leave",
    "source",
    (
        _SOURCE,
        _JOB,
        column("queue", "keyword", "queue"),
        column("user", "keyword", "user"),
        column("project", "keyword", "project"),
        column("start_time", "time", "start of the job", "UTC"),
        column("rule", "keyword", "rule"),
        column("value", "number", "value found"),
        column("threshold", "number", "its limit"),
        column("unit", "keyword", "node or device"),
        column("finding", "text", "sentence"),
        column("first_seen", "time", "first look", "UTC"),
        column("last_seen", "time", "last look", "UTC"),
        column("n_looks", "integer", "looks in a row; 0: over"),
        # at most one warning and one call of the hook per finding, whatever becomes of the service
        column("warned_at", "time", "warning; null: none yet", "UTC"),
        column("hook_at", "time", "call of the hook", "UTC"),
        column("hook_error", "text", "reason of its failure"),
        column("ended_at", "time", "end of finding or job", "UTC"),
    ),
    time="last_seen",
    made_by="detect",
    shown=columns("source job_id user rule finding warned_at hook_at hook_error ended_at"),
    order=columns("-last_seen source job_id rule"),
)

TABLES: tuple[Table, ...] = (ISSUES, MEASURES, FOOTPRINTS, ISSUE_DAYS, RUNNING_ISSUES)
"""Every table of this capability."""
