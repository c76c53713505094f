"""Columns shared by the tables of several capabilities."""

from esjobs.core.tables import column

RUN = column("run", "keyword", "run id: hash of window, rules, settings, method and versions")
LEVEL = column("level", "keyword", "queue, site or cpu_model")
TYPE = column("processing_type", "keyword", "processing type, or all for all types together")
PROVENANCE = (
    column("window_start", "time", "start of the window", "UTC"),
    column("window_end", "time", "end of the window, not included", "UTC"),
    column("program_version", "keyword", "version of esjobs that wrote the row"),
)

SCOPE = (
    column("window_days", "integer", "length of the window", "days"),
    column("scope", "keyword", "all, or the restriction of the run, such as 'queue=CERN'"),
)
"""Columns that separate the rows of a run from other windows and restricted runs; always the last."""
ORIGIN = (*PROVENANCE, *SCOPE)

OF_JOB = (
    column("queue", "keyword", "queue, as jobs name it"),
    column("user", "keyword", "user of the job"),
    column("project", "keyword", "group, account or project that is charged"),
    column("application", "keyword", "program or package of the job"),
)
"""Columns that repeat the record of a job: a cluster cannot join, and dashboards filter by them."""
OF_WORK = (
    *OF_JOB,
    column("processing_type", "keyword", "processing type"),
    column("cpu_model", "keyword", "canonical CPU model; null if unknown"),
)

RUN_BEFORE = column(
    "run_before",
    "keyword",
    "latest complete run with earlier data, an equally long window and the same restriction",
)
