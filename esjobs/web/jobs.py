"""Jobs page by page, those that ended last first."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from esjobs.core.arguments import window_of
from esjobs.core.errors import UsageError
from esjobs.core.window import Window
from esjobs.records.jobs.streams import listed_jobs
from esjobs.web.request import Request

# Columns of a list, before those that are computed
COLUMNS = ("job_id", "queue", "processing_type", "state", "end_time", "cores", "events", "wall_s")
_MORE = ("efficiency", "cpu_model", "user", "source")
_MICROSECOND = timedelta(microseconds=1)  # Windows exclude their end
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_EQUAL = 100_000


@dataclass(frozen=True)
class JobRows:
    """A page of jobs. ``next``: address of the following ones, empty at the end."""

    rows: pa.Table
    next: str


def job_rows(request: Request, size: int) -> JobRows:
    """Return the jobs of a request: conditions ``where``, ``window``, ``cursor``.

    The cursor holds the last end time and how many jobs with it were shown: jobs are in a fixed order, so
    every job comes once while the store does not change. Cost: as many rows as a page, and those that ended
    at the same time.
    """
    names = [name for name in (*COLUMNS, *_MORE) if not (request.hides_people and name == "user")]
    position = request.cursor()
    skip = 0 if position is None else _number(position[1], _MOST_EQUAL)
    window = _window(request, None if position is None else _number(position[0], 2**62))
    store = request.session.store
    if window is None:
        return JobRows(listed_jobs(store, (), None, names, limit=0).read_all(), "")
    most = skip + size + 1
    found = listed_jobs(store, request.conditions, window, names, "-end_time", most).read_all()
    rows = found.slice(skip, size)
    if found.num_rows < most:
        return JobRows(rows, "")
    ends = rows.column("end_time").to_pylist()
    last = _micros(ends[-1])
    n_equal = ends.count(ends[-1])
    # the whole page ended at the time of the cursor: those skipped did, too
    if n_equal == len(ends) and position is not None and last == position[0]:
        n_equal += skip
    return JobRows(rows, request.next_address(last, n_equal))


def _window(request: Request, last: int | None) -> Window | None:
    """Return the window of the jobs still to come; ``last``: end of the last one shown. None without any."""
    window = window_of(request.one("window"), lambda: request.now)
    span = request.session.store.span()
    if span.first is None or span.last is None:
        return None
    ends = [span.last + _MICROSECOND]
    ends += [] if last is None else [_time(last) + _MICROSECOND]
    ends += [] if window is None else [window.end]
    start = span.first if window is None else window.start
    return Window(start, min(ends)) if start < min(ends) else None


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise UsageError("the cursor cannot be read; take it from 'next' of the answer before")
    return value


def _time(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
