"""Start-up times of names as earlier windows found them: they belong to queues, not to a month."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import as_long
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun, stored_runs
from esjobs.schema.speed import FACTORS, SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore
from fitters.layout.arrays import Floats, Texts

MOST_WINDOWS = 8  # More hardly sharpen what is known of ln f
CHANGE_IN_30_DAYS = 0.03  # Of ln f by which a queue may have moved since
LARGEST_CHANGE = 4.0  # Errors from the windows before beyond which a name starts anew
_COLUMNS = ("run", "level", "name", "cost_factor", "cost_factor_err", "records_doubt", "n_cut")


@dataclass(frozen=True)
class CostPrior:
    """ln(start-up time) of a name beside others, and its variance."""

    ln_f: float
    variance: float


@dataclass(frozen=True)
class LevelPriors:
    """Start-up times of the names of one level in earlier windows; ``runs``: theirs, oldest first."""

    names: Mapping[str, CostPrior]
    runs: tuple[str, ...]

    def of(self, names: Texts) -> tuple[Floats, Floats]:
        """Return ln f and its variance in the order of ``names``; NaN for names without."""
        missing = CostPrior(np.nan, np.nan)
        found = [self.names.get(str(name), missing) for name in names]
        return np.array([item.ln_f for item in found]), np.array([item.variance for item in found])


def cost_priors(store: JobStore, question: SpeedQuestion) -> dict[str, LevelPriors]:
    """Return the pooled start-up times of earlier windows by level; empty if there are none.

    Two searches. Windows are as long as that of the question and share no job with it or with each other;
    their runs answer the same question otherwise. A name whose records are in doubt, or whose long jobs a
    limit cuts off, adds nothing from that window. Between windows the variance grows by 0.03^2 in 30 days.
    """
    if not question.fit.cost_prior:
        return {}
    runs = _disjoint(stored_runs(store, SPEED), question)
    if not runs:
        return {}
    method = question.fit.methods[0]
    where = [In("run", tuple(run.run for run in runs)), In("method", (method,))]
    rows = read_table(store, FACTORS, [*where, In("processing_type", (ALL_TYPES,))], _COLUMNS).to_pylist()
    by_run = defaultdict(list)
    for row in rows:
        if row["cost_factor"] and row["cost_factor_err"] and not row["records_doubt"] and not row["n_cut"]:
            by_run[row["run"]].append(row)
    pooled: dict[str, dict[str, CostPrior]] = defaultdict(dict)
    used: dict[str, list[str]] = defaultdict(list)
    last: datetime = runs[0].window.end
    for run in runs:
        _age(pooled, (run.window.end - last).days)
        last = run.window.end
        for row in by_run[run.run]:
            _add(pooled[row["level"]], row["name"], float(np.log(row["cost_factor"])), row["cost_factor_err"])
        for level in {row["level"] for row in by_run[run.run]}:
            used[level].append(run.run)
    _age(pooled, (question.window.end - last).days)
    return {level: LevelPriors(names, tuple(used[level])) for level, names in pooled.items()}


def _disjoint(runs: Sequence[StoredRun], question: SpeedQuestion) -> list[StoredRun]:
    """Return the runs that count, oldest first."""
    comparable = [
        run
        for run in runs
        if "fit" in run.steps
        and as_long(run.window, question.window)
        and _method(SpeedQuestion.of_run(run)) == _method(question)
    ]
    chosen: list[StoredRun] = []
    start = question.window.start
    for run in sorted(comparable, key=lambda run: run.window.end, reverse=True):
        if run.window.end <= start and len(chosen) < MOST_WINDOWS:
            chosen.append(run)
            start = run.window.start
    return chosen[::-1]


def _method(question: SpeedQuestion) -> tuple[object, ...]:
    return question.fit, question.rules, question.restriction, question.versions


def _age(pooled: Mapping[str, dict[str, CostPrior]], days: int) -> None:
    for names in pooled.values():
        for name, item in names.items():
            names[name] = CostPrior(item.ln_f, item.variance + CHANGE_IN_30_DAYS**2 * days / 30)


def _add(names: dict[str, CostPrior], name: str, ln_f: float, error: float) -> None:
    before = names.get(name)
    if before is None or abs(ln_f - before.ln_f) > LARGEST_CHANGE * np.hypot(error, before.variance**0.5):
        names[name] = CostPrior(ln_f, error**2)
        return
    gain = before.variance / (before.variance + error**2)
    names[name] = CostPrior(before.ln_f + gain * (ln_f - before.ln_f), (1.0 - gain) * before.variance)
