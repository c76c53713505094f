"""SMT is told from records without tables, and from the size of an effect where no record tells it."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.flags.decomposition.parts import Facts, largest, take_apart
from esjobs.flags.decomposition.smt import Unrecorded
from tests.conftest import memory_session
from tests.flags.drift.grids import GRID, WINDOW, faster, fill, newer_pilots, older_pilots, smt_off

GAIN = 1.6
TRUTH = GRID.truth()
USABLE = sorted(
    (queue for queue in TRUTH.queues if not queue.island and not queue.short_jobs), key=lambda q: -q.share
)
HALF = {queue.name for queue in USABLE[::2]}
THREADED, WRONG, CROWDED = (queue.name for queue in USABLE[:3])


def decomposed(folder: Path, happenings: dict[int, Any], factors: dict[str, float]) -> Session:
    """Run a grid on which everybody declares right but for some factors, and decompose its deviations."""
    session = memory_session()
    fill(session, happenings)
    table = folder / "corepower.csv"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "corepower", "benchmark", "level", "site", "valid_from"])
        rng = np.random.default_rng(3)
        for queue in TRUTH.queues:
            value = queue.speed * factors.get(queue.name, 1.0) * math.exp(rng.normal(0, 0.02))
            writer.writerow([queue.name, f"{value:.3f}", "HS06", "queue", queue.site, "2025-01-01"])
    session.declared.import_values(table)
    session.run(WINDOW)
    session.flags.decompose()
    return session


def first(session: Session, name: str) -> dict[str, Any]:
    (row,) = [row for row in session.tables.decomposition(name=name).rows.to_pylist() if row["largest"]]
    return dict(row)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Session:
    happenings = {0: newer_pilots(), 1: smt_off(HALF, GAIN)}
    return decomposed(tmp_path_factory.mktemp("recorded"), happenings, {})


@pytest.fixture(scope="module")
def unrecorded(tmp_path_factory: pytest.TempPathFactory) -> Session:
    happenings = {0: older_pilots(), 1: faster(THREADED, 1 / GAIN), 2: faster(CROWDED, 0.8)}
    return decomposed(tmp_path_factory.mktemp("unrecorded"), happenings, {WRONG: GAIN})


def test_factors_of_a_cpu_model_are_split_by_the_recorded_state(recorded: Session) -> None:
    rows = recorded.tables.cpu_speed_by_smt().rows.to_pylist()
    models = {row["name"] for row in rows}
    assert len(models) >= 3
    assert all(row["source"] == "records" for row in rows)
    pulls = []
    for model in models:
        off, on = sorted((row for row in rows if row["name"] == model), key=lambda row: row["smt"])
        assert on["k"] / off["k"] == pytest.approx(on["gain"])
        assert on["n_queues"] >= 1
        assert off["n_queues"] >= 1
        pulls.append((math.log(on["gain"]) + math.log(GAIN)) / (on["gain_err"] / on["gain"]))
    assert max(map(abs, pulls)) < 4


def test_without_records_an_effect_of_its_size_is_called_smt(unrecorded: Session) -> None:
    row = first(unrecorded, THREADED)
    assert row["part"] == "smt"
    assert row["effect"] == pytest.approx(-math.log(GAIN), abs=0.08)
    assert "as with SMT on where others have it off" in row["sentence"]
    row = first(unrecorded, WRONG)
    assert row["part"] == "smt"
    assert row["effect"] == pytest.approx(-math.log(GAIN), abs=0.08)
    assert "SMT on for jobs and off for the benchmark" in row["sentence"]


def test_another_size_is_the_rest_and_nobody_else_has_smt(unrecorded: Session) -> None:
    assert first(unrecorded, CROWDED)["part"] == "rest"
    rows = unrecorded.tables.decomposition().rows.to_pylist()
    assert {row["name"] for row in rows if row["part"] == "smt" and row["effect"]} == {THREADED, WRONG}
    assert not unrecorded.tables.cpu_speed_by_smt().rows.num_rows


def facts(own: float, mix: float, smt: Unrecorded) -> Facts:
    return Facts(
        name="Q",
        deviation=math.expm1(own + mix),
        error=0.03,
        line_error=0.01,
        corepower=10.0,
        benchmark="HS06",
        origin="own",
        own=(own, 0.02),
        mix_error=0.01,
        models=(("X", 0.0),),
        share=1.0,
        unrecorded=smt,
    )


@pytest.mark.parametrize(
    ("own", "mix", "smt", "part"),
    [
        (-0.47, 0.0, Unrecorded(0.05, 0.39, 0.55, None, here=True, declared=True), "smt"),
        (-0.47, 0.0, Unrecorded(0.05, 0.39, 0.55, None, here=False, declared=True), "rest"),
        (-0.25, 0.0, Unrecorded(0.05, 0.39, 0.55, None, here=True, declared=True), "rest"),
        (-0.47, 0.0, Unrecorded(0.30, 0.39, 0.55, None, here=True, declared=True), "rest"),
        (0.0, -0.47, Unrecorded(0.05, 0.39, 0.55, 1.0, here=True, declared=True), "smt"),
        (0.0, -0.47, Unrecorded(0.05, 0.39, 0.55, 0.0, here=True, declared=True), "declared value"),
        (0.0, 0.47, Unrecorded(0.05, 0.39, 0.55, 1.0, here=True, declared=True), "declared value"),
        (0.0, 0.47, Unrecorded(0.05, 0.39, 0.55, 0.0, here=True, declared=True), "smt"),
        (0.0, -0.47, Unrecorded(0.05, 0.39, 0.55, None, here=True, declared=False), "declared value"),
        (0.0, -0.8, Unrecorded(0.05, 0.39, 0.55, None, here=True, declared=True), "declared value"),
    ],
)
def test_smt_is_guessed_only_where_size_and_records_allow_it(
    own: float, mix: float, smt: Unrecorded, part: str
) -> None:
    parts = take_apart(facts(own, mix, smt))
    assert largest(parts).part == part
    assert sum(each.effect for each in parts) == pytest.approx(own + mix)
