"""Start-up times of names as earlier windows found them: they belong to queues, not to a month."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fitters
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
CHANGE_IN_30_DAYS = 0.03  # Of ln f, by which the start-up time of a queue wanders
_COLUMNS = ("run", "level", "name", "cost_factor", "cost_factor_err", "records_doubt", "n_cut")


@dataclass(frozen=True)
class LevelPriors:
    """Start-up times of the names of one level in earlier windows: ln f and its variance, by name.

    ``runs``: of these windows, oldest first.
    """

    values: Mapping[str, tuple[float, float]]
    runs: tuple[str, ...]

    def of(self, names: Texts) -> tuple[Floats, Floats]:
        """Return ln f and its variance in the order of ``names``; NaN for names without."""
        found = [self.values.get(str(name), (np.nan, np.nan)) for name in names]
        ln_f, variance = np.array(found, np.float64).reshape(-1, 2).T
        return ln_f, variance


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
    by_level: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["cost_factor"] and row["cost_factor_err"] and not row["records_doubt"] and not row["n_cut"]:
            by_level[row["level"]].append(row)
    return {level: _pooled(found, runs, question) for level, found in by_level.items()}


def _pooled(
    rows: Sequence[Mapping[str, Any]], runs: Sequence[StoredRun], question: SpeedQuestion
) -> LevelPriors:
    places = {name: place for place, name in enumerate(sorted({row["name"] for row in rows}))}
    # a name without an estimate so far has an infinite variance, which no age changes
    mean, variance = np.zeros(len(places)), np.full(len(places), np.inf)
    used: list[str] = []
    end = runs[0].window.end
    for run in runs:
        variance += _aged((run.window.end - end).days)
        end = run.window.end
        ln_f, error = np.zeros(len(places)), np.full(len(places), np.inf)
        for row in rows:
            if row["run"] == run.run:
                ln_f[places[row["name"]]] = np.log(row["cost_factor"])
                error[places[row["name"]]] = row["cost_factor_err"]
        if np.isfinite(error).any():
            used.append(run.run)
            mean, error = fitters.pooled(ln_f, error, mean, variance)
            variance = error**2
    variance += _aged((question.window.end - end).days)
    values = zip(mean.tolist(), variance.tolist(), strict=True)
    return LevelPriors(dict(zip(places, values, strict=True)), tuple(used))


def _aged(days: int) -> float:
    return CHANGE_IN_30_DAYS**2 * days / 30


def _disjoint(runs: Sequence[StoredRun], question: SpeedQuestion) -> list[StoredRun]:
    comparable = [
        run
        for run in runs
        if "fit" in run.steps
        and as_long(run.window, question.window)
        and _method(SpeedQuestion.of_run(run)) == _method(question)
    ]
    # from the newest back: each leaves room for the next older one
    chosen: list[StoredRun] = []
    start = question.window.start
    for run in sorted(comparable, key=lambda run: run.window.end, reverse=True):
        if run.window.end <= start and len(chosen) < MOST_WINDOWS:
            chosen.append(run)
            start = run.window.start
    return chosen[::-1]


def _method(question: SpeedQuestion) -> tuple[object, ...]:
    return question.fit, question.rules, question.restriction, question.versions
