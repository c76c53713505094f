"""The fixed costs of task keys and what they do to sums, some tasks at a time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.records.tasks.sums import FloatArray, TaskSums
from fitters import CostTable, Labels

_PIECE_ROWS = 32_768
"""Rows that are worked on at once; they take some hundred bytes each."""


@dataclass(frozen=True)
class Corrected:
    """Sums with the fixed cost taken out, one entry per row; see :class:`fitters.CorrectedSums`.

    ``unknown``: why a row is not used, missing where it is.
    """

    use: npt.NDArray[np.bool_]
    corrected: npt.NDArray[np.bool_]
    rho: FloatArray
    events_eff: FloatArray
    rel_var: FloatArray
    rel_var_raw: FloatArray
    rel_var_rho: FloatArray
    unknown: Labels


def fixed_costs(
    rows: TaskSums, min_bucket_jobs: int, without: npt.NDArray[np.bool_] | None = None
) -> fitters.FixedCosts | None:
    """The fixed cost of a job in every task key, from the rows that enter; None without any.

    Units without a row of enough jobs are worked out from what they have: a variant with other minimum jobs
    may ask for them. ``without``: rows that have no part in it.
    """
    enough = rows.entering(min_bucket_jobs)
    if without is not None:
        enough &= ~without
    having = np.zeros(len(rows.task.names), np.bool_)
    having[rows.task.codes[enough]] = True
    chosen = enough | ~having[rows.task.codes]
    found = [
        fitters.estimate_fixed_cost(rows.task[piece], rows.name[piece], **rows.moments(piece))
        for piece in _of_whole_tasks(rows.task, np.flatnonzero(chosen))
    ]
    if not found:
        return None
    joined = _as_one(found)
    kinds = rows.keys.kinds()
    number = joined.tasks.name.astype(np.int64)
    of_tasks = kinds[number]
    # A mixed task has a kind of its own: what its sums say is no fixed cost.
    mixed = np.isin(number, rows.task.names[rows.task.codes[rows.mixed.codes >= 0]])
    of_tasks = np.where(mixed, int(kinds.max(initial=0)) + 1 + np.cumsum(mixed), of_tasks)
    return fitters.draw_fixed_costs(joined, of_tasks, _of_kinds(joined, rows, kinds, of_tasks))


def _of_kinds(
    costs: fitters.FixedCosts, rows: TaskSums, kinds: npt.NDArray[np.int64], of_tasks: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray] | None:
    """Fixed costs of kinds of tasks of which hardly any tells its own; None where there is no such kind."""
    telling = np.bincount(of_tasks, np.isfinite(costs.tasks.share), int(kinds.max(initial=0)) + 1)
    mute = np.flatnonzero(telling[: int(kinds.max(initial=0)) + 1] < fitters.LEAST_ESTIMATES)
    kind = kinds[rows.task.names][rows.task.codes]
    chosen = np.isin(kind, mute) & (rows.mixed.codes < 0)
    if not chosen.any():
        return None
    _, dense = np.unique(kind[chosen], return_inverse=True)
    columns = (rows.sums[name][chosen] for name in ("n_jobs", "events", "cpu_s"))
    share, error = fitters.kind_shares(rows.task.codes[chosen], rows.name.codes[chosen], dense, *columns)
    result = np.full((2, len(telling)), np.nan)
    result[:, np.unique(kind[chosen])] = share, error
    return result[0], result[1]


def _as_one(found: list[fitters.FixedCosts]) -> fitters.FixedCosts:
    columns = [part.tasks.columns() for part in found]
    table = CostTable(**{name: np.concatenate([part[name] for part in columns]) for name in columns[0]})
    dropped: Counter[str] = Counter()
    for part in found:
        dropped.update(part.dropped)
    return fitters.FixedCosts(table, found[0].source, sum(part.n_rows for part in found), dict(dropped))


def correct(costs: fitters.FixedCosts, rows: TaskSums) -> Corrected:
    """Take the fixed cost out of all rows, where it was decided to."""
    n = len(rows)
    use, corrected = np.zeros((2, n), np.bool_)
    rho, events_eff, rel_var, rel_var_raw, rel_var_rho = (np.empty(n) for _ in range(5))
    unknown = np.full(n, -1, np.int32)
    reasons: dict[str, int] = {}
    for piece in _of_whole_tasks(rows.task, np.arange(n)):
        found = fitters.correct_fixed_cost(costs, rows.task[piece], rows.name[piece], **rows.moments(piece))
        use[piece], corrected[piece] = found.use, found.corrected
        rho[piece], events_eff[piece] = found.rho, found.events_eff
        rel_var[piece], rel_var_raw[piece] = found.rel_var, found.rel_var_raw
        rel_var_rho[piece] = found.rel_var_rho
        told = np.flatnonzero(found.reason != "")
        unknown[piece[told]] = [reasons.setdefault(why, len(reasons)) for why in found.reason[told]]
    return Corrected(
        use,
        corrected,
        rho,
        events_eff,
        rel_var,
        rel_var_raw,
        rel_var_rho,
        _sorted(list(reasons), unknown),
    )


def common_error(costs: fitters.FixedCosts, rows: TaskSums) -> FloatArray:
    """Change of ln(CPU time per event) of every row under one error of what its kind has in common."""
    table = costs.tasks
    share, error, mean = np.zeros((3, len(rows.keys)))
    number = table.name.astype(np.int64)
    told = np.isin(table.decision.astype(str), ["apply", "proportional"])
    share[number[told]] = np.clip(table.share[told], 0.0, 0.999)
    error[number[told]], mean[number[told]] = table.common_err[told], table.mean_events[told]
    place = rows.task.names[rows.task.codes].astype(np.int64)
    length = rows.sums["events"] / rows.sums["n_jobs"]
    slope = (mean[place] - length) / (length * (1.0 - share[place]) + mean[place] * share[place])
    number_of = np.bincount(rows.task.codes, minlength=len(rows.task.names))
    centre = np.bincount(rows.task.codes, slope, len(rows.task.names)) / np.maximum(number_of, 1)
    return np.asarray((slope - centre[rows.task.codes]) * error[place])


def _sorted(texts: list[str], codes: npt.NDArray[np.int32]) -> Labels:
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.full(len(texts) + 1, -1, np.int32)
    place[order] = np.arange(len(texts))
    return Labels(np.array([texts[number] for number in order], object), place[codes])


def _of_whole_tasks(task: Labels, rows: npt.NDArray[np.intp]) -> Iterator[Any]:
    """The rows in pieces that hold all of a task or nothing of it, tasks in the order of their names."""
    codes = task.codes[rows]
    ordered = rows[np.argsort(codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(task.names)))
    start = 0
    while start < len(ordered):
        # The last task that ends inside the piece, or the one that fills it alone.
        last = np.searchsorted(ends, start + _PIECE_ROWS, "right") - 1
        end = int(ends[last]) if last >= 0 and ends[last] > start else int(ends[last + 1])
        yield ordered[start:end]
        start = end
