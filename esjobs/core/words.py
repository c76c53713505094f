"""Words and limits shared by steps, tables, reports and messages.

A queue is what jobs name (PanDA queue, Slurm partition); a site is who runs it (site, cluster).
"""

from typing import Literal, get_args

Level = Literal["queue", "site", "cpu_model"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Levels of factors."""
NAMED_LEVELS: tuple[Level, ...] = ("queue", "cpu_model")
"""Levels whose names jobs and buckets carry; a site has the jobs of all its queues."""
Method = Literal["gamma", "paper"]
METHODS: tuple[Method, ...] = get_args(Method)
"""Methods of fitting factors."""
COUNTER_COLUMN = "counter."
"""Prefix of the columns of a file that hold one count of the field ``counters`` each."""
ALL_TYPES = "all"
"""In the place of a processing type: every kind of work together."""

Verdict = Literal[
    "deviates",
    "ok",
    "undecided",
    "undeclared",
    "too few",
    "mixed",
    "implausible",
    "via CPU models",
    "not comparable",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Every verdict, those of comparison first."""
JUDGED: tuple[Verdict, ...] = ("deviates", "ok", "undecided")
"""The verdicts of names that were compared with what they declare."""
CONFIRMED = "confirmed"
"""Displayed word for a ``deviates`` that survives every check: the only one cleared to send."""
CANDIDATE = "candidate"
"""Displayed word for every other ``deviates``."""
STANDINGS: tuple[str, ...] = (CONFIRMED, CANDIDATE, *VERDICTS[1:])
"""Every word that people read for a verdict; see :func:`status_shown`."""
VARIED: tuple[str, ...] = (
    "objective",
    "start-up time",
    "single type",
    "single core class",
    "task left out",
    "own start-up time",
    "half of the tasks",
    "half of the time",
    "halves that differ",
    "strays put back",
)
"""The kinds of change that a verdict has to survive, in the order in which they are tried."""
HALVES: tuple[str, ...] = ("half of the tasks", "half of the time")
"""Kinds that must keep the sign only: half of the jobs have larger errors."""
DIFFERENT_HALVES = "halves that differ"
"""Halves of the time between which the speed changed beyond errors: half the limit must survive both."""
STRAYS = "strays put back"
"""Kind under which the complete limit must hold: the strays may well belong to the name."""

INVALID = "invalid record"
"""Reason in the books for a document that is no job: what ``esjobs ingest`` would have rejected."""

HALF_WIDTH_90 = 1.645
"""Half-width of a two-sided 90 % interval of a normal, in standard errors: the interval of all verdicts."""
INTERVAL_LEVEL = 0.90
"""Coverage of displayed intervals."""
SURE = 0.95
"""Probability that a verdict needs: of a deviation beyond the limit, or of one within it."""
DEVIATION_LIMIT = 0.20
"""Relative deviation that is accepted, unless a setting says otherwise."""

# only levels need other words than their names
_NOUNS = {"queue": ("queue", "queues"), "site": ("site", "sites"), "cpu_model": ("CPU model", "CPU models")}

GOOD, FAIR = 0.9, 0.8
"""Usual limits of parallel efficiencies: good from the first on, to be improved below the second."""


def noun(level: str, count: int = 2) -> str:
    """Return the noun for names of a level, singular for one.

    >>> noun("queue"), noun("cpu_model", 1)
    ('queues', 'CPU model')
    """
    return _NOUNS.get(level, (level, level))[count != 1]


def status_shown(verdict: str, confirmed: object) -> str:
    """Return the displayed verdict: ``deviates`` is either confirmed or a candidate.

    ``confirmed``: anything but True, including missing, is not confirmed.

    >>> status_shown("deviates", True), status_shown("deviates", None), status_shown("ok", False)
    ('confirmed', 'candidate', 'ok')
    """
    if verdict != "deviates":
        return verdict
    return CONFIRMED if confirmed is True else CANDIDATE


def titled(column: str) -> str:
    """Return a column's name as written in a sentence.

    >>> titled("cpu_model")
    'cpu model'
    """
    return column.replace("_", " ")


OF_LAUNCHES = frozenset(
    f"ESJOBS_TALP_{name}" for name in ("SPOOL", "LIBRARY", "COUNTERS", "SUMMARY", "OPENMP", "ACTIVE")
)
"""Variables of the environment that launches under TALP read (``launch.sh``); they are no settings."""
NOT_MEASURED = ("ESJOBS_TALP", "off")
"""Variable and value that switch a launch off; with any other value it is an unknown setting."""

CHANGED_SPEED = "as if its speed had changed"
"""Part of the reason of a name whose hardware is in doubt, not its records: it is judged anew."""
