"""A queue that gets other hardware in the middle of a window: its records are right, its speed is not one."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.words import CHANGED_SPEED
from esjobs.render.profile.power import needed
from tests.contract.jobs import batch, job

FIRST = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUEUES = [f"Q{number}" for number in range(10)]


def put_grid(session: Session, faster: float, *, by_task: bool = False) -> None:
    """Store 28 days of tasks that run for two days each; the last queue is faster in the second half.

    ``by_task``: it is faster for every other task instead, as if events were counted wrong.
    """
    rng, rows = np.random.default_rng(3), []
    for day in range(28):
        for task in (3 * (day // 2), 3 * (day // 2) + 1, 3 * (day // 2) + 2):
            for queue in QUEUES:
                scatter = rng.lognormal(0, 0.1)
                for index in range(4):
                    last = queue == QUEUES[-1] and (task % 2 == 0 if by_task else day >= 14)
                    events = float(rng.integers(500, 1500))
                    slow = scatter * rng.lognormal(0, 0.05) / (faster if last else 1)
                    cpu = np.rint(events * (10 + task % 7) * slow)
                    end = FIRST + timedelta(days=day, minutes=index)
                    rows.append(
                        job(
                            f"{day}-{task}-{queue}-{index}",
                            queue=queue,
                            task_id=str(task),
                            processing_type="simul",
                            state="finished",
                            cores=1,
                            events=events,
                            cpu_s=float(cpu),
                            wall_s=float(cpu) * 1.2,
                            start_time=end - timedelta(seconds=float(cpu) * 1.2),
                            end_time=end,
                        )
                    )
    session.store.put_jobs([batch(rows)], "one")


@pytest.mark.parametrize("by_task", [False, True])
def test_a_change_is_told_from_wrong_records(session: Session, by_task: bool) -> None:
    put_grid(session, 2.2, by_task=by_task)
    session.run("2026-03-02/2026-03-30")
    rows = session.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    implausible = {row["name"]: row for row in rows if row["verdict"] == "implausible"}
    assert set(implausible) == {QUEUES[-1]}
    row = implausible[QUEUES[-1]]
    assert (CHANGED_SPEED in row["sentence"]) is not by_task
    assert ("window after its change" in needed(row, None, 0.2)) is not by_task


def test_a_deviation_of_one_half_of_the_window_is_not_confirmed(session: Session) -> None:
    put_grid(session, 1.6)
    changes = list(_halves(session))
    (first, _), (_, second) = (min(changes), max(changes))
    # the last queue ran like the others, then 60 % faster
    assert first == pytest.approx(0.76, abs=0.08)
    assert second == pytest.approx(1.25, abs=0.12)


def test_no_halves_differ_where_nothing_changes(session: Session) -> None:
    put_grid(session, 1.0)
    assert not list(_halves(session))


def _halves(session: Session) -> Iterator[tuple[float, float]]:
    """Factors of the halves that differ over those of the whole window."""
    session.run("2026-03-02/2026-03-30")
    k = {row["name"]: row["k"] for row in session.tables.factors(level="queue", type="all", method="gamma")}
    for row in session.tables.stability_checks(level="queue", type="all", method="gamma"):
        if row["change"] == "halves that differ":
            assert row["name"] == QUEUES[-1]
            yield row["k_low"] / k[row["name"]], row["k_high"] / k[row["name"]]
