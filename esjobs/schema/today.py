"""Daily watch of sites: sums of days, what was expected of them, and incidents."""

from esjobs.core.tables import Table, column, columns

MAINTENANCE = "maintenance"
"""State of an incident in a declared outage, and its change into it: it is listed and not mailed."""
STATES = ("noticed", "open", "acknowledged", MAINTENANCE, "closed", "withdrawn")
"""States of an incident."""
LASTING = ("open", "acknowledged", MAINTENANCE)
"""States of an incident that is reported and not over."""
REPORTED = (*LASTING, "closed")
"""States of an incident that people are shown: it was more than noticed, and not withdrawn."""
CHANGES = ("noticed", "opened", "reopened", "lasting", "over", "withdrawn", "acknowledged", MAINTENANCE)
"""Changes of an incident by a night."""
EFFICIENCY, FAILED = "efficiency", "failed"
"""Metrics that cost core-hours; a category of failures is ``failed: CATEGORY``."""
THROUGHPUT = "throughput"
"""Metric of the core-hours of a day."""
# doubling edges: a wait of two minutes or two days is known to the same precision
WAIT_EDGES_S = tuple(2.0**power for power in range(7, 18))
"""Edges of the bins of waiting times: 2 minutes to 36 hours."""
WAITED = tuple(f"waited_{number}" for number in range(len(WAIT_EDGES_S) + 1))
"""Columns with the numbers of jobs in these bins."""
EVERYWHERE = "everywhere"
"""In place of a site: an incident of several sites."""

_DAY = column("day", "day", "day of the end times")
_SITE = column("site", "keyword", "site; everywhere: all sites together")

_OWNERS = {
    "user": "user of the jobs",
    "project": "group, account or project that is charged",
    "release": "software release",
}
OWNERS = tuple(_OWNERS)
"""Fields that tasks have in common: whose the jobs are, and of which software."""
_METRICS = (
    "efficiency, failed, failed: CATEGORY, waiting (s), throughput (core-hours), memory (B per core), "
    "unknown cpu, arrivals (jobs)"
)
DAY_SUMS = Table(
    "day_sums",
    "sums of the jobs of a day, from which the daily watch expects and judges",
    "day",
    (
        _DAY,
        column("queue", "keyword", "queue of the jobs"),
        column("task_id", "keyword", "task of the jobs"),
        column("processing_type", "keyword", "processing type of the jobs"),
        column("core_class", "keyword", "single or multi"),
        *(column(name, "keyword", text) for name, text in _OWNERS.items()),
        column("outcome", "keyword", "finished, or kind of failure and exit code"),
        column("n_jobs", "integer", "number of jobs", "jobs"),
        column("core_s", "number", "sum of wall-clock time x cores", "core s"),
        column("n_measured", "integer", "jobs with CPU time, wall-clock time, cores", "jobs"),
        column("measured_core_s", "number", "their wall-clock time x cores", "core s"),
        column("cpu_s", "number", "their CPU time", "s"),
        column("fingerprint", "keyword", "fingerprint of the jobs of the day"),
        column("n_memory", "integer", "jobs with resident memory and cores", "jobs"),
        column("memory_b", "number", "their largest resident memory", "B"),
        column("memory_cores", "number", "their cores", "cores"),
        column("n_unknown_cpu", "integer", "jobs of unknown CPU model", "jobs"),
        *(
            column(name, "integer", f"waited from {low:.0f} s", "jobs")
            for name, low in zip(WAITED, (0.0, *WAIT_EDGES_S), strict=True)
        ),
    ),
    time="day",
    made_by="today",
    shown=columns("day queue task_id processing_type core_class outcome n_jobs core_s cpu_s"),
    order=columns("-day queue task_id outcome"),
    packed="alone",
)

TODAY_DAYS = Table(
    "today_days",
    "one metric of a site on a day: observed, and expected before the day was known",
    "day",
    (
        _DAY,
        _SITE,
        column("metric", "keyword", _METRICS),
        column("observed", "number", "observed value"),
        column("expected", "number", "expected value"),
        column("low", "number", "two standard deviations less"),
        column("high", "number", "two standard deviations more"),
        column("observed_sum", "number", "observed numerator"),
        column("expected_sum", "number", "expected numerator"),
        column("base_sum", "number", "denominator"),
        # ratios scatter by factors: their logarithms are closer to normal
        column("variance", "number", "variance of the logarithm"),
        column("surprise", "number", "standard deviations to the bad side"),
        column("cost_core_h", "number", "core-hours lost beyond the expected; negative: gained", "core h"),
        column("week_core_h", "number", "core-hours of the week before", "core h"),
        # what is expected must not be learned from days that went wrong
        column("in_incident", "boolean", "true if an incident was open: not learned from"),
        column("partial", "boolean", "true if less than half of the usual jobs arrived"),
        column("mark", "text", "declared value that changed, acknowledgement"),
    ),
    time="day",
    made_by="today",
    shown=columns("day site metric observed expected low high cost_core_h in_incident"),
    order=columns("-day site metric"),
)

_INCIDENT = (
    column("incident", "keyword", "derived from place, cause and first day"),
    column("night", "day", "night of this state"),
    _SITE,
    column("state", "keyword", ", ".join(STATES), values=STATES),
    column("change", "keyword", "change of the night: " + ", ".join(CHANGES), values=CHANGES),
    column("since", "day", "first day"),
    column("until", "day", "last day; null while it lasts"),
    column("nights", "integer", "nights on which it was seen", "nights"),
    column("seen_on", "day", "last night on which it was seen"),
    column("quiet_nights", "integer", "nights without it", "nights"),
    column("efficiency", "number", "CPU efficiency of the night"),
    column("efficiency_expected", "number", "expected CPU efficiency"),
    column("efficiency_low", "number", "expected from"),
    column("efficiency_high", "number", "expected to"),
    column("failed", "number", "share of failed jobs"),
    column("failed_expected", "number", "expected share of failed jobs"),
    column("failed_low", "number", "expected from"),
    column("failed_high", "number", "expected to"),
    column("metric", "keyword", "metric; of efficiency and failed the costlier one"),
    column("cost_core_h", "number", "core-hours lost on the night", "core h"),
    column("total_core_h", "number", "core-hours lost since the first day", "core h"),
    column("week_share", "number", "total over the site's week"),
    column("cause", "text", "part of the jobs that explains most"),
    column("cause_share", "number", "share that it explains"),
    column("cause_key", "keyword", "names of the cause"),
    column("n_sites", "integer", "sites concerned", "sites"),
    column("surprise", "number", "largest surprise of the last three nights"),
    column("acknowledged_by", "keyword", "person who acknowledged it"),
    column("acknowledged_until", "day", "night of the next report"),
    column("sentence", "text", "incident in words"),
    column("what", "text", "deviation of another metric"),
    column("observed", "number", "its value"),
    column("expected", "number", "expected value"),
    column("low", "number", "expected from"),
    column("high", "number", "expected to"),
    column("onset", "time", "hour of the onset"),
    column("onset_low", "time", "earliest"),
    column("onset_high", "time", "latest"),
)
_SHOWN = columns("state since site sentence cost_core_h total_core_h cause cause_share")

INCIDENTS = Table(
    "incidents",
    "incidents as of the last night",
    "state",
    _INCIDENT,
    made_by="today",
    shown=_SHOWN,
    order=columns("state -cost_core_h site incident"),
    named="site",
)
INCIDENT_NIGHTS = Table(
    "incident_nights",
    "incidents of each night",
    "night",
    _INCIDENT,
    time="night",
    made_by="today",
    shown=("night", *_SHOWN),
    order=columns("-night state -cost_core_h site"),
    named="site",
)

TABLES = (INCIDENTS, INCIDENT_NIGHTS, TODAY_DAYS, DAY_SUMS)
