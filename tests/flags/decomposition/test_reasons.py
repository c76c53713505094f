"""Causes planted in made-up jobs and declarations are the largest parts of the deviations that they make."""

import csv
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY
from tests.conftest import memory_session
from tests.flags.drift.grids import (
    FIRST,
    GRID,
    faster,
    fill,
    newer_pilots,
    older_pilots,
    on_one_model,
    without_smt,
)
from tests.messages import raised

TRUTH = GRID.truth()
SPEED = {cpu.name: cpu.speed for cpu in TRUTH.cpu_models}
FREE = sorted(
    (queue for queue in TRUTH.queues if not queue.island and not queue.short_jobs), key=lambda q: -q.share
)[:14]
SLOWEST = min(TRUTH.cpu_models, key=lambda cpu: cpu.speed)


def fastest(queue: Any) -> float:
    return max(SPEED[name] for name, part in queue.mixture if part > 0.06)


MIXED = max(FREE, key=lambda queue: fastest(queue) / queue.speed)
_OTHERS = [queue for queue in FREE if queue is not MIXED]
REPLACED = max(_OTHERS, key=lambda queue: queue.speed)
_OTHERS = [queue for queue in _OTHERS if queue is not REPLACED]
DEFAULT = max(_OTHERS, key=lambda queue: abs(math.log(queue.speed / 10.0)))
_OTHERS = [queue for queue in _OTHERS if queue is not DEFAULT]
THREADED = max(
    _OTHERS, key=lambda queue: sum(p for n, p in queue.mixture if not n.startswith(("QEMU", "AMD Opt")))
)
WRONG, CROWDED = [queue for queue in _OTHERS if queue is not THREADED][:2]
GAIN = 1.25
RECENT = Window.of_days(LAST_DAY - timedelta(days=11), LAST_DAY)


def declarations() -> list[dict[str, object]]:
    """All queues honest within 2 %, but for those that something was planted in."""
    rng = np.random.default_rng(3)
    value = {queue.name: queue.speed * math.exp(rng.normal(0, 0.02)) for queue in TRUTH.queues}
    value |= {WRONG.name: 1.6 * fastest(WRONG), MIXED.name: fastest(MIXED), DEFAULT.name: 10.0}
    return [
        {
            "name": queue.name,
            "corepower": f"{value[queue.name]:.3f}",
            "benchmark": "HS06",
            "level": "queue",
            "site": queue.site,
            "valid_from": FIRST if queue is REPLACED else "2025-01-01",
        }
        for queue in TRUTH.queues
    ]


def import_tables(session: Session, folder: Path, gain: float) -> None:
    """Declared values, and scores of CPU models with SMT, ``gain`` times as high without it."""
    table = folder / "corepower.csv"
    rows = declarations()
    with table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    session.declared.import_values(table)
    scores = folder / "hs06.txt"
    lines = []
    for cpu in TRUTH.cpu_models:
        if " HT" in cpu.raw[1]:
            lines += [f"{cpu.name},{32 * cpu.speed},32,on", f"{cpu.name},{16 * gain * cpu.speed},16,off"]
    scores.write_text("\n".join(lines))
    session.declared.import_references(scores, form="atlas-hs06")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("planted")
    session = memory_session()
    fill(
        session,
        {
            0: newer_pilots(),
            1: without_smt(THREADED.name, GAIN),
            2: faster(CROWDED.name, 0.7),
            8: on_one_model(REPLACED.name, SLOWEST.name),
        },
    )
    import_tables(session, folder, GAIN)
    session.speed.aggregate((str(FIRST), str(LAST_DAY)))
    session.run(RECENT)
    session.flags.decompose()
    return session


def parts(session: Session, name: str) -> dict[str, dict[str, Any]]:
    return {row["part"]: row for row in session.tables.decomposition(name=name).rows.to_pylist()}


@pytest.mark.parametrize(
    ("queue", "part"),
    [
        (WRONG, "declared value"),
        (MIXED, "cpu mix"),
        (DEFAULT, "declared default"),
        (THREADED, "smt"),
        (CROWDED, "rest"),
        (REPLACED, "declared older than hardware"),
    ],
    ids=["wrong", "mixed", "default", "smt", "crowded", "replaced"],
)
def test_the_largest_part_is_the_planted_one(planted: Session, queue: Any, part: str) -> None:
    rows = parts(planted, queue.name)
    (first,) = [row for row in rows.values() if row["largest"]]
    assert first["part"] == part, first["reason"]
    assert first["share"] > 0.7
    assert first["reason"].startswith("Cause: ")


def test_planted_effects_are_measured_with_their_errors(planted: Session) -> None:
    for queue, part, effect in (
        (THREADED, "smt", math.log(GAIN)),
        (CROWDED, "rest", math.log(0.7)),
        (REPLACED, "declared older than hardware", math.log(SLOWEST.speed / REPLACED.speed)),
    ):
        row = parts(planted, queue.name)[part]
        assert row["effect"] == pytest.approx(effect, abs=0.03 + 3 * row["effect_err"]), part


def test_parts_of_every_queue_add_up_to_its_deviation(planted: Session) -> None:
    rows = planted.tables.decomposition().rows.to_pylist()
    names = {row["name"] for row in rows}
    assert len(names) >= 20
    for name in names:
        mine = [row for row in rows if row["name"] == name]
        assert sum(row["effect"] for row in mine) == pytest.approx(math.log1p(mine[0]["deviation"]), abs=1e-9)
        assert sum(row["share"] for row in mine) == pytest.approx(1.0)
        assert sum(row["largest"] for row in mine) == 1


def test_honest_queues_have_no_rest_beyond_its_error(planted: Session) -> None:
    told = {queue.name for queue in (WRONG, MIXED, DEFAULT, THREADED, CROWDED, REPLACED)}
    rest = [row for row in planted.tables.decomposition().rows.to_pylist() if row["part"] == "rest"]
    pulls = [row["effect"] / row["effect_err"] for row in rest if row["name"] not in told]
    assert len(pulls) >= 12
    assert np.sqrt(np.mean(np.square(pulls))) < 1.8
    assert max(map(abs, pulls)) < 4.5


def test_models_are_slower_at_the_crowded_queue_than_elsewhere(planted: Session) -> None:
    rows = planted.tables.cpu_speed_by_queue().rows.to_pylist()
    crowded = [row for row in rows if row["queue"] == CROWDED.name and row["n_jobs"] >= 50]
    assert crowded
    assert all(row["relative"] < -0.1 and row["sigmas"] < -3 for row in crowded)
    # of models that no queue with a planted speed runs, the rest are chance
    planted_at = {CROWDED.name, THREADED.name}
    moved = {row["cpu_model"] for row in rows if row["queue"] in planted_at}
    sigmas = np.array([row["sigmas"] for row in rows if row["cpu_model"] not in moved])
    assert len(sigmas) > 20
    assert np.abs(sigmas).max() < 4.5
    # those of one queue move together, so their width is that of a dozen independent ones
    assert 0.6 < sigmas.std() < 1.5


def test_the_speeds_of_a_model_lie_on_both_sides_of_its_mean(planted: Session) -> None:
    of_model: dict[str, list[dict[str, Any]]] = {}
    for row in planted.tables.cpu_speed_by_queue().rows.to_pylist():
        of_model.setdefault(row["cpu_model"], []).append(row)
    for rows in of_model.values():
        assert len(rows) == rows[0]["n_queues"] >= 2
        relative = np.log1p([row["relative"] for row in rows])
        error = np.array([row["relative_err"] / (1 + row["relative"]) for row in rows])
        assert relative.min() <= 1e-9 <= relative.max() + 2e-9
        assert (error > 0).all()


def test_again_it_leaves_the_same_rows(planted: Session) -> None:
    before = planted.tables.decomposition().rows
    planted.flags.decompose(RECENT)
    assert planted.tables.decomposition().rows.equals(before)


def test_without_cpu_models_the_whole_deviation_is_the_rest(
    session: Session, panda_files: list[Path]
) -> None:
    session.ingest("panda", panda_files, fill=["end_time=2018-08-15"])
    session.run()
    report = session.flags.decompose()
    assert report.counts["queues whose CPU mix cannot be separated"] == (report.counts["queues decomposed"])
    rows = session.tables.decomposition().rows.to_pylist()
    named = [row for row in rows if row["effect"]]
    assert {row["part"] for row in named} <= {"rest", "declared default"}
    assert all("name no CPU models" in row["sentence"] for row in named if row["part"] == "rest")


def test_smt_is_inferred_where_no_record_tells_it(tmp_path: Path) -> None:
    """One queue runs without SMT and declares the value with it; another is as much slower, and honest."""
    gain = 1.6
    session = memory_session()
    fill(session, {0: older_pilots(), 1: faster(THREADED.name, gain), 2: faster(CROWDED.name, 1 / gain)})
    import_tables(session, tmp_path, gain)
    session.speed.aggregate((str(FIRST), str(LAST_DAY)))
    session.run(RECENT)
    session.flags.decompose()
    threaded, crowded = (parts(session, queue.name) for queue in (THREADED, CROWDED))
    assert threaded["smt"]["largest"], threaded["rest"]["reason"]
    assert threaded["smt"]["effect"] == pytest.approx(math.log(gain), abs=0.02)
    assert "no record tells the state" in threaded["smt"]["reason"]
    assert abs(threaded["rest"]["effect"]) < 0.1
    assert crowded["rest"]["largest"]
    assert not crowded["smt"]["effect"]


def test_without_a_run_there_is_nothing_to_take_apart(session: Session) -> None:
    with raised(NoResultError):
        session.flags.decompose()
