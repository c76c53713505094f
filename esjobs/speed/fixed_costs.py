"""Start-up times of task keys and the correction of sums, some tasks at a time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.records.tasks.sums import TaskSums
from fitters import CostTable, Labels
from fitters.layout.arrays import Codes, Floats, Ints, Mask

_PIECE_ROWS = 32_768  # Rows that are worked on at once; they take some hundred bytes each


@dataclass(frozen=True)
class Corrected:
    """Sums corrected for the start-up time, one entry per row; see :class:`fitters.CorrectedSums`.

    ``unknown``: why a row is not used, missing where it is.
    """

    use: Mask
    corrected: Mask
    rho: Floats
    events_eff: Floats
    rel_var: Floats
    rel_var_raw: Floats
    rel_var_rho: Floats
    unknown: Labels


def fixed_costs(
    rows: TaskSums, min_bucket_jobs: int, without: Mask | None = None
) -> fitters.FixedCosts | None:
    """Return the start-up time of a job in every task key, from the rows that enter; None without rows.

    Units without a row of enough jobs use all their rows: a variant with another minimum may ask for them.
    ``without``: mask of excluded rows.
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
    # A mixed task has a kind of its own: what its sums say is no start-up time.
    mixed = np.isin(number, rows.task.names[rows.task.codes[rows.mixed.codes >= 0]])
    of_tasks = np.where(mixed, int(kinds.max(initial=0)) + 1 + np.cumsum(mixed), of_tasks)
    return fitters.draw_fixed_costs(joined, of_tasks, _of_kinds(joined, rows, kinds, of_tasks))


def _of_kinds(
    costs: fitters.FixedCosts, rows: TaskSums, kinds: Ints, of_tasks: Ints
) -> tuple[Floats, Floats] | None:
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
    """Correct all rows for the start-up time of the tasks with that decision."""
    n = len(rows)
    columns: dict[str, Any] = {name: np.zeros(n, np.bool_) for name in ("use", "corrected")}
    columns |= {name: np.empty(n) for name in ("rho", "events_eff", "rel_var", "rel_var_raw", "rel_var_rho")}
    unknown = np.full(n, -1, np.int32)
    reasons: dict[str, int] = {}
    for piece in _of_whole_tasks(rows.task, np.arange(n)):
        found = fitters.correct_fixed_cost(costs, rows.task[piece], rows.name[piece], **rows.moments(piece))
        for name, column in columns.items():
            column[piece] = getattr(found, name)
        unused = np.flatnonzero(found.reason != "")
        unknown[piece[unused]] = [reasons.setdefault(why, len(reasons)) for why in found.reason[unused]]
    return Corrected(**columns, unknown=_sorted(list(reasons), unknown))


def common_error(costs: fitters.FixedCosts, rows: TaskSums) -> Floats:
    """Return the change of ln(CPU time per event) of every row per error common to its kind."""
    table = costs.tasks
    share, error, mean = np.zeros((3, len(rows.keys)))
    number = table.name.astype(np.int64)
    usable = np.isin(table.decision.astype(str), ["apply", "proportional"])
    share[number[usable]] = np.clip(table.share[usable], 0.0, 0.999)
    error[number[usable]], mean[number[usable]] = (table.common_err[usable], table.mean_events[usable])
    index = rows.task.names[rows.task.codes].astype(np.int64)
    length = rows.sums["events"] / rows.sums["n_jobs"]
    slope = (mean[index] - length) / (length * (1.0 - share[index]) + mean[index] * share[index])
    number_of = np.bincount(rows.task.codes, minlength=len(rows.task.names))
    centre = np.bincount(rows.task.codes, slope, len(rows.task.names)) / np.maximum(number_of, 1)
    return np.asarray((slope - centre[rows.task.codes]) * error[index])


def _sorted(texts: list[str], codes: Codes) -> Labels:
    order = sorted(range(len(texts)), key=texts.__getitem__)
    index = np.full(len(texts) + 1, -1, np.int32)
    index[order] = np.arange(len(texts))
    return Labels(np.array([texts[number] for number in order], object), index[codes])


def _of_whole_tasks(task: Labels, rows: npt.NDArray[np.intp]) -> Iterator[Any]:
    """Yield the rows in pieces of complete tasks, in the order of their names."""
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
