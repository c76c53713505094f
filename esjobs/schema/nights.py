"""The ledger: what became of every night, and of every step of it."""

from esjobs.core.tables import Table, column, columns

NIGHT_STATES = ("done", "failed", "missing", "running")
"""States of a nightly run; missing: not run, or its day has no jobs."""

STEP_STATES = ("done", "failed", "running")
"""States of a step of a nightly run; one without a row has not begun."""

NIGHTS = Table(
    "nights",
    "what became of one night; a night is named by the day that is aggregated",
    "night",
    (
        column("night", "day", "the day that is aggregated", "UTC"),
        column("state", "keyword", "what became of it", values=NIGHT_STATES),
        column("reason", "text", "why it failed or is missing; null: done"),
        column("jobs", "integer", "jobs that ended on the day, before cleaning", "jobs"),
        column("seconds", "number", "how long its last attempt took", "s"),
        column("attempt", "integer", "how often it was begun"),
        column("began", "time", "when its last attempt began", "UTC"),
        column("finished", "time", "when it ended; null while it runs, and where it was killed", "UTC"),
        column("windows", "keyword", "the windows that were fitted, such as 7d,30d"),
        column("runs", "text", "ids of their runs, in the same order, with commas between"),
        column("late_days", "integer", "days before the night that were aggregated again", "days"),
        column("jobs_used", "integer", "those of its jobs that are in buckets", "jobs"),
        column("jobs_dropped", "integer", "those that cleaning dropped", "jobs"),
        column("steps_done", "integer", "steps that its last attempt did; others stood as they were"),
        column("program_version", "keyword", "version of esjobs"),
        column("backfill", "keyword", "older days that it made up for, such as 2025-05-01/2025-05-08"),
    ),
    time="night",
    made_by="nights",
    shown=columns("night state reason jobs seconds"),
    order=("night",),
)

NIGHT_STEPS = Table(
    "night_steps",
    "what became of one step of a night, and with which inputs",
    "night",
    (
        column("night", "day", "the day that is aggregated", "UTC"),
        column("step", "keyword", "ingest, aggregate, fit 7d, ..., watch, notify, prune"),
        column("position", "integer", "place among the steps of the night, from 1"),
        column("state", "keyword", "what became of it", values=STEP_STATES),
        column("seconds", "number", "how long it took", "s"),
        column("inputs", "keyword", "digest of what it was made from; null: made again each time"),
        column("rows_in", "integer", "rows in", "rows"),
        column("rows_out", "integer", "rows out", "rows"),
        column("reason", "text", "why it failed; null otherwise"),
        column("notes", "text", "what a reader should know, with semicolons between"),
        column("attempt", "integer", "the attempt of the night that did it"),
        column("finished", "time", "when it ended", "UTC"),
        column("processor_s", "number", "processor time of esjobs, and of a cluster by its own account", "s"),
        column("documents_read", "integer", "job records grouped or read, again for each question", "jobs"),
        column("documents_written", "integer", "rows handed over to be stored", "rows"),
        column("bytes_written", "integer", "bytes of these rows; in a cluster of the requests", "B"),
        column("documents_deleted", "integer", "rows removed", "rows"),
        column("requests", "integer", "requests to a cluster; 0 of a file", "requests"),
        column("requests_failed", "integer", "those without an answer or with an error", "requests"),
    ),
    time="night",
    made_by="nights",
    shown=columns("night step state seconds rows_in rows_out reason"),
    order=("night", "position"),
)

ACTIONS = ("pause", "resume", "forget")
"""What people order about nights."""

NIGHT_ORDERS = Table(
    "night_orders",
    "what people ordered about nights: to pause, to go on, to forget some",
    "order_id",
    (
        column("order_id", "keyword", "follows from what was ordered and when"),
        column("action", "keyword", "what was ordered", values=ACTIONS),
        column("night", "day", "of forget: the last night that was kept", "UTC"),
        column("entered_by", "keyword", "person who ordered it"),
        column("text", "text", "why"),
        column("entered_at", "time", "when", "UTC"),
        column("account", "keyword", "account of the cluster, or of the machine, by which it was entered"),
    ),
    entered=True,
    made_by="nights pause",
    shown=columns("entered_at action night entered_by account text"),
    order=columns("-entered_at action"),
)

TABLES = (NIGHTS, NIGHT_STEPS, NIGHT_ORDERS)
