"""Ledger of nights and their steps."""

from esjobs.core.tables import Table, column, columns

NIGHT_STATES = ("done", "failed", "missing", "running")
"""States of a nightly run; missing: not run, or its day has no jobs."""

STEP_STATES = ("done", "failed", "running")
"""States of a step of a nightly run; one without a row has not begun."""

NIGHTS = Table(
    "nights",
    "result of one night; a night is named by the aggregated day",
    "night",
    (
        column("night", "day", "aggregated day", "UTC"),
        column("state", "keyword", "state of the night", values=NIGHT_STATES),
        column("reason", "text", "reason if failed or missing; null: done"),
        column("jobs", "integer", "jobs that ended on the day, before cleaning", "jobs"),
        column("seconds", "number", "duration of the last attempt", "s"),
        column("attempt", "integer", "number of attempts"),
        column("began", "time", "begin of the last attempt", "UTC"),
        column("finished", "time", "end of the last attempt", "UTC"),
        column("windows", "keyword", "fitted windows, such as 7d,30d"),
        column("runs", "text", "ids of their runs, in the same order, separated by commas"),
        # late records change days of the past, which are aggregated again
        column("late_days", "integer", "earlier days that were aggregated again", "days"),
        column("jobs_used", "integer", "jobs of the day in buckets", "jobs"),
        column("jobs_dropped", "integer", "jobs of the day dropped by cleaning", "jobs"),
        column("steps_done", "integer", "steps of the last attempt; other steps were up to date"),
        column("program_version", "keyword", "version of esjobs"),
        column("backfill", "keyword", "older days aggregated in this night, such as 2025-05-01/2025-05-08"),
    ),
    time="night",
    made_by="nights",
    shown=columns("night state reason jobs seconds"),
    order=("night",),
)

NIGHT_STEPS = Table(
    "night_steps",
    "result of one step of a night, and digest of its inputs",
    "night",
    (
        column("night", "day", "aggregated day", "UTC"),
        column("step", "keyword", "ingest, aggregate, fit 7d, ..., watch, notify, prune"),
        column("position", "integer", "position of the step in the night, from 1"),
        column("state", "keyword", "state of the step", values=STEP_STATES),
        column("seconds", "number", "duration", "s"),
        # equal inputs: the step is skipped when a night is run again
        column("inputs", "keyword", "digest of the inputs; null: computed each time"),
        column("rows_in", "integer", "rows in", "rows"),
        column("rows_out", "integer", "rows out", "rows"),
        column("reason", "text", "reason if failed; null otherwise"),
        column("notes", "text", "notes, separated by semicolons"),
        column("attempt", "integer", "attempt of the night with this step"),
        column("finished", "time", "end of the step", "UTC"),
        column("processor_s", "number", "processor time of esjobs and, as reported, of the cluster", "s"),
        column("documents_read", "integer", "job records grouped or read, again for each question", "jobs"),
        column("documents_written", "integer", "rows sent to the store", "rows"),
        column("bytes_written", "integer", "bytes of these rows; of a cluster: of the requests", "B"),
        column("documents_deleted", "integer", "removed rows", "rows"),
        column("requests", "integer", "requests to a cluster; 0 of a file", "requests"),
        column("requests_failed", "integer", "requests without an answer or with an error", "requests"),
    ),
    time="night",
    made_by="nights",
    shown=columns("night step state seconds rows_in rows_out reason"),
    order=("night", "position"),
)

ACTIONS = ("pause", "resume", "forget")
"""Orders of people about nights."""

# orders are added, never changed: the last pause or resume is in force
NIGHT_ORDERS = Table(
    "night_orders",
    "orders of people about nights: pause, resume, forget",
    "order_id",
    (
        column("order_id", "keyword", "derived from the order and its time"),
        column("action", "keyword", "order", values=ACTIONS),
        column("night", "day", "of forget: last night that was kept", "UTC"),
        column("entered_by", "keyword", "person who gave the order"),
        column("text", "text", "reason, and the numbers of removed nights"),
        column("entered_at", "time", "time of entry", "UTC"),
        column("account", "keyword", "account of the cluster or the machine that entered it"),
    ),
    entered=True,
    made_by="nights pause",
    shown=columns("entered_at action night entered_by account text"),
    order=columns("-entered_at action"),
)

TABLES = (NIGHTS, NIGHT_STEPS, NIGHT_ORDERS)
