"""Factors of single days, and the changes that are seen in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.columns import LEVEL, PROVENANCE, RUN, SCOPE, TYPE
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import SPEED

SPEED_RUN = column("speed_run", "keyword", "the run of speed factors that this follows from")

DAILY_FACTORS = Table(
    "daily_factors",
    "speed factor of a queue, site or CPU model from the jobs of one day, all types together; values of "
    "different days are comparable up to a factor that all names of a day have in common",
    "day",
    (
        column("day", "day", "day of the end time of the jobs", "UTC"),
        LEVEL,
        column("name", "keyword", "queue, site or CPU model, of the largest component of the day"),
        column("k", "number", "speed factor, in the scale of the run that it follows from"),
        column("k_err_stat", "number", "part of its error that is new every day: scatter of jobs"),
        column("k_err_int", "number", "part that lasts as long as tasks: queue x task interaction"),
        column("n_units", "integer", "units of A that determine it", "units"),
        column("n_jobs", "integer", "jobs in the fit of the day", "jobs"),
        column("fingerprint", "keyword", "what the factors of the day were made from; moves when that does"),
        SPEED_RUN,
        column("fit_until", "time", "end of the window of that run", "UTC"),
        column(
            "tasks", "list", "numbers of the tasks that determine it most, at most 64: which days share them"
        ),
        column("task_parts", "list", "how much each of them does to it, relative to the others"),
        column("site", "keyword", "site of the queue, or the site itself; null of CPU models"),
    ),
    time="day",
    made_by="drift",
    shown=columns("day level name k k_err_stat k_err_int n_units n_jobs"),
    order=columns("level name day"),
)

DRIFTS = Table(
    "drifts",
    "a day from which on a queue, site or CPU model ran faster or slower, with what is known of why",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        column("name", "keyword", "queue, site or CPU model"),
        column("day", "day", "first day at the new level", "UTC"),
        column("day_low", "day", "first day of its 90 % interval", "UTC"),
        column("day_high", "day", "last day of its 90 % interval", "UTC"),
        column("change", "number", "k after over k before, minus 1"),
        column("change_err", "number", "its standard error"),
        column("significance", "number", "change in ln over its error"),
        column(
            "cause",
            "keyword",
            "CPU mix changed; of a site or CPU model: changed at QUEUE; or unexplained",
        ),
        column("sentence", "text", "the change in one sentence"),
        column("mix_change", "number", "what the change of the CPU mix predicts; null: no CPU models known"),
        column(
            "mix_change_err",
            "number",
            "its standard error, from the CPU models' factors and the jobs counted",
        ),
        column("corepower_before", "number", "declared before an edit near the day; null without an edit"),
        column("corepower_after", "number", "declared after it"),
        column("declared_on", "day", "from when the edit is valid", "UTC"),
        column("n_days", "integer", "days of the name that were looked at", "days"),
        column("speed_run", "keyword", "the run of speed factors that gave the factors of CPU models"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="drift",
    shown=columns("level name day day_low day_high change change_err significance cause sentence"),
    order=columns("level -day name"),
)

DRIFT_VERSION = "4"
"""Raised when a change of method changes numbers; part of every run id."""


def _preferred(settings: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    del settings
    return {"level": LEVELS, "processing_type": (ALL_TYPES,)}


DRIFT = Kind(
    "drift",
    (DRIFTS,),
    sections=("rules", "fit", "drift"),
    versions={"drift_version": DRIFT_VERSION, **SPEED.versions},
    preferred=_preferred,
    command="esjobs drift",
)
"""Tables of change points: times at which names became faster or slower."""

TABLES = (*DRIFT.tables, DAILY_FACTORS)
KINDS = (DRIFT,)
