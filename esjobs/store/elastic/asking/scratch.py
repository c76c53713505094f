"""Embedded engine for what a cluster cannot answer; imported lazily, for it takes 25 MB."""

from typing import TYPE_CHECKING

from esjobs.core.tables import Table

if TYPE_CHECKING:
    from esjobs.store.duck.scratch import DuckScratch


def scratch_of_jobs() -> "DuckScratch":
    """Return an engine for jobs; close it after use."""
    from esjobs.store.duck.scratch import DuckScratch

    return DuckScratch.of_jobs()


def scratch_of_rows(table: Table) -> "DuckScratch":
    """Return an engine for rows of a result table; close it after use."""
    from esjobs.store.duck.scratch import DuckScratch

    return DuckScratch.of_results(table)
