"""What hints say is so: units by what they are, hours counted once, the record named where it speaks."""

from pathlib import Path

import numpy as np
import pytest

import esjobs
from esjobs.issues.settings import DetectSettings
from tests.conftest import with_settings
from tests.issues.made_jobs import N, busy, cores, put_records, put_series, record, series


def issue(session: esjobs.Session, detector: str) -> dict[str, object]:
    (row,) = session.tables.issues(detector=detector).rows.to_pylist()
    return dict(row)


def test_unused_cores_and_nodes_are_called_what_they_are(session: esjobs.Session, tmp_path: Path) -> None:
    blip = busy(0)
    blip[7] = 1.0
    nodes = [series("cpu_load", "node", node, load) for node, load in (("n1", busy(3.5)), ("n2", busy(0)))]
    put_records(session, tmp_path, [record("cores"), record("nodes", cores=8, nodes=2)])
    put_series(session, {"cores": cores([busy(), busy(), busy(), blip]), "nodes": nodes})
    session.issues.detect()
    hints = {
        row["job_id"]: row["hint"] for row in session.tables.issues(detector="cpu-unused").rows.to_pylist()
    }
    assert hints["cores"].startswith("1 of 4 cores never worked (at most one busy sample)")
    assert hints["nodes"].startswith("1 of 2 nodes never worked")
    # a core that was busy once did not "never" work
    assert all("(at most one busy sample)" in hint for hint in hints.values() if "never worked" in hint)


def test_unused_cores_are_not_counted_in_imbalance_again(session: esjobs.Session, tmp_path: Path) -> None:
    uneven = [busy(1.0), busy(0.4), busy(0), busy(0)]
    put_records(session, tmp_path, [record("uneven")])
    put_series(session, {"uneven": cores(uneven)})
    session.issues.detect()
    unused, row = issue(session, "cpu-unused"), issue(session, "cpu-imbalance")
    # 16 core-hours: 8 of two cores that did nothing, 4 x 0.6 of the one that did less than the other
    assert unused["idle_core_h"] == pytest.approx(8.0)
    assert row["idle_core_h"] == pytest.approx(2.4, rel=1e-4)
    assert row["value"] == pytest.approx(np.std([1.0, 0.4], ddof=1), rel=1e-4)
    assert row["unit"] in ("n1/0", "n1/1")
    assert "(standard deviation of the load 0.424" in str(row["hint"])


def test_gpus_that_work_alone_are_not_uneven(session: esjobs.Session, tmp_path: Path) -> None:
    loads = {"one": [1.0, 0.0], "two": [1.0, 0.2]}
    put_records(session, tmp_path, [record(name, gpus=2) for name in loads])
    put_series(
        session,
        {
            name: [series("gpu_load", "accelerator", f"g{gpu}", busy(load)) for gpu, load in enumerate(given)]
            for name, given in loads.items()
        },
    )
    session.issues.detect()
    rows = session.tables.issues().rows.to_pylist()
    found = {(row["job_id"], row["detector"]) for row in rows if row["detector"].startswith("gpu-un")}
    assert found == {("one", "gpu-unused")}
    told = {row["job_id"]: row["value"] for row in rows if row["detector"] == "gpu-imbalance"}
    assert set(told) == {"two"}


def test_the_efficiency_of_a_thin_series_is_that_of_the_record_and_says_so(
    session: esjobs.Session, tmp_path: Path
) -> None:
    thin = np.full(N, np.nan)
    thin[::60] = 0.9
    put_records(session, tmp_path, [record("thin", cpu_s=14400.0 * 4 * 0.3)])
    put_series(session, {"thin": cores([thin] * 4)})
    session.issues.detect()
    row = issue(session, "low-efficiency")
    assert row["value"] == pytest.approx(0.3)
    assert str(row["hint"]).endswith("(From the accounting record only.)")
    assert not {each["detector"] for each in session.tables.issues().rows.to_pylist()} - {"low-efficiency"}


def test_cores_that_follow_from_described_nodes_count_for_efficiency(
    session: esjobs.Session, tmp_path: Path
) -> None:
    # two nodes of the four cores that the cluster of these tests is described with
    put_records(session, tmp_path, [record("nodes", cores=None, nodes=2, cpu_s=14400.0 * 2)])
    session.issues.detect()
    row = issue(session, "low-efficiency")
    assert (row["value"], row["idle_core_h"]) == (0.25, 24.0)
    assert "25 % of the CPU time of its 8 cores" in str(row["hint"])


def test_a_rule_of_a_detector_may_tell_another_number(session: esjobs.Session, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('[rule.cpu-idle]\nvalue = "unit_share"\nlimits.idle = 0.9\n')
    session = with_settings(
        session,
        session.settings.model_copy(
            update={"issues": session.settings.section(DetectSettings).model_copy(update={"rules": (path,)})}
        ),
    )
    put_records(session, tmp_path, [record("one core idle")])
    put_series(session, {"one core idle": cores([busy(), busy(), busy(), busy(0)])})
    session.issues.detect()
    assert issue(session, "cpu-idle")["value"] == 1.0
