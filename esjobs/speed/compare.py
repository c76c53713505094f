"""Comparison of two runs, in sigma: factors on a common scale, and verdicts."""

import math
from collections.abc import Collection, Mapping, Sequence
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
        *((name, pa.float64()) for name in ("k_a", "k_b", "change", "change_err", "sigma")),
        *(("verdict_a", pa.string()), ("verdict_b", pa.string())),
        *(("n_jobs_a", pa.int64()), ("n_jobs_b", pa.int64())),
        *(("run_a", pa.string()), ("run_b", pa.string())),
        *(("confirmed_a", pa.bool_()), ("confirmed_b", pa.bool_()), ("site", pa.string())),
    ]
)


_Key = tuple[str, str, str, str]
_Verdict = tuple[str | None, bool | None]  # A verdict, and True if it is confirmed


class _Factor(NamedTuple):
    """Compared columns of a row of ``factors``."""

    k: float | None = None
    k_err: float | None = None
    n_jobs: int | None = None
    site: str | None = None
    status: str | None = None
    component: int | None = None

    @property
    def comparable(self) -> bool:
        """True if the name has a positive factor with an error in the largest component."""
        return self.status == "ok" and self.component == 0 and (self.k or 0) > 0 and self.k_err is not None


_NO_FACTOR = _Factor()
_NO_VERDICT: _Verdict = (None, None)
_JUDGED = frozenset(JUDGED)

_ROUND_OFF = 1e-9  # Relative changes below this are arithmetic, not change


def runs_compared(
    store: JobStore, run_a: str | None, run_b: str | None, since: Window | None
) -> tuple[StoredRun, StoredRun]:
    """Return the two runs to compare: the named ones; one and the latest; or the latest two of one length.

    ``since``: the first is the newest run whose data end with this window or before; of a window that is not
    over yet, before its start. Raises :class:`UsageError` if both are the same run.
    """
    if since is not None and run_a is not None:
        raise UsageError("use either since or a first run, not both")
    named = None if run_a is None else find_run(store, SPEED, ("fit",), run_a)
    second = find_run(store, SPEED, ("fit",), run_b)
    # a window that is not over yet has the data of the second run in it
    moment = None if since is None else since.end if since.end < second.reach else since.start
    first = named or run_before(store, SPEED, second, moment)
    if first.run == second.run:
        if run_b is None:
            raise UsageError(f"'{run_a}' is the latest run; use a different run (list: esjobs show runs)")
        raise UsageError(
            f"'{run_a}' and '{run_b}' are the same run; use two different runs (list: esjobs show runs)"
        )
    return first, second


def compare_runs(store: JobStore, runs: tuple[StoredRun, StoredRun], methods: Collection[str]) -> pa.Table:
    """Return one row per name and method of either run; ``methods``: only these, if any are named.

    Changed verdicts come first: those from or to confirmed, then those between two comparisons, then others;
    then the rest, each by the largest ``sigma``. A name that neither run compared has no changed verdict.

    ``change`` is k_b/k_a - 1 on a common scale: the median of ln(k_b/k_a) over the names in the largest
    component of both. ``change_err`` adds both errors in quadrature, an overestimate if the runs share jobs.
    ``sigma`` is ln(1 + change) over its error; the reverse order of runs changes its sign only. Null if a run
    has no factor, or if only one name is common: its ratio would be the scale.
    """
    chosen = [In("method", tuple(methods))] if methods else []
    factors = _of_both(store, FACTORS, runs, _Factor._fields, chosen)
    before, after = ({key: _Factor._make(row) for key, row in rows.items()} for rows in factors)
    first, second = _of_both(store, FLAGS, runs, ("verdict", "confirmed"))
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
            f"runs {runs[0].run} and {runs[1].run} have no factors{of_method} to compare; list runs: esjobs "
            "show runs"
        )
    rows.sort(key=itemgetter(0))
    columns = zip(*map(itemgetter(1), rows), strict=True)
    return pa.table(dict(zip(_SCHEMA.names, columns, strict=True)), schema=_SCHEMA)


def verdict_changed(row: Mapping[str, Any]) -> bool:
    """True if a verdict changed and one of the two is a comparison; confirmed and candidate differ."""
    before, after = ((row[f"verdict_{side}"], row[f"confirmed_{side}"]) for side in "ab")
    return _weight(before, after) > 0


def _weight(before: _Verdict, after: _Verdict) -> int:
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
    # Change on the common scale, its error and sigma; None where not comparable.
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
) -> list[dict[_Key, tuple[Any, ...]]]:
    where = [In("run", tuple(run.run for run in runs)), *chosen]
    rows = read_table(store, table, where, ["run", *_KEY, *names])
    of_run: dict[str, dict[_Key, tuple[Any, ...]]] = {run.run: {} for run in runs}
    names_of_runs, *columns = (column.to_pylist() for column in rows.columns)
    for run, row in zip(names_of_runs, zip(*columns, strict=True), strict=True):
        of_run[run][row[:4]] = row[4:]  # the first four are the key
    return list(of_run.values())


def _scales(first: Mapping[_Key, _Factor], second: Mapping[_Key, _Factor]) -> dict[tuple[str, ...], float]:
    # By level, type and method, the common factor of the second run; a single ratio says nothing.
    ratios: dict[tuple[str, ...], list[float]] = {}
    for key, a in first.items():
        b = second.get(key, _NO_FACTOR)
        if a.comparable and b.comparable:
            ratios.setdefault(key[:3], []).append(math.log(b.k / a.k))  # type: ignore[operator]
    return {key: math.exp(median(values)) for key, values in ratios.items() if len(values) > 1}
