"""How the jobs of the made-up grid that do not finish end: relabelled, and nothing else."""

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from esjobs.records.demo.ends import ended
from esjobs.records.demo.grid import Grid

DAY = date(2025, 6, 30)
REQUESTS = ["requested_wall_s", "requested_memory_b"]


def failing() -> pa.RecordBatch:
    """Nearly ten thousand jobs with requests, all of which failed."""
    (made,) = Grid(seed=2, monitored=True).jobs(DAY)
    batch = made.filter(pc.equal(made.column("state"), "finished"))
    state = pa.array(["failed"] * batch.num_rows)
    return batch.set_column(batch.schema.get_field_index("state"), "state", state)


def test_only_states_and_what_was_asked_for_move() -> None:
    before = failing()
    after = ended(before, np.random.default_rng(1))
    assert after.equals(ended(before, np.random.default_rng(1)))
    for name in before.schema.names:
        if name not in ("state", *REQUESTS):
            assert after.column(name).equals(before.column(name)), name
    finished = before.set_column(
        before.schema.get_field_index("state"), "state", pa.array(["finished"] * before.num_rows)
    )
    assert ended(finished, np.random.default_rng(1)).equals(finished)


def test_kinds_have_the_shares_of_a_grid_and_stand_where_they_belong() -> None:
    jobs: pd.DataFrame = pa.Table.from_batches([ended(failing(), np.random.default_rng(1))]).to_pandas()
    shares = jobs["state"].value_counts(normalize=True)
    planted = {"timeout": 0.12, "out_of_memory": 0.08, "cancelled": 0.12, "node_fail": 0.02}
    for state, share in planted.items():
        assert shares[state] == pytest.approx(share, abs=0.015), state
    assert shares["failed"] == pytest.approx(1 - sum(planted.values()), abs=0.03)
    per_core = jobs["max_rss_b"] / jobs["cores"].fillna(1)
    out, heavy = jobs["state"] == "timeout", jobs["state"] == "out_of_memory"
    assert jobs.loc[out, "wall_s"].min() >= jobs["wall_s"].quantile(0.69)
    assert per_core[heavy].min() >= per_core.quantile(0.69)
    reached = jobs["wall_s"] - jobs["requested_wall_s"]
    assert reached[out].between(0, 60).all()
    assert (reached[~out] < 0).all()
    assert (jobs["max_rss_b"] >= jobs["requested_memory_b"])[heavy].all()


def test_every_day_of_a_grid_has_its_kinds() -> None:
    (batch,) = Grid(seed=2).jobs(DAY)
    ends = pc.value_counts(batch.column("state")).to_pylist()
    counts = {each["values"]: each["counts"] for each in ends}
    assert set(counts) >= {"finished", "failed", "timeout", "out_of_memory", "cancelled", None}
    assert batch.column("requested_wall_s").null_count == batch.num_rows
