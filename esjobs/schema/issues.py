"""Measurements of detectors, footprints of jobs, issues of jobs."""

from esjobs.core.tables import Table, column, columns

SEVERITIES = ("info", "minor", "major", "critical")
"""Severities of issues, the least first."""
AREAS = ("cpu", "gpu", "memory", "io", "mpi", "request")
"""Subjects of issues."""
ISSUE_KINDS = ("detector", "tag")
"""Origin of an issue: a detector over time series, or a condition on footprint and record."""

_DAY = column("day", "day", "day of the end of the job", "UTC")
_SOURCE = column("source", "keyword", "stream the job came from")
_JOB = column("job_id", "keyword", "identifier of the job inside its source")
_END = column("end_time", "time", "when the job ended, or its last sample where that is not known", "UTC")
_METRIC = column("metric", "keyword", "metric that it is about; empty: none")
_SCOPE = column("scope", "keyword", "what the metric is measured on: node, socket, core, thread, accelerator")
_UNIT = column("unit", "keyword", "the node, core or device that shows it; empty: the job")
_BEGIN = column("begin", "time", "from when on it is seen; null: not at one time", "UTC")
_UNTIL = column("until", "time", "until when it is seen", "UTC")
_VARIANT = column("variant", "keyword", "which definition of the detector was used")

MEASURES = Table(
    "measures",
    "what a detector measured of a job, flagged or not: from these rows thresholds are replayed",
    "day",
    (
        _DAY,
        _SOURCE,
        _JOB,
        _END,
        column("detector", "keyword", "name of the detector"),
        _VARIANT,
        column("value", "number", "what was measured, in the unit of the detector; null: not assessable"),
        column("eligible", "boolean", "whether findings of this job count; null: not known"),
        column("reason", "keyword", "why it was not assessed or is not eligible; empty: it was"),
        _METRIC,
        _SCOPE,
        _UNIT,
        _BEGIN,
        _UNTIL,
        column("n_samples", "integer", "samples per unit that were looked at", "samples"),
        column("numbers", "map", "further numbers by name: peak, median, r, slope, ..."),
        column("share_frac", "number", "part of the time of the job that it concerns", "fraction"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns("day source job_id detector value eligible reason metric unit"),
    order=columns("-day source job_id detector variant"),
)

FOOTPRINTS = Table(
    "footprints",
    "what a job used, a row per metric: figures over all samples of all units",
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
        column(
            "imbalance",
            "number",
            "1 - mean over units / largest unit, of the units' means; null: one unit, or nothing used",
            "fraction",
        ),
        column("total", "number", "sum over units and time, of metrics that are rates: bytes, operations, J"),
        column("n_samples", "integer", "samples that are there, over all units", "samples"),
        column("n_units", "integer", "nodes, cores or devices with samples", "units"),
        column("gap_frac", "number", "part of the samples that is missing", "fraction"),
        column(
            "node_mean",
            "number",
            "mean over time and nodes of what the units of a node make; null: not known",
        ),
        column("node_max", "number", "the largest of that at any time on any node"),
        column("job_mean", "number", "mean over time of what all units make together"),
        column("job_max", "number", "the largest of that"),
        column("series_s", "number", "length of the series of the job", "s"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns("day source job_id metric scope mean max p05 p95 imbalance total gap_frac"),
    order=columns("-day source job_id metric"),
)

ISSUES = Table(
    "issues",
    "what is wrong with a job, or what it is like: a row per job and finding, with evidence and a hint",
    "day",
    (
        _DAY,
        _SOURCE,
        _JOB,
        _END,
        column("queue", "keyword", "queue of the job"),
        column("user", "keyword", "who the job ran for"),
        column("project", "keyword", "group, account or project the job is charged to"),
        column("application", "keyword", "program of the job"),
        column("processing_type", "keyword", "kind of work"),
        column("cpu_model", "keyword", "CPU model, resolved from the record"),
        column("node_h", "number", "nodes x wall time", "h"),
        column("kind", "keyword", "detector, or tag", values=ISSUE_KINDS),
        column("detector", "keyword", "name of the rule: of a detector, or the tag"),
        column("area", "keyword", "cpu, gpu, memory, io, mpi, or request", values=AREAS),
        column("severity", "keyword", "info, minor, major, or critical", values=SEVERITIES),
        column("value", "number", "what was found, in the unit of the rule"),
        column("threshold", "number", "the limit that it passed"),
        _METRIC,
        _SCOPE,
        _UNIT,
        _BEGIN,
        _UNTIL,
        column("share_frac", "number", "part of the time of the job that it concerns", "fraction"),
        column("idle_core_h", "number", "core-hours that could have been saved; null: not known", "h"),
        column("idle_gpu_h", "number", "GPU-hours that could have been saved; null: not known", "h"),
        column("hint", "text", "what it means and what can be done, for who ran the job"),
        _VARIANT,
        column("severity_rank", "integer", "0 info, 1 minor, 2 major, 3 critical"),
        column("n_issues", "integer", "1: what panels add up", "issues"),
    ),
    time="end_time",
    made_by="detect",
    shown=columns(
        "day job_id user project detector severity value threshold unit idle_core_h idle_gpu_h hint"
    ),
    order=columns("-severity_rank -idle_core_h source job_id detector"),
)

ISSUE_DAYS = Table(
    "issue_days",
    "what the jobs of a day were judged by, and how many of them could be",
    "day",
    (
        _DAY,
        column("fingerprint", "keyword", "digest of the jobs, series, rules and descriptions behind it"),
        column("rules", "keyword", "digest of the rules"),
        column("n_jobs", "integer", "jobs that were looked at", "jobs"),
        column("n_with_series", "integer", "of these with time series", "jobs"),
        column("n_without_record", "integer", "jobs of which there are series and no record", "jobs"),
        column("n_eligible", "integer", "jobs with series whose findings by detectors count", "jobs"),
        column("not_eligible", "text", "why the others do not count, and how many each, JSON"),
        column("n_issues", "integer", "findings, without those of severity info", "issues"),
        column("n_resampled", "integer", "jobs whose series had different distances of samples", "jobs"),
    ),
    time="day",
    made_by="detect",
    shown=columns("day n_jobs n_with_series n_eligible not_eligible n_issues rules"),
    order=columns("-day"),
)

TABLES: tuple[Table, ...] = (ISSUES, MEASURES, FOOTPRINTS, ISSUE_DAYS)
"""Every table of this capability."""
