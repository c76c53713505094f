"""Pages over HTTP: they show what other tables hold and have none."""

from esjobs.core.tables import Table

TABLES: tuple[Table, ...] = ()
