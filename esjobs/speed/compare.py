"""What changed between two runs, in sigma: factors on a common scale, and verdicts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import JUDGED
from esjobs.runs.finding import find_run, run_before
from esjobs.runs.publication import read_table
from esjobs.runs.stored import StoredRun
from esjobs.speed.tables import FACTORS, FLAGS, SPEED
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
        ("rc_site", pa.string()),
    ]
)


_OF_FACTORS = ("k", "k_err", "n_jobs", "rc_site", "status", "component")

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
    factors = [_by_key(_rows(store, FACTORS, run, _OF_FACTORS, chosen)) for run in runs]
    verdicts = [_verdicts(store, run) for run in runs]
    scales = _scales(*factors)
    rows = []
    for key in sorted(set(factors[0]) | set(factors[1])):
        a, b = factors[0].get(key, {}), factors[1].get(key, {})
        row: dict[str, Any] = dict(zip(_KEY, key, strict=True))
        row |= {
            "k_a": a.get("k"),
            "k_b": b.get("k"),
            "n_jobs_a": a.get("n_jobs"),
            "n_jobs_b": b.get("n_jobs"),
            "rc_site": b.get("rc_site") or a.get("rc_site"),
        }
        row |= {"run_a": runs[0].run, "run_b": runs[1].run}
        for side, known in zip("ab", verdicts, strict=True):
            row[f"verdict_{side}"], row[f"confirmed_{side}"] = known.get(key, (None, None))
        scale = scales.get(key[:3])
        if scale is not None and _comparable(a) and _comparable(b):
            change = b["k"] / a["k"] / scale - 1
            change = 0.0 if abs(change) < _ROUND_OFF else change
            relative = float(np.hypot(a["k_err"] / a["k"], b["k_err"] / b["k"]))
            # of the logarithm, so that the other order of runs gives the same with the other sign
            sigma = float(np.log1p(change)) / relative if relative > 0 else None
            row |= {"change": change, "change_err": (1 + change) * relative, "sigma": sigma}
        rows.append(row)
    if not rows:
        of_method = f" of method {' or '.join(methods)}" if methods else ""
        raise NoResultError(
            f"runs {runs[0].run} and {runs[1].run} have no factors{of_method} to compare; "
            "see: esjobs show runs"
        )
    rows.sort(key=lambda row: (-_weight(row), -abs(row.get("sigma") or 0.0)))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def verdict_changed(row: Mapping[str, Any]) -> bool:
    """Whether a verdict changed that says something: one of both at least is of a comparison.

    A confirmed deviation is not a candidate.
    """
    before, after = ((row[f"verdict_{side}"], row[f"confirmed_{side}"] is True) for side in "ab")
    told = None not in (before[0], after[0]) and bool({before[0], after[0]} & set(JUDGED))
    return told and before != after


def _weight(row: Mapping[str, Any]) -> int:
    """How much a change of the verdict says; 0 where it did not change."""
    if not verdict_changed(row):
        return 0
    if row["confirmed_a"] is True or row["confirmed_b"] is True:
        return 3
    return 2 if {row["verdict_a"], row["verdict_b"]} <= set(JUDGED) else 1


def _rows(
    store: JobStore, table: Table, run: StoredRun, names: Sequence[str], chosen: Sequence[Filter] = ()
) -> pa.Table:
    return read_table(store, table, [In("run", (run.run,)), *chosen], [*_KEY, *names])


def _by_key(rows: pa.Table) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row[name] for name in _KEY): row for row in rows.to_pylist()}


def _verdicts(store: JobStore, run: StoredRun) -> dict[tuple[str, ...], tuple[str, bool | None]]:
    """By key, the verdict and whether it is confirmed."""
    rows = _rows(store, FLAGS, run, ("verdict", "confirmed"))
    return {key: (row["verdict"], row["confirmed"]) for key, row in _by_key(rows).items()}


def _comparable(row: dict[str, Any]) -> bool:
    return bool(row) and row["status"] == "ok" and row["component"] == 0 and row["k_err"] is not None


def _scales(
    first: dict[tuple[str, ...], dict[str, Any]], second: dict[tuple[str, ...], dict[str, Any]]
) -> dict[tuple[str, ...], float]:
    ratios: dict[tuple[str, ...], list[float]] = {}
    for key, a in first.items():
        b = second.get(key, {})
        if _comparable(a) and _comparable(b):
            ratios.setdefault(key[:3], []).append(float(np.log(b["k"] / a["k"])))
    return {key: float(np.exp(np.median(values))) for key, values in ratios.items() if len(values) > 1}
