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
    ),
    time="night",
    made_by="nights",
    shown=columns("night step state seconds rows_in rows_out reason"),
    order=("night", "position"),
)

TABLES = (NIGHTS, NIGHT_STEPS)
