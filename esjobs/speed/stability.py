"""Would the verdict be another one under a change that should not matter? Only what stays may be sent.

The changes: the other objective, half and double the minimum jobs of a bucket and of a name, each task left
out.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import fitters
from esjobs.core.words import JUDGED
from esjobs.declared.origin import Declared
from esjobs.speed.factors import METHODS, Factors, enters, of_other_objective, solve
from esjobs.speed.fit_input import FitInput, FitInputs
from esjobs.speed.judging.flag import Judged, judge
from esjobs.speed.judging.verdicts import compare
from esjobs.speed.line import Comparison, Declarations, compare_with_declared
from esjobs.speed.settings import FitSettings
from fitters import Labels

EXACT_TASKS = 40
"""Up to so many tasks each one is left out by a fit of its own, above by one Newton step of the full fit."""


@dataclass(frozen=True)
class _Base:
    """The columns of a fit and its verdicts, and how to judge a variant of it."""

    data: FitInput
    method: str
    judged: Sequence[Judged]
    declared: Mapping[str, Declared]
    settings: FitSettings

    def verdicts(self, factors: Factors, settings: FitSettings) -> dict[str, str]:
        lines = compare_with_declared(factors, self.declared, settings.deviation_limit)
        return {item.evidence.name: item.verdict for item in judge(factors, lines, self.declared, settings)}


def unstable_names(
    inputs: FitInputs,
    compared: Sequence[tuple[Factors, list[Comparison]]],
    declarations: Declarations,
    settings: FitSettings,
) -> list[dict[str, str]]:
    """Per fit, the names whose verdict changes under some change, and the first change that does it.

    Cost per fit: one by the other objective, two with other minimum jobs and, for each of up to 40 tasks,
    one fit without it.
    """
    judged = [judge(factors, found, declarations[factors.level], settings) for factors, found in compared]
    verdicts = [{item.evidence.name: item.verdict for item in one} for one in judged]
    found: list[dict[str, str]] = []
    for number, (factors, _) in enumerate(compared):
        mine = {name: verdict for name, verdict in verdicts[number].items() if verdict in JUDGED}
        changed: dict[str, str] = {}
        if mine:
            data = inputs.of(factors.level, factors.processing_type)
            base = _Base(data, factors.method, judged[number], declarations[factors.level], settings)
            for change, variant in (*_other_objective(base), *_other_minimum(base), *_without_tasks(base)):
                for name, verdict in mine.items():
                    if variant.get(name, "not comparable") != verdict:
                        changed.setdefault(name, f"{change}: {variant.get(name, 'not comparable')}")
        found.append(changed)
    return found


def _other_objective(base: _Base) -> Iterator[tuple[str, dict[str, str]]]:
    how = of_other_objective(METHODS[base.method])
    variant = solve(base.data, base.method, base.settings.min_bucket_jobs, how)
    yield f"objective {how.objective}", base.verdicts(variant.factors, base.settings)


def _other_minimum(base: _Base) -> Iterator[tuple[str, dict[str, str]]]:
    for word, factor in (("half", 0.5), ("double", 2.0)):
        settings = base.settings.model_copy(
            update={
                "min_bucket_jobs": max(1, round(base.settings.min_bucket_jobs * factor)),
                "min_name_jobs": max(1, round(base.settings.min_name_jobs * factor)),
            }
        )
        variant = solve(base.data, base.method, settings.min_bucket_jobs)
        yield f"{word} the minimum jobs", base.verdicts(variant.factors, settings)


def _without_tasks(base: _Base) -> Iterator[tuple[str, dict[str, str]]]:
    data, settings = base.data, base.settings
    entered = enters(data, METHODS[base.method], settings.min_bucket_jobs)
    tasks = data.task[entered].used().names
    if len(tasks) > EXACT_TASKS:
        yield from _without_tasks_linear(base)
        return
    for task in tasks:
        rest = data.keep(data.task.codes != _code(data.task, task))
        variant = solve(rest, base.method, settings.min_bucket_jobs)
        yield f"without task {data.keys.readable(task)}", base.verdicts(variant.factors, settings)


def _without_tasks_linear(base: _Base) -> Iterator[tuple[str, dict[str, str]]]:
    """Shift each deviation by what one task does to its factor; the line, made of all sites, stays."""
    settings, data = base.settings, base.data
    result = solve(data, base.method, settings.min_bucket_jobs).result
    if result is None:
        return
    judged = {item.evidence.name: item for item in base.judged if item.verdict in JUDGED}
    verdicts: dict[str, str] = {name: item.verdict for name, item in judged.items()}
    culprit: dict[str, tuple[int, str]] = {}
    left_out = fitters.leave_one_task_out(result)
    n_jobs = data.n_jobs[data.rows_of(left_out.task, left_out.name)]
    rows = zip(left_out.name, left_out.task, left_out.status, left_out.ln_change, n_jobs, strict=True)
    for name, task, status, change, jobs in rows:
        item = judged.get(name)
        if item is None or name in culprit:
            continue
        verdict = (
            _shifted(item, change, item.evidence.n_jobs - int(jobs), settings)
            if status == "ok"
            else "not comparable"
        )
        if verdict != item.verdict:
            culprit[name] = (task, verdict)
    for name, (task, verdict) in culprit.items():
        yield f"without task {data.keys.readable(task)}", {**verdicts, name: verdict}


def _code(labels: Labels, name: int) -> int:
    return int(np.searchsorted(labels.names, name))


def _shifted(item: Judged, change: float, n_jobs: int, settings: FitSettings) -> str:
    """The verdict when a factor moves by ``change`` in ln k and rests on one task less."""
    evidence = item.evidence
    if n_jobs < settings.min_name_jobs:
        return "too few"
    deviation, error = evidence.deviation or 0.0, evidence.deviation_err or 0.0
    moved = (1 + deviation) * math.exp(change) - 1
    grown = error * math.sqrt(evidence.n_tasks / (evidence.n_tasks - 1))
    return compare(moved, grown, settings.deviation_limit)
