"""Monitored jobs of the made-up grid: nothing else of them moves, and what is planted is found."""

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

from esjobs.records.demo import Grid
from esjobs.records.demo.monitored import REQUESTED, RETIRING, STALLED
from tests.conftest import memory_session

GRID = Grid(seed=4, jobs_per_day=4000)
DAY = date(2025, 6, 3)


def test_everything_else_of_a_job_is_the_same() -> None:
    plain = pa.Table.from_batches(GRID.jobs(DAY))
    watched = pa.Table.from_batches(replace(GRID, monitored=True).jobs(DAY))
    names = [name for name in plain.column_names if plain.column(name).null_count < plain.num_rows]
    assert len(names) > 20
    assert watched.select(names).equals(plain.select(names))
    assert plain.column("counters").null_count == plain.num_rows
    assert 0.02 < 1 - watched.column("counters").null_count / watched.num_rows < 1 / 3
    assert watched.column("requested_wall_s").null_count == 0


def test_what_is_planted_is_found() -> None:
    with memory_session() as session:
        session.store.put_jobs(replace(GRID, monitored=True).jobs(DAY), "made up")
        session.scores.compute()
        for score, planted in (
            ("score_cpu", {user: 100 * (1 - share) for user, share in RETIRING.items()}),
            ("score_mem", {user: 100 * share for user, share in STALLED.items()}),
        ):
            rows = {row["name"]: row for row in session.scores.rank("user", score).rows.to_pylist()}
            assert rows.keys() == planted.keys()
            # who is surely worst comes first: 100 is the worst of a score
            best = [row["score_low"] or row["score"] for row in rows.values()]
            assert best == sorted(best, reverse=True)
            assert next(iter(rows)) == max(planted, key=lambda user: planted[user])
            for user, mean in planted.items():
                # weighted by hours, of some hundred jobs with a scatter of 6
                assert rows[user]["score"] == pytest.approx(mean, abs=4), (score, user)
                assert rows[user]["coverage"] < 0.4
        scores = session.tables.scores().to_pandas()
        used = scores[scores["state"] != "timeout"].groupby("user")["time_used_frac"].max()
        assert all(used[user] <= 1 / REQUESTED[user] + 1e-9 for user in REQUESTED)
        assert not scores["score_cpu_reason"].eq("smt unknown").any()
