"""Cells of Slurm's ``sacct``: durations, sizes, resources and states, as pure functions.

A cell without a value is None. One that cannot be read stays as it is, so that its typing rejects it.
"""

import re
from datetime import UTC, datetime, tzinfo

from esjobs.core.tables import columns

# NO_VAL and INFINITE of slurm.h, in 32 and 64 bits
_NO_ENERGY = frozenset({"0", *(str(2**bits - lacking) for bits in (32, 64) for lacking in (1, 2))})
NOTHING = frozenset({"", "Unknown", "None", "None assigned", "N/A", "INVALID", "(null)"})
"""Spellings of a missing value."""

NO_LIMIT = frozenset({"UNLIMITED", "Partition_Limit", "Partition Limit", "NOT_SET"})
"""Time limits that are no number of seconds."""

IMPOSSIBLE_MB = 2**31
"""From so many MB on a node or core a request is a bit field that was printed as a number: 2147486648Mn."""

_ROUNDED_S = 2.0  # Start, end and elapsed time are whole seconds each
# As many digits as 64 bits hold: int() of thousands takes quadratic time.
_DURATION = re.compile(r"(?:(\d{1,18})-)?(?:(\d{1,18}):)?(\d{1,18}):(\d{1,18})(?:\.(\d+))?", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d*)?)([KMGTPE]?)([nc]?)", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")

STATES = {"COMPLETED": "finished", "CANCELLED": "cancelled", "REQUEUED": "preempted"}
"""The words of the catalogue; every other state is Slurm's in lower case: failed, timeout, out_of_memory."""

RUN_AGAIN = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED"})
"""States after which Slurm runs a job again under its number, unless its site or user forbids it."""

UNFINISHED = frozenset(
    columns(
        "PENDING RUNNING SUSPENDED COMPLETING CONFIGURING RESIZING REQUEUED STAGE_OUT REQUEUE_FED "
        "REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT SIGNALING STOPPED"
    )
)
"""States of jobs that have not ended, or will run again under the same number."""


def integer(text: str) -> int | None:
    """A count; None for what is none, or has more digits than any count of Slurm's.

    >>> integer("12"), integer("-1"), integer("9" * 5000)
    (12, None, None)
    """
    return int(text) if _INTEGER.fullmatch(text) else None


def seconds(text: str) -> str | None:
    """A duration, ``[days-][hours:]minutes:seconds[.fraction]``, as a number of seconds.

    >>> seconds("10-13:27:06"), seconds("00:24.500"), seconds("INVALID"), seconds("soon")
    ('912426', '24.5', None, 'soon')
    """
    if text in NOTHING:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        return text
    days, hours, minutes, rest, fraction = match.groups()
    complete = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes)) * 60 + int(rest)
    return f"{complete}.{fraction.rstrip('0')}" if fraction and fraction.strip("0") else str(complete)


def limit(text: str) -> str | None:
    """A time limit in seconds; None for one that is no limit.

    >>> limit("1-06:00:00"), limit("UNLIMITED"), limit("Partition_Limit")
    ('108000', None, None)
    """
    return None if text in NO_LIMIT else seconds(text)


def minutes(text: str) -> str | None:
    """A limit in minutes, as ``TimelimitRaw`` has it, in seconds.

    >>> minutes("30"), minutes("UNLIMITED")
    ('1800', None)
    """
    if text in NOTHING or text in NO_LIMIT:
        return None
    parsed = integer(text)
    return text if parsed is None else str(parsed * 60)


def joules(text: str) -> str | None:
    """A measured energy; None for 0 and for the numbers by which Slurm says that it has none.

    >>> joules("86400"), joules("0"), joules("18446744073709551614")
    ('86400', None, None)
    """
    return None if text in NOTHING | _NO_ENERGY else text


def size(text: str) -> float | None:
    """Return bytes; K, M, G, ... are powers of 1024. Raises :class:`ValueError` for what is no size.

    >>> size("62.50G"), size("4000"), size("")
    (67108864000.0, 4000.0, None)
    """
    if text in NOTHING:
        return None
    match = _SIZE.fullmatch(text)
    if match is None or match[3]:
        raise ValueError(text)
    return float(match[1]) * 1024.0 ** _POWERS[match[2]]


def bytes_of(text: str) -> str | None:
    """A size in bytes as text; what is no size stays as it is.

    >>> bytes_of("1234K"), bytes_of("?")
    ('1263616', '?')
    """
    try:
        parsed = size(text)
    except ValueError:
        return text
    return None if parsed is None else f"{parsed:.0f}"


def requested_memory(text: str, nodes: int | None, cores: int | None) -> tuple[str | None, bool]:
    """Return the memory of the job by ``ReqMem``, and True for an impossible cell.

    Per node (``n``), per core (``c``) or for the job, in MB without a unit. None where the count is missing.

    >>> requested_memory("31000Mn", 2, 24), requested_memory("2147486648Mn", 1, 8)
    (('65011712000', False), (None, True))
    """
    if text in NOTHING:
        return None, False
    match = _SIZE.fullmatch(text)
    if match is None:
        return text, False
    # sacct means MB where it prints no unit
    value = float(match[1]) * 1024.0 ** _POWERS[match[2] or "M"]
    if not value:
        # --mem=0 requests all memory of the nodes, whatever that is
        return None, False
    # Slurm marks memory per core in the highest bit, which some versions print along
    if value >= IMPOSSIBLE_MB * 1024.0**2 and match[3]:
        return None, True
    times = {"n": nodes, "c": cores, "": 1}[match[3]]
    return (f"{value * times:.0f}" if times else None), False


def resources(text: str) -> dict[str, str]:
    """Trackable resources by name, as ``AllocTRES`` lists them.

    >>> resources("billing=12,cpu=12,gres/gpu:a100=2,mem=31000M,node=1")["gres/gpu:a100"]
    '2'
    """
    pairs = (item.partition("=") for item in text.split(",")) if text not in NOTHING else ()
    return {name: value for name, equals, value in pairs if equals}


def gpus(text: str) -> str | None:
    """Return the GPUs among the resources: the total, else the sum over kinds; None without resources.

    >>> gpus("cpu=8,gres/gpu=2,gres/gpu:a100=2"), gpus("gres/gpu:a100=1,gres/gpu:v100=1"), gpus("cpu=8")
    ('2', '2', '0')
    """
    listed = resources(text)
    if not listed:
        return None
    if "gres/gpu" in listed:
        return listed["gres/gpu"]
    # gres/gpu:a100 by type, where the total is not listed
    kinds = [value for name, value in listed.items() if name.startswith("gres/gpu:")]
    counts = [integer(value) for value in kinds]
    parsed = [count for count in counts if count is not None]
    return str(sum(parsed)) if len(parsed) == len(kinds) else kinds[counts.index(None)]


def resource_bytes(text: str, name: str) -> str | None:
    """A size among the resources, in bytes.

    >>> resource_bytes("cpu=64,mem=62.50G,node=8", "mem")
    '67108864000'
    """
    return bytes_of(resources(text).get(name, ""))


def state(text: str) -> str | None:
    """Return the end of a job in the words of the catalogue.

    >>> state("CANCELLED by 330719"), state("COMPLETED"), state("OUT_OF_MEMORY")
    ('cancelled', 'finished', 'out_of_memory')
    """
    word = state_word(text)
    return STATES.get(word, word.lower()) or None


def state_word(text: str) -> str:
    """Slurm's own word for a state: without who cancelled, or the mark of a cut cell."""
    return text.split(" ", maxsplit=1)[0].rstrip("+") if text not in NOTHING else ""


def array_of(job_id: str) -> str | None:
    """The array that a job is a part of, which names a set of similar jobs.

    >>> array_of("123_4"), array_of("123")
    ('123', None)
    """
    array, underscore, _ = job_id.partition("_")
    return array if underscore else None


def utc(text: str, zone: tzinfo, fold: int = 0) -> tuple[str | None, bool]:
    """Return a local time as UTC, and True if the clock showed it twice: then the first is meant.

    ``fold``: 1 for the second time that the clock showed it. A time with a zone and seconds since 1970 stay
    as they are.

    >>> from zoneinfo import ZoneInfo
    >>> utc("2016-12-22T07:15:12", ZoneInfo("America/New_York"))
    ('2016-12-22T12:15:12Z', False)
    """
    if text in NOTHING:
        return None, False
    if not _NAIVE.fullmatch(text):
        return text, False
    try:
        local = datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)
        moment = local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return text, False
    # the two readings of the clock differ in the hour that comes twice, and in the one that is skipped
    twice = local.utcoffset() != local.replace(fold=1 - fold).utcoffset() and _is_real(local)
    return moment.isoformat() + "Z", twice


def lasts(start: str | None, end: str | None, elapsed: str | None) -> bool:
    """True if start and end, in UTC, are as far apart as the elapsed seconds, give or take two.

    >>> lasts("2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z", "1200")
    True
    """
    if start is None or end is None or elapsed is None or not elapsed.isdigit():
        return False
    apart = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return abs(apart - float(elapsed)) <= _ROUNDED_S


def _is_real(local: datetime) -> bool:
    # False in the hour that is skipped in spring
    there_and_back = local.astimezone(UTC).astimezone(local.tzinfo)
    return there_and_back.replace(tzinfo=None, fold=0) == local.replace(tzinfo=None, fold=0)
