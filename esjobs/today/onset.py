"""Hour in which an incident began, from hourly sums of its jobs.

The efficiency of a job is an average over its life, so that a loss is a ramp over the length of jobs; one
that hits jobs as they end is a step. The better of both counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain, starmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrays import Floats, Ints
from esjobs.core.keys import Bins, TimePart
from esjobs.core.query import Count, Filter, In, Moment, Query, Range, exactly
from esjobs.core.states import FAILED as FAILED_STATES
from esjobs.core.states import FINISHED
from esjobs.core.window import Window
from esjobs.schema.today import EFFICIENCY, EVERYWHERE, LASTING, OWNERS
from esjobs.store.base import JobStore
from esjobs.store.merge import plain
from esjobs.today import sentences
from esjobs.today.expected import sum_by
from esjobs.today.states import Incident
from esjobs.today.sums import MEASURED, OUTCOMES, outcome

BEFORE = 2  # Days before the first one that are read; the first 24 hours say what was usual
WITHIN = 2.7  # Fall of the log-likelihood, in units of its scatter, inside of the interval
WIDEST = 12  # Hours of an interval; of a wider one the day is known
NIGHTS = 3  # First nights of an incident, on which its hour is determined
JOB_VARIANCE = 0.25  # Relative variance of the efficiency of a job
_MADE = (TimePart("hour", "hour"), Bins("length", "wall_s", tuple(900.0 * 2**power for power in range(10))))
_SUMS = (
    *(Moment((name,), name, *MEASURED) for name in ("cpu_s", "core_s", "wall_s")),
    Moment((), "n_jobs", *MEASURED),
)
Hour = tuple[int, int, int]  # Start of an incident, and the ends of its interval


def with_hour(store: JobStore, one: Incident, queues: Sequence[str]) -> Incident:
    """Return an incident with the hour of its onset, if it is a new one and its jobs tell.

    ``queues``: of its site. Cost: one grouped query over the jobs of up to five days.
    """
    if not _is_new(one):
        return one
    window = Window.of_days(one.since - timedelta(days=BEFORE), one.night)
    metric, literals = sentences.literals_of(one.cause_key or sentences.key_of(one.metric or "", ()))
    where = [*chain.from_iterable(starmap(_conditions, literals))]
    if one.site != EVERYWHERE:
        where.append(In("queue", tuple(queues)))
    if metric == EFFICIENCY:
        hour = efficiency_hour(*_lengths(store, window, where))
    else:
        hour = failure_hour(*_ends(store, window, where, dict(literals).get("category")))
    if hour is None or hour[2] - hour[1] > WIDEST:
        return one
    at, low, high = (window.start + timedelta(hours=each) for each in hour)
    dated = replace(one, onset=at, onset_low=low, onset_high=high)
    return replace(dated, sentence=sentences.sentence(dated))


def _is_new(one: Incident) -> bool:
    """True if an incident costs core-hours, was seen in its last night, and is young enough to be dated."""
    return one.state in LASTING and not one.what and one.nights <= NIGHTS and one.seen_on == one.night


def _conditions(dimension: str, name: str) -> Iterable[Filter]:
    """Yield the filters of jobs of a part; failures of a category are picked from the answer."""
    if dimension == "task":
        task, _, kind = name.partition("\x1f")
        yield exactly("task_id", task or None)
        yield from _conditions("kind", kind)
    elif dimension == "kind":
        first, _, last = name.rpartition(", ")
        of_class = last if last in ("single", "multi") else ""
        yield exactly("processing_type", (first if of_class else name) or None)
        yield exactly("core_class", of_class or None)
    elif dimension in ("queue", *OWNERS):
        yield exactly(dimension, name or None)


def _read(store: JobStore, query: Query) -> tuple[pa.Table, Ints]:
    """Return the groups of a query with the hour of each since the start of its window."""
    table = plain(store.aggregate(query).table)
    first = query.window.first_day.toordinal() if query.window else 0
    days = np.array([day.toordinal() - first for day in table.column("day").to_pylist()], np.int64)
    return table, days * 24 + table.column("hour").to_numpy().astype(np.int64)


def _ends(
    store: JobStore, window: Window, where: Sequence[Filter], category: str | None
) -> tuple[Floats, Floats]:
    """Return failures and ended jobs by hour."""
    keys, ended = ("day", "hour", *OUTCOMES), In("state", (*FINISHED, *FAILED_STATES))
    query = Query(keys, (Count("n"),), window, (*where, ended), made=_MADE[:1], books=False)
    table, at = _read(store, query)
    names = list(map(outcome, *(table.column(name).to_pylist() for name in OUTCOMES)))
    bad = np.array([name == category if category else name not in FINISHED for name in names], np.bool_)
    n, size = table.column("n").to_numpy(), window.days * 24
    return sum_by(at, n * bad, size), sum_by(at, n, size)


def _lengths(
    store: JobStore, window: Window, where: Sequence[Filter]
) -> tuple[Ints, Floats, Floats, Floats, Floats]:
    """Return hour, CPU s, core s, jobs and mean length in hours of finished jobs, by hour and length."""
    filters = (*where, In("state", FINISHED), Range("core_s", gt=0))
    query = Query(("day", "hour", "length"), _SUMS, window, filters, made=_MADE, books=False)
    table, at = _read(store, query)
    sums = [table.column(each.name).fill_null(0).to_numpy().astype(float) for each in _SUMS]
    cpu, core, wall, n = (each[sums[3] > 0] for each in sums)
    return at[sums[3] > 0], cpu, core, n, wall / n / 3600


def failure_hour(failed: Floats, ended: Floats) -> Hour | None:
    """Return the hour from which more jobs fail, by a step of their share; None without jobs.

    The scatter is that of the hours: jobs fail in bursts.
    """
    usual = (failed[:24].sum() + 0.5) / (ended[:24].sum() + 1)
    if not ended[:24].sum():
        return None
    starts, hours = np.arange(24, len(ended)), np.arange(len(ended))
    after = np.cumsum(failed[::-1])[::-1][24:] / np.maximum(np.cumsum(ended[::-1])[::-1][24:], 1.0)
    share = np.where(hours < starts[:, None], usual, np.maximum(after, usual)[:, None])
    due = np.maximum(ended * share, 1e-9)
    gain = (failed * np.log(due) - due).sum(axis=1)
    best = due[np.argmax(gain)]
    pearson = ((failed - best) ** 2 / best)[ended > 0].sum()
    return _interval(starts, gain, float(pearson) / max(int((ended > 0).sum()) - 2, 1))


def efficiency_hour(hour: Ints, cpu: Floats, core: Floats, n: Floats, length: Floats) -> Hour | None:
    """Return the hour from which jobs lose efficiency; None if the first day has no jobs.

    ``length``: mean hours of the jobs of each row.
    """
    first, starts = hour < 24, np.arange(24, int(hour.max(initial=0)) + 1)
    if not first.any() or not len(starts):
        return None
    usual = cpu[first].sum() / core[first].sum()
    lengths, code = np.unique(np.floor(np.log2(np.maximum(length, 1e-3))), return_inverse=True)
    own, due = (np.bincount(code[first], each[first], minlength=len(lengths)) for each in (cpu, core * usual))
    soft = due.sum() / 20
    loss = 1 - cpu / (core * usual * ((own + soft) / (due + soft))[code])
    weight = n / JOB_VARIANCE
    chi2 = np.array(
        [min(_misfit(loss, weight, hour + 0.5 - at, each) for each in (length, 0.5)) for at in starts]
    )
    scatter = max(float(chi2.min()) / max(len(loss) - 2, 1), 1e-9)
    return _interval(starts, -chi2 / 2, scatter / 2)


def _misfit(loss: Floats, weight: Floats, since: npt.NDArray[Any], length: Floats | float) -> float:
    """Return chi2 of a loss that grows over the length of jobs, by their ends in hours after the onset."""
    part = np.clip(since / length, 0.0, 1.0)
    square = float((weight * part**2).sum())
    size = max(float((weight * part * loss).sum()) / square, 0.0) if square > 0 else 0.0
    return float((weight * (loss - size * part) ** 2).sum())


def _interval(starts: Ints, gain: Floats, scatter: float) -> Hour:
    near = starts[gain >= gain.max() - WITHIN * max(scatter, 0.5)]
    return int(starts[np.argmax(gain)]), int(near[0]), int(near[-1])
