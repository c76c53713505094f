"""Cost of findings: wasted node-hours, and the row that stands for its job."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.issues.facts import Facts
from esjobs.issues.judging import Flagged
from esjobs.schema.issues import SEVERITY_WEIGHTS

_ISSUE = 1
"""Least rank of an issue; a finding below is information."""
# of the flagged jobs; numbers are those of all jobs of the batch
_COLUMNS = ("rows", "ranks", "values", "idle_core_h", "idle_gpu_h")


@dataclass(frozen=True)
class Costed:
    """Findings of a rule with their cost, one value per flagged job.

    ``lost``: wasted node-hours of the finding. ``leads``: true on one finding of each job, its worst.
    ``job_lost``, ``job_idle_core_h``, ``job_idle_gpu_h``: those of the job, where
    the finding leads, else NaN.
    """

    flagged: Flagged
    lost: Floats
    weighted: Floats
    leads: Mask
    job_lost: Floats
    job_idle_core_h: Floats
    job_idle_gpu_h: Floats


def costed(found: Sequence[Flagged], facts: Facts) -> list[Costed]:
    """Return the findings of a batch with their cost, without those that are reported only alone.

    The worst finding of a job has the highest severity, then the largest loss; ties: the first rule.
    """
    found = _without_hidden(found, facts.n)
    losses = [_lost(each, facts) for each in found]
    most_lost, most_core_h, most_gpu_h = (
        _largest(found, hours, facts.n)
        for hours in (losses, [each.idle_core_h for each in found], [each.idle_gpu_h for each in found])
    )
    leader, worst, most = np.full(facts.n, -1), np.full(facts.n, -1), np.full(facts.n, -1.0)
    for number, (each, lost) in enumerate(zip(found, losses, strict=True)):
        # an unknown loss is below 0
        rows, hours = each.rows, np.nan_to_num(lost, nan=-1.0)
        # larger, not as large: of equals the first rule stays
        more = (each.ranks == worst[rows]) & (hours > most[rows])
        first = (each.ranks > worst[rows]) | more
        leader[rows[first]], worst[rows[first]], most[rows[first]] = number, each.ranks[first], hours[first]
    node_h, weights = facts.column("node_h"), np.array(SEVERITY_WEIGHTS)
    costs = []
    for number, (each, lost) in enumerate(zip(found, losses, strict=True)):
        leads = leader[each.rows] == number
        weighted = node_h[each.rows] * weights[each.ranks]
        of_job = (np.where(leads, hours[each.rows], np.nan) for hours in (most_lost, most_core_h, most_gpu_h))
        costs.append(Costed(each, lost, weighted, leads, *of_job))
    return costs


def without_infos(found: Sequence[Flagged], n: int) -> tuple[list[Flagged], Counter[str]]:
    """Return the findings that are issues of ``n`` jobs, and by rule the number of those that only inform."""
    shown = _without_hidden(found, n)
    infos = Counter({each.rule.name: int((each.ranks < _ISSUE).sum()) for each in shown})
    issues = (_kept(each, each.ranks >= _ISSUE) for each in shown)
    return [each for each in issues if len(each.rows)], +infos


def _largest(found: Sequence[Flagged], hours: Sequence[Floats], n: int) -> Floats:
    """Return the largest hours of each job over its findings; NaN if unknown."""
    largest = np.full(n, np.nan)
    for each, values in zip(found, hours, strict=True):
        largest[each.rows] = np.fmax(largest[each.rows], values)
    return largest


def _lost(flagged: Flagged, facts: Facts) -> Floats:
    """Return the idle share of cores or GPUs, whichever is larger, times the node-hours.

    A finding without idle hours is a risk and loses 0.
    """
    rows = flagged.rows
    node_h = facts.column("node_h")[rows]
    if flagged.rule.idle_core_h is None and flagged.rule.idle_gpu_h is None:
        return np.where(np.isnan(node_h), np.nan, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # not added up: a node whose cores and GPUs idle is lost once
        cores = flagged.idle_core_h / facts.column("core_h")[rows]
        gpus = flagged.idle_gpu_h / facts.column("gpu_h")[rows]
    return np.asarray(np.clip(np.fmax(cores, gpus), 0.0, 1.0) * node_h)


def _without_hidden(found: Sequence[Flagged], n: int) -> list[Flagged]:
    """Return the findings without those of rules that are reported only alone, in jobs with an issue."""
    has_issue = np.zeros(n, np.bool_)
    for each in found:
        has_issue[each.rows[each.ranks >= _ISSUE]] = True
    shown = [_kept(each, ~has_issue[each.rows]) if each.rule.alone else each for each in found]
    return [each for each in shown if len(each.rows)]


def _kept(flagged: Flagged, keep: Mask) -> Flagged:
    return replace(flagged, **{name: getattr(flagged, name)[keep] for name in _COLUMNS})
