"""Fields derived from those of a record."""

from esjobs.core.fields.types import CoreClassOf, DayOf, Field, Quotient, Resolved

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
        "site",
        "keyword",
        "",
        "who runs the queue: as an imported table names it, else the cluster of its jobs, else by its name",
        groupable=True,
        derived=Resolved("queue"),
    ),
    Field(
        "country",
        "keyword",
        "",
        "country of the queue, as an imported table names it; missing: no table does",
        groupable=True,
        derived=Resolved("queue"),
    ),
    Field(
        "error_category",
        "keyword",
        "",
        "category of the primary error, by the table of error codes",
        groupable=True,
        derived=Resolved("error"),
    ),
    Field("core_s", "number", "core s", "wall-clock time x cores", derived=Quotient(("wall_s", "cores"))),
    Field("gpu_s", "number", "GPU s", "wall-clock time x GPUs", derived=Quotient(("wall_s", "gpus"))),
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
    Field(
        "busy_cores",
        "number",
        "cores",
        "CPU time of a job over its wall-clock time",
        derived=Quotient(("cpu_s",), ("wall_s",)),
    ),
    Field(
        "mem_per_core_b",
        "number",
        "B",
        "largest resident memory of a job per core",
        derived=Quotient(("max_rss_b",), ("cores",)),
    ),
)
"""Fields computed from others, alike in every engine."""
