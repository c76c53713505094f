"""Declared values of sites and benchmarks, as entered."""

from esjobs.core.columns import LEVEL
from esjobs.core.tables import Table, column, columns

RECORDS = "records"
"""The source of a value that nobody imported: it follows from the records."""

QUEUES = "queues"
"""The source of the value of a site: the mean of what its queues declare."""

COREPOWER = Table(
    "corepower",
    "declared corepower as imported, by date",
    "import_id",
    (
        column("import_id", "keyword", "hash of the imported file and options"),
        LEVEL,
        column("name", "keyword", "queue, site or CPU model"),
        column("corepower", "number", "declared benchmark score per core; null: none declared"),
        column("benchmark", "keyword", "HS06 or HS23"),
        column("valid_from", "time", "start of validity", "UTC"),
        column("site", "keyword", "site of the queue"),
        # both tell an inherited or default value from a declared one; neither replaces it
        column("parent_corepower", "number", "value of the parent or site"),
        column("served_corepower", "number", "value served to jobs by the information system"),
        column("source", "text", "source file or table"),
        column("imported_at", "time", "time of the import", "UTC"),
        column("country", "keyword", "country of the queue; null: unknown"),
    ),
    entered=True,
    made_by="corepower import",
    shown=columns("level name corepower benchmark origin valid_from site parent_corepower source import_id"),
)

TABLES = (COREPOWER,)
