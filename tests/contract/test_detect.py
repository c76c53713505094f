"""What is measured and found in jobs, and what a replay tells of it, is the same on every engine."""

from pathlib import Path
from typing import Any

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.issues.made_jobs import made_series, put_records, put_series, record

TABLES = ("issues", "measures", "footprints", "issue_days")
OTHERS = '[rule.cpu-idle]\nlimits.idle = "60 %"\n[rule.low-efficiency]\nlimits.used = "20 %"\n'


def made(session: Session, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Everything that the step leaves, done twice, with a replay and a job."""
    given = made_series()
    put_records(session, folder, [*map(record, given), record("lazy", cpu_s=14400.0, user="bob")])
    put_series(session, given)
    session.issues.detect()
    session.issues.detect(rebuild=True)
    rules = folder / "others.toml"
    rules.write_text(OTHERS)
    rows = {name: _sorted(session.tables.read(name).rows.to_pylist()) for name in TABLES}
    for row in rows["issue_days"]:
        # how an engine marks the jobs of a day is its own
        del row["fingerprint"]
    replayed = session.issues.replay(rules).to_pandas().to_dict(orient="records")
    rows["replay"] = [{str(name): value for name, value in row.items()} for row in replayed]
    story = session.job("stops")
    rows["job"] = [
        {
            "issues": [row["detector"] for row in story.issues],
            "plots": [[plot.metric, plot.n_units, plot.mean.tolist()] for plot in story.plots],
            "record": sorted(story.record),
        }
    ]
    rows["work list"] = session.issues.work_list(least="info").rows.to_pylist()
    of_rules = session.issues.work_list(["user", "detector"], least="info")
    rows["work list of rules"] = of_rules.rows.to_pylist()
    rows["of bob"] = session.tables.issues(user="bob", min_severity="minor").rows.to_pylist()
    return rows


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


def test_every_engine_leaves_the_same_rows(store: JobStore, tmp_path: Path) -> None:
    found = made(Session(store, Settings(), clock=lambda: NOW), tmp_path)
    assert {row["detector"] for row in found["issues"]} >= {"io-blocking", "memory-leak", "low-efficiency"}
    assert found["replay"]
    assert found["of bob"]
    with memory_session() as other:
        assert made(other, tmp_path) == found
