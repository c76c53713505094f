"""Scaling and changes of applications, from all of their runs."""

from collections.abc import Sequence

from esjobs.core.query import In
from esjobs.pop.scaling import scaling_rows
from esjobs.publish.publication import count_rows, read_table, rows_table
from esjobs.schema.pop import POP, POP_CHANGES, SCALING
from esjobs.store.base import Change, Hide, JobStore

_READ = (
    *("source", "application", "region", "main", "time", "cpus", "elapsed_s", "gigainstructions", "ipc"),
    *("frequency_ghz", "parallel_efficiency", "mpi_parallel_efficiency", "mpi_communication_efficiency"),
    *("mpi_load_balance", "omp_parallel_efficiency"),
)


def update_applications(
    store: JobStore, applications: Sequence[str], significance: float, smallest: float
) -> None:
    """Recompute ``scaling`` and ``pop_changes`` of applications and publish them in one switch."""
    if not applications:
        return
    from esjobs.pop.changes import change_rows  # loads the fits, for which nobody waits who only ingests

    changes: list[Change] = []
    for application in applications:
        where = [In("application", (application,)), In("level", ("application",))]
        runs = read_table(store, POP, where, list(_READ)).to_pylist()
        of_program = [run for run in runs if run["main"]]
        for table, rows in (
            (SCALING, scaling_rows(runs)),
            (POP_CHANGES, list(change_rows(of_program, significance, smallest))),
        ):
            if rows:
                changes.append(store.replace(table, application, rows_table(table, rows).to_batches()))
            # an application that lost its last run keeps no row
            elif count_rows(store, table, [In("application", (application,))]):
                changes.append(Hide(table, application))
    if changes:
        store.publish(changes)
