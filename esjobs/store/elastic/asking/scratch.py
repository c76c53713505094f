"""The embedded engine for what a cluster cannot answer; loaded when it is needed, for it takes 25 MB."""

from typing import TYPE_CHECKING

from esjobs.core.tables import Table

if TYPE_CHECKING:
    from esjobs.store.duck.scratch import DuckScratch


def scratch_of_jobs() -> "DuckScratch":
    """For jobs that were read; close it, or use it as a context manager."""
    from esjobs.store.duck.scratch import DuckScratch

    return DuckScratch.of_jobs()


def scratch_of_rows(table: Table) -> "DuckScratch":
    """For rows of a result table; the same."""
    from esjobs.store.duck.scratch import DuckScratch

    return DuckScratch.of_results(table)
