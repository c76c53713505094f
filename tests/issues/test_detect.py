"""The step: what is found in jobs made for it, that it is idempotent, and what it does with bad input."""

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import esjobs
from esjobs.core.errors import InputError, UsageError
from esjobs.issues.settings import DetectSettings
from tests.conftest import with_settings
from tests.issues.made_jobs import START, N, busy, cores, made_series, put_records, put_series, record, series
from tests.messages import raised


def found(session: esjobs.Session) -> dict[str, set[str]]:
    """The rules that fired, by job."""
    rows = session.tables.issues().rows.to_pylist()
    return {
        job: {row["detector"] for row in rows if row["job_id"] == job} for job in {r["job_id"] for r in rows}
    }


def test_what_is_wrong_is_found_and_nothing_else(detected: esjobs.Session) -> None:
    assert found(detected) == {
        "idle": {"cpu-idle", "cpu-unused", "low-load"},
        "leak": {"memory-leak"},
        "blocking": {"io-blocking"},
        "bandwidth": {"memory-bound"},
        "metadata": {"metadata-congestion"},
        "stops": {"collapse", "low-load", "cpu-idle"},
        "lazy": {"low-efficiency"},
        "serial": {"low-efficiency", "one-core-used"},
        "near": {"memory-near-request"},
    }
    # those of severity info in jobs without series are numbers of the day
    (day,) = detected.tables.issue_days().rows.to_pylist()
    assert json.loads(day["infos"]) == {"short-job": 1}


def test_a_finding_carries_its_evidence(detected: esjobs.Session) -> None:
    rows = detected.tables.issues(detector="cpu-idle").rows.to_pylist()
    row = next(row for row in rows if row["job_id"] == "idle")
    assert (row["value"], row["threshold"], row["unit"], row["metric"]) == (0.5, 0.25, "n1/2", "cpu_load")
    assert (row["begin"], row["until"]) == (START, START + timedelta(hours=4))
    assert (row["share_frac"], row["idle_core_h"], row["node_h"]) == (0.5, 8.0, 4.0)
    assert (row["user"], row["project"], row["area"], row["kind"]) == ("alice", "phys", "cpu", "detector")
    assert "50 % of their time: 8 h of core time" in row["hint"]
    (stops,) = detected.tables.issues(detector="collapse").rows.to_pylist()
    assert (stops["begin"], stops["until"]) == (START + timedelta(hours=2), START + timedelta(hours=4))
    (leak,) = detected.tables.issues(detector="memory-leak").rows.to_pylist()
    # the job ended well: a risk, that lost nothing
    assert (leak["severity"], leak["lost_node_h"]) == ("minor", 0.0)
    assert row["lost_node_h"] == 2.0
    of_idle = [each for each in detected.tables.issues() if each["job_id"] == "idle"]
    assert len(of_idle) == 3
    # a job counts once, with its largest loss
    assert sorted(each["n_jobs"] for each in of_idle) == [0, 0, 1]
    assert [each["job_lost_node_h"] for each in of_idle if each["n_jobs"]] == pytest.approx([2.1])
    assert [each["job_idle_core_h"] for each in of_idle if each["n_jobs"]] == pytest.approx([8.4])
    assert "grew steadily by 1.87 GiB per hour" in leak["hint"]


def test_all_null_series_are_a_reason_and_no_finding(detected: esjobs.Session) -> None:
    rows = [row for row in detected.tables.measures().rows.to_pylist() if row["job_id"] == "gaps"]
    assert {row["reason"] for row in rows} == {"no samples"}
    assert all(row["value"] is None for row in rows)
    assert "gaps" not in found(detected)


def test_it_is_idempotent_and_a_day_that_changed_is_made_again(
    detected: esjobs.Session, tmp_path: Path
) -> None:
    tables = ("issues", "measures", "footprints", "issue_days")
    before = {name: detected.tables.read(name).rows.to_pylist() for name in tables}
    assert detected.issues.detect().counts == {"days up to date": 1}
    assert detected.issues.detect(rebuild=True).counts["days computed"] == 1
    assert {name: detected.tables.read(name).rows.to_pylist() for name in tables} == before
    put_series(detected, {"late": cores([busy(0)] * 4)}, load="later")
    assert detected.issues.detect().counts["days computed"] == 1
    # series without a record: found, with what the series tell
    (row,) = [row for row in detected.tables.measures().rows.to_pylist() if row["job_id"] == "late"][:1]
    assert row["eligible"] is True
    assert detected.tables.issue_days().rows.to_pylist()[0]["n_without_record"] == 1
    assert "late" in found(detected)


def test_days_whose_jobs_are_gone_lose_their_rows(detected: esjobs.Session) -> None:
    for row in detected.tables.loads().rows.to_pylist():
        detected.undo(row["load_id"])
    from esjobs.schema.series import SERIES
    from esjobs.store.base import Hide

    detected.store.publish([Hide(SERIES, "load")])
    detected.issues.detect("2026-03-01/2026-03-02")
    for name in ("issues", "measures", "footprints", "issue_days"):
        assert detected.tables.read(name).rows.num_rows == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"wall_s": 1800}, "shorter than an hour"),
        ({"cores": 1}, "one core"),
        ({"state": "failed"}, "did not end by itself"),
    ],
)
def test_jobs_that_are_not_eligible_are_measured_and_not_flagged(
    session: esjobs.Session, tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    put_records(session, tmp_path, [record("idle", **fields)])
    put_series(session, {"idle": made_series()["idle"]})
    report = session.issues.detect()
    rows = session.tables.measures().rows.to_pylist()
    assert {row["reason"] for row in rows} == {reason}
    assert next(row["value"] for row in rows if row["detector"] == "cpu-idle") == 0.5
    assert not {"cpu-idle", "cpu-unused", "cpu-imbalance"} & found(session).get("idle", set())
    assert report.counts[f"not eligible: {reason}"] == 1


def test_a_series_over_midnight_is_judged_once(session: esjobs.Session, tmp_path: Path) -> None:
    """Its last sample lies on the day before its record ends."""
    start = START + timedelta(hours=19, minutes=59)
    end = START + timedelta(hours=23, minutes=59)
    late = record("idle", start=start, end_time=(START + timedelta(hours=24, minutes=1)).isoformat())
    put_records(session, tmp_path, [late, record("other", start=START + timedelta(days=1), wall_s=60)])
    put_series(session, {"idle": cores([busy(0)] * 4, start=start)}, end=end)
    session.issues.detect()
    rows = [row for row in session.tables.issues().rows.to_pylist() if row["job_id"] == "idle"]
    assert rows
    assert {str(row["day"]) for row in rows} == {"2026-03-01"}
    assert {row["user"] for row in rows} == {"alice"}


def test_odd_series_neither_stop_nor_fire(session: esjobs.Session) -> None:
    rng = np.random.default_rng(3)
    holes = np.where(rng.random(N) < 0.5, np.nan, 0.95)
    given = {
        "two samples": [series("cpu_load", "core", f"n1/{core}", [0.9, 0.9]) for core in range(2)],
        "one sample": [series("mem_used_b", "job", "", [1e9])],
        "holes": cores([holes] * 4),
        "negative": cores([busy(-1)] * 4),
        "huge": [series("metadata_ops_s", "node", "n1", busy(1e35))],
        "unknown metric": [series("x_pages", "job", "", np.arange(N))],
        "merged threads": cores([busy(2)] * 4),
    }
    put_series(session, given)
    session.issues.detect()
    assert {job for job, rules in found(session).items() if rules - {"high-load"}} == set()
    metrics = {row["metric"] for row in session.tables.footprints().rows.to_pylist()}
    assert "x_pages" in metrics


def test_ten_thousand_cores(session: esjobs.Session, tmp_path: Path) -> None:
    many = [
        series("cpu_load", "core", f"n{core // 100}/{core % 100}", [0.9] * 4 if core else [0.0] * 4)
        for core in range(10_000)
    ]
    put_records(session, tmp_path, [record("wide", cores=10_000, nodes=100)])
    put_series(session, {"wide": many})
    session.issues.detect()
    (row,) = session.tables.issues(detector="cpu-unused").rows.to_pylist()
    assert (row["unit"], row["value"]) == ("n0/0", pytest.approx(1e-4))


def test_rows_are_chosen_by_who_and_how_bad(detected: esjobs.Session) -> None:
    rows = detected.tables.issues(user="bob", min_severity="minor").rows.to_pylist()
    assert {row["job_id"] for row in rows} == {"lazy", "serial"}
    assert detected.tables.issues(project="phys", detector="memory-leak").rows.num_rows == 1
    with raised(UsageError):
        detected.tables.issues(user="nobody").to_pandas()
    with raised(UsageError):
        detected.tables.issues(min_severity="bad").to_pandas()
    with raised(UsageError):
        detected.tables.buckets(min_severity="info").to_pandas()


def test_rules_that_are_wrong_change_nothing(detected: esjobs.Session, tmp_path: Path) -> None:
    before = detected.tables.issues().rows.to_pylist()
    wrong = tmp_path / "site.toml"
    wrong.write_text('[rule.cpu-idle]\nlimits = { idle = "5 %" }\n\n[rule.mine]\nwhen = "corse > 1"\n')
    detected = with_settings(
        detected,
        detected.settings.model_copy(
            update={
                "issues": detected.settings.section(DetectSettings).model_copy(update={"rules": (wrong,)})
            }
        ),
    )
    with raised(InputError):
        detected.issues.detect()
    assert detected.tables.issues().rows.to_pylist() == before


def test_missing_data_is_no_ground_for_a_tag(session: esjobs.Session, tmp_path: Path) -> None:
    few = np.full(N, np.nan)
    few[::60] = 0.0
    loads = {"gaps": few, "two samples": np.zeros(2), "a third": np.zeros(160), "enough": np.zeros(300)}
    given = {name: cores([load] * 4) for name, load in loads.items()}
    given |= {f"GPU, {name}": [series("gpu_load", "accelerator", "g", load)] for name, load in loads.items()}
    records = [record(name, gpus=1 if name.startswith("GPU") else None) for name in given]
    short = record("short", wall_s=60, end_time=(START + timedelta(minutes=1)).isoformat())
    put_records(session, tmp_path, [*records, short])
    put_series(session, {**given, "short": cores([np.zeros(2)] * 4)})
    session.issues.detect()
    tags = {(job, tag) for job, tags in found(session).items() for tag in tags & {"low-load", "low-gpu-load"}}
    assert tags == {("enough", "low-load"), ("GPU, enough", "low-gpu-load")}
    shown = {row["job_id"] for row in session.tables.footprints().rows.to_pylist() if row["mean"] == 0.0}
    assert shown == {*given, "short"}


def test_idle_cores_beside_busy_gpus_are_no_finding(session: esjobs.Session, tmp_path: Path) -> None:
    few = [busy(), busy(0), busy(0), busy(0)]
    uneven = [busy(), busy(), busy(0.2), busy(0.2)]
    gpu = {
        name: [series("gpu_load", "accelerator", "g", busy(load))]
        for name, load in (("busy GPU", 0.95), ("idle GPU", 0.3))
    }
    given = {name: [*cores(few), *listed] for name, listed in gpu.items()}
    given |= {"uneven": cores(uneven), "uneven, busy GPU": [*cores(uneven), *gpu["busy GPU"]]}
    put_records(session, tmp_path, [record(name, gpus=1 if "GPU" in name else None) for name in given])
    put_series(session, given)
    session.issues.detect()
    told = {job: rules & {"cpu-idle", "cpu-unused", "cpu-imbalance"} for job, rules in found(session).items()}
    assert told["idle GPU"] == {"cpu-idle", "cpu-unused"}
    assert told["uneven"] == {"cpu-imbalance"}
    assert not told["busy GPU"]
    assert not told["uneven, busy GPU"]
