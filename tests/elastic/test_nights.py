"""Nights on a cluster: the same results as embedded, trouble with the engine, two services at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.cli.nightly import Trigger
from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.records.demo import Grid
from esjobs.records.night import NightAccount, NightWork
from esjobs.store.lease import Lease
from scheduler.nights import Nights
from scheduler.notifications.settings import NotifySettings
from tests.elastic.foreign import CATALOGUE, make_index, plain
from tests.messages import compare_text, raised
from tests.scheduler.notifications.servers import mail_server
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, NIGHT_STEPS, Hands, Stage, days, settings_of, staged
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy, Request, answers
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)

OPERATOR = {"name": "operator", "role": "operator", "channel": "mail", "address": "operator@grid.example"}
GRID = Grid(jobs_per_day=400, n_queues=20, n_models=8)
RESULTS = ("factors", "flags", "lines", "fit_summaries", "latest_runs", "nights")


def settings(url: str, prefix: str, **nights: Any) -> Settings:
    plain = settings_of(url, backoff_s=100.0, longest_pause_s=1_000.0, **nights)
    cluster = plain.cluster.model_copy(update={"prefix": prefix, "retries": 0})
    return plain.model_copy(update={"cluster": cluster})


def over_archive(url: str, prefix: str, hands: Hands, **sections: object) -> Session:
    """A session whose jobs are in an index of others, of which no document may be read alone."""
    given = {
        **settings_of(url).model_dump(),
        "cluster": {
            "prefix": f"{prefix}own",
            "jobs_index": f"{prefix}theirs",
            "field_map": "esjobs",
            "read_at_most": 0,
        },
        **sections,
    }
    return open_session(settings=Settings.model_validate(given), clock=hands.clock)


@contextmanager
def clustered(url: str, prefix: str, hands: Hands, **nights: Any) -> Iterator[Stage]:
    with open_session(settings=settings(url, prefix, **nights), clock=hands.clock) as session:
        yield Stage(session, hands)


def writes(request: Request) -> bool:
    """What changes something, but in the state: the lease stays."""
    return request.method in ("POST", "PUT") and "_bulk" in request.path


def test_nights_are_those_of_the_embedded_store(server: Server, index_prefix: str, tmp_path: Path) -> None:
    hands = Hands()
    with clustered(server.url, index_prefix, hands) as cluster:
        cluster.live(*days(FIRST, 2))
        cluster.arrive(FIRST + timedelta(days=1), seed=7, jobs=40)
        late = cluster.live(FIRST + timedelta(days=2))
        found = visible_rows(cluster.store)
    with staged(tmp_path) as embedded:
        embedded.live(*days(FIRST, 2))
        embedded.arrive(FIRST + timedelta(days=1), seed=7, jobs=40)
        assert [row["night"] for row in embedded.live(FIRST + timedelta(days=2))] == [
            row["night"] for row in late
        ]
        expected = visible_rows(embedded.store)
    assert all(expected[name] for name in RESULTS)
    assert {name: found[name] for name in RESULTS} == {name: expected[name] for name in RESULTS}


def test_trouble_that_passes_costs_pauses(server: Server, index_prefix: str) -> None:
    hands = Hands()
    with Proxy(server.url) as proxy, clustered(proxy.url, index_prefix, hands) as stage:
        stage.live(FIRST)
        stage.arrive(FIRST + timedelta(days=1))
        refused = answers(503, {"error": {"type": "unavailable", "reason": "made up"}, "status": 503})
        # the account of the steps is written; announcing the row of the night is what fails first
        trouble = proxy.on(writes, refused, skip=2, times=None)
        pause = hands.pause

        def healing(seconds: float) -> None:
            pause(seconds)
            if len([each for each in hands.pauses if each >= 100]) == 3:
                proxy.heal()

        hands.pause = healing  # type: ignore[method-assign]
        stage.nights._retry = hands.patience
        (row,) = stage.trigger(FIRST + timedelta(days=1))
        assert trouble.hits == 3
        assert [each for each in hands.pauses if each >= 100] == [100.0, 200.0, 400.0]
        assert (row["state"], row["attempt"]) == ("done", 1)


def test_trouble_that_lasts_ends_the_night_and_the_next_trigger_makes_up_for_it(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed night with the reason, one message of it; the next process knows both."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hands = Hands()
    with Proxy(server.url) as proxy, mail_server() as mails:
        with clustered(proxy.url, index_prefix, hands) as stage:
            stage.live(*days(FIRST, 2))
            stage.arrive(FIRST + timedelta(days=2))
            before = visible_rows(stage.store, ("buckets", "day_books", "nights", "night_steps"))
        plain = settings(proxy.url, index_prefix, deadline_h=1)
        notify = {"mail": mails.settings(security="none"), "recipients": [OPERATOR]}
        told = plain.model_copy(update={"notify": NotifySettings.model_validate(notify)})
        trigger = Trigger(told, hands.clock, hands.patience)
        refused = answers(503, {"error": {"type": "unavailable", "reason": "made up"}, "status": 503})
        proxy.on(lambda _: True, refused, times=None)
        hands.morning_after(FIRST + timedelta(days=2))
        began = hands.passed
        with raised(StoreError):
            trigger.tend()
        assert 1800 < hands.passed - began <= 3600
        proxy.heal()
        with clustered(proxy.url, index_prefix, hands) as stage:
            assert visible_rows(stage.store, ("buckets", "day_books", "nights", "night_steps")) == before
            stage.arrive(FIRST + timedelta(days=3))
        hands.morning_after(FIRST + timedelta(days=3))
        rows, condition = trigger.tend()
        assert [(str(row["night"]), row["state"], row["attempt"]) for row in rows] == [
            ("2025-06-03", "done", 2),
            ("2025-06-04", "done", 1),
        ]
        assert condition.nights == {"done": 4}
        # a further trigger says nothing of it again
        trigger.tend()
        bodies = [mail.get_body(("plain",)) for _, mail in mails.taken]
        texts = [" ".join(body.get_content().split()) for body in bodies if body is not None]
        assert sum("Night 2025-06-03 failed" in text for text in texts) == 1
        assert sum("its results are now complete" in text for text in texts) == 1
        with clustered(proxy.url, index_prefix, hands) as stage:
            found = visible_rows(stage.store)
    with staged(tmp_path) as embedded:
        embedded.live(*days(FIRST, 4))
        expected = visible_rows(embedded.store)
    assert {name: found[name] for name in RESULTS} == {name: expected[name] for name in RESULTS}


def test_jobs_of_others_are_judged_on_request_and_a_refusal_leaves_the_verdicts(
    server: Server, index_prefix: str
) -> None:
    rows = [row for day in days(FIRST, 2) for batch in GRID.jobs(day) for row in batch.to_pylist()]
    documents = [plain({name: row[name] for name in CATALOGUE if name in row}) for row in rows]
    make_index(server, f"{index_prefix}theirs", CATALOGUE, documents)
    hands = Hands()
    with over_archive(server.url, index_prefix, hands) as session:
        stage = Stage(session, hands)
        (row,) = stage.trigger(FIRST)
        assert (row["state"], row["reason"]) == ("done", None)
        notes = {each["step"]: each["notes"] for each in stage.nights._ledger.steps(FIRST)}
        compare_text(f"{notes['detect']}\n{notes['score']}")
    asked = {"issues": {"nightly": True}, "scores": {"nightly": True}}
    with over_archive(server.url, index_prefix, hands, **asked) as session:
        stage = Stage(session, hands)
        (row,) = stage.trigger(FIRST + timedelta(days=1))
        # what is refused would be refused again: nobody waits for it
        assert (row["state"], hands.pauses) == ("failed", [])
        compare_text(row["reason"].replace(index_prefix, "<prefix>-"))
        steps = {each["step"]: each["state"] for each in stage.nights._ledger.steps(row["night"])}
        assert {name for name, state in steps.items() if state == "failed"} == {"detect", "score"}
        assert {"fit 3d", "watch", "notify", "prune"} < set(steps)
        assert stage.session.tables.flags().rows.num_rows > 0


def test_of_two_services_one_works_and_that_of_a_dead_one_is_taken_over(
    server: Server, index_prefix: str
) -> None:
    hands = Hands()
    with (
        clustered(server.url, index_prefix, hands, fits=False) as one,
        clustered(server.url, index_prefix, hands, fits=False) as two,
    ):
        one.arrive(FIRST)

        def second(night: date) -> None:
            # the first one is in the middle of its night
            with raised(StoreBusyError):
                two.trigger(night)

        def prune(work: NightWork) -> NightAccount:
            second(work.night)
            return NightAccount()

        steps = [replace(step, function=prune) if step.name == "prune" else step for step in NIGHT_STEPS]
        one.nights = Nights(one.session._context, steps=steps, retry=hands.patience)
        assert [row["state"] for row in one.trigger(FIRST)] == ["done"]
        # one that died elsewhere leaves its lease, which ends by itself
        hands.morning_after(FIRST + timedelta(days=1))
        dead = Lease(two.store, "here", hands.clock, what="running nights", timer=hands.timer)
        dead.take()
        key = "who is running nights"
        text = two.store.value(key)
        assert text is not None
        elsewhere = text.replace('"process": "', '"process": "other-boot-')
        assert two.store.compare_and_set(key, text, elsewhere)
        two.arrive(FIRST + timedelta(days=1))
        began = hands.passed
        assert [row["state"] for row in two.trigger(FIRST + timedelta(days=1))] == ["done"]
        assert hands.passed - began > 600
