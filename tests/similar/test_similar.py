"""Jobs of planted families: each finds its own, and what is not comparable is counted."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.errors import NoResultError, UsageError
from esjobs.records.series.rows import Series
from esjobs.similar.prepared import resampled
from tests.issues.made_jobs import START, N, put_records, put_series, record, series
from tests.messages import compare_text, raised

FAMILIES = ("solver", "reader", "stepper")
MEMBERS = 6
HOSTILE = "<b>\x1b[31mjob"


def member(family: str, seed: int, n: int = N, node: str = "n1") -> list[Series]:
    """A job of a family: its shape a little moved, and noise."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    at = (np.arange(n) / n + rng.uniform(-0.02, 0.02)) % 1
    load = {
        "solver": np.where(at < 0.1, 0.2, 3.9),
        "reader": np.where(at * 12 % 1 < 0.5, 0.5, 3.5),
        "stepper": 1.0 + np.floor(at * 3),
    }[family]
    read = {"solver": 1e5, "reader": 4e8, "stepper": 1e7}[family]
    return [
        series("cpu_load", "node", node, load + 0.05 * rng.normal(size=n)),
        series("read_b_s", "node", node, read * np.exp(0.1 * rng.normal(size=n))),
    ]


@pytest.fixture
def families(tmp_path: Path) -> Iterator[esjobs.Session]:
    given = {f"{family}{i}": member(family, i) for family in FAMILIES for i in range(MEMBERS)}
    given["brief"] = member("solver", 90, n=40)
    given["half"] = member("solver", 91, n=N // 3)
    given["wide"] = [
        *member("solver", 92),
        *member("solver", 93, node="n2"),
        *member("solver", 94, node="n3"),
    ]
    given["lacking"] = member("solver", 95)[:1]
    given[HOSTILE] = member("stepper", 96)
    with esjobs.open("duckdb::memory:") as opened:
        put_records(
            opened,
            tmp_path,
            [record(job_id, nodes=None, application=job_id.rstrip("0123456789")) for job_id in given],
        )
        put_series(opened, given)
        yield opened


@pytest.mark.parametrize("family", FAMILIES)
def test_a_job_finds_its_family(families: esjobs.Session, family: str) -> None:
    found = families.similar.jobs(f"{family}0", top=MEMBERS - 1)
    names = found.rows.column("application").to_pylist()
    own = {family} | ({HOSTILE} if family == "stepper" else set())
    assert set(names) <= own
    distances = found.rows.column("distance").to_pylist()
    assert distances == sorted(distances)
    assert found.details.n_compared == MEMBERS * len(FAMILIES) - 1 + 1
    assert found.details.metrics == ("cpu_load", "read_b_s")


def test_what_is_not_compared_is_counted(families: esjobs.Session) -> None:
    assert families.similar.jobs("solver0").details.left_out == {
        "with series of less than 30 min": 1,
        "with less than half or more than twice its duration": 1,
        "with another number of nodes": 1,
        "without all of its metrics": 1,
    }


def test_the_metric_that_differs_is_named(families: esjobs.Session) -> None:
    """Levels count: a job with the same shape of load and 400 times the bytes read is another."""
    loud = [member("solver", 0)[0], series("read_b_s", "node", "n1", np.full(N, 4e7))]
    put_series(families, {"loud": loud}, load="second")
    rows = families.similar.jobs("loud", top=None).rows.to_pylist()
    (twin,) = [row for row in rows if row["job_id"] == "solver0"]
    assert twin["differs_in"] == "read_b_s"
    assert twin["differs_frac"] > 0.95


def test_an_equal_job_is_at_distance_0_and_differs_in_nothing(families: esjobs.Session) -> None:
    put_series(families, {"again": member("reader", 2)}, load="second")
    first = families.similar.jobs("again", top=1).rows.to_pylist()[0]
    assert (first["job_id"], first["distance"], first["differs_in"]) == ("reader2", 0.0, None)


def test_one_metric_only(families: esjobs.Session) -> None:
    found = families.similar.jobs("solver0", metrics=["cpu_load"], top=None)
    assert found.details.metrics == ("cpu_load",)
    assert "lacking" in found.rows.column("job_id").to_pylist()
    assert found.details.n_warped <= found.details.n_compared


def test_no_other_order_of_loads_changes_the_answer(families: esjobs.Session) -> None:
    before = families.similar.jobs("solver1").rows
    put_series(families, {"solver1": member("solver", 1)}, load="second")
    assert families.similar.jobs("solver1").rows.equals(before)


def test_gaps_are_bridged_unless_they_are_most_of_a_series(families: esjobs.Session) -> None:
    load, read = member("solver", 0)
    holes, nothing = load.values.copy(), load.values.copy()
    holes[100:140], nothing[: N - 50] = np.nan, np.nan
    put_series(
        families,
        {
            "holes": [series("cpu_load", "node", "n1", holes), read],
            "nothing": [series("cpu_load", "node", "n1", nothing), read],
        },
        load="second",
    )
    assert families.similar.jobs("solver0", top=1).rows.column("job_id").to_pylist() == ["holes"]
    assert families.similar.jobs("nothing").details.metrics == ("read_b_s",)
    with raised(NoResultError):
        families.similar.jobs("nothing", metrics=["cpu_load"])


def test_absurd_samples_are_missing_ones(families: esjobs.Session) -> None:
    """Sums of them over units would be infinite, and no answer at all."""
    load, read = member("reader", 3)
    absurd = load.values.copy()
    absurd[200:203] = [3e38, -3e38, 3e38]
    twice = [series("cpu_load", "core", f"n1/{core}", absurd / 2) for core in range(2)]
    put_series(families, {"absurd": [*twice, read]}, load="second")
    first = families.similar.jobs("absurd", top=1).rows.to_pylist()[0]
    assert first["job_id"] == "reader3"
    assert first["distance"] < 0.05


def test_cores_of_a_node_add_up_as_the_node_does(families: esjobs.Session) -> None:
    load, read = member("reader", 4)
    quarters: list[Series] = [series("cpu_load", "core", f"n1/{core}", load.values / 4) for core in range(4)]
    put_series(families, {"by core": [*quarters, read]}, load="second")
    first = families.similar.jobs("by core", top=1).rows.to_pylist()[0]
    assert first["job_id"] == "reader4"
    assert first["distance"] < 1e-5


@pytest.mark.parametrize(
    ("job_id", "given", "error"),
    [
        ("nobody", {}, NoResultError),
        ("brief", {}, NoResultError),
        ("solver0", {"metrics": ["ipc"]}, NoResultError),
        ("solver0", {"metrics": ["speed"]}, UsageError),
        ("solver0", {"source": "other"}, NoResultError),
        ("solver0", {"window": "2020-01-01/2020-01-02"}, NoResultError),
        ("half", {}, NoResultError),
    ],
)
def test_what_cannot_be_answered_is_said(
    families: esjobs.Session, job_id: str, given: dict[str, Any], error: type[Exception]
) -> None:
    with raised(error):
        families.similar.jobs(job_id, **given)


def test_the_window_restricts_the_others_only(families: esjobs.Session) -> None:
    later = START + timedelta(days=40)
    put_series(families, {"late": member("solver", 7)}, load="second", end=later)
    window = f"{START:%Y-%m-%d}/{START + timedelta(days=2):%Y-%m-%d}"
    assert families.similar.jobs("late", window=window).details.n_compared == MEMBERS * len(FAMILIES) + 1
    assert (
        "late"
        not in families.similar.jobs(f"{FAMILIES[0]}0", window=window, top=None)
        .to_pandas()["job_id"]
        .tolist()
    )


def test_the_command(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    with esjobs.open(store) as opened:
        given = {"a": member("solver", 0), HOSTILE: member("solver", 1), "b": member("reader", 0)}
        put_series(opened, given)
    ran = CliRunner().invoke(main, ["--store", store, "similar", "a", "--top", "1"])
    assert ran.exit_code == 0, ran.output
    compare_text(ran.stderr)
    assert "\x1b" not in ran.output
    assert "<b>" in ran.stdout
    one = CliRunner().invoke(main, ["--store", store, "similar", "a", "--series", "cpu_load"])
    compare_text(one.stderr)
    refused = CliRunner().invoke(main, ["--store", store, "similar", "c"])
    assert refused.exit_code != 0


def test_resampling_keeps_the_mean_either_way() -> None:
    values = np.random.default_rng(0).normal(size=137)
    for count in (5, 137, 500):
        assert resampled(values, count).mean() == pytest.approx(values.mean())
    np.testing.assert_allclose(resampled(values, 137), values)
    np.testing.assert_allclose(resampled(np.array([1.0, 2.0]), 4), [1, 1, 2, 2])
