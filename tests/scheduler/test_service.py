"""Which ticks are triggers; what the service says of itself over HTTP."""

import json
import os
import signal
import socket
import threading
import urllib.error
import urllib.request
from datetime import UTC, date, datetime, timedelta

import pytest
from apscheduler.schedulers.background import BackgroundScheduler

from esjobs.core.errors import ClockError, StoreError
from scheduler.calendar import Calendar
from scheduler.clock_watch import ClockWatch
from scheduler.condition import Condition
from scheduler.endpoint import Endpoint
from scheduler.metrics import Metrics
from scheduler.service import Service, TriggerResult, serve
from tests.messages import raised

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
DAILY = Calendar("30 3 * * *")


class Installation:
    """What a trigger does, as the service sees it: it takes time, and it may fail."""

    def __init__(self) -> None:
        self.now = NOON
        self.began: list[datetime] = []
        self.told: list[str | None] = []
        self.takes = timedelta(minutes=5)
        self.error: Exception | None = None
        self.state = "done"
        self.condition = Condition(last_night=date(2025, 5, 31), last_state="done")

    def clock(self) -> datetime:
        return self.now

    def __call__(self, pending: str | None) -> TriggerResult:
        self.began.append(self.now)
        self.told.append(pending)
        self.now += self.takes
        if self.error is not None:
            raise self.error
        return TriggerResult(
            (("2025-05-31", self.state, "no room" if self.state == "failed" else None),), self.condition
        )

    def service(self, last: datetime | None = None, metrics: Metrics | None = None) -> Service:
        return Service(DAILY, self, self.clock, metrics or Metrics(), last)

    def tick_for(self, service: Service, hours: float, every_s: float = 600) -> None:
        end = self.now + timedelta(hours=hours)
        while self.now < end:
            service.tick()
            self.now += timedelta(seconds=every_s)


def hours(moments: list[datetime]) -> list[str]:
    return [moment.strftime("%d %H:%M") for moment in moments]


def test_a_trigger_a_day() -> None:
    installation = Installation()
    installation.tick_for(installation.service(), 72)
    assert [each[:5] for each in hours(installation.began)] == ["02 03", "03 03", "04 03"]


def test_a_new_installation_waits_for_its_first_trigger_and_a_restarted_one_makes_up_for_the_last() -> None:
    installation = Installation()
    assert not installation.service().tick()
    assert not installation.service(last=NOON - timedelta(hours=1)).tick()
    assert installation.service(last=NOON - timedelta(hours=12)).tick()


def test_a_machine_that_slept_over_triggers_makes_one() -> None:
    installation = Installation()
    service = installation.service()
    installation.now += timedelta(days=3)
    assert service.tick()
    assert not service.tick()
    assert len(installation.began) == 1


def test_a_clock_that_goes_back_brings_no_trigger_twice() -> None:
    installation = Installation()
    service = installation.service()
    installation.now = datetime(2025, 6, 2, 3, 31, tzinfo=UTC)
    assert service.tick()
    installation.now = datetime(2025, 6, 2, 2, 36, tzinfo=UTC)
    installation.tick_for(service, 3)
    assert len(installation.began) == 1
    installation.tick_for(service, 24)
    assert hours(installation.began)[1].startswith("03 03")


def test_a_night_longer_than_a_day_is_followed_by_one_trigger() -> None:
    installation = Installation()
    installation.takes = timedelta(hours=50)
    service = installation.service()
    installation.now = datetime(2025, 6, 2, 3, 31, tzinfo=UTC)
    assert service.tick()
    installation.takes = timedelta(minutes=5)
    assert service.tick()
    assert not service.tick()
    assert len(installation.began) == 2


def test_a_failure_without_an_account_is_handed_to_the_next_trigger_once() -> None:
    installation = Installation()
    service = installation.service()
    installation.error = StoreError("the cluster does not answer; start it")
    installation.tick_for(service, 24)
    well, said = service.health()
    assert not well
    assert said["failure"] == "the cluster does not answer; start it"
    installation.error = None
    installation.tick_for(service, 48)
    assert installation.told == [None, "the cluster does not answer; start it", None]
    assert service.health()[0]


def test_a_failed_night_and_stopped_ingest_are_not_well() -> None:
    installation = Installation()
    installation.state = "failed"
    service = installation.service(last=NOON - timedelta(days=1))
    service.tick()
    assert service.health()[1]["failure"] == "night 2025-05-31: no room"
    installation.state = "done"
    installation.condition = Condition(stopped=True)
    installation.tick_for(service, 24)
    well, said = service.health()
    assert (well, said["failure"], said["ingest_stopped"]) == (False, None, True)


def test_a_defect_does_not_end_the_service() -> None:
    installation = Installation()
    installation.error = KeyError("secret-text")
    service = installation.service(last=NOON - timedelta(days=1))
    assert service.tick()
    assert "KeyError" in service.health()[1]["failure"]
    assert "secret-text" not in service.health()[1]["failure"]


def ask(address: tuple[str, int], path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address[0]}:{address[1]}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_and_health_over_http() -> None:
    installation = Installation()
    installation.condition = Condition(
        last_success_at=NOON,
        seconds={"fit 30d": 1.5},
        nights={"done": 3},
        jobs={"in": 10, "used": 8, "dropped": 2},
        open_flags={"confirmed": 4, "candidate": 1},
        fits={"queue": True, "cpu_model": False},
        last_end=NOON,
    )
    metrics = Metrics()
    service = installation.service(last=NOON - timedelta(days=1), metrics=metrics)
    service.tick()
    with Endpoint("127.0.0.1", 0, metrics, service.health) as endpoint:
        assert endpoint.address[0] == "127.0.0.1"
        status, text = ask(endpoint.address, "/metrics")
        assert status == 200
        told = dict(line.rpartition(" ")[::2] for line in text.splitlines())
        assert float(told["esjobs_last_success_timestamp_seconds"]) == NOON.timestamp()
        expected = {
            'esjobs_step_seconds{step="fit 30d"}': "1.5",
            'esjobs_nights{state="done"}': "3.0",
            'esjobs_night_jobs{what="dropped"}': "2.0",
            'esjobs_open_flags{status="confirmed"}': "4.0",
            'esjobs_fit_ok{level="cpu_model"}': "0.0",
            "esjobs_ingest_stopped": "0.0",
            'esjobs_triggers_total{result="ok"}': "1.0",
        }
        assert {name: told[name] for name in expected} == expected
        status, text = ask(endpoint.address, "/health")
        assert (status, json.loads(text)["ok"]) == (200, True)
        installation.error = StoreError("no store; make one")
        installation.tick_for(service, 24)
        status, text = ask(endpoint.address, "/health")
        assert (status, json.loads(text)["failure"]) == (503, "no store; make one")
        assert ask(endpoint.address, "/")[0] == 404


def test_an_address_that_is_taken_is_told_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with raised(StoreError):
            Endpoint("127.0.0.1", port, Metrics(), lambda: (True, {}))


def test_a_signal_ends_the_service_in_the_middle_of_a_night() -> None:
    installation = Installation()
    waiting = threading.Event()

    def night(pending: str | None) -> TriggerResult:
        del pending
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        waiting.wait(30)
        raise AssertionError("it was not ended")

    service = Service(DAILY, night, installation.clock, Metrics(), NOON - timedelta(days=1))
    before = signal.getsignal(signal.SIGTERM)
    serve(service, DAILY)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_does_not_cut_the_end_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group of processes each gets one, and hands it on."""
    ended = []
    shutdown = BackgroundScheduler.shutdown

    def slow(scheduler: BackgroundScheduler, *, wait: bool = True) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        shutdown(scheduler, wait=wait)
        ended.append(scheduler)

    monkeypatch.setattr(BackgroundScheduler, "shutdown", slow)

    def night(pending: str | None) -> TriggerResult:
        del pending
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it was not ended")

    serve(Service(DAILY, night, Installation().clock, Metrics(), NOON - timedelta(days=1)), DAILY)
    assert len(ended) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_during_a_destructor_ends_the_service_after_the_night() -> None:
    """Python drops what a destructor raises, and signals that follow the first are ignored."""

    class Closing:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    installation = Installation()

    def night(pending: str | None) -> TriggerResult:
        closing = Closing()
        del closing
        return installation(pending)

    serve(Service(DAILY, night, installation.clock, Metrics(), NOON - timedelta(days=1)), DAILY)
    assert len(installation.began) == 1


def ahead(pending: str | None) -> TriggerResult:
    del pending
    raise ClockError("the night lies 60 days after the newest job; set the clock")


def test_a_clock_that_was_ahead_once_delays_nothing() -> None:
    """Accepted, where a store has no evidence against it."""
    installation = Installation()
    service = installation.service()
    installation.now += timedelta(days=60)
    assert service.tick()
    installation.now = NOON + timedelta(minutes=5)
    assert service.tick()
    assert not service.tick()
    installation.tick_for(service, 48)
    assert len(installation.began) == 4


def test_a_trigger_that_is_refused_because_of_the_clock_is_tried_again_and_forgotten_with_it() -> None:
    installation = Installation()
    passed = 0.0
    service = Service(DAILY, ahead, installation.clock, Metrics(), timer=lambda: passed)
    installation.now += timedelta(days=60)
    assert service.tick()
    well, said = service.health()
    assert not well
    assert "60 days" in said["failure"]
    assert not service.tick()
    passed = 601.0
    assert service.tick()
    installation.now -= timedelta(days=60)
    service.clock_moved(timedelta(days=-60))
    assert not service.tick()
    well, said = service.health()
    assert well
    assert said["clock"].startswith("moved by -5184000 s")


def test_the_loop_ticks_by_itself_and_schedules_anew_when_the_clock_was_set() -> None:
    """The scheduler alone would sleep until the day that the clock showed once."""
    installation = Installation()
    passed = [0.0]
    watch = ClockWatch(installation.clock, lambda: passed[0])
    moments: list[datetime] = []

    class Ticked(Service):
        def tick(self) -> bool:
            moments.append(installation.now)
            match len(moments):
                case 1:
                    installation.now += timedelta(days=60)
                case 2:
                    installation.now -= timedelta(days=60)
                case 3:
                    installation.now += timedelta(hours=15, minutes=31)
                    passed[0] += 15.6 * 3600
                case 5:
                    os.kill(os.getpid(), signal.SIGTERM)
            return super().tick()

    service = Ticked(DAILY, installation, installation.clock, Metrics())
    serve(service, DAILY, watch=watch, heartbeat_s=0.05)
    assert [each.date().isoformat() for each in moments[:4]] == [
        *("2025-06-01", "2025-07-31", "2025-06-01", "2025-06-02")
    ]
    assert service.health()[1]["clock"].startswith("moved by -51837")
    # for the wrong clock, for the right one again, and the next morning
    assert [each.date().isoformat() for each in installation.began] == [
        *("2025-07-31", "2025-06-01", "2025-06-02")
    ]


def test_slewing_and_late_ticks_are_no_jump() -> None:
    now, passed = NOON, 0.0
    watch = ClockWatch(lambda: now, lambda: passed)
    now, passed = now + timedelta(seconds=3600), 3560.0
    assert watch.jump() is None
    now, passed = now + timedelta(seconds=30), passed + 3600
    assert watch.jump() == timedelta(seconds=-3570)
    assert watch.jump() is None


def test_the_service_is_not_well_until_the_store_has_answered_once() -> None:
    installation = Installation()
    unreachable: list[Exception] = [StoreError("the cluster cannot be reached; start it")]

    def look() -> tuple[Condition, datetime | None]:
        if unreachable:
            raise unreachable[0]
        return installation.condition, NOON - timedelta(hours=1)

    service = Service(DAILY, installation, installation.clock, Metrics(), look=look)
    with Endpoint("127.0.0.1", 0, Metrics(), service.health) as endpoint:
        for words in ("not responded yet", "cannot be reached"):
            status, text = ask(endpoint.address, "/health")
            assert (status, json.loads(text)["ok"]) == (503, False)
            assert words in json.loads(text)["starting"]
            service.tick()
        unreachable.clear()
        service.tick()
        status, text = ask(endpoint.address, "/health")
        assert (status, json.loads(text)["starting"]) == (200, None)
        assert json.loads(text)["last_night"] == "2025-05-31"
