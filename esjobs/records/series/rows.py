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

ROW_SCHEMA = given_schema(SERIES)
"""The columns of the rows that a source gives."""


@dataclass(frozen=True)
class Series:
    """The samples of one metric of one unit, at regular distances.

    ``values``: in base units, NaN where missing. ``step_s``: their distance; 0 for a single one.
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
    """Return the series of one job as rows; ``end``: of the job, None: the last sample of all series."""
    listed = [replace(one, start=_to_milliseconds(one.start)) for one in series]
    if end is None:
        end = max((one.last for one in listed), default=datetime(1970, 1, 1, tzinfo=UTC))
    end = _to_milliseconds(end)
    of_job = {
        "source": source,
        "job_id": job_id,
        "end_time": end,
        "day": end.astimezone(UTC).date(),
        "slot": slot(source, job_id),
    }
    rows = [
        {
            **of_job,
            "metric": one.metric,
            "scope": one.scope,
            "unit": one.unit,
            "start_time": one.start,
            "step_s": float(one.step_s),
            "n_samples": len(one.values),
            "packed": pack(one.values),
            "n_gaps": len(one.values) - int(np.count_nonzero(np.abs(one.values) <= LARGEST)),
            "remark": one.remark,
        }
        for one in listed
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ROW_SCHEMA)


def _to_milliseconds(moment: datetime) -> datetime:
    # an index stores milliseconds: finer rows would have to be read to be counted
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


# Instants of a few samples.
_MOST = 1_000_000

# Share of a distance by which samples may come early or late and count as regular.
_NEARLY = 0.25


@dataclass(frozen=True)
class Regular:
    """Samples laid on regular instants.

    ``shifted``: samples more than a tenth of the distance off; ``dropped``: replaced by a later one.
    """

    start: datetime
    step_s: float
    columns: tuple[npt.NDArray[np.float64], ...]
    shifted: int
    dropped: int

    @property
    def remark(self) -> str | None:
        """Description of the changes for people; None without any."""
        changes = [
            f"{count:,} {what}"
            for count, what in (
                (self.shifted, "samples moved to regular instants"),
                (self.dropped, "samples with the time of another sample"),
            )
            if count
        ]
        return ", ".join(changes) or None


def regular(times: npt.NDArray[np.float64], columns: Sequence[npt.NDArray[np.float64]]) -> Regular:
    """Lay samples on instants at the median distance from the earliest time; empty instants are NaN.

    ``times``: s since 1970, in any order, at least one. Where every sample comes nearly a multiple of the
    distance after the one before, the mean distance keeps the last sample in place. Raises
    :class:`ValueError` for a million instants of a few samples.
    """
    order = np.argsort(times, kind="stable")
    times = times[order]
    distances = np.diff(times)
    distances = distances[distances > 0]
    step = float(np.median(distances)) if len(distances) else 0.0
    try:
        start = datetime.fromtimestamp(float(times[0]), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"a time of {times[0]:g} s since 1970 is outside the years 1 to 9999") from error
    if not step:
        return Regular(start, 0.0, tuple(column[order][-1:] for column in columns), 0, len(times) - 1)
    between = np.diff(times) / step
    if (np.abs(between - np.rint(between)) <= _NEARLY).all():
        # a distance that is a little off would leave a gap, or no room, once in many samples
        step = float((times[-1] - times[0]) / np.rint(between).sum())
    exact = (times - times[0]) / step
    # one wrong clock would stretch a few samples over years
    if exact[-1] >= max(_MOST, 20 * len(times)):
        raise ValueError(f"from {times[0]:.0f} s to {times[-1]:.0f} s at distances of {step:g} s")
    instants = np.rint(exact).astype(np.int64)
    laid = []
    for column in columns:
        on = np.full(int(instants[-1]) + 1, np.nan)
        # of samples on one instant the last stays
        on[instants] = column[order]
        laid.append(on)
    shifted = int(np.count_nonzero(np.abs(exact - instants) > 0.1))
    dropped = len(instants) - len(np.unique(instants))
    return Regular(start, step, tuple(laid), shifted, dropped)


def rates(
    times: npt.NDArray[np.float64], counters: Sequence[npt.NDArray[np.float64]]
) -> tuple[npt.NDArray[np.float64], int]:
    """Rates per second of the sum of counters, and the number of decreases.

    ``times``: s, rising. The first sample has no rate; where a counter falls, because a process ended or a
    host began anew, there is none either.

    >>> rates(np.array([0.0, 10, 20]), [np.array([0.0, 5, 3])])
    (array([nan, 0.5, nan]), 1)
    """
    total = np.zeros(len(times) - 1)
    fallen = np.zeros(len(times) - 1, bool)
    for counter in counters:
        risen = np.diff(counter)
        fallen |= risen < 0
        total += risen
    with np.errstate(invalid="ignore"):
        per_second = np.where(fallen, np.nan, total / np.diff(times))
    return np.concatenate(([np.nan], per_second)), int(fallen.sum())
