"""Fields derived from those of a record."""

from esjobs.core.fields.types import CoreClassOf, DayOf, Field, Quotient, Resolved


def _resolved(name: str, source: str, meaning: str) -> Field:
    return Field(name, "keyword", "", meaning, groupable=True, derived=Resolved(source))


def _quotient(
    name: str, unit: str, meaning: str, over: tuple[str, ...], under: tuple[str, ...] = ()
) -> Field:
    return Field(name, "number", unit, meaning, derived=Quotient(over, under))


DERIVED_FIELDS: tuple[Field, ...] = (
    Field("day", "day", "UTC", "day of the end time", groupable=True, derived=DayOf("end_time")),
    # a task may mix jobs of one core and of several, whose events differ: they never share a bucket
    Field(
        "core_class",
        "keyword",
        "",
        "single (one core) or multi",
        groupable=True,
        derived=CoreClassOf("cores"),
    ),
    _resolved("cpu_model", "cpu_raw", "canonical name resolved from the CPU string"),
    _resolved("site", "queue", "who runs the queue: by an imported table, cluster of its jobs, or its name"),
    _resolved("country", "queue", "country of the queue, by an imported table; missing: no table names it"),
    _resolved("error_category", "error", "category of the primary error, by the table of error codes"),
    _quotient("core_s", "core s", "wall-clock time x cores", ("wall_s", "cores")),
    _quotient("gpu_s", "GPU s", "wall-clock time x GPUs", ("wall_s", "gpus")),
    _quotient("cpu_s_per_event", "s", "CPU time of a job per event", ("cpu_s",), ("events",)),
    _quotient("efficiency", "", "CPU time of a job over wall time x cores", ("cpu_s",), ("wall_s", "cores")),
    _quotient("busy_cores", "cores", "CPU time of a job over its wall-clock time", ("cpu_s",), ("wall_s",)),
    _quotient("mem_per_core_b", "B", "largest resident memory of a job per core", ("max_rss_b",), ("cores",)),
)
"""Fields computed from others, with the same result in every engine."""
