"""Columns shared by the tables of several capabilities."""

from esjobs.core.tables import column

RUN = column("run", "keyword", "run id: hash of window, rules, settings, method and versions")
LEVEL = column("level", "keyword", "queue, site or cpu_model")
TYPE = column("processing_type", "keyword", "kind of work, or all for every type together")
PROVENANCE = (
    column("window_start", "time", "start of the window", "UTC"),
    column("window_end", "time", "end of the window, not included", "UTC"),
    column("program_version", "keyword", "version of esjobs that wrote the row"),
)

SCOPE = (
    column("window_days", "integer", "length of the window", "days"),
    column(
        "scope",
        "keyword",
        "all, or what the run was restricted to, such as 'queue=CERN'",
    ),
)
"""By which the rows of a run are told from those of other windows and of restricted runs; always the last."""

RUN_BEFORE = column(
    "run_before",
    "keyword",
    "the run before: the latest complete one whose data end earlier, of a window as long, under the same "
    "restriction, when this one was published; null without one",
)
