"""The field catalogue: every field of a job, its type, unit and meaning. The one place for these facts.

Stores derive their layout from it, sources map into it, queries name fields from it, the documentation
lists it. Base units only: seconds (``_s``), bytes (``_b``), fractions 0–1. Missing is null, never 0.
"""

from dataclasses import dataclass
from typing import Literal

from esjobs.core.errors import UsageError

FieldType = Literal["keyword", "integer", "number", "boolean", "time", "day", "text", "map", "list"]
"""``keyword`` an exact string; ``integer`` 64-bit; ``number`` double; ``time`` UTC to the microsecond;
``day`` a UTC calendar day; ``text`` a string for people, not for filters; ``map`` names to numbers (counters
by event); ``list`` numbers in their order (a packed series), null where one is missing. Maps and lists are
kept and given back; no query looks inside them."""


@dataclass(frozen=True)
class Quotient:
    """A field computed per job: the product of ``over`` divided by the product of ``under``.

    Null when a factor is missing or a divisor is 0.
    """

    over: tuple[str, ...]
    under: tuple[str, ...] = ()


@dataclass(frozen=True)
class DayOf:
    """The UTC day of a time field."""

    field: str


@dataclass(frozen=True)
class CoreClassOf:
    """``single`` for one core, ``multi`` for more; null when the number of cores is missing or below 1."""

    field: str


@dataclass(frozen=True)
class Resolved:
    """Resolved above the store from a stored field, by which a store groups and filters instead."""

    field: str


Derivation = Quotient | DayOf | CoreClassOf | Resolved


@dataclass(frozen=True)
class Field:
    """One field of a job.

    ``required``: a row without it is rejected. ``bounded``: a negative value is rejected.
    ``groupable``: queries may group by it. ``declared``: contains the declared corepower, so it may
    supply the declared value and must never enter a fit. ``derived``: computed, not stored. ``values``: all
    that a keyword can be; empty where anything may stand.
    """

    name: str
    type: FieldType
    unit: str
    meaning: str
    required: bool = False
    bounded: bool = False
    groupable: bool = False
    declared: bool = False
    derived: Derivation | None = None
    values: tuple[str, ...] = ()


def _keyword(name: str, meaning: str, *, required: bool = False) -> Field:
    return Field(name, "keyword", "", meaning, required=required, groupable=True)


def _time(name: str, meaning: str, *, required: bool = False) -> Field:
    return Field(name, "time", "UTC", meaning, required=required)


def _number(name: str, unit: str, meaning: str) -> Field:
    return Field(name, "number", unit, meaning, bounded=True)


def _integer(name: str, unit: str, meaning: str, *, groupable: bool = False) -> Field:
    return Field(name, "integer", unit, meaning, bounded=True, groupable=groupable)


JOB_FIELDS: tuple[Field, ...] = (
    _keyword("source", "stream the record came from: panda, a cluster; with job_id the identity of a job"),
    Field("job_id", "keyword", "", "identifier of the job inside its source", required=True),
    _keyword("task_id", "set of similar jobs (JEDI task); CPU time per event depends on the CPU only"),
    _keyword(
        "site",
        "queue, as jobs name it; may be called queue where jobs are asked; its WLCG site is rc_site",
        required=True,
    ),
    _keyword("cpu_raw", "CPU string as the job reported it"),
    _keyword("processing_type", "kind of work: evgen, simul, pile, reprocessing, ..."),
    _keyword("transformation", "program the job ran"),
    _keyword("state", "how the job ended: finished, failed, cancelled, ...; missing: unknown"),
    _keyword("user", "who the job ran for"),
    _keyword("project", "group, account or project the job is charged to"),
    _time("submit_time", "when the job was created or submitted"),
    _time("start_time", "when the job began to run"),
    _time("end_time", "when the job ended; decides the window and the day it belongs to", required=True),
    _integer("cores", "cores", "cores the job was given", groupable=True),
    _integer("events", "events", "events the job processed"),
    _number("cpu_s", "s", "CPU time summed over cores"),
    _number("wall_s", "s", "wall-clock time, not multiplied by cores"),
    Field(
        "hs06_s",
        "number",
        "HS06 s",
        "normalised work; contains the declared corepower",
        bounded=True,
        declared=True,
    ),
    _number("queue_s", "s", "time between submission and start"),
    _number("stagein_s", "s", "time spent fetching input"),
    _number("exe_s", "s", "time spent in the payload"),
    _number("stageout_s", "s", "time spent storing output"),
    _number("max_rss_b", "B", "largest resident memory"),
    _number("avg_rss_b", "B", "mean resident memory"),
    _number("max_pss_b", "B", "largest proportional memory"),
    _number("avg_pss_b", "B", "mean proportional memory"),
    _number("max_vmem_b", "B", "largest virtual memory"),
    _number("read_b", "B", "bytes read from storage"),
    _number("written_b", "B", "bytes written to storage"),
    _number("input_b", "B", "size of the input files"),
    _number("output_b", "B", "size of the output files"),
    _integer("failed_attempts", "attempts", "attempts that failed before this one"),
)
"""Fields that a job record may carry, in the order in which they are stored and exported."""

DERIVED_FIELDS: tuple[Field, ...] = (
    Field("day", "day", "UTC", "day of the end time", groupable=True, derived=DayOf("end_time")),
    Field(
        "core_class",
        "keyword",
        "",
        "single (one core) or multi (several)",
        groupable=True,
        derived=CoreClassOf("cores"),
    ),
    Field(
        "cpu_model",
        "keyword",
        "",
        "canonical name resolved from the CPU string",
        groupable=True,
        derived=Resolved("cpu_raw"),
    ),
    Field(
        "rc_site",
        "keyword",
        "",
        "WLCG site behind the queue: as an imported table names it, else guessed from the queue's name",
        groupable=True,
        derived=Resolved("site"),
    ),
    Field("core_s", "number", "core s", "wall-clock time x cores", derived=Quotient(("wall_s", "cores"))),
    Field(
        "cpu_s_per_event",
        "number",
        "s",
        "CPU time of a job per event",
        derived=Quotient(("cpu_s",), ("events",)),
    ),
    Field(
        "efficiency",
        "number",
        "",
        "CPU time over wall-clock time x cores of a job",
        derived=Quotient(("cpu_s",), ("wall_s", "cores")),
    ),
)
"""Fields computed from others, alike in every engine."""

_BY_NAME = {field.name: field for field in (*JOB_FIELDS, *DERIVED_FIELDS)}
ALIASES = {"queue": "site"}
"""What people may call a field where they ask for jobs (``--by``, ``--where``); answers use its own name."""
REQUIRED = tuple(field.name for field in JOB_FIELDS if field.required)


def field(name: str) -> Field:
    """Look a field up by name, or raise :class:`UsageError` that lists the nearest names.

    >>> field("cpu_s").unit
    's'
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UsageError(f"no field '{name}' in the catalogue{_nearest(name)}; see: esjobs fields") from None


def asked_field(name: str) -> Field:
    """Look up a field as people name it, alias or not; raises like :func:`field`.

    >>> asked_field("queue").name
    'site'
    """
    return field(ALIASES.get(name, name))


def _nearest(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, _BY_NAME, n=3)
    return f" (did you mean {', '.join(close)}?)" if close else ""
