"""Runs of two applications that TALP measured, and scores that were predicted, for the panels about them."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import esjobs
from esjobs.api.session import Session
from esjobs.publish.publication import rows_table
from esjobs.schema.pop import ORPHANS, POP, SCALING
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.store.base import Change
from tests.pop.reports import minimal, put_job, written

_S = 10**9


def add_runs(session: Session, end: datetime = datetime(2025, 6, 29, 22, tzinfo=UTC)) -> None:
    """Store what TALP would have measured until then: tables alone, no further jobs."""
    with tempfile.TemporaryDirectory() as name, esjobs.open("duckdb::memory:") as other:
        files = []
        for number, (cpus, share) in enumerate(((4, 0.95), (8, 0.85), (16, 0.6), (32, 0.4))):
            application = ("solver", "mesher")[number % 2]
            put_job(other.store, str(900 + number), application=application, end_time=end, cores=cpus)
            files.append(written(Path(name), _report(cpus, share, end), f"talp.{900 + number}.0.n.1.json"))
        files.append(written(Path(name), _report(2, 0.9, end), "talp.999.0.n.1.json"))
        other.ingest("talp", files)
        changes = []
        for table in (POP, SCALING, ORPHANS):
            rows = list(other.store.read(table, ()))
            parts = {value for batch in rows for value in batch.column(table.partition).to_pylist()}
            assert len(parts) == (2 if table is SCALING else 1)
            for part in sorted(parts, key=str):
                chosen = [
                    batch.filter([value == part for value in batch.column(table.partition).to_pylist()])
                    for batch in rows
                ]
                changes.append(session.store.replace(table, str(part), chosen))
        session.store.publish([*changes, _predicted(session, end)])


def _predicted(session: Session, end: datetime) -> Change:
    """Two scores of three jobs, as a prediction writes them."""
    rows = [
        {
            **dict.fromkeys(("user", "project", "application"), f"unmeasured-{number}"),
            "source": "slurm",
            "job_id": str(700 + number),
            "score_name": name,
            "value": 30.0 * number + 5.0,
            "spread": 4.0,
            "error_68": 6.5,
            "error_95": 14.0,
            "n_neighbours": 5,
            "nearest": 0.4,
            "approach": "combined-1",
            "search_step": "A",
            "aggregation": "softmax",
            "n_known": 800,
            "n_errors": 400,
            "end_time": end,
            "node_h": 12.5,
            "core_h": 400.0,
            "day": end.date(),
            "fingerprint": "-",
        }
        for number in range(3)
        for name in ("score_cpu", "score_mem")
    ]
    batches = rows_table(PREDICTED_SCORES, rows).to_batches()
    return session.store.replace(PREDICTED_SCORES, str(end.date()), batches)


def _report(cpus: int, share: float, end: datetime) -> dict[str, Any]:
    """A report of a run, and of a region of it that is worse than the rest."""
    regions = {}
    measured = (
        ("Global", 7200 * _S, share),
        ("exchange", 900 * _S, share / 2),
        ("assembly", 600 * _S, share),
    )
    for region, elapsed, useful_share in measured:
        useful = round(elapsed * cpus * useful_share)
        idle = elapsed * cpus - useful
        parts = {"minMpiNormdProc": idle // cpus // 2, "minMpiNormdNode": 3 * idle // cpus // 4}
        # of OpenMP's four kinds of time some, so that its efficiency is known
        threads = {"ompLoadImbalanceTime": idle // 20, "ompSchedulingTime": idle // 40, "numOmpParallels": 9}
        known = {"numCpus": cpus, "numMpiRanks": cpus, "elapsedTime": elapsed, "usefulTime": useful}
        known |= {"mpiTime": idle, "cycles": 2 * useful, "instructions": 3 * useful} | parts | threads
        regions[region] = minimal(**known)["Application"]["Global"]
    return {"timestamp": end.strftime("%Y-%m-%dT%H:%M:%S"), "Application": regions}
