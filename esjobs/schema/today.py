"""Daily watch of sites: sums of days, what was expected of them, and incidents."""

from esjobs.core.tables import Table, column, columns

MAINTENANCE = "maintenance"
"""State of an incident in a declared outage, and its change into it: it is listed and not mailed."""
STATES = ("noticed", "open", "acknowledged", MAINTENANCE, "closed", "withdrawn")
"""States of an incident."""
LASTING = ("open", "acknowledged", MAINTENANCE)
"""States of an incident that is reported and not over."""
CHANGES = ("noticed", "opened", "reopened", "lasting", "over", "withdrawn", "acknowledged", MAINTENANCE)
"""Changes of an incident by a night."""
EFFICIENCY, FAILED = "efficiency", "failed"
"""Metrics that are watched; a category of failures is ``failed: CATEGORY``."""
EVERYWHERE = "everywhere"
"""In place of a site: an incident of several sites."""

_DAY = column("day", "day", "day of the end times")
_SITE = column("site", "keyword", "site; everywhere: all sites together")

DAY_SUMS = Table(
    "day_sums",
    "sums of the jobs of a day by queue, task and outcome, from which the daily watch expects and judges",
    "day",
    (
        _DAY,
        column("queue", "keyword", "queue of the jobs"),
        column("task_id", "keyword", "task of the jobs; null if the records name none"),
        column("processing_type", "keyword", "processing type of the jobs"),
        column("core_class", "keyword", "single or multi"),
        column("outcome", "keyword", "finished, or the kind of failure, with the exit code if there is one"),
        column("n_jobs", "integer", "number of jobs", "jobs"),
        column("core_s", "number", "sum of wall-clock time x cores", "core s"),
        column("n_measured", "integer", "jobs with CPU time, wall-clock time and cores", "jobs"),
        column("measured_core_s", "number", "sum of wall-clock time x cores of these", "core s"),
        column("cpu_s", "number", "sum of CPU time of these", "s"),
        column("fingerprint", "keyword", "fingerprint of the jobs of the day"),
    ),
    time="day",
    made_by="today",
    shown=columns("day queue task_id processing_type core_class outcome n_jobs core_s cpu_s"),
    order=columns("-day queue task_id outcome"),
)

TODAY_DAYS = Table(
    "today_days",
    "one metric of a site on a day: observed, and expected before the day was known",
    "day",
    (
        _DAY,
        _SITE,
        column("metric", "keyword", "efficiency, failed (share of jobs), or failed: CATEGORY"),
        column("observed", "number", "observed share"),
        column("expected", "number", "expected share"),
        column("low", "number", "expected less two standard deviations"),
        column("high", "number", "expected plus two standard deviations"),
        column("observed_sum", "number", "observed CPU s, or failed jobs"),
        column("expected_sum", "number", "expected CPU s, or failed jobs"),
        column("base_sum", "number", "core s of finished jobs, or finished and failed jobs"),
        column("variance", "number", "variance of the logarithm before the scale of the site"),
        column("surprise", "number", "standard deviations to the bad side, by the tail of the distribution"),
        column("cost_core_h", "number", "core-hours lost beyond the expected; negative: gained", "core h"),
        column("week_core_h", "number", "core-hours of the site in the week before", "core h"),
        column(
            "in_incident", "boolean", "true if an incident of the site was open: the day is not learned from"
        ),
        column("partial", "boolean", "true if less than half of the usual jobs have arrived"),
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
    column("quiet_nights", "integer", "nights in a row without it", "nights"),
    column("efficiency", "number", "CPU efficiency of finished jobs on the night"),
    column("efficiency_expected", "number", "expected CPU efficiency"),
    column("efficiency_low", "number", "lower end of the expected range"),
    column("efficiency_high", "number", "upper end of the expected range"),
    column("failed", "number", "failed over finished and failed jobs on the night"),
    column("failed_expected", "number", "expected share of failed jobs"),
    column("failed_low", "number", "lower end of the expected range"),
    column("failed_high", "number", "upper end of the expected range"),
    column("metric", "keyword", "metric that costs more: efficiency or failed"),
    column("cost_core_h", "number", "core-hours lost on the night beyond the expected", "core h"),
    column("total_core_h", "number", "core-hours lost since the first day", "core h"),
    column("week_share", "number", "total over the core-hours of the site's week"),
    column("cause", "text", "part of the jobs that explains most of the loss"),
    column("cause_share", "number", "share of the loss that it explains"),
    column("cause_key", "keyword", "names of the cause, that distinguish incidents"),
    column("n_sites", "integer", "sites concerned", "sites"),
    column("surprise", "number", "largest surprise of the last three nights"),
    column("acknowledged_by", "keyword", "person who acknowledged it"),
    column("acknowledged_until", "day", "night on which it is reported again"),
    column("sentence", "text", "incident in words"),
)
_SHOWN = columns("state since site sentence cost_core_h total_core_h cause cause_share")

INCIDENTS = Table(
    "incidents",
    "incidents of sites as of the last night, with onset, cost and cause",
    "state",
    _INCIDENT,
    made_by="today",
    shown=_SHOWN,
    order=columns("state -cost_core_h site incident"),
    named="site",
)
INCIDENT_NIGHTS = Table(
    "incident_nights",
    "incidents of each night, from which the next night continues",
    "night",
    _INCIDENT,
    time="night",
    made_by="today",
    shown=("night", *_SHOWN),
    order=columns("-night state -cost_core_h site"),
    named="site",
)

TABLES = (INCIDENTS, INCIDENT_NIGHTS, TODAY_DAYS, DAY_SUMS)
