"""What changed between two runs, in sigma: factors on a common scale, and verdicts."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import JUDGED
from esjobs.publish.finding import find_run, run_before
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.schema.speed import FACTORS, FLAGS, SPEED
from esjobs.store.base import JobStore

_KEY = ("level", "processing_type", "method", "name")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _KEY),
        ("k_a", pa.float64()),
        ("k_b", pa.float64()),
        ("change", pa.float64()),
        ("change_err", pa.float64()),
        ("sigma", pa.float64()),
        ("verdict_a", pa.string()),
        ("verdict_b", pa.string()),
        ("n_jobs_a", pa.int64()),
        ("n_jobs_b", pa.int64()),
        ("run_a", pa.string()),
        ("run_b", pa.string()),
        ("confirmed_a", pa.bool_()),
        ("confirmed_b", pa.bool_()),
        ("site", pa.string()),
    ]
)


_Key = tuple[str, str, str, str]
_Verdict = tuple[str | None, bool | None]
"""A verdict, and whether it is confirmed."""


class _Factor(NamedTuple):
    """What of a row of ``factors`` is compared."""

    k: float | None = None
    k_err: float | None = None
    n_jobs: int | None = None
    site: str | None = None
    status: str | None = None
    component: int | None = None

    @property
    def comparable(self) -> bool:
        """Whether there is a factor, which is above 0, with an error, of the largest component."""
        return self.status == "ok" and self.component == 0 and (self.k or 0) > 0 and self.k_err is not None


_NO_FACTOR = _Factor()
_NO_VERDICT: _Verdict = (None, None)
_JUDGED = frozenset(JUDGED)

_ROUND_OFF = 1e-9
"""Relative changes below this are arithmetic, not change."""


def runs_compared(
    store: JobStore,
    run_a: str | None = None,
    run_b: str | None = None,
    *,
    since: Window | None = None,
) -> tuple[StoredRun, StoredRun]:
    """The two runs to compare: those named; one and the latest; or, without a name, the latest two.

    The latest two are the latest run and the one before it of a window as long. ``since``: the one before it
    whose data end with this window or before; of a window that is not over yet, before it begins. Raises
    :class:`UsageError` when both are the same run.
    """
    if since is not None and run_a is not None:
        raise UsageError("since finds the run to compare the latest with; leave the run out")
    named = None if run_a is None else find_run(store, SPEED, ("fit",), run_a)
    second = find_run(store, SPEED, ("fit",), run_b)
    moment = None if since is None else since.end if since.end < second.reach else since.start
    first = named or run_before(store, SPEED, second, moment)
    if first.run == second.run:
        if run_b is None:
            raise UsageError(f"'{run_a}' is the latest run itself; name another: esjobs show runs")
        raise UsageError(f"'{run_a}' and '{run_b}' are the same run; name two: esjobs show runs")
    return first, second


def compare_runs(
    store: JobStore,
    run_a: str | None = None,
    run_b: str | None = None,
    *,
    since: Window | None = None,
    methods: Collection[str] = (),
) -> pa.Table:
    """One row per name and method of either run; :func:`runs_compared` says which runs.

    First come the verdicts that changed: those from or to confirmed, then those between two comparisons, then
    others; then the rest. The largest ``sigma`` comes first in each. A name that was compared with what it
    declares in neither run has no verdict that could change.

    ``change`` is k_b/k_a - 1 after both fits were brought to the same scale: the median of ln(k_b/k_a) over
    the names that both have in their largest component. ``change_err`` adds both errors in quadrature, which
    overstates it when the runs share jobs. ``sigma`` is ln(1 + change) over its error: the other order of
    runs gives the same with the other sign. Null where a run has no factor, and where only one name is
    common: its own ratio would be the scale, and the change 0 by construction. ``methods``: only these.
    """
    runs = runs_compared(store, run_a, run_b, since=since)
    chosen = [In("method", tuple(methods))] if methods else []
    before, after = (_factors(rows) for rows in _of_both(store, FACTORS, runs, _Factor._fields, chosen))
    first, second = (_verdicts(rows) for rows in _of_both(store, FLAGS, runs, ("verdict", "confirmed")))
    scales = _scales(before, after)
    rows = []
    for key in sorted(before.keys() | after.keys()):
        a, b = before.get(key, _NO_FACTOR), after.get(key, _NO_FACTOR)
        was, became = first.get(key, _NO_VERDICT), second.get(key, _NO_VERDICT)
        change, change_err, sigma = _shift(a, b, scales.get(key[:3]))
        row = (
            *(*key, a.k, b.k, change, change_err, sigma, was[0], became[0], a.n_jobs, b.n_jobs),
            *(runs[0].run, runs[1].run, was[1], became[1], b.site or a.site),
        )
        rows.append(((-_weight(was, became), -abs(sigma or 0.0)), row))
    if not rows:
        of_method = f" of method {' or '.join(methods)}" if methods else ""
        raise NoResultError(
            f"runs {runs[0].run} and {runs[1].run} have no factors{of_method} to compare; "
            "see: esjobs show runs"
        )
    rows.sort(key=itemgetter(0))
    columns = zip(*(row for _, row in rows), strict=True)
    arrays = [pa.array(values, item.type) for values, item in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def verdict_changed(row: Mapping[str, Any]) -> bool:
    """Whether a verdict changed that says something: one of both at least is of a comparison.

    A confirmed deviation is not a candidate.
    """
    before, after = ((row[f"verdict_{side}"], row[f"confirmed_{side}"]) for side in "ab")
    return _weight(before, after) > 0


def _weight(before: _Verdict, after: _Verdict) -> int:
    """How much a change of the verdict says; 0 where it did not change, or says nothing."""
    verdicts = {before[0], after[0]}
    confirmed = before[1] is True, after[1] is True
    if None in verdicts or verdicts.isdisjoint(JUDGED):
        return 0
    if len(verdicts) == 1 and confirmed[0] == confirmed[1]:
        return 0
    if any(confirmed):
        return 3
    return 2 if verdicts <= _JUDGED else 1


def _shift(a: _Factor, b: _Factor, scale: float | None) -> tuple[float | None, float | None, float | None]:
    """The change of a factor on the scale of both runs, its error, and sigma; null where it says nothing."""
    if scale is None or a.k is None or b.k is None or not (a.comparable and b.comparable):
        return None, None, None
    change = b.k / a.k / scale - 1
    change = 0.0 if abs(change) < _ROUND_OFF else change
    relative = math.hypot(a.k_err / a.k, b.k_err / b.k)  # type: ignore[operator]
    # of the logarithm, so that the other order of runs gives the same with the other sign
    return change, (1 + change) * relative, math.log1p(change) / relative if relative > 0 else None


def _of_both(
    store: JobStore,
    table: Table,
    runs: tuple[StoredRun, StoredRun],
    names: Sequence[str],
    chosen: Sequence[Filter] = (),
) -> list[list[tuple[Any, ...]]]:
    """The rows of both runs, read at once: the key, then the named columns."""
    where = [In("run", tuple(run.run for run in runs)), *chosen]
    rows = read_table(store, table, where, ["run", *_KEY, *names])
    of_run: dict[str, list[tuple[Any, ...]]] = {run.run: [] for run in runs}
    names_of_runs, *columns = (column.to_pylist() for column in rows.columns)
    for run, row in zip(names_of_runs, zip(*columns, strict=True), strict=True):
        of_run[run].append(row)
    return list(of_run.values())


def _factors(rows: Iterable[tuple[Any, ...]]) -> dict[_Key, _Factor]:
    return {row[:4]: _Factor._make(row[4:]) for row in rows}


def _verdicts(rows: Iterable[tuple[Any, ...]]) -> dict[_Key, _Verdict]:
    """By key, the verdict and whether it is confirmed."""
    return {row[:4]: row[4:] for row in rows}


def _scales(first: Mapping[_Key, _Factor], second: Mapping[_Key, _Factor]) -> dict[tuple[str, ...], float]:
    """By level, type and method, what all factors of the second run have in common: a factor, > 0."""
    ratios: dict[tuple[str, ...], list[float]] = {}
    for key, a in first.items():
        b = second.get(key, _NO_FACTOR)
        if a.comparable and b.comparable:
            ratios.setdefault(key[:3], []).append(math.log(b.k / a.k))  # type: ignore[operator]
    return {key: math.exp(median(values)) for key, values in ratios.items() if len(values) > 1}
