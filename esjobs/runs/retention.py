"""Takes the results of old runs out of sight and sweeps them away; never what people entered."""

import time

from esjobs.core.errors import UsageError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.runs.kinds import Kind
from esjobs.runs.latest import latest_first
from esjobs.runs.publication import read_table
from esjobs.runs.stored import stored_runs
from esjobs.runs.tables import ACCOUNT, RUNS
from esjobs.store.base import Change, JobStore, Retired


def prune(store: JobStore, kind: Kind, keep: int, *, dry_run: bool = False) -> RunReport:
    """Keep ``keep`` runs of a kind, the latest and those made last; remove the others in one switch.

    The latest (see :func:`esjobs.runs.finding.latest_first`) always stays, whatever was made after it: it is
    what ``show`` and ``report`` take.

    Jobs, buckets, their books, loads, rejects and declared values stay. ``dry_run`` only counts. Raises
    :class:`UsageError` when not even one run would be kept.
    """
    if keep < 1:
        raise UsageError(f"prune keeps at least one run, not {keep}")
    began = time.perf_counter()
    runs = stored_runs(store, kind)
    if runs:
        latest = latest_first(runs)[0]
        runs = [latest, *(run for run in runs if run is not latest)]
    old = {run.run for run in runs[keep:]}
    kept = {run.run for run in runs[:keep]}
    changes: list[Change] = [Retired(table, run) for run in sorted(old) for table in kind.tables]
    entries = read_table(store, RUNS, [In("run", tuple(old))]).to_pylist() if old else []
    changes += [Retired(table, row["run_step"]) for row in entries for table in ACCOUNT]
    removed = 0
    if not dry_run:
        store.publish(changes)
        removed = store.sweep()
    return RunReport(
        "prune",
        "-",
        len(runs),
        len(kept),
        time.perf_counter() - began,
        rows_are="runs",
        rows_become="kept",
        dropped={"would be removed" if dry_run else "old": len(old)} if old else {},
        counts={"rows removed": removed},
    )
