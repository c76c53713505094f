"""Published scores of CPU models, as imported."""

from esjobs.core.tables import Table, column, columns

REFERENCE_BENCHMARKS = ("hs06", "hs23", "factor")
"""HEPiX's benchmarks, and speed factors that others have fitted, which have a scale of their own each."""

SAME_SCORE = 0.02
"""Relative difference of two scores per core up to which they are one: so much runs of a machine scatter."""

REFERENCES = Table(
    "references",
    "benchmark scores of CPU models as others have measured and published them, a row a measured machine",
    "import_id",
    (
        column("import_id", "keyword", "hash of the imported file and its form"),
        column("benchmark", "keyword", "hs06, hs23, or factor", values=REFERENCE_BENCHMARKS),
        column("cpu_model", "keyword", "canonical CPU model"),
        column("cpu_raw", "text", "CPU as the file names it"),
        column("smt", "boolean", "two threads a core were in use; null: the file does not say"),
        column("cores", "integer", "copies of the benchmark that ran at once: threads with SMT, else cores"),
        column("value", "number", "score of the machine"),
        column(
            "value_per_core", "number", "value / cores, what a job slot of this machine gets; or a factor"
        ),
        column(
            "ambiguous",
            "boolean",
            "other rows of the file for this CPU model and benchmark have another score per core (by more "
            "than 2 %), or a hypervisor made the name up: no single value stands for the model",
        ),
        column("value_per_core_low", "number", "lowest score per core of the CPU model in the file"),
        column("value_per_core_high", "number", "highest one"),
        column("differ_in", "text", "what the rows behind this range differ in: smt, cores, clock, ..."),
        column("clock_mhz", "number", "clock as the file gives it", "MHz"),
        column("board", "text", "mainboard or server"),
        column("measured_by", "keyword", "site that measured"),
        column("n_measurements", "integer", "runs behind the value"),
        column("spread", "number", "spread of the value over these runs, as the file gives it"),
        column("first_measured", "time", "when it was measured first", "UTC"),
        column("last_measured", "time", "when it was measured last", "UTC"),
        column("remark", "text", "what else the file says"),
        column("source", "text", "file it came from"),
        column("imported_at", "time", "when it was imported", "UTC"),
    ),
    entered=True,
    made_by="reference import",
    shown=columns(
        "benchmark cpu_model smt cores value_per_core ambiguous value_per_core_low value_per_core_high "
        "differ_in measured_by source import_id"
    ),
    order=columns("benchmark cpu_model smt cores value_per_core"),
)

TABLES = (REFERENCES,)
