"""Reports of steps, and the latest runs."""

from esjobs.core.columns import ORIGIN, PROVENANCE, RUN, SCOPE
from esjobs.core.tables import Table, column, columns

COUNT_KINDS = ("dropped", "count", "note")
"""Kinds of rows of ``run_counts``."""

RUNS = Table(
    "runs",
    "report of one step",
    "run_step",
    (
        column("run_step", "keyword", "run id and step"),
        RUN,
        column("step", "keyword", "aggregate, fit, correlate, flag"),
        # the only clock time of results: equal questions give equal rows everywhere else
        column("at", "time", "end of the step", "UTC"),
        column("seconds", "number", "duration of the step", "s"),
        column("rows_in", "integer", "rows in"),
        column("rows_out", "integer", "rows out"),
        # as text for programs; run_counts has the same as rows, which a cluster can add up
        column("dropped", "text", "rows dropped by reason, JSON"),
        column("counts", "text", "other counts, JSON"),
        column("notes", "text", "notes, JSON"),
        column("window_start", "time", "start of the window", "UTC"),
        column("window_end", "time", "end of the window", "UTC"),
        column("settings", "text", "rules and settings of the run, JSON"),
        column("program_version", "keyword", "version of esjobs"),
        column("data_end", "time", "end of the last day of the window with jobs", "UTC"),
        *SCOPE,
    ),
    time="window_end",
    made_by="every step",
    shown=columns("run step at window_start window_end rows_in rows_out seconds"),
    order=("-at",),
)

RUN_COUNTS = Table(
    "run_counts",
    "one count or note of the report of a step: dropped rows by reason, and other counts",
    "run_step",
    (
        column("run_step", "keyword", "run id and step"),
        RUN,
        column("step", "keyword", "the step, as in runs"),
        column("kind", "keyword", "dropped, count, or note", values=COUNT_KINDS),
        column("position", "integer", "position among those of its kind, from 1"),
        column("name", "keyword", "reason for dropped rows, or name of the count; null for a note"),
        column("n", "integer", "count; null for a note"),
        column("text", "text", "text of the note; null for a count"),
        *ORIGIN,
    ),
    time="window_end",
    made_by="every step",
    shown=columns("run step window_end kind name n text"),
    order=("-window_end", "run", "step", "kind", "position"),
)

ACCOUNT: tuple[Table, ...] = (RUNS, RUN_COUNTS)
"""Tables of a step's report; each has one partition per run and step, and they come and go together."""

LATEST_RUNS = Table(
    "latest_runs",
    "latest run of every kind, window length and restriction; latest_factors, ... show the unrestricted ones",
    "kind",
    (
        column("kind", "keyword", "kind of the run, such as speed"),
        RUN,
        *PROVENANCE,
        column("data_end", "time", "end of the last day of the window with jobs", "UTC"),
        column("shown", "boolean", "true for the latest run of its kind"),
        *SCOPE,
    ),
    time="window_end",
    made_by="every step",
    shown=columns("kind window_days scope run window_start window_end shown"),
    order=("kind", "scope", "window_days"),
)

TABLES = (*ACCOUNT, LATEST_RUNS)
