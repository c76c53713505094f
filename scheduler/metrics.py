"""Prometheus metrics of the service and of one-shot runs."""

import logging
from datetime import datetime
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
    push_to_gateway,
    write_to_textfile,
)

from esjobs.core.version import __version__
from scheduler.condition import WORK, Condition

_log = logging.getLogger(__name__)

STATES = ("done", "failed", "missing", "running")
_RESULTS = ("ok", "failed")
_REASONS = ("slots", "time", "threads", "descriptors")
_PUSH_S = 10.0


class Metrics:
    """Metrics of one service, in a registry of its own.

    After each trigger they are written to ``file``, for node_exporter, and pushed to ``gateway``; an empty
    name: neither. What fails there is a warning: the nights are done.
    """

    def __init__(self, file: str = "", gateway: str = "") -> None:
        self._file = file
        self._gateway = gateway
        self.registry = CollectorRegistry()

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"esjobs_{name}", meaning, labels, registry=self.registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"esjobs_{name}", meaning, labels, registry=self.registry)

        self._success = gauge("last_success_timestamp_seconds", "End of the newest completed night")
        self._trigger = gauge("last_trigger_timestamp_seconds", "Last trigger of the service")
        self._next = gauge("next_trigger_timestamp_seconds", "Next trigger of the service")
        self._running = gauge("running", "1 while nights are running")
        self._seconds = gauge("step_seconds", "Duration of each step of the newest night", "step")
        self._nights = gauge("nights", "Nights of the last 60 days by state", "state")
        self._jobs = gauge("night_jobs", "Jobs of the newest night: in, used, dropped", "what")
        self._flags = gauge("open_flags", "Queues that deviate in the latest results, by status", "status")
        self._work = gauge("night_work", "Work of the newest night: a column of night_steps, summed", "what")
        self._unsent = gauge("unsent_messages", "Messages that wait to be sent")
        self._lease = gauge("lease_age_seconds", "Time since the process that runs nights renewed its lease")
        gauge("build_info", "1, with the version of esjobs", "version").labels(__version__).set(1)
        self._fits = gauge("fit_ok", "1 if the latest fit converged", "level")
        self._last_end = gauge("last_job_end_timestamp_seconds", "End of the newest job")
        self._stopped = gauge("ingest_stopped", "1 if no job has ended for nights.ingest_stopped_h hours")
        self._triggers = counter("triggers", "Triggers by result", "result")
        self._tasks = counter("periodic_tasks", "Periodic tasks between nights, by result", "task", "result")
        self._refused = counter(
            "endpoint_refused", "Connections closed without a response, by missing resource", "reason"
        )
        # at 0 from the start: rate() misses the step from absent to 1
        for result in _RESULTS:
            self._triggers.labels(result)
        for reason in _REASONS:
            self._refused.labels(reason)

    def refused(self, reason: str) -> None:
        """Count a connection ended without a response."""
        self._refused.labels(reason).inc()

    def running(self, *, on: bool) -> None:
        """Set whether nights are being run."""
        self._running.set(on)

    def triggered(self, moment: datetime, following: datetime | None, *, ok: bool) -> None:
        """Count a finished trigger."""
        self._trigger.set(moment.timestamp())
        self._triggers.labels("ok" if ok else "failed").inc()
        self.expects(following)
        self._publish()

    def knows_task(self, name: str) -> None:
        """Start the counters of a periodic task at 0."""
        for result in _RESULTS:
            self._tasks.labels(name, result)

    def task_done(self, name: str, *, ok: bool) -> None:
        """Count a finished periodic task."""
        self._tasks.labels(name, "ok" if ok else "failed").inc()

    def expects(self, following: datetime | None) -> None:
        """Set the time of the next trigger."""
        self._next.set(following.timestamp() if following is not None else 0)

    def show(self, condition: Condition) -> None:
        """Set the gauges from a health summary."""
        if condition.last_success_at is not None:
            self._success.set(condition.last_success_at.timestamp())
        if condition.last_end is not None:
            self._last_end.set(condition.last_end.timestamp())
        self._stopped.set(condition.stopped)
        # steps of the night before must not stand beside those of the newest
        self._seconds.clear()
        for step, seconds in condition.seconds.items():
            self._seconds.labels(step).set(seconds)
        for state in STATES:
            self._nights.labels(state).set(condition.nights.get(state, 0))
        for what, number in condition.jobs.items():
            self._jobs.labels(what).set(number)
        for what in WORK:
            self._work.labels(what).set(condition.work.get(what, 0))
        self._unsent.set(condition.unsent)
        self._lease.set(condition.lease_age_s or 0)
        for status, number in condition.open_flags.items():
            self._flags.labels(status).set(number)
        for level, ok in condition.fits.items():
            self._fits.labels(level).set(ok)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus format."""
        return generate_latest(self.registry)

    def _publish(self) -> None:
        if self._file:
            try:
                write_to_textfile(self._file, self.registry)
                # node_exporter runs as another user
                Path(self._file).chmod(0o644)
            except OSError as error:
                _log.warning("metrics were not written to %s: %s", self._file, error.strerror)
        if self._gateway:
            try:
                push_to_gateway(self._gateway, job="esjobs", registry=self.registry, timeout=_PUSH_S)
            except (OSError, ValueError) as error:
                _log.warning("metrics were not pushed to %s: %s", self._gateway, error)
