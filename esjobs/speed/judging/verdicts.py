"""Verdicts that are safe to send: from a deviation with its error to one word.

The rules, in their order (the first that applies decides):

1. a name without a factor, or with too few jobs: ``too few`` or ``not comparable``, with the reason;
2. outside the largest component: ``via CPU models`` where these place it on the common scale; else, or
   linked with most of it by few jobs only: ``not comparable``;
3. records that scatter far more than those of the same tasks elsewhere, a factor more than three times off
   the median, two declared values at once that wrong core counts explain: ``implausible``, check the records;
4. no declared value, or a default: ``undeclared``;
5. no line that verdicts may rest on: ``too few``;
6. with P the probability that the declared value is off by more than the limit: ``deviates`` when P > 0.95,
   ``ok`` when P < 0.05 and the 90 % interval of the deviation lies within the limit (that most others are
   honest clears nobody), else ``undecided``.
"""

import math
from dataclasses import dataclass

from esjobs.core.numbers import declared
from esjobs.core.words import CHANGED_SPEED, JUDGED, SURE, Verdict
from esjobs.records.declared.origin import Declared

IMPLAUSIBLE = math.log(3.0)  # Of a factor over the median: beyond three, records are wrong and not CPUs
MIN_LINE_SITES = 10  # sites (or CPU models) a line needs before verdicts rest on it
LEAST_STRAYS = 2  # Buckets of a name rejected as strays, and their share of all of its buckets: two speeds
STRAY_SHARE = 0.2
# The verdicts that claim something, and so are tested for stability
SURVIVING: tuple[Verdict, ...] = ("deviates", "ok")
# In the place of a name: few jobs link this one, or the group that it belongs to, with most others
FEW_JOBS_BRIDGE = "few jobs"
FEW_JOBS = "fewer than 50 jobs link it, or its group, with most other names"


@dataclass(frozen=True)
class Estimate:
    """Corepower at which a name would lie on the line of the others, in their benchmark.

    ``error``: statistics, interaction, weak bridges and line together. ``low``, ``high``: 90 % interval,
    symmetric in the logarithm. Table, sentence and proposal give these numbers.
    """

    corepower: float
    error: float
    low: float
    high: float
    benchmark: str


@dataclass(frozen=True)
class Evidence:
    """Evidence on one name; missing numbers are None.

    ``deviation`` and its error come from the line without the name's own site; ``n_units`` counts units of A
    (task x core class x type), ``n_tasks`` the tasks behind them. ``p_off``: the probability that the
    declared value is off by more than the limit. ``median_k``: of the component.
    ``n_line_sites``: sites (or CPU models) of that line. ``line_reason``: why no verdict may rest on it.
    """

    name: str
    status: str
    reason: str
    k: float | None
    n_jobs: int
    n_units: int
    n_tasks: int
    in_main_component: bool
    declared: Declared
    deviation: float | None
    deviation_err: float | None
    p_off: float | None
    median_k: float | None
    n_line_sites: int
    line_reason: str | None
    only_type: str = ""  # The processing type of all its jobs in the fit, where the fit has only one
    records_doubt: str = ""  # Why its records are in doubt
    mixed: bool = False
    sole_link: str = ""  # The one name that links this one with the others, or ``few jobs``
    estimate: Estimate | None = None
    deviation_raw: float | None = None  # Without correction for start-up times
    n_buckets: int = 0  # In the fit
    n_rejected: int = 0  # Lost as strays
    n_cut: int = 0  # Units of A that a limit cuts off there, left out
    core_use: float | None = None  # CPU time over wall time x cores
    via_models: bool = False  # Its CPU models alone put it on the common scale
    model_doubt: str = ""  # Tests of the fit's model that failed


def decide(evidence: Evidence, comparison: Verdict | None, min_jobs: int) -> tuple[Verdict, str]:
    """Return the verdict and, if it is not a comparison, the reason.

    ``comparison``: verdict of rule 6, None without a deviation. ``min_jobs``: jobs a name needs.
    """
    blocked = _blocked(evidence, min_jobs)
    if blocked is not None:
        return blocked
    if evidence.line_reason is not None or comparison is None:
        return "too few", evidence.line_reason or "no line without its own site"
    return comparison, ""


def compare(p_off: float, *, inside: bool) -> Verdict:
    """Apply rule 6; ``inside``: the interval of the deviation lies within the limit.

    >>> compare(0.97, inside=False), compare(0.01, inside=True), compare(0.01, inside=False)
    ('deviates', 'ok', 'undecided')
    """
    if p_off > SURE:
        return "deviates"
    return "ok" if p_off < 1 - SURE and inside else "undecided"


def has_two_speeds(evidence: Evidence) -> bool:
    """True if the fit rejected so many buckets of a name that they may be a second speed of it."""
    total = evidence.n_buckets + evidence.n_rejected
    return evidence.n_rejected >= LEAST_STRAYS and evidence.n_rejected >= STRAY_SHARE * total


def survives(verdict: Verdict, deviation: float, updated: float, limit: float) -> bool:
    """True if a verdict holds for the ``updated`` deviation under a change of uncertain inputs.

    Of ``deviates`` the sign and half the limit must survive, of ``ok`` the limit.

    >>> survives("deviates", -0.4, -0.15, 0.2), survives("deviates", -0.4, 0.5, 0.2)
    (True, False)
    """
    if verdict == "deviates":
        return math.copysign(1.0, deviation) * updated > limit / 2
    return verdict != "ok" or abs(updated) < limit


def is_confirmed(verdict: Verdict, significant: bool | None, stable: bool | None) -> bool | None:
    """True if a verdict is cleared to send: ``deviates``, significant and stable; None without a comparison.

    >>> is_confirmed("deviates", True, True), is_confirmed("ok", False, True)
    (True, False)
    """
    if verdict not in JUDGED:
        return None
    return verdict == "deviates" and significant is True and stable is True


def _blocked(evidence: Evidence, min_jobs: int) -> tuple[Verdict, str] | None:
    if evidence.mixed:
        return "mixed", evidence.reason
    if evidence.via_models:
        return (
            "via CPU models",
            "no task links it with most others, its CPU models do, so nothing is confirmed",
        )
    if evidence.k is None:
        verdict: Verdict = "too few" if evidence.status == "too few jobs" else "not comparable"
        return verdict, evidence.reason
    if not evidence.in_main_component:
        return "not comparable", "it shares no task with the largest component"
    if evidence.n_jobs < min_jobs:
        return "too few", f"{evidence.n_jobs} of {min_jobs} needed jobs in the fit"
    if evidence.sole_link == FEW_JOBS_BRIDGE:
        return "not comparable", FEW_JOBS
    if evidence.records_doubt:
        changed = CHANGED_SPEED in evidence.records_doubt
        remedy = "judge a window after the change (esjobs drift)" if changed else "check its records"
        return "implausible", f"{evidence.records_doubt}; {remedy}"
    if evidence.median_k and abs(math.log(evidence.k / evidence.median_k)) > IMPLAUSIBLE:
        ratio = evidence.k / evidence.median_k
        return (
            "implausible",
            f"{ratio:.2g} times the median speed; check event counts, times and cores in its records",
        )
    value = evidence.declared.corepower
    if evidence.declared.origin == "none" or value is None:
        return "undeclared", evidence.declared.note or "no value declared"
    if evidence.declared.values_ratio is not None:
        return (
            "implausible",
            f"two values at once, ratio {evidence.declared.values_ratio:.2f}: check core counts",
        )
    if evidence.declared.origin == "default":
        return "undeclared", f"{declared(value)} is the default of the system, not a measured value"
    return None
