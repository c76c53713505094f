"""Hour of an onset: toys with known hours, and stored jobs in every kind of incident."""

from datetime import UTC, datetime, time, timedelta

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.today.onset import efficiency_hour, failure_hour
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, DAYS, Row, day, jobs_of, put

HOURS, START = 96, 52
TOYS = 60


@pytest.mark.parametrize(("rate", "jobs", "width"), [(0.2, 40, 8), (0.5, 40, 4), (0.2, 400, 4)])
def test_the_interval_of_failures_holds_the_hour(rate: float, jobs: int, width: int) -> None:
    rng = np.random.default_rng(4)
    inside, widths = 0, []
    for _ in range(TOYS):
        ended = rng.poisson(jobs, HOURS).astype(float)
        share = np.where(np.arange(HOURS) < START, 0.05, rate)
        failed = rng.binomial(ended.astype(int), rng.beta(share * 50, (1 - share) * 50)).astype(float)
        found = failure_hour(failed, ended)
        assert found is not None
        inside += found[1] <= START <= found[2]
        widths.append(found[2] - found[1])
    assert inside >= 0.9 * TOYS
    assert np.median(widths) <= width


@pytest.mark.parametrize("length", [4.0, 12.0])
@pytest.mark.parametrize("ramp", [True, False])
def test_the_interval_of_efficiency_holds_the_hour(length: float, ramp: bool) -> None:
    rng = np.random.default_rng(5)
    inside, bias = 0, []
    for _ in range(TOYS):
        ends = rng.uniform(0, HOURS, 4000)
        lengths = length * np.exp(0.3 * rng.standard_normal(4000))
        ill = np.clip((ends - START) / (lengths if ramp else 1e-9), 0, 1)
        efficiency = 0.8 * (1 - 0.3 * ill) * np.exp(0.2 * rng.standard_normal(4000))
        code = np.floor(ends).astype(int) * 8 + np.clip(np.floor(np.log2(lengths)), 0, 7).astype(int)
        keys, cell = np.unique(code, return_inverse=True)
        core, cpu, n, wall = (
            np.bincount(cell, each).astype(np.float64)
            for each in (lengths, lengths * efficiency, np.ones(4000), lengths)
        )
        found = efficiency_hour(keys // 8, cpu, core, n, wall / n)
        assert found is not None
        inside += found[1] <= START <= found[2]
        bias.append(found[0] - START)
    assert inside >= 0.85 * TOYS
    assert abs(np.mean(bias)) < 1.0


def test_no_jobs_have_no_hour() -> None:
    assert failure_hour(np.zeros(72), np.append(np.zeros(24), np.ones(48))) is None
    assert efficiency_hour(np.array([30]), np.ones(1), np.ones(1), np.ones(1), np.ones(1)) is None


def test_an_open_incident_has_its_hour_and_keeps_it(session: Session) -> None:
    put(session.store, jobs_of(range(DAYS)))
    session.flags.today.update()
    rows = [session.flags.today.incidents(day(BAD_FROM + ahead)).rows.to_pylist() for ahead in range(2)]
    midnight = datetime.combine(day(BAD_FROM), time(), UTC)
    for (row,) in rows:
        assert row["site"] == BAD_SITE
        # the first jobs of a day end at 2 h
        assert row["onset_low"] <= midnight + timedelta(hours=2) <= row["onset_high"] + timedelta(hours=2)
        assert row["onset_high"] - row["onset_low"] <= timedelta(hours=12)
        assert f"{row['onset']:%H:%M}" in row["sentence"]


def test_the_hour_is_that_of_the_jobs_of_the_cause(session: Session) -> None:
    noon = datetime.combine(day(BAD_FROM), time(12), UTC)

    def change(row: Row, _number: int, _index: int) -> Row:
        ill = row["queue"] == BAD_SITE and row["processing_type"] == "pile" and row["end_time"] >= noon
        return row | {"state": "failed"} if ill else row

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    (row,) = session.flags.today.incidents(day(BAD_FROM + 1)).rows.to_pylist()
    assert "pile" in row["cause"]
    assert row["onset_low"] <= noon + timedelta(hours=1)
    assert noon - timedelta(hours=2) <= row["onset"] <= noon + timedelta(hours=1)
    assert row["onset_high"] - row["onset_low"] <= timedelta(hours=6)
