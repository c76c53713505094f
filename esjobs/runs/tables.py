"""The account that every step of every capability gives of itself."""

from esjobs.core.columns import RUN
from esjobs.core.tables import Table, column, columns

RUNS = Table(
    "runs",
    "the report of one step",
    "run_step",
    (
        column("run_step", "keyword", "run id and step"),
        RUN,
        column("step", "keyword", "aggregate, fit, correlate, flag"),
        column("at", "time", "when the step ended", "UTC"),
        column("seconds", "number", "how long it took", "s"),
        column("rows_in", "integer", "rows in"),
        column("rows_out", "integer", "rows out"),
        column("dropped", "text", "rows dropped by reason, JSON"),
        column("counts", "text", "other counts, JSON"),
        column("notes", "text", "what a reader should know, JSON"),
        column("window_start", "time", "start of the window", "UTC"),
        column("window_end", "time", "end of the window", "UTC"),
        column("settings", "text", "rules and settings of the run, JSON"),
        column("program_version", "keyword", "version of esjobs"),
    ),
    made_by="every step",
    shown=columns("run step at window_start window_end rows_in rows_out seconds"),
    order=("-at",),
)
