"""What is known of an application over all of its runs: scaling and changes, written one at a time."""

from collections.abc import Sequence

from esjobs.core.query import Count, In, Query
from esjobs.core.tables import Table
from esjobs.pop.scaling import scaling_rows
from esjobs.publish.publication import read_table, rows_table
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
    """Make ``scaling`` and ``pop_changes`` of applications again, from all of their runs, in one switch."""
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
            elif _is_there(store, table, application):
                changes.append(Hide(table, application))
    if changes:
        store.publish(changes)


def _is_there(store: JobStore, table: Table, application: str) -> bool:
    query = Query((), (Count("n"),), where=(In("application", (application,)),), over=table)
    return bool(store.aggregate(query).table.column("n")[0].as_py())
