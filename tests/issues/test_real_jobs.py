"""What is said of three real jobs and why; their measurements are the golden values."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import esjobs
from esjobs.issues.settings import DetectSettings
from tests.conftest import with_settings
from tests.issues.made_jobs import put_records

TRIMMED = '[rule.memory-leak]\nvariant = "trim-start"\n'


@pytest.fixture
def store() -> Iterator[esjobs.Session]:
    with esjobs.open("duckdb::memory:") as session:
        yield session


def with_rules(session: esjobs.Session, folder: Path, text: str) -> esjobs.Session:
    path = folder / "site.toml"
    path.write_text(text)
    detect = session.settings.section(DetectSettings).model_copy(update={"rules": (path,)})
    return with_settings(session, session.settings.model_copy(update={"issues": detect}))


def found(session: esjobs.Session) -> set[str]:
    return set(session.tables.issues().rows.column("detector").to_pylist())


def measured(session: esjobs.Session) -> dict[str, dict[str, object]]:
    rows = session.tables.measures().rows.to_pylist()
    return {
        row["detector"]: {**row, "numbers": dict(row["numbers"])} for row in rows if row["variant"] == "pika"
    }


def test_the_job_of_emmy_is_well_behaved(store: esjobs.Session, shared_data: Path) -> None:
    """32 nodes worked evenly for a day: nothing is found, though a tenth of all samples is missing."""
    job = shared_data / "job-archive" / "emmy" / "1403244"
    store.ingest("clustercockpit", [job / "meta.json", job / "data.json.gz"])
    store.issues.detect()
    assert found(store) == set()
    values = measured(store)
    assert all(row["eligible"] for row in values.values())
    # its record lacks the cores: a load of nodes cannot be held against limits that hold for a core
    assert values["cpu-imbalance"]["reason"] == "cores of a node unknown"
    assert values["cpu-idle"]["value"] == pytest.approx(2.4e-5, rel=0.01)
    assert values["collapse"]["value"] == pytest.approx(0.96, abs=0.005)
    # memory of the node that grows most goes up and down by far more than its slope
    assert values["memory-leak"]["value"] == pytest.approx(0.0194, abs=0.0001)
    assert values["memory-leak"]["numbers"]["ratio"] > 30  # type: ignore[index]
    load = next(row for row in store.tables.footprints().rows.to_pylist() if row["metric"] == "cpu_load")
    assert (load["n_units"], round(load["gap_frac"], 3)) == (32, 0.092)
    assert load["job_mean"] == pytest.approx(32 * load["node_mean"], rel=1e-3)


def test_the_job_of_supercloud_leaks_once_its_start_is_left_out(
    store: esjobs.Session, shared_data: Path, tmp_path: Path
) -> None:
    """35 minutes in parallel, then one core for 30 hours while memory climbs from 14 to 63 GB."""
    store.ingest(
        "slurm-profile",
        [shared_data / "supercloud-timeseries" / "timeseries.csv.gz"],
        fill={"job_id": "mit", "source": "supercloud"},
    )
    record = {
        "source": "supercloud",
        "job_id": "mit",
        "queue": "batch",
        "start_time": "2021-01-25T23:42:59Z",
        "end_time": "2021-01-27T06:44:59Z",
        "cores": 32,
        "nodes": 1,
        "state": "finished",
    }
    put_records(store, tmp_path, [record])
    store.issues.detect()
    # the start hides the line: by the published rule it is no leak
    assert found(store) == {"low-load", "collapse"}
    strict = measured(store)["memory-leak"]
    assert strict["numbers"]["ratio"] == pytest.approx(1.585, abs=0.01)  # type: ignore[index]
    (collapse,) = store.tables.issues(detector="collapse").rows.to_pylist()
    # what is left is one core of 32
    assert datetime(2021, 1, 26, tzinfo=UTC) < collapse["begin"] < datetime(2021, 1, 26, 1, tzinfo=UTC)
    store = with_rules(store, tmp_path, TRIMMED)
    store.issues.detect()
    assert found(store) == {"low-load", "collapse", "memory-leak"}
    (leak,) = store.tables.issues(detector="memory-leak").rows.to_pylist()
    assert leak["value"] == pytest.approx(0.769, abs=0.001)
    assert "by 1.74 GiB per hour, up to 58.3 GiB" in leak["hint"]


@pytest.mark.parametrize(
    ("name", "slope"), [("memory_monitor_output-prmon.txt", 0.166), ("memory_monitor_output.txt", 0.576)]
)
def test_grid_jobs_of_prmon_are_measured_and_not_judged(
    store: esjobs.Session, shared_data: Path, name: str, slope: float
) -> None:
    """Nothing tells how many cores they had, so no finding counts; warm-up and end hide any line."""
    store.ingest("prmon", [shared_data / "prmon" / name], fill={"job_id": "1"})
    store.issues.detect()
    assert found(store) == set()
    leak = measured(store)["memory-leak"]
    assert leak["value"] == pytest.approx(slope, abs=0.001)
    assert leak["numbers"]["ratio"] > 1  # type: ignore[index]
    assert (leak["eligible"], leak["reason"]) == (False, "one core: unknown")
