"""Proposed declarations: for confirmed deviations only, and one number for queues that agree.

A number needs a confirmed deviation from the name's own declaration, two tasks (one in two core classes or
types is one) and enough jobs: every proposal is cleared to send.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from esjobs.core.words import Verdict
from esjobs.speed.judging.verdicts import Evidence

MIN_PROPOSAL_TASKS = 2
SIBLING_SIGMAS = 3.0  # Beyond, siblings are different hardware and keep their own numbers
# Why nothing is proposed where nothing else stands in the way
NOT_CONFIRMED = "the deviation is not confirmed"


@dataclass(frozen=True)
class Proposal:
    """Measured value with its 90 % interval.

    ``reason``: why there is none; ``note``: proposals of the site's other queues.
    """

    corepower: float | None
    corepower_err: float | None
    reason: str = ""
    note: str = ""
    low: float | None = None
    high: float | None = None


def propose(
    evidence: Evidence, verdict: Verdict, min_jobs: int, *, level: str = "queue", confirmed: bool | None
) -> Proposal:
    """Return the estimate of the name as a proposal, or the reason for none."""
    declared = evidence.declared
    if verdict != "deviates":
        return Proposal(None, None, f"the verdict is {verdict}")
    if level == "site":
        return Proposal(None, None, "its queues declare values, not the site")
    if declared.origin == "reference":
        return Proposal(None, None, "the value is a published score, which no site declares")
    if declared.origin != "own":
        return Proposal(None, None, f"the declared value is {declared.origin}, not the queue's own")
    if evidence.n_tasks < MIN_PROPOSAL_TASKS:
        return Proposal(None, None, "it rests on one task only")
    if evidence.n_jobs < min_jobs:
        return Proposal(None, None, "too few jobs")
    if evidence.model_doubt:
        return Proposal(None, None, f"the model of the fit does not hold: {evidence.model_doubt}")
    if not confirmed:
        return Proposal(None, None, NOT_CONFIRMED)
    estimate = evidence.estimate
    if estimate is None:
        return Proposal(None, None, "no deviation")
    return Proposal(estimate.corepower, estimate.error, low=estimate.low, high=estimate.high)


def share_among_siblings(evidence: Sequence[Evidence], proposals: Sequence[Proposal]) -> list[Proposal]:
    """Merge the proposals of queues of one site, unless two differ by more than three of their errors.

    ``evidence``, ``proposals`` and the result are aligned. The shared number is the mean weighted with 1 /
    error^2; its relative error is the smallest of theirs, because the line's part is common. Queues that
    differ keep their own numbers with a note.
    """
    found = list(proposals)
    sites: dict[tuple[str, str | None], list[int]] = {}
    for index, (mine, proposal) in enumerate(zip(evidence, proposals, strict=True)):
        if mine.declared.site and proposal.corepower is not None:
            sites.setdefault((mine.declared.site, mine.declared.benchmark), []).append(index)
    for (site, _), places in sites.items():
        if len(places) > 1:
            names = [evidence[index].name for index in places]
            shared = _shared(site, names, [proposals[index] for index in places])
            for index, proposal in zip(places, shared, strict=True):
                found[index] = proposal
    return found


def _shared(site: str, names: Sequence[str], proposals: Sequence[Proposal]) -> list[Proposal]:
    numbers = [(proposal.corepower or 0.0, proposal.corepower_err or 0.0) for proposal in proposals]
    if any(abs(a - b) > SIBLING_SIGMAS * math.hypot(x, y) for (a, x), (b, y) in combinations(numbers, 2)):
        note = (
            f"Queues of {site} differ by more than {SIBLING_SIGMAS:.0f} standard errors; compare their CPU "
            "models."
        )
        return [replace(proposal, note=note) for proposal in proposals]
    weights = [error**-2 for _, error in numbers]
    mean = sum(w * value for w, (value, _) in zip(weights, numbers, strict=True)) / sum(weights)
    # not smaller by averaging: most of each error is the line's, which they share
    relative = min(error / value for value, error in numbers)
    half = min(math.log((proposal.high or mean) / (proposal.corepower or mean)) for proposal in proposals)
    low, high = mean * math.exp(-half), mean * math.exp(half)
    shared = []
    for name in names:
        others = ", ".join(other for other in names if other != name)
        note = f"The same value, {mean:.1f} ({low:.1f} to {high:.1f}), fits {others} of {site}."
        shared.append(Proposal(mean, relative * mean, note=note, low=low, high=high))
    return shared
