"""Verdicts that are safe to send: from a deviation with its error to one careful sentence.

The rules, in the order in which they are asked (the first that applies decides):

1. a name without a factor, or with too few jobs: ``too few`` or ``not comparable``, with the reason;
2. outside the largest component: ``not comparable``;
3. a factor more than three times off the median: ``implausible``, check the records;
4. no declared value, or a default: ``undeclared``;
5. no line that verdicts may rest on: ``too few``;
6. ``deviates`` when |d| - 1.645 s > limit, ``ok`` when |d| + 1.645 s < limit, else ``undecided``.

A number is proposed only for ``deviates`` with its own declaration, two tasks (one in two core
classes or types is one) and enough jobs; only what is stable is sent.
"""

import math
from dataclasses import dataclass
from typing import Literal

from esjobs.analysis.declarations import Declared

Verdict = Literal[
    "deviates", "ok", "undecided", "undeclared", "too few", "mixed", "implausible", "not comparable"
]

Z90 = 1.645
"""Half-width of a two-sided 90 % interval in standard errors."""
IMPLAUSIBLE = math.log(3.0)
MIN_LINE_SITES = 10
"""Sites a line needs before verdicts rest on it."""
MIN_PROPOSAL_ERROR = 0.05
MIN_PROPOSAL_TASKS = 2
FEW_JOBS_BRIDGE = "few jobs"
"""In the place of a name: the link to the others rests on buckets of few jobs only."""


@dataclass(frozen=True)
class Evidence:
    """What is known of one name when it is judged.

    Missing numbers are None. ``deviation`` and its error come from the line without the name's own site;
    ``n_tasks`` counts units of A (task x core class x type), ``n_distinct_tasks`` the tasks behind them.
    ``median_k`` is the median factor of the component. ``line_reason``: why no verdict may rest on the line.
    """

    name: str
    status: str
    reason: str
    k: float | None
    n_jobs: int
    n_tasks: int
    n_distinct_tasks: int
    in_main_component: bool
    declared: Declared
    deviation: float | None
    deviation_err: float | None
    median_k: float | None
    n_line_sites: int
    line_reason: str | None
    mixed: bool = False
    via: str = ""
    """The one name through which this one hangs on the others, or ``few jobs``."""


def decide(evidence: Evidence, comparison: Verdict | None, min_jobs: int) -> tuple[Verdict, str]:
    """The verdict and, where it is not a comparison, why.

    ``comparison``: what the deviation and its error say by themselves (rule 6), None without a deviation.
    ``min_jobs``: jobs a name needs for a verdict.
    """
    blocked = _blocked(evidence, min_jobs)
    if blocked is not None:
        return blocked
    if evidence.line_reason is not None or comparison is None:
        return "too few", evidence.line_reason or "no line without its own site"
    return comparison, ""


def compare(deviation: float, error: float, limit: float) -> Verdict:
    """Rule 6 alone, for many degrees of freedom.

    >>> compare(-0.47, 0.1, 0.2), compare(0.05, 0.05, 0.2), compare(0.25, 0.1, 0.2)
    ('deviates', 'ok', 'undecided')
    """
    if abs(deviation) - Z90 * error > limit:
        return "deviates"
    if abs(deviation) + Z90 * error < limit:
        return "ok"
    return "undecided"


def _blocked(evidence: Evidence, min_jobs: int) -> tuple[Verdict, str] | None:
    if evidence.mixed:
        return "mixed", evidence.reason
    if evidence.k is None:
        verdict: Verdict = "too few" if evidence.status == "too few jobs" else "not comparable"
        return verdict, evidence.reason
    if not evidence.in_main_component:
        return "not comparable", "no task links it with the largest component"
    if evidence.n_jobs < min_jobs:
        return "too few", f"{evidence.n_jobs} jobs in the fit, {min_jobs} are needed for a verdict"
    if evidence.median_k and abs(math.log(evidence.k / evidence.median_k)) > IMPLAUSIBLE:
        ratio = evidence.k / evidence.median_k
        return "implausible", f"{ratio:.2g} times the median factor: check the records"
    if evidence.declared.origin == "none":
        return "undeclared", "no declared corepower"
    if evidence.declared.origin == "default":
        return "undeclared", f"the declared {evidence.declared.corepower:.4g} is a default, not a measurement"
    return None


@dataclass(frozen=True)
class Proposal:
    """What the jobs ran like, in units of the benchmark; ``reason`` says why there is none."""

    corepower: float | None
    corepower_err: float | None
    reason: str


def propose(evidence: Evidence, verdict: Verdict, min_jobs: int) -> Proposal:
    """The corepower at which the name would lie on the line of the others, if one may be proposed.

    Its error is that of the deviation (statistics, interaction, line), never below 5 %. Whether it may be
    sent is a question of the verdict's stability, asked apart.
    """
    declared = evidence.declared
    if verdict != "deviates":
        return Proposal(None, None, f"the verdict is {verdict}")
    if declared.origin != "own":
        return Proposal(None, None, f"the declaration is {declared.origin}, not the queue's own")
    if evidence.n_distinct_tasks < MIN_PROPOSAL_TASKS:
        return Proposal(None, None, "one task only")
    if evidence.n_jobs < min_jobs:
        return Proposal(None, None, "too few jobs")
    value, deviation, error = declared.corepower, evidence.deviation, evidence.deviation_err
    if value is None or deviation is None or error is None:
        return Proposal(None, None, "no deviation")
    proposed = value * (1 + deviation)
    return Proposal(proposed, max(value * error, MIN_PROPOSAL_ERROR * proposed), "")


def sentence(
    evidence: Evidence, verdict: Verdict, why: str, proposal: Proposal, unstable_under: str | None = None
) -> str:
    """One sentence a coordinator may read out: relative to the others, with its interval, never an order.

    ``unstable_under``: the change that turns the verdict; such a sentence says that it is not to be sent.
    """
    declared = evidence.declared
    if verdict not in ("deviates", "ok", "undecided"):
        shown = _declared_note(declared)
        return f"{verdict.capitalize()}: {why}.{shown}"
    deviation, error = evidence.deviation or 0.0, evidence.deviation_err or 0.0
    value = declared.corepower or 0.0
    low, high = interval(deviation, error)
    unit = f"{declared.benchmark} per core"
    ran = (
        f"Relative to what {evidence.n_line_sites} other sites declare, these jobs ran like "
        f"{value * (1 + deviation):.1f} ({value * low:.1f} to {value * high:.1f}, 90 %) {unit}; "
        f"{value:.2f} is declared ({_percent(deviation)})."
    )
    if verdict == "deviates":
        advice = (
            " If your hardware list disagrees, check SMT and overcommit; please benchmark again."
            if proposal.corepower is not None
            else f" Nothing is proposed: {proposal.reason}."
        )
        caution = f" Not stable, so not to be sent: {unstable_under}." if unstable_under else ""
        return ran + _bridge(evidence.via) + advice + caution + _declared_note(declared)
    return ran + _bridge(evidence.via) + _declared_note(declared)


def _bridge(via: str) -> str:
    """What a comparison hangs on that rests on one name, or on few jobs; its error is in the interval."""
    if not via:
        return ""
    if via == FEW_JOBS_BRIDGE:
        return " Compared through buckets of fewer than 50 jobs only."
    return f" Compared via {via} only."


def _percent(deviation: float) -> str:
    text = f"{deviation:+.0%}"
    return "0%" if text in ("+0%", "-0%") else text


def interval(deviation: float, error: float) -> tuple[float, float]:
    """The 90 % interval of 1 + deviation, symmetric in the logarithm and so never negative."""
    centre = 1 + deviation
    if centre <= 0 or error <= 0:
        return centre, centre
    factor = math.exp(Z90 * error / centre)
    return centre / factor, centre * factor


def _declared_note(declared: Declared) -> str:
    notes = []
    if declared.parent is not None and declared.origin in ("default", "none"):
        notes.append(f"its site carries {declared.parent:.4g}")
    if declared.from_records is not None:
        notes.append(f"the records carry {declared.from_records:.4g}")
    if declared.origin == "changed":
        notes.append("the declared value changed inside the window")
    if declared.origin == "inherited":
        notes.append("the declared value is inherited from its site")
    return f" Note: {'; '.join(notes)}." if notes else ""
