"""Decomposition of a queue's deviation."""

from esjobs.core.columns import LEVEL, ORIGIN, RUN, TYPE
from esjobs.core.tables import Table, column, columns
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import SPEED, SPEED_RUN

_PROVENANCE = (SPEED_RUN, *ORIGIN)

PARTS = ("cpu mix", "smt", "declared default", "declared older than hardware", "declared value", "rest")
"""Parts of a deviation, in reading order."""

DECOMPOSITION = Table(
    "decomposition",
    "decomposition of the deviation of a queue; effects of the parts add up to ln(1 + deviation)",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue"),
        TYPE,
        column("part", "keyword", "part of the deviation", values=PARTS),
        # logarithms add up where factors multiply: the parts of a deviation sum to it exactly
        column("share", "number", "share of the deviation, in ln; the shares of a name add up to 1"),
        column("share_err", "number", "standard error of the share; null if unknown"),
        column("sentence", "text", "explanation of the part"),
        column("effect", "number", "ln of the factor by which the part makes the queue faster than declared"),
        column("effect_err", "number", "standard error of the effect; null if unknown"),
        column("largest", "boolean", "true for the largest part in the direction of the deviation"),
        column("deviation", "number", "of the name: k over the value expected from the line, minus 1"),
        column("corepower", "number", "declared", "benchmark per core"),
        column("origin", "keyword", "source of the declared value: own, inherited, default, changed"),
        column("verdict", "keyword", "verdict of the name, as in flags"),
        column("reason", "text", "in the row of the largest part: cause of the deviation in one sentence"),
        *_PROVENANCE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("name verdict deviation part share share_err largest sentence"),
    order=columns("level name -largest part"),
)

CPU_SPEED_BY_QUEUE = Table(
    "cpu_speed_by_queue",
    "speed of a CPU model at one queue relative to the same model elsewhere",
    "run",
    (
        RUN,
        column("cpu_model", "keyword", "canonical CPU model"),
        TYPE,
        column("queue", "keyword", "queue, as jobs name it"),
        column("relative", "number", "speed of the model here over its mean at all queues with it, minus 1"),
        column("relative_err", "number", "its standard error"),
        column("sigmas", "number", "ln of 1 + relative over its error"),
        column("n_queues", "integer", "queues with the model", "queues"),
        column("n_jobs", "integer", "jobs of this queue on this model", "jobs"),
        column("n_tasks", "integer", "tasks of these jobs", "tasks"),
        column("cpu_share", "number", "share of this model in the CPU time of the queue"),
        # charts of a cluster cannot join two texts
        column("label", "keyword", "queue and CPU model, as a label"),
        *_PROVENANCE,
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
    "variance of the speeds of queues by cause, corrected for errors",
    "run",
    (
        RUN,
        LEVEL,
        TYPE,
        column("part", "keyword", "part; sorting: twice the covariance of the others", values=SHARE_PARTS),
        column("share", "number", "share of the variance of ln k between queues; sum 1; below 0: none"),
        column("share_err", "number", "standard error of the share, by omission of groups of tasks"),
        column("variance", "number", "variance of ln k; of sorting: twice a covariance"),
        column("variance_err", "number", "its standard error"),
        # the variance of estimates is that of the truth plus that of their errors, which is taken off
        column("uncorrected", "number", "variance of the estimates, errors included"),
        column("n_queues", "integer", "comparable queues", "queues"),
        column("n_clusters", "integer", "pairs of queue and task behind it", "buckets"),
        column("sentence", "text", "in the row of all: causes of the differences between queues"),
        *_PROVENANCE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("part share share_err variance variance_err n_queues sentence"),
    order=columns("-share part"),
)

QUEUE_RESTS = Table(
    "queue_rests",
    "speed of a queue relative to the same CPU models elsewhere, shrunk to 0 according to its error",
    "run",
    (
        RUN,
        LEVEL,
        column("name", "keyword", "queue"),
        TYPE,
        column("rest", "number", "speed over that of its CPU models at the median queue, minus 1"),
        column("rest_err", "number", "its standard error"),
        # shrunk as in empirical Bayes: a queue with few jobs says little against the scatter of all
        column("likely", "number", "rest, shrunk by the scatter between queues"),
        column("likely_low", "number", "lower end of its 90 % interval"),
        column("likely_high", "number", "upper end of its 90 % interval"),
        column("n_jobs", "integer", "jobs with a known CPU model", "jobs"),
        *_PROVENANCE,
    ),
    time="window_end",
    made_by="decompose",
    shown=columns("name likely likely_low likely_high rest rest_err n_jobs"),
    order=columns("likely name"),
)

DECOMPOSITION_VERSION = "3"
"""Raised when a change of method changes numbers; part of every run id."""


DECOMPOSED = Kind(
    "decomposition",
    (DECOMPOSITION, CPU_SPEED_BY_QUEUE, VARIANCE_SHARES, QUEUE_RESTS),
    sections=("rules", "fit"),
    versions={"decomposition_version": DECOMPOSITION_VERSION, **SPEED.versions},
    preferred=lambda _: {"level": LEVELS, "processing_type": (ALL_TYPES,)},
    command="esjobs decompose",
)
"""Tables of the decomposition of deviations."""

TABLES = DECOMPOSED.tables
KINDS = (DECOMPOSED,)
