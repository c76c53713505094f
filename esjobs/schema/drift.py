"""Factors of single days, and the changes that are seen in them."""

from esjobs.core.columns import LEVEL, ORIGIN, RUN, TYPE
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import SPEED, SPEED_RUN

DAILY_FACTORS = Table(
    "daily_factors",
    "speed factor from the jobs of one day, all types; comparable between days up to a common factor",
    "day",
    (
        column("day", "day", "day of the end time of the jobs", "UTC"),
        LEVEL,
        column("name", "keyword", "queue, site or CPU model, of the largest component of the day"),
        column("k", "number", "speed factor, on the scale of the run used"),
        # kept apart: an average over a week divides this part by its days, and not the next one
        column("k_err_stat", "number", "part of the error that is independent between days: scatter of jobs"),
        column("k_err_int", "number", "part of the error that lasts as long as tasks: queue x task"),
        column("n_units", "integer", "task units behind it", "units"),
        column("n_jobs", "integer", "jobs in the fit of the day", "jobs"),
        column("fingerprint", "keyword", "digest of the inputs; it changes with them"),
        SPEED_RUN,
        column("fit_until", "time", "end of the window of that run", "UTC"),
        # days that share tasks share their errors: the covariance of two days follows from these weights
        column("tasks", "list", "numbers of the tasks with the largest weight, at most 64"),
        column("task_parts", "list", "relative weights of these tasks"),
        column("site", "keyword", "site of the queue, or the site itself; null for CPU models"),
    ),
    time="day",
    made_by="drift",
    shown=columns("day level name k k_err_stat k_err_int n_units n_jobs"),
    order=columns("level name day"),
)

DRIFTS = Table(
    "drifts",
    "date on which a queue, site or CPU model became faster or slower, with the likely cause",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        column("name", "keyword", "queue, site or CPU model"),
        column("day", "day", "first day at the new level, or of the slope", "UTC"),
        column("day_low", "day", "first day of its 90 % interval", "UTC"),
        column("day_high", "day", "last day of its 90 % interval", "UTC"),
        column("change", "number", "k after over k before, minus 1; of a slope: until now"),
        column("change_err", "number", "its standard error"),
        column("per_week", "number", "change a week while a slope goes on; null: a step"),
        column("significance", "number", "change in ln over its error"),
        column("cause", "keyword", "CPU mix changed; release NAME; changed at QUEUE; or unexplained"),
        column("sentence", "text", "the change in one sentence"),
        # what the factors of the CPU models and the changed mix say: a drift that it explains is no fault
        column("mix_change", "number", "change predicted from the CPU mix; null: CPU models unknown"),
        column("mix_change_err", "number", "standard error of mix_change"),
        column("corepower_before", "number", "declared value before an edit near the day; null: no edit"),
        column("corepower_after", "number", "declared value after the edit"),
        column("declared_on", "day", "start of validity of the edit", "UTC"),
        column("n_days", "integer", "examined days of the name", "days"),
        SPEED_RUN,
        *ORIGIN,
    ),
    time="window_end",
    made_by="drift",
    shown=columns("level name day day_low day_high change change_err per_week significance cause sentence"),
    order=columns("level -day name"),
)

DRIFT_VERSION = "5"
"""Raised when a change of method changes numbers; part of every run id."""


DRIFT = Kind(
    "drift",
    (DRIFTS,),
    sections=("rules", "fit", "drift"),
    versions={"drift_version": DRIFT_VERSION, **SPEED.versions},
    preferred=lambda _: {"level": LEVELS, "processing_type": (ALL_TYPES,)},
    command="esjobs drift",
)
"""Tables of change points: times at which names became faster or slower."""

TABLES = (*DRIFT.tables, DAILY_FACTORS)
KINDS = (DRIFT,)
