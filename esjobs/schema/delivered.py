"""Words of delivered work; it is computed when asked and has no table."""

from esjobs.core.tables import Table

BY = ("site", "queue", "country", "user", "project", "processing_type", "cluster", "source", "month")
"""Groupings of delivered work."""

NOT_SHOWN = ("cpu_core_h", "gain_h_err", "no_declared_core_h", "no_measured_core_h")
"""Columns that files have and the terminal omits; its notes say what sums lack."""

TABLES: tuple[Table, ...] = ()
