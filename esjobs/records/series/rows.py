"""Samples of jobs as rows of the table ``series``: what every source makes of what it has read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrow import given_schema
from esjobs.records.series.packing import LARGEST, pack, slot
from esjobs.schema.series import SERIES

GIVEN = given_schema(SERIES)
"""The columns of the rows that a source gives."""


@dataclass(frozen=True)
class Series:
    """The samples of one metric of one unit, at regular distances.

    ``values``: in the base unit of the metric, NaN where a sample is missing. ``start``: time of the first.
    ``step_s``: their distance in seconds; 0 for a single one. ``scope``, ``unit``: see the table.
    """

    metric: str
    scope: str
    unit: str
    start: datetime
    step_s: float
    values: npt.NDArray[np.float64]
    remark: str | None = None

    @property
    def last(self) -> datetime:
        """Time of the last sample."""
        return self.start + timedelta(seconds=self.step_s * max(len(self.values) - 1, 0))


def rows_of(
    source: str, job_id: str, series: Iterable[Series], end: datetime | None = None
) -> pa.RecordBatch:
    """The series of one job as rows (schema ``GIVEN``).

    ``end``: end of the job; without it that of the last sample of all series.
    """
    listed = [replace(one, start=_to_milliseconds(one.start)) for one in series]
    if end is None:
        end = max((one.last for one in listed), default=datetime(1970, 1, 1, tzinfo=UTC))
    end = _to_milliseconds(end)
    columns = {
        "source": [source] * len(listed),
        "job_id": [job_id] * len(listed),
        "end_time": [end] * len(listed),
        "metric": [one.metric for one in listed],
        "scope": [one.scope for one in listed],
        "unit": [one.unit for one in listed],
        "start_time": [one.start for one in listed],
        "step_s": [float(one.step_s) for one in listed],
        "n_samples": [len(one.values) for one in listed],
        "packed": [pack(one.values) for one in listed],
        "n_gaps": [len(one.values) - int(np.count_nonzero(np.abs(one.values) <= LARGEST)) for one in listed],
        "remark": [one.remark for one in listed],
        "day": [end.astimezone(UTC).date()] * len(listed),
        "slot": [slot(source, job_id)] * len(listed),
    }
    return pa.RecordBatch.from_pydict(columns, schema=GIVEN)


def _to_milliseconds(moment: datetime) -> datetime:
    """A moment as an index knows it: rows with finer ones would have to be read to be counted."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_MOST = 1_000_000
"""Instants of a few samples."""

_NEARLY = 0.25
"""Share of a distance by which samples may come early or late and count as regular."""


@dataclass(frozen=True)
class Regular:
    """Samples laid on regular instants.

    ``moved``: samples that stood more than a tenth of the distance off; ``dropped``: those for which another
    one of the same instant was taken, the later of the file.
    """

    start: datetime
    step_s: float
    columns: tuple[npt.NDArray[np.float64], ...]
    moved: int
    dropped: int

    @property
    def remark(self) -> str | None:
        """What was done, for people; None for nothing."""
        told = [
            f"{count:,} {what}"
            for count, what in (
                (self.moved, "samples moved to regular instants"),
                (self.dropped, "samples of an instant that has another"),
            )
            if count
        ]
        return ", ".join(told) or None


def regular(times: npt.NDArray[np.float64], columns: Sequence[npt.NDArray[np.float64]]) -> Regular:
    """Lay samples on instants at the median distance; instants without a sample are NaN.

    Where every sample comes nearly a whole number of such distances after the one before, the distance is
    the mean one, so that the last sample stays where it is.

    ``times``: seconds since 1970, in any order, at least one; ``columns``: values at these times. The
    instants begin with the earliest time. Where a few samples lie so far apart that there would be a million
    instants for them, :class:`ValueError` is raised.
    """
    order = np.argsort(times, kind="stable")
    times = times[order]
    distances = np.diff(times)
    distances = distances[distances > 0]
    step = float(np.median(distances)) if len(distances) else 0.0
    try:
        start = datetime.fromtimestamp(float(times[0]), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"a time of {times[0]:g} s since 1970 is none of the years 1 to 9999") from error
    if not step:
        return Regular(start, 0.0, tuple(column[order][-1:] for column in columns), 0, len(times) - 1)
    between = np.diff(times) / step
    if (np.abs(between - np.rint(between)) <= _NEARLY).all():
        # a distance that is a little off would leave a gap, or no room, once in many samples
        step = float((times[-1] - times[0]) / np.rint(between).sum())
    exact = (times - times[0]) / step
    if exact[-1] >= max(_MOST, 20 * len(times)):
        raise ValueError(f"from {times[0]:.0f} s to {times[-1]:.0f} s at distances of {step:g} s")
    places = np.rint(exact).astype(np.int64)
    laid = []
    for column in columns:
        on = np.full(int(places[-1]) + 1, np.nan)
        on[places] = column[order]
        laid.append(on)
    moved = int(np.count_nonzero(np.abs(exact - places) > 0.1))
    dropped = len(places) - len(np.unique(places))
    return Regular(start, step, tuple(laid), moved, dropped)
