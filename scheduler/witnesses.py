"""Evidence, beside the clock of this machine, that a night is over.

A fast clock makes nights of the future: sixty "missing" ones, retention that counts from them, mails about
them. So a trigger runs a night only if other evidence reaches nearly as far. A clock without a battery starts
in 1970, and would run a night without jobs.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from esjobs.core.clock import Clock
from esjobs.core.errors import ClockError
from esjobs.core.query import Count, Query
from esjobs.core.window import Window
from esjobs.store.base import JobStore, ServerClock
from scheduler.ledger import Ledger

_TOLERANCE = timedelta(days=1)  # Of a night after the newest evidence: a day may have no jobs
# Of a night before most jobs: records of the past are loaded, and some have a wrong year
_LONGEST_BACK = timedelta(days=366)


def last_complete_day(now: datetime) -> date:
    """Return the last complete day of UTC.

    >>> last_complete_day(datetime(2018, 9, 1, 3, 30, tzinfo=UTC)).isoformat()
    '2018-08-31'
    """
    return now.astimezone(UTC).date() - timedelta(days=1)


def require_plausible(store: JobStore, clock: Clock, night: date) -> None:
    """Raise :class:`ClockError` for a night more than a day after all evidence, or years before most jobs.

    Evidence is the end of the newest job and the time of the store's server; without a server the newest
    night that ran: nights without jobs follow each other by a day. A store without evidence takes every
    night. Costs one ``span``, and a search that reads no document.
    """
    _require_no_past(store, night)
    evidence = list(_evidence(store, clock, night))
    if not evidence:
        return
    newest, what = max(evidence)
    if night - newest > _TOLERANCE:
        raise ClockError(
            f"night {night} was not run: it lies {(night - newest).days} days after {newest} ({what}). Set "
            f"the system clock; if it is right, run: esjobs catch-up --to {night}"
        )


def _require_no_past(store: JobStore, night: date) -> None:
    span = store.span()
    if span.last is None or span.last.date() - night <= _LONGEST_BACK:
        return
    later = Window(datetime.combine(night + _LONGEST_BACK, time(), UTC), span.last + timedelta(seconds=1))
    n_later = store.aggregate(Query((), (Count("n"),), later, books=False)).table.column("n")[0].as_py()
    # a single record may have a wrong year
    if 2 * n_later > span.jobs:
        raise ClockError(
            f"night {night} was not run: it lies {(span.last.date() - night).days} days before "
            f"{span.last.date()} (day of the newest job). Set the system clock; if it is right, run: esjobs "
            f"catch-up --to {night}"
        )


def _evidence(store: JobStore, clock: Clock, night: date) -> Iterator[tuple[date, str]]:
    last_job = store.span().last
    if last_job is not None:
        yield last_job.date(), "day of the newest job"
    server_time = store.server_time() if isinstance(store, ServerClock) else None
    if server_time is not None:
        yield last_complete_day(server_time), "last complete day by the clock of the cluster"
        return
    # a missing night has an account too, without an attempt: it shows nothing
    run = [row["night"] for row in Ledger(store, clock).nights(None, night) if row["attempt"]]
    if run:
        yield max(run), "newest night in the ledger"
