"""Main loop of the service: ticks, triggers, one task at a time.

Nights run in the serving thread, so that a signal ends them like any command. The scheduler's own thread only
ticks, at the times of the calendar. It follows the wall clock and remembers the next time, which a wrong
clock may have put years ahead. So the serving thread also ticks every 30 s of a monotonic clock, and
schedules anew when the clock was set. The calendar decides which ticks are triggers.
"""

import contextlib
import logging
import math
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import ClockError, EsjobsError
from scheduler.calendar import Calendar, CalendarTrigger
from scheduler.clock_watch import ClockWatch, elapsed_s
from scheduler.condition import Condition
from scheduler.metrics import Metrics

_log = logging.getLogger(__name__)
_HEARTBEAT_S = 30
_DAY = timedelta(days=1)
# Pause after a trigger that was refused because of the clock; jobs that come meanwhile may be evidence
_REFUSED_FOR_S = 600.0
STARTING = "starting: the store has not responded yet"


@dataclass(frozen=True)
class TriggerResult:
    """Result of a trigger: nights with their states, and the health after them."""

    nights: tuple[tuple[str, str, str | None], ...]
    condition: Condition

    @property
    def failure(self) -> str | None:
        """Failed nights with reasons; None without any."""
        failed = [f"night {night}: {reason}" for night, state, reason in self.nights if state == "failed"]
        return "; ".join(failed) or None


OnTrigger = Callable[[str | None], TriggerResult]  # argument: failure without an account
ReadHealth = Callable[[], tuple[Condition, datetime | None]]  # health, and start of the newest night


class Service:
    """Triggers and their results.

    ``last``: triggers up to this time are done; later ones are made up for by the first tick. None: the first
    trigger is the next of the calendar. ``look`` reads it from the store, with the health: the service is
    starting, and not well, until the store has answered once. ``timer``: monotonic seconds.
    """

    def __init__(
        self,
        calendar: Calendar,
        on_trigger: OnTrigger,
        clock: Clock,
        metrics: Metrics,
        last: datetime | None = None,
        *,
        look: ReadHealth | None = None,
        timer: Callable[[], float] = elapsed_s,
    ) -> None:
        self._calendar = calendar
        self._tend = on_trigger
        self._clock = clock
        self._metrics = metrics
        self._look = look
        self._timer = timer
        self._seen = clock() if last is None else last
        self._failure: str | None = None
        self._pending: str | None = None
        self._starting = None if look is None else STARTING
        self._refused_at: float | None = None
        self._clock_change: str | None = None
        self._condition = Condition()
        self._lock = threading.Lock()
        metrics.expects(calendar.next_after(clock()))

    def tick(self) -> bool:
        """Run what is due if a trigger time has passed since the last trigger; True if one has.

        Several missed times make one trigger: it sees every missing night. A clock set back repeats no time;
        one that was fast by more than a day was wrong, and its triggers are made up for. A trigger refused
        because of the clock is repeated.
        """
        if self._starting is not None:
            self._ask()
        now = self._clock()
        # the clock was fast when the last trigger ran; smaller steps back repeat nothing
        if self._seen - now > _DAY:
            self._seen = now - _DAY
        times = self._calendar.between(self._seen, now)
        if not times:
            self._forget_refusal()
            return False
        if self._refused_at is not None and self._timer() - self._refused_at < _REFUSED_FOR_S:
            return False
        if len(times) > 1 and self._refused_at is None:
            _log.warning("missed %d scheduled triggers; running once", len(times))
        # a trigger that comes due while nights are run is left to the next tick
        before, self._seen = self._seen, now
        if not self._run():
            self._seen = before
        return True

    def clock_moved(self, by: timedelta) -> None:
        """Note a change of the clock: triggers refused because of it are repeated."""
        # the pause after a refusal ends at once
        if self._refused_at is not None:
            self._refused_at = -math.inf
        text = f"moved by {by.total_seconds():+.0f} s, to {self._clock():%Y-%m-%d %H:%M:%S} UTC"
        _log.warning("the system clock was %s", text)
        with self._lock:
            self._clock_change = text
        self._metrics.expects(self._calendar.next_after(self._clock()))

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Return True if the last trigger succeeded and jobs arrive, with details; needs no store."""
        # asked by threads of the endpoint while a night runs: one consistent picture, no store
        with self._lock:
            condition, failure, starting = self._condition, self._failure, self._starting
            clock_change = self._clock_change
        ok = failure is None and starting is None and not condition.stopped
        return ok, {
            "ok": ok,
            "starting": starting,
            "failure": failure,
            "clock": clock_change,
            "future_nights": len(condition.future),
            "ingest_stopped": condition.stopped,
            "last_night": condition.last_night,
            "last_state": condition.last_state,
            "last_success": condition.last_success,
            "next_trigger": self._calendar.next_after(self._clock()),
        }

    def take_note(self, condition: Condition) -> None:
        """Keep the health: the store has answered."""
        with self._lock:
            self._condition = condition
            self._starting = None
        self._metrics.show(condition)

    def _ask(self) -> None:
        if self._look is None:
            return
        try:
            condition, last = self._look()
        except EsjobsError as error:
            starting = f"{STARTING}: {error}"
            if starting != self._starting:
                _log.warning("%s", starting)
            with self._lock:
                self._starting = starting
            return
        self.take_note(condition)
        if last is not None:
            self._seen = last

    def _run(self) -> bool:
        # False if refused because of the clock.
        self._metrics.running(on=True)
        failure = self._refused_at = None
        try:
            result = self._tend(self._pending)
            self._pending = None
            self.take_note(result.condition)
            failure = result.failure
        except ClockError as error:
            failure = str(error)
            self._refused_at = self._timer()
            # repeated every ten minutes; logged once
            if failure != self._failure:
                _log.error("%s", error)
        except EsjobsError as error:
            failure = self._pending = str(error)
            _log.error("no night was run: %s", error)
        except Exception as error:
            failure = self._pending = f"internal error in esjobs ({type(error).__name__}); see the log"
            _log.exception("internal error")
        finally:
            with self._lock:
                self._failure = failure
            self._metrics.running(on=False)
            now = self._clock()
            self._metrics.triggered(now, self._calendar.next_after(now), ok=failure is None)
        return self._refused_at is None

    def _forget_refusal(self) -> None:
        # By the present clock no trigger is due: the refused one never was.
        if self._refused_at is not None:
            self._refused_at = None
            with self._lock:
                self._failure = None


class PeriodicTask:
    """Periodic task between nights, whatever the last result.

    An :class:`EsjobsError` of ``do`` is logged once while it stays the same. ``metrics`` count successes and
    failures.
    """

    def __init__(
        self, name: str, every: timedelta, do: Callable[[], None], clock: Clock, metrics: Metrics
    ) -> None:
        metrics.knows_task(name)
        self._metrics = metrics
        self._name = name
        self._every = every
        self._do = do
        self._clock = clock
        self._last: datetime | None = None
        self._failure = ""

    def tick(self) -> bool:
        """Run the task if due; True if it ran. A clock set back does not delay it."""
        now = self._clock()
        if self._last is not None and timedelta(0) <= now - self._last < self._every:
            return False
        self._last = now
        ok, failure = False, ""
        try:
            self._do()
            ok = True
        except EsjobsError as error:
            failure = str(error)
            if failure != self._failure:
                _log.error("%s: %s", self._name, error)
        except Exception:
            _log.exception("%s: internal error", self._name)
        self._failure = failure
        self._metrics.task_done(self._name, ok=ok)
        return True


def serve(
    service: Service,
    calendar: Calendar,
    tasks: Sequence[PeriodicTask] = (),
    *,
    watch: ClockWatch | None = None,
    heartbeat_s: float = _HEARTBEAT_S,
) -> None:
    """Tick until SIGTERM or SIGINT; a running night is left as it is."""
    ticks: queue.SimpleQueue[None] = queue.SimpleQueue()
    # it logs each tick, twice a minute
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    ticking = BackgroundScheduler(timezone="UTC")
    options: dict[str, Any] = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    job = ticking.add_job(ticks.put, CalendarTrigger(calendar), args=[None], **options)
    ticks.put(None)
    watch = watch or ClockWatch(system_clock)
    with _ended_by_signals(ticks) as ending:
        ticking.start()
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    ticks.get(timeout=heartbeat_s)
                # ticks that came during a long night are one
                while not ticks.empty():
                    ticks.get_nowait()
                if ending.is_set():
                    raise Stop
                changed = watch.jump()
                if changed is not None:
                    # its next time was computed by the wrong clock
                    job.reschedule(CalendarTrigger(calendar))
                    service.clock_moved(changed)
                service.tick()
                for task in tasks:
                    task.tick()
        # a signal in the middle of a query: DuckDB raises its own KeyboardInterrupt in place of ours
        except (Stop, KeyboardInterrupt):
            _log.info("stopping on request")
        finally:
            ticking.shutdown(wait=False)


class Stop(BaseException):
    """End of the process; not an Exception, so that no error handler catches it."""


@contextlib.contextmanager
def _ended_by_signals(ticks: "queue.SimpleQueue[None]") -> Iterator[threading.Event]:
    before: dict[signal.Signals, Any] = {}
    ending = threading.Event()

    def stop(*_: object) -> None:
        # a signal to a group of processes arrives twice: the second one would cut the end short
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        # Python drops what is raised in a destructor, and a signal may arrive there: the loop looks again
        ending.set()
        ticks.put(None)
        raise Stop

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, stop)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
