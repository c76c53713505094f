"""The loop of the service: who ticks, which ticks are triggers, what a trigger does; one thing at a time.

Nights are run in the thread that serves, so that a signal ends them as it ends any command. The scheduler's
own thread only ticks: at the times of the calendar, and every half minute, so that a machine that slept over
such a time notices as soon as it is awake. Which ticks are triggers is decided by the clock alone.
"""

import contextlib
import logging
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from esjobs.core.clock import Clock
from esjobs.core.errors import EsjobsError
from esjobs.nights.condition import Condition
from scheduler.calendar import Calendar, CalendarTrigger
from scheduler.metrics import Metrics

_log = logging.getLogger(__name__)
_HEARTBEAT_S = 30


@dataclass(frozen=True)
class Tended:
    """What came of a trigger: nights that were run, with their states, and how the installation is then."""

    nights: tuple[tuple[str, str, str | None], ...]
    condition: Condition

    @property
    def failure(self) -> str | None:
        """The nights that failed, and why; None where none did."""
        failed = [f"night {night}: {reason}" for night, state, reason in self.nights if state == "failed"]
        return "; ".join(failed) or None


class Tend(Protocol):
    """What a trigger does."""

    def __call__(self, unwritten: str | None) -> Tended:
        """Run what is due; ``unwritten``: why the trigger before failed, where no account of it was left."""


class Service:
    """Decides which ticks are triggers, and remembers what came of them.

    ``last``: up to when triggers are done; those since then are made up for by the first tick. None: none has
    ever been, and the first one is the next of the calendar.
    """

    def __init__(
        self, calendar: Calendar, tend: Tend, clock: Clock, metrics: Metrics, last: datetime | None = None
    ) -> None:
        self._calendar = calendar
        self._tend = tend
        self._clock = clock
        self._metrics = metrics
        self._seen = clock() if last is None else last
        self._failure: str | None = None
        self._unwritten: str | None = None
        self._condition = Condition()
        self._lock = threading.Lock()
        metrics.expects(calendar.next_after(clock()))

    def tick(self) -> bool:
        """Run what is due if a time of the calendar has come since the last trigger; whether it has.

        Of several that have come, one trigger is made: it sees every night that is missing. Clocks that go
        back bring no time a second time.
        """
        now = self._clock()
        times = self._calendar.between(self._seen, now)
        if not times:
            return False
        if len(times) > 1:
            _log.warning("%d triggers came while none was run; one makes up for them", len(times))
        # a time that comes while nights are run is seen by the next tick
        self._seen = now
        self._run()
        return True

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the last trigger went well and jobs keep coming, and what is known."""
        with self._lock:
            condition, failure = self._condition, self._failure
        said = {
            "ok": failure is None and not condition.stopped,
            "failure": failure,
            "ingest_stopped": condition.stopped,
            "last_night": condition.last_night,
            "last_state": condition.last_state,
            "last_success": condition.last_success,
            "next_trigger": self._calendar.next_after(self._clock()),
        }
        return bool(said["ok"]), said

    def take_note(self, condition: Condition) -> None:
        """How the installation is, before the first trigger."""
        with self._lock:
            self._condition = condition
        self._metrics.show(condition)

    def _run(self) -> None:
        self._metrics.running(on=True)
        failure = None
        try:
            tended = self._tend(self._unwritten)
            self._unwritten = None
            self.take_note(tended.condition)
            failure = tended.failure
        except EsjobsError as error:
            failure = self._unwritten = str(error)
            _log.error("nothing was run: %s", error)
        except Exception as error:
            failure = self._unwritten = f"a defect in esjobs, {type(error).__name__}; see the log"
            _log.exception("a defect")
        finally:
            with self._lock:
                self._failure = failure
            self._metrics.running(on=False)
            now = self._clock()
            self._metrics.triggered(now, self._calendar.next_after(now), ok=failure is None)


class Errand:
    """Something that is done every so often between the nights, whatever became of it the last time.

    ``do``: what it is; an :class:`EsjobsError` of it is logged, once as long as it stays the same.
    ``metrics`` count how often it went well, and how often not.
    """

    def __init__(
        self, name: str, every: timedelta, do: Callable[[], None], clock: Clock, metrics: Metrics
    ) -> None:
        metrics.knows_errand(name)
        self._metrics = metrics
        self._name = name
        self._every = every
        self._do = do
        self._clock = clock
        self._last: datetime | None = None
        self._said = ""

    def tick(self) -> bool:
        """Do it if its time has come; whether it was done. A clock that was put back does not delay it."""
        now = self._clock()
        if self._last is not None and timedelta(0) <= now - self._last < self._every:
            return False
        self._last = now
        said = ""
        ok = False
        try:
            self._do()
            ok = True
        except EsjobsError as error:
            said = str(error)
            if said != self._said:
                _log.error("%s: %s", self._name, error)
        except Exception:
            _log.exception("%s: a defect", self._name)
        self._said = said
        self._metrics.errand_done(self._name, ok=ok)
        return True


def serve(service: Service, calendar: Calendar, errands: Sequence[Errand] = ()) -> None:
    """Tick until the process is told to end (SIGTERM, SIGINT); a night that is being run is left as it is."""
    ticks: queue.SimpleQueue[None] = queue.SimpleQueue()
    # what it says of its ticks, twice a minute, is nothing that a reader of the log looks for
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    ticking = BackgroundScheduler(timezone="UTC")
    options: dict[str, Any] = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    ticking.add_job(ticks.put, CalendarTrigger(calendar), args=[None], **options)
    ticking.add_job(ticks.put, IntervalTrigger(seconds=_HEARTBEAT_S), args=[None], **options)
    ticks.put(None)
    with _ended_by_signals():
        ticking.start()
        try:
            while True:
                ticks.get()
                while not ticks.empty():
                    ticks.get_nowait()
                service.tick()
                for errand in errands:
                    errand.tick()
        # a signal in the middle of a query: DuckDB raises its own KeyboardInterrupt in place of ours
        except (Stop, KeyboardInterrupt):
            _log.info("told to end")
        finally:
            ticking.shutdown(wait=False)


class Stop(BaseException):
    """The process is to end; no handler of errors takes it for one."""


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise :class:`Stop` in the middle of whatever is done."""

    before: dict[signal.Signals, Any] = {}

    def stop(*_: object) -> None:
        # whoever signals a group of processes signals twice: the second one would cut the end short
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Stop

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
