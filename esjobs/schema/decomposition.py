"""Decomposition of a queue's deviation."""

from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.columns import LEVEL, PROVENANCE, RUN, SCOPE, TYPE
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import SPEED

PARTS = ("cpu mix", "smt", "declared default", "declared older than hardware", "declared value", "rest")
"""Parts of a deviation, in reading order."""

DECOMPOSITION = Table(
    "decomposition",
    "the deviation of a queue taken apart; effects of the parts add up to ln(1 + deviation)",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue"),
        TYPE,
        column("part", "keyword", "what of the deviation it is", values=PARTS),
        column("share", "number", "of the deviation, in ln; the parts of a name add up to 1"),
        column("share_err", "number", "its standard error; null where it cannot be told"),
        column("sentence", "text", "what this part says"),
        column("effect", "number", "ln of the factor by which this part makes it faster than it declares"),
        column("effect_err", "number", "its standard error; null where it cannot be told"),
        column("largest", "boolean", "whether it is the largest part in the direction of the deviation"),
        column("deviation", "number", "of the name: k over what the line expects, minus 1"),
        column("corepower", "number", "declared", "benchmark per core"),
        column("origin", "keyword", "where the declared value comes from: own, inherited, default, changed"),
        column("verdict", "keyword", "of the name, as in flags"),
        column("reason", "text", "in the row of the largest part: the deviation and why, in one sentence"),
        column("speed_run", "keyword", "the run of speed factors that this follows from"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("name verdict deviation part share share_err largest sentence"),
    order=columns("level name -largest part"),
)

CPU_SPEED_BY_QUEUE = Table(
    "cpu_speed_by_queue",
    "how fast a CPU model is at one queue against the same model elsewhere; a row per queue and model",
    "run",
    (
        RUN,
        column("cpu_model", "keyword", "canonical CPU model"),
        TYPE,
        column("queue", "keyword", "queue, as jobs name it"),
        column(
            "relative",
            "number",
            "speed of the model at this queue over its mean at all queues that run it, minus 1",
        ),
        column("relative_err", "number", "its standard error"),
        column("sigmas", "number", "ln of 1 + relative over its error"),
        column("n_queues", "integer", "queues that run the model", "queues"),
        column("n_jobs", "integer", "jobs of this queue on this model", "jobs"),
        column("n_tasks", "integer", "tasks behind it", "tasks"),
        column("cpu_share", "number", "of the CPU time of the queue that this model did"),
        column("label", "keyword", "queue and CPU model, as a label"),
        column("speed_run", "keyword", "the run of speed factors that this follows from"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("cpu_model queue relative relative_err n_queues n_jobs n_tasks"),
    order=columns("cpu_model -relative queue"),
    named="cpu_model",
)

SHARE_PARTS = ("cpu models", "site", "sorting", "all")
"""Parts of the variance between queues, in reading order."""

VARIANCE_SHARES = Table(
    "variance_shares",
    "hardware or site: by what the speeds of queues scatter, corrected for errors; a row per part",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        column(
            "part",
            "keyword",
            "cpu models, site (the queue beside its CPU models), sorting (twice their covariance), all",
            values=SHARE_PARTS,
        ),
        column("share", "number", "of the variance of ln k between queues; they add up to 1; below 0: none"),
        column("share_err", "number", "its standard error, by leaving out groups of tasks"),
        column("variance", "number", "variance of ln k, of sorting twice a covariance"),
        column("variance_err", "number", "its standard error"),
        column("uncorrected", "number", "the variance of the estimates, errors and all"),
        column("n_queues", "integer", "queues that can be compared", "queues"),
        column("n_clusters", "integer", "queues at tasks behind it", "buckets"),
        column("sentence", "text", "in the row of all: what queues differ by"),
        column("speed_run", "keyword", "the run of speed factors that this follows from"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("part share share_err variance variance_err n_queues sentence"),
    order=columns("-share part"),
)

QUEUE_RESTS = Table(
    "queue_rests",
    "speed of a queue beside the same CPU models elsewhere, drawn to 0 as far as its error reaches",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue"),
        TYPE,
        column("rest", "number", "speed over that of its CPU models at the median queue, minus 1"),
        column("rest_err", "number", "its standard error"),
        column("likely", "number", "the same, drawn to 0 by how much queues scatter"),
        column("likely_low", "number", "lower end of its 90 % interval"),
        column("likely_high", "number", "upper end of its 90 % interval"),
        column("n_jobs", "integer", "jobs that name a CPU model", "jobs"),
        column("speed_run", "keyword", "the run of speed factors that this follows from"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("name likely likely_low likely_high rest rest_err n_jobs"),
    order=columns("likely name"),
)

CPU_SPEED_BY_SMT = Table(
    "cpu_speed_by_smt",
    "speed factor of a CPU model by state of SMT: records tell both states, or one and tables the other",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "canonical CPU model"),
        TYPE,
        column("smt", "boolean", "two threads a core"),
        column("k", "number", "speed factor of a slot in this state, on the scale of CPU models"),
        column("gain", "number", "speed of a slot with SMT on over that with it off"),
        column("gain_err", "number", "its standard error; null of tables"),
        column("table_gain_low", "number", "lowest gain that reference tables allow"),
        column("table_gain_high", "number", "highest"),
        column("source", "keyword", "records or reference tables"),
        column("n_queues", "integer", "queues whose records tell this state", "queues"),
        column("n_jobs", "integer", "their jobs on the model", "jobs"),
        column("speed_run", "keyword", "the run of speed factors that this follows from"),
        *PROVENANCE,
        *SCOPE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("name smt k gain gain_err table_gain_low table_gain_high source n_queues n_jobs"),
    order=columns("name smt"),
)

DECOMPOSITION_VERSION = "3"
"""Raised when a change of method changes numbers; part of every run id."""


def _preferred(settings: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    del settings
    return {"level": LEVELS, "processing_type": (ALL_TYPES,)}


DECOMPOSED = Kind(
    "decomposition",
    (DECOMPOSITION, CPU_SPEED_BY_QUEUE, CPU_SPEED_BY_SMT, VARIANCE_SHARES, QUEUE_RESTS),
    sections=("rules", "fit"),
    versions={"decomposition_version": DECOMPOSITION_VERSION, **SPEED.versions},
    preferred=_preferred,
    command="esjobs decompose",
)
"""Tables of the decomposition of deviations."""

TABLES = DECOMPOSED.tables
KINDS = (DECOMPOSED,)
