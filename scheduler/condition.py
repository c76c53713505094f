"""Health summary for metrics, health check and ``doctor``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from esjobs.core.errors import NoResultError
from esjobs.core.query import In
from esjobs.core.tables import columns
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import find_run
from esjobs.publish.publication import read_table
from esjobs.schema.notifications import NOTIFICATIONS, WAITING
from esjobs.schema.speed import FITS, FLAGS, SPEED
from esjobs.store.base import JobStore
from esjobs.store.lease import lease_age_s
from scheduler.ledger import RUNNING_NIGHTS, Ledger, Row
from scheduler.orders import pause_in_force


@dataclass(frozen=True)
class Condition:
    """Health summary from ledger and latest results.

    ``last_night``: newest account. ``last_success``: newest night done, ``last_success_at`` its end.
    ``seconds``: duration of the newest night's steps. ``nights``: count per state. ``jobs``: of the newest
    night, ``in``, ``used`` and ``dropped``. ``open_flags``: of the latest run, ``confirmed`` and
    ``candidate``. ``fits``: by level, True if converged. ``last_end``: end of the newest job; ``stopped``:
    True if too long ago. ``paused``: by whom and since when triggers run no nights. ``future``: accounts of
    nights not yet over, counted nowhere else. ``work``: sums over the newest night's steps, by column of
    ``night_steps``. ``unsent``: messages that wait to be sent. ``lease_age_s``: seconds since the process
    that runs nights renewed its lease; None if none does.
    """

    last_night: date | None = None
    last_state: str | None = None
    last_reason: str | None = None
    last_success: date | None = None
    last_success_at: datetime | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    nights: Mapping[str, int] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)
    open_flags: Mapping[str, int] = field(default_factory=dict)
    fits: Mapping[str, bool] = field(default_factory=dict)
    last_end: datetime | None = None
    stopped: bool = False
    paused: str | None = None
    future: tuple[date, ...] = ()
    work: Mapping[str, float] = field(default_factory=dict)
    unsent: int = 0
    lease_age_s: float | None = None


# Columns of ``night_steps`` that are summed over a night
WORK = columns(
    "processor_s documents_read documents_written documents_deleted bytes_written requests requests_failed"
)

_COUNTED = timedelta(days=60)  # Nights that are counted by state
_JOBS = {"in": "jobs", "used": "jobs_used", "dropped": "jobs_dropped"}  # By column of ``nights``


def condition(store: JobStore, now: datetime, stopped_h: float) -> Condition:
    """Return the health of a store; ``stopped_h``: hours without an ended job that stop ingest."""
    last_end = store.span().last
    stopped = last_end is not None and now - last_end > timedelta(hours=stopped_h)
    flags, fits = _results(store)
    ledger = Ledger(store, lambda: now)
    nights = ledger.nights((now - _COUNTED).date())
    found = Condition(
        open_flags=flags,
        fits=fits,
        last_end=last_end,
        stopped=stopped,
        paused=pause_in_force(store),
        future=tuple(ledger.future()),
        unsent=read_table(store, NOTIFICATIONS, [In("state", WAITING)], ["notification"]).num_rows,
        lease_age_s=lease_age_s(store, RUNNING_NIGHTS, now),
    )
    return _with_nights(found, nights, ledger) if nights else found


def _with_nights(found: Condition, nights: Sequence[Row], ledger: Ledger) -> Condition:
    """Return a condition with the newest night, the newest one done, and counts."""
    last = nights[-1]
    done = next((row for row in reversed(nights) if row["state"] == "done"), {})
    steps = ledger.steps(last["night"])
    return replace(
        found,
        last_night=last["night"],
        last_state=last["state"],
        last_reason=last["reason"],
        last_success=done.get("night"),
        last_success_at=done.get("finished"),
        seconds={row["step"]: row["seconds"] or 0.0 for row in steps},
        work={name: sum(filter(None, (row[name] for row in steps))) for name in WORK},
        nights=Counter(row["state"] for row in nights),
        jobs={name: last[column] or 0 for name, column in _JOBS.items()},
    )


def _results(store: JobStore) -> tuple[dict[str, int], dict[str, bool]]:
    """Return open flags by status, and fits by level: of the latest run, its headline method, all types."""
    try:
        run = find_run(store, SPEED, SPEED.steps)
    except NoResultError:
        return {}, {}
    where = [
        In("run", (run.run,)),
        In("processing_type", (ALL_TYPES,)),
        *((In("method", (run.headline,)),) if run.headline else ()),
    ]
    flags = read_table(store, FLAGS, [*where, In("level", ("queue",)), In("verdict", ("deviates",))])
    confirmed = sum(row is True for row in flags.column("confirmed").to_pylist())
    fits = read_table(store, FITS, where, ["level", "status"]).to_pylist()
    return (
        {"confirmed": confirmed, "candidate": flags.num_rows - confirmed},
        {row["level"]: row["status"] == "ok" for row in fits},
    )
