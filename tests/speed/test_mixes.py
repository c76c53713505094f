"""What queues ran on: shares of core time, and the factor that follows from those of their CPU models."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.cli.demo import demonstrate
from esjobs.core.words import ALL_TYPES
from esjobs.records.names.sites import Sites
from esjobs.speed.factors import LATER, Factors, Fit
from esjobs.speed.mixes import Mix, mix_rows, predicted, with_queue_scatter


def factors(level: str, values: dict[str, tuple[float, float]], component: int = 0) -> Factors:
    count = len(values)
    k, k_err = (np.array([pair[place] for pair in values.values()]) for place in (0, 1))
    texts = np.array([""] * count, object)
    later: dict[str, Any] = {name: np.full(count, np.nan) for name in LATER}
    return Factors(
        level=level,
        processing_type=ALL_TYPES,
        method="gamma",
        name=np.array(list(values), object),
        k=k,
        k_err=k_err,
        component=np.full(count, component),
        n_units=np.full(count, 5),
        n_jobs=np.full(count, 100),
        status=np.array(["ok"] * count, object),
        reason=texts,
        k_raw=k,
        k_err_stat=k_err,
        k_err_int=k_err,
        events_per_job=k,
        sole_link=texts,
        records_doubt=texts,
        only_type="",
        left_out="",
        n_tasks=np.full(count, 5),
        n_components=component + 1,
        n_buckets=np.full(count, 5),
        n_rejected=np.zeros(count, np.int64),
        n_cut=np.zeros(count, np.int64),
        efficiency=np.ones(count),
        **later,
    )


def sums(cpu_s: float, core_s: float | None = None) -> dict[str, float]:
    return {"n_jobs": 3.0, "cpu_s": cpu_s, "core_s": 1.25 * cpu_s if core_s is None else core_s}


MODELS = factors("cpu_model", {"slow": (0.5, 0.01), "fast": (1.5, 0.02)})
MIX = {
    ("half", "fast"): sums(100.0),
    ("half", "slow"): sums(100.0),
    ("new", "fast"): sums(50.0),
    ("old", "slow"): sums(70.0),
    ("unknown", None): sums(90.0),
    ("unknown", "fast"): sums(10.0),
}


def test_the_factor_of_a_mix_is_the_mean_by_cpu_time() -> None:
    queues = factors("queue", {"half": (2.0, 0.1), "new": (3.0, 0.1), "old": (0.5, 0.1)})
    found = predicted(MIX, [queues, MODELS])
    # on the models' own scale 1, 1.5 and 0.5; the ratios are 2, 2 and 1: the median queue is as predicted
    assert [found[name].k for name in ("half", "new", "old")] == pytest.approx([2.0, 3.0, 1.0])
    assert found["half"].k_err == pytest.approx(2 * np.hypot(0.5 * 0.02, 0.5 * 0.01))
    assert (found["unknown"].k, found["unknown"].k_err) == (None, None)
    assert found["unknown"].share == pytest.approx(0.1)
    assert found["new"].share == 1.0


def test_no_factor_no_prediction() -> None:
    assert {each.k for each in predicted(MIX, [factors("queue", {"half": (1.0, 0.1)})]).values()} == {None}
    others = factors("cpu_model", {"slow": (0.5, 0.01), "fast": (1.5, 0.02)}, component=1)
    assert {each.k for each in predicted(MIX, [factors("queue", {"half": (1.0, 0.1)}), others]).values()} == {
        None
    }


def test_a_queue_of_another_component_has_no_prediction() -> None:
    queues = factors("queue", {"half": (2.0, 0.1), "new": (3.0, 0.1), "old": (0.5, 0.1)})
    apart = replace(queues, component=np.array([0, 0, 1]), n_components=2)
    found = predicted(MIX, [apart, MODELS])
    assert (found["old"].k, found["old"].k_err, found["old"].share) == (None, None, 1.0)
    assert [found[name].k for name in ("half", "new")] == pytest.approx([2.0, 3.0])


def test_shares_of_core_time_add_up() -> None:
    queues = factors("queue", {"half": (2.0, 0.1), "new": (3.0, 0.1), "old": (0.5, 0.1)})
    rows = list(mix_rows(MIX, [queues, MODELS], Sites({"new": "THE-SITE"})))
    assert len(rows) == len(MIX)
    for name in {row["queue"] for row in rows}:
        assert sum(float(str(row["share"])) for row in rows if row["queue"] == name) == pytest.approx(1.0)
    by_key = {(row["queue"], row["cpu_model"]): row for row in rows}
    assert by_key["new", "fast"]["site"] == "THE-SITE"
    assert (by_key["new", "fast"]["k"], by_key["unknown", None]["k"]) == (3.0, None)
    # a queue of one model alone is predicted to have the factor that its only row shows
    found = predicted(MIX, [queues, MODELS])
    for name, model in (("new", "fast"), ("old", "slow")):
        assert (by_key[name, model]["k"], by_key[name, model]["k_err"]) == (found[name].k, found[name].k_err)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("demo")
    demonstrate(folder, jobs=40_000, seed=5)
    return esjobs.open(f"duckdb:{folder / 'demo.duckdb'}")


def test_the_demo_runs_as_its_cpu_models_promise(demo: Session) -> None:
    """Its queues are as fast as their CPU models; what they declare is another matter."""
    shown = demo.tables.factors().to_pandas()
    chosen = shown[(shown["level"] == "queue") & shown["mix_k"].notna() & shown["component"].eq(0)]
    off = chosen["k"] / chosen["mix_k"] - 1
    assert len(chosen) > 30
    apart = shown[(shown["level"] == "queue") & shown["component"].gt(0)]
    assert len(apart)
    assert apart["mix_k"].isna().all()
    assert off.abs().median() < 0.03
    assert set(chosen["method"]) == {"gamma"}
    assert set(chosen["processing_type"]) == {ALL_TYPES}


def test_mixes_are_the_sums_of_the_buckets(demo: Session) -> None:
    mixes, buckets = demo.tables.cpu_mix().to_pandas(), demo.tables.buckets().to_pandas()
    wanted: dict[tuple[str, str], list[float]] = {}
    for row in buckets.to_dict("records"):
        if isinstance(row["cpu_model"], str):
            total = wanted.setdefault((row["queue"], row["cpu_model"]), [0.0, 0.0])
            total[0] += row["core_s"]
            total[1] += row["n_jobs"]
    named = [row for row in mixes.to_dict("records") if isinstance(row["cpu_model"], str)]
    found = {(row["queue"], row["cpu_model"]): [row["core_s"], row["n_jobs"]] for row in named}
    assert found.keys() == wanted.keys()
    assert all(found[key] == pytest.approx(wanted[key]) for key in found)
    assert mixes["n_jobs"].sum() == buckets["n_jobs"].sum()
    residuals = demo.tables.residuals().to_pandas()
    assert residuals[residuals["level"] == "queue"]["site"].notna().all()
    assert residuals[residuals["level"] == "cpu_model"]["site"].isna().all()


def test_errors_of_cpu_models_hold_what_their_queues_do_to_them() -> None:
    """Queues run 10 % beside their CPU models, each of which is at a few queues."""
    rng = np.random.default_rng(5)
    pulls = []
    for _ in range(60):
        true = rng.lognormal(0, 0.3, 6)
        of_queue = rng.lognormal(0, 0.1, 24)
        cpu_s = rng.random((24, 6)) * (rng.random((24, 6)) < 0.3) + 1e-3
        of_queue_and_model = of_queue[:, None] * true
        seen = (cpu_s * of_queue_and_model).sum(axis=0) / cpu_s.sum(axis=0)
        queues = (cpu_s * of_queue_and_model).sum(axis=1) / cpu_s.sum(axis=1)
        mix: Mix = {(f"q{q}", f"m{m}"): sums(cpu_s[q, m]) for q in range(24) for m in range(6)}
        models = factors("cpu_model", {f"m{m}": (seen[m], 0.002 * seen[m]) for m in range(6)})
        of_queues = factors("queue", {f"q{q}": (queues[q], 0.005 * queues[q]) for q in range(24)})
        item = Fit(cast("Any", None), np.zeros(0, bool), models, None, 1)
        widened = with_queue_scatter(item, item, mix, [of_queues]).factors
        shift = np.log(widened.k / true)
        pulls.extend((shift - shift.mean()) / (widened.k_err / widened.k))
    assert 0.8 < np.std(pulls) < 1.2
    assert np.mean(np.abs(pulls) < 1.645) == pytest.approx(0.9, abs=0.06)


def test_queues_that_run_as_their_models_add_nothing() -> None:
    queues = factors("queue", {f"q{number}": (1.5, 0.05) for number in range(8)})
    mix: Mix = {(f"q{number}", "fast"): sums(10.0) for number in range(8)}
    item = Fit(cast("Any", None), np.zeros(0, bool), MODELS, None, 1)
    assert with_queue_scatter(item, item, mix, [queues]) is item
    assert with_queue_scatter(item, item, MIX, [factors("queue", {"half": (2.0, 0.1)})]) is item
