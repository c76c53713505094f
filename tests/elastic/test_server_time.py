"""The clock of the cluster as evidence against that of this machine."""

from datetime import UTC, datetime, timedelta

import pytest

import esjobs
from esjobs.core.errors import ClockError
from esjobs.store.base import ServerClock
from tests.scheduler.stage import FIRST, Hands, Stage, settings_of
from tests.servers.server import Server


def test_a_night_is_run_as_far_as_the_clock_of_the_cluster_reaches(server: Server, index_prefix: str) -> None:
    plain = settings_of(server.url)
    cluster = plain.cluster.model_copy(update={"prefix": index_prefix, "retries": 0})
    hands = Hands(now=datetime.now(UTC))
    settings = plain.model_copy(update={"cluster": cluster})
    with esjobs.open(settings=settings, clock=hands.clock) as session:
        stage = Stage(session, hands)
        stage.arrive(FIRST)
        store = session.store
        assert isinstance(store, ServerClock)
        there = store.server_time()
        assert there is not None
        assert abs(there - datetime.now(UTC)) < timedelta(minutes=1)
        assert [row["state"] for row in stage.nights.tend()] == ["missing"]
        hands.now += timedelta(days=60)
        with pytest.raises(ClockError):
            stage.nights.tend()
