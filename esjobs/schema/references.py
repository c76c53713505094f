"""Published scores of CPU models, as imported."""

from esjobs.core.tables import Table, column, columns

REFERENCE_BENCHMARKS = ("hs06", "hs23", "factor")
"""HEPiX benchmarks, and speed factors that others published, each on its own scale."""

SAME_SCORE = 0.02
"""Relative difference up to which two scores per core are equal: the scatter of runs on one machine."""

POWER_ERROR = 0.10
"""Scatter in ln between the power per core of machines of one CPU model, as sites measure it."""

REFERENCES = Table(
    "references",
    "published benchmark scores of CPU models, one row per measured machine",
    "import_id",
    (
        column("import_id", "keyword", "hash of the imported file and its form"),
        column("benchmark", "keyword", "hs06, hs23, or factor", values=REFERENCE_BENCHMARKS),
        column("cpu_model", "keyword", "canonical CPU model"),
        column("cpu_raw", "text", "CPU as in the file"),
        column("smt", "boolean", "true if two threads per core were in use; null: unknown"),
        # with SMT a job slot is a thread: the score per core is that of a slot
        column("cores", "integer", "simultaneous copies of the benchmark: threads with SMT, else cores"),
        column("value", "number", "score of the machine"),
        column("value_per_core", "number", "value / cores, the score of a job slot; or a factor"),
        column("ambiguous", "boolean", "true if scores of the model differ by over 2 %; or a virtual name"),
        column("value_per_core_low", "number", "lowest score per core of the CPU model in the file"),
        column("value_per_core_high", "number", "highest such score"),
        column("differ_in", "text", "causes of this range: smt, cores, clock, ..."),
        column("clock_mhz", "number", "clock as in the file", "MHz"),
        column("board", "text", "mainboard or server"),
        column("measured_by", "keyword", "site of the measurement"),
        column("n_measurements", "integer", "runs behind the value"),
        column("spread", "number", "standard deviation of the value over these runs, as in the file"),
        column("first_measured", "time", "first measurement", "UTC"),
        column("last_measured", "time", "last measurement", "UTC"),
        column("remark", "text", "other information in the file"),
        column("source", "text", "source file"),
        column("imported_at", "time", "time of the import", "UTC"),
        column("power_w", "number", "power of the machine at full load", "W"),
        column("watts_per_core", "number", "power_w / cores", "W"),
    ),
    entered=True,
    made_by="reference import",
    shown=columns(
        "benchmark cpu_model smt cores value_per_core ambiguous value_per_core_low value_per_core_high "
        "differ_in measured_by source import_id"
    ),
    order=columns("benchmark cpu_model smt cores value_per_core"),
)

PROBES = Table(
    "probes",
    "benchmarks that ran in job slots of queues",
    "import_id",
    (
        column("queue", "keyword", "queue of the job"),
        column("node", "keyword", "node of the job; null: unknown"),
        column("measured_at", "time", "time of the measurement", "UTC"),
        column("benchmark", "keyword", "HS06 or HS23", values=("HS06", "HS23")),
        column("value_per_core", "number", "score per core of the slot", "benchmark per core"),
        column("cpu_model", "keyword", "canonical CPU model; null: unknown"),
        column("import_id", "keyword", "hash of the imported file and options"),
        column("source", "text", "source file"),
        column("imported_at", "time", "time of the import", "UTC"),
    ),
    time="measured_at",
    entered=True,
    made_by="ingest probes",
    key=columns("queue node measured_at benchmark"),
)

INTERVALS = tuple(f"{name}_{end}" for name in ("probes", "production", "ratio") for end in ("low", "high"))
"""Columns of the comparison of probes with production that the terminal omits: sentences have them."""

TABLES = (REFERENCES, PROBES)
