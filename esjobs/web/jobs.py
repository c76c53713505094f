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
    window = window_of(request.one("window"), lambda: request.now)
    names = [name for name in (*COLUMNS, *_MORE) if not (request.hides_people and name == "user")]
    span = request.session.store.span()
    if span.first is None or span.last is None:
        return JobRows(listed_jobs(request.session.store, (), None, names, limit=0).read_all(), "")
    end, skip = span.last + timedelta(microseconds=1), 0
    position = request.cursor()
    if position is not None:
        last, skip = _number(position[0], 2**62), _number(position[1], _MOST_EQUAL)
        end = min(end, _time(last) + timedelta(microseconds=1))
    start = span.first if window is None else window.start
    end = end if window is None else min(end, window.end)
    if end <= start:
        return JobRows(listed_jobs(request.session.store, (), None, names, limit=0).read_all(), "")
    found = listed_jobs(
        request.session.store, request.conditions, Window(start, end), names, "-end_time", skip + size + 1
    ).read_all()
    rows = found.slice(skip, size)
    if found.num_rows <= skip + size:
        return JobRows(rows, "")
    times = rows.column("end_time").to_pylist()
    equal_ends = sum(each == times[-1] for each in times)
    if equal_ends == len(times) and position is not None and _micros(times[-1]) == position[0]:
        equal_ends += skip
    return JobRows(rows, request.next_address(_micros(times[-1]), equal_ends))


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
    return (moment - _EPOCH) // timedelta(microseconds=1)
