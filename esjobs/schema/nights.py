"""The ledger: what became of every night, and of every step of it."""

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
        column(
            "finished", "time", "end of the last attempt; null while it runs, and after it was killed", "UTC"
        ),
        column("windows", "keyword", "fitted windows, such as 7d,30d"),
        column("runs", "text", "ids of their runs, in the same order, separated by commas"),
        column("late_days", "integer", "earlier days that were aggregated again", "days"),
        column("jobs_used", "integer", "jobs of the day in buckets", "jobs"),
        column("jobs_dropped", "integer", "jobs of the day dropped by cleaning", "jobs"),
        column("steps_done", "integer", "steps of the last attempt; other steps were up to date"),
        column("program_version", "keyword", "version of esjobs"),
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
        column("inputs", "keyword", "digest of the inputs; null: computed each time"),
        column("rows_in", "integer", "rows in", "rows"),
        column("rows_out", "integer", "rows out", "rows"),
        column("reason", "text", "reason if failed; null otherwise"),
        column("notes", "text", "notes, separated by semicolons"),
        column("attempt", "integer", "attempt of the night with this step"),
        column("finished", "time", "end of the step", "UTC"),
    ),
    time="night",
    made_by="nights",
    shown=columns("night step state seconds rows_in rows_out reason"),
    order=("night", "position"),
)

TABLES = (NIGHTS, NIGHT_STEPS)
