"""Planted speeds of sites beside their CPU models come back as the share of sites, and queue by queue."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from esjobs.api.session import Session
from tests.conftest import memory_session
from tests.flags.drift.grids import GRID, WINDOW, at_sites, fill

TRUTH = GRID.truth()
SPEED = {cpu.name: cpu.speed for cpu in TRUTH.cpu_models}
_DRAWN = np.random.default_rng(4).normal(0, 0.06, len(TRUTH.queues)).tolist()
SITE = {queue.name: value for queue, value in zip(TRUTH.queues, _DRAWN, strict=True)}


@pytest.fixture(scope="module")
def planted() -> Session:
    session = memory_session()
    fill(session, {0: at_sites({name: math.exp(value) for name, value in SITE.items()})})
    session.run(WINDOW)
    session.flags.decompose()
    return session


def shares(session: Session) -> dict[str, dict[str, Any]]:
    return {row["part"]: row for row in session.tables.variance_shares().rows.to_pylist()}


def test_variances_are_those_planted_within_their_errors(planted: Session) -> None:
    rows = shares(planted)
    named = {row["name"] for row in planted.tables.queue_rests().rows.to_pylist()}
    queues = [queue for queue in TRUTH.queues if queue.name in named]
    assert rows["all"]["n_queues"] == len(queues) >= 20
    models = np.array([math.log(queue.speed) for queue in queues])
    sites = np.array([SITE[queue.name] for queue in queues])
    truth = {
        "cpu models": np.var(models, ddof=1),
        "site": np.var(sites, ddof=1),
        "sorting": 2 * np.cov(models, sites)[0, 1],
    }
    for part, value in truth.items():
        assert abs(rows[part]["variance"] - value) < max(0.1 * value, 3 * rows[part]["variance_err"]), part
    assert rows["site"]["variance"] < rows["site"]["uncorrected"]
    parts = ("cpu models", "site", "sorting")
    assert sum(rows[part]["share"] for part in parts) == pytest.approx(1.0)
    assert sum(rows[part]["variance"] for part in parts) == pytest.approx(rows["all"]["variance"])
    assert rows["all"]["sentence"].startswith(f"The speeds of {len(queues)} queues scatter by ")


def test_rests_of_queues_are_those_planted_and_their_intervals_hold_them(planted: Session) -> None:
    rows = planted.tables.queue_rests().rows.to_pylist()
    true = np.array([SITE[row["name"]] for row in rows])
    true -= np.median(true)
    likely, low, high = (
        np.log1p([row[name] for row in rows]) for name in ("likely", "likely_low", "likely_high")
    )
    held = (low - 0.015 <= true) & (true <= high + 0.015)
    assert held.mean() > 0.85
    assert np.corrcoef(likely, true)[0, 1] > 0.9
    assert (np.abs(likely) <= np.abs(np.log1p([row["rest"] for row in rows])) + 1e-12).all()


def test_without_cpu_models_there_are_no_shares(session: Session) -> None:
    batches = []
    for batch in GRID.jobs(WINDOW.first_day):
        place = batch.schema.get_field_index("cpu_raw")
        nothing = pa.nulls(batch.num_rows, batch.schema.field(place).type)
        batches.append(batch.set_column(place, batch.schema.field(place), nothing))
    session.store.put_jobs(batches, "day")
    session.run()
    session.flags.decompose()
    assert not session.tables.variance_shares().rows.num_rows
    assert not session.tables.queue_rests().rows.num_rows
