"""What other rules would change: as detecting with them tells, and nothing is written."""

from pathlib import Path

import numpy as np

import esjobs
from esjobs.core.errors import InputError, NoResultError
from esjobs.issues.settings import DetectSettings
from esjobs.schema.series import SERIES
from esjobs.store.base import Hide
from tests.conftest import with_settings
from tests.issues.made_jobs import N, busy, cores, put_records, put_series, record, series
from tests.messages import raised

OTHERS = """
[rule.cpu-idle]
limits = { idle = "60 %" }

[rule.low-efficiency]
limits = { used = "20 %" }

[rule.one-core-used]
severity = "major"

[rule.memory-bound]
limits = { bandwidth = "95 %" }

[rule.metadata-congestion]
limits = { operations = "10 1/s" }

[rule.io-blocking]
when = "median_adaptive <= most_median and r <= most_r and periods >= least_periods"
limits = { least_periods = 100 }

[rule.long-job]
area = "request"
value = "duration"
limits = { long = "3 h" }
when = "value > long"
severity = "minor"
hint = "{user} ran for {value:time}"

[eligible.limits]
shortest = "2 h"
"""


def flagged(session: esjobs.Session) -> set[tuple[str, str, str]]:
    rows = session.tables.issues().rows.to_pylist()
    return {(row["detector"], row["job_id"], row["severity"]) for row in rows}


def test_it_tells_what_detecting_with_the_rules_does(detected: esjobs.Session, tmp_path: Path) -> None:
    path = tmp_path / "others.toml"
    path.write_text(OTHERS.replace("limits = { least_periods = 100 }", "limits = { least_periods = 100 }"))
    rows = {
        (row["rule"], row["change"]): row
        for row in detected.issues.replay(path).to_pandas().to_dict(orient="records")
    }
    before = flagged(detected)
    assert set(rows) == {
        ("cpu-idle", "no longer flagged"),
        ("low-efficiency", "no longer flagged"),
        ("one-core-used", "other severity"),
        ("memory-bound", "no longer flagged"),
        ("io-blocking", "no longer flagged"),
        ("long-job", "newly flagged"),
    }
    gone = rows["low-efficiency", "no longer flagged"]
    assert (gone["n_jobs"], gone["n_users"], gone["core_h"]) == (2, 1, 32.0)
    assert (gone["n_before"], gone["n_after"]) == (2, 0)
    assert set(gone["examples"].split(", ")) == {"c/lazy", "c/serial"}
    assert rows["one-core-used", "other severity"]["examples"] == "c/serial (minor to major)"
    assert flagged(detected) == before
    settings = detected.settings
    detected = with_settings(
        detected,
        settings.model_copy(
            update={"issues": settings.section(DetectSettings).model_copy(update={"rules": (path,)})}
        ),
    )
    detected.issues.detect()
    after = flagged(detected)
    for (rule, change), row in rows.items():
        old = {job: severity for name, job, severity in before if name == rule}
        new = {job: severity for name, job, severity in after if name == rule}
        changed = {
            "newly flagged": set(new) - set(old),
            "no longer flagged": set(old) - set(new),
            "other severity": {job for job in set(old) & set(new) if old[job] != new[job]},
        }
        assert len(changed[change]) == row["n_jobs"], rule
        assert (len(old), len(new)) == (row["n_before"], row["n_after"])
    unchanged = {rule for rule, *_ in before | after} - {rule for rule, _ in rows}
    assert {one for one in before if one[0] in unchanged} == {one for one in after if one[0] in unchanged}
    # the rules in force against themselves
    assert detected.issues.replay(path).to_pandas().empty


WARM = """
[rule.memory-leak]
variant = "trim-start"
"""


def test_a_variant_that_was_not_measured_is_measured_and_nothing_written(
    detected: esjobs.Session, tmp_path: Path
) -> None:
    # a start that hides the line
    memory = np.linspace(2e9, 10e9, N)
    memory[:60] = 0
    put_records(detected, tmp_path, [record("warm")])
    put_series(
        detected, {"warm": [*cores([busy()] * 4), series("mem_used_b", "node", "n1", memory)]}, load="w"
    )
    detected.issues.detect()
    path = tmp_path / "warm.toml"
    path.write_text(WARM)
    before = detected.tables.measures().rows.to_pylist()
    (row,) = detected.issues.replay(path).to_pandas().to_dict(orient="records")
    assert (row["rule"], row["change"], row["examples"]) == ("memory-leak", "newly flagged", "c/warm")
    assert (row["n_before"], row["n_after"]) == (1, 2)
    assert detected.tables.measures().rows.to_pylist() == before
    # what detecting with the rules finds is what was told
    settings = detected.settings
    detected = with_settings(
        detected,
        settings.model_copy(
            update={"issues": settings.section(DetectSettings).model_copy(update={"rules": (path,)})}
        ),
    )
    detected.issues.detect()
    found = detected.tables.issues(detector="memory-leak").rows.to_pylist()
    assert {each["job_id"] for each in found} == {"leak", "warm"}


def test_without_the_series_a_variant_is_refused(detected: esjobs.Session, tmp_path: Path) -> None:
    detected.store.publish([Hide(SERIES, "load")])
    path = tmp_path / "warm.toml"
    path.write_text(WARM)
    with raised(NoResultError):
        detected.issues.replay(path).to_pandas()
    # a detector that has nothing to look at lacks nothing
    path.write_text("[rule.sync-offloading]\nlimits.least_peak = 1.9\n")
    assert detected.issues.replay(path).to_pandas().empty


def test_what_cannot_be_replayed_is_refused(detected: esjobs.Session, tmp_path: Path) -> None:
    path = tmp_path / "trim.toml"
    path.write_text(WARM)
    with raised(NoResultError):
        detected.issues.replay(path, "2020-01-01/2020-01-02").to_pandas()
    path.write_text('[rule.memory-leak]\nlimits = { least = "lots" }\n')
    with raised(InputError):
        detected.issues.replay(path).to_pandas()


def test_series_of_which_nothing_could_be_measured_are_no_defect(
    session: esjobs.Session, tmp_path: Path
) -> None:
    few = np.full(N, np.nan)
    few[:3] = 0.5
    put_records(session, tmp_path, [record("gpu"), record("io")])
    gpus = [series("gpu_load", "accelerator", "n1/0", few)]
    written = [series("write_b_s", "node", "n1", few)]
    put_series(session, {"gpu": [*cores([few] * 4), *gpus], "io": [*cores([few] * 4), *written]})
    session.issues.detect()
    path = tmp_path / "others.toml"
    path.write_text('[rule.cpu-idle]\nlimits = { idle = "60 %" }\n')
    assert session.issues.replay(path).to_pandas().empty
