"""What a site could declare instead: for whom a number is proposed, and one number for queues that agree.

A number is proposed only for a confirmed deviation from the name's own declaration, with two tasks (one in
two core classes or types is one) and enough jobs: whatever is proposed may be sent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from esjobs.core.words import Verdict
from esjobs.speed.judging.verdicts import Evidence

MIN_PROPOSAL_TASKS = 2
SIBLING_SIGMAS = 3.0
NOT_CONFIRMED = "the deviation is not confirmed"
"""Why nothing is proposed where nothing else stands in the way."""


@dataclass(frozen=True)
class Proposal:
    """What the jobs ran like, in units of the benchmark, with its 90 % interval.

    ``reason`` says why there is none; ``note`` what the other queues of the site propose.
    """

    corepower: float | None
    corepower_err: float | None
    reason: str = ""
    note: str = ""
    low: float | None = None
    high: float | None = None


def propose(evidence: Evidence, verdict: Verdict, min_jobs: int, *, confirmed: bool | None) -> Proposal:
    """The estimate of the name if it may be proposed. ``confirmed``: significant and stable."""
    declared = evidence.declared
    if verdict != "deviates":
        return Proposal(None, None, f"the verdict is {verdict}")
    if declared.origin != "own":
        return Proposal(None, None, f"the declaration is {declared.origin}, not the queue's own")
    if evidence.n_tasks < MIN_PROPOSAL_TASKS:
        return Proposal(None, None, "one task only")
    if evidence.n_jobs < min_jobs:
        return Proposal(None, None, "too few jobs")
    if not confirmed:
        return Proposal(None, None, NOT_CONFIRMED)
    estimate = evidence.estimate
    if estimate is None:
        return Proposal(None, None, "no deviation")
    return Proposal(estimate.corepower, estimate.error, low=estimate.low, high=estimate.high)


def share_among_siblings(evidence: Sequence[Evidence], proposals: Sequence[Proposal]) -> list[Proposal]:
    """One proposal for queues of one site, unless two of them differ by more than three of their errors.

    ``evidence`` and ``proposals`` are of the same names in the same order; so is the answer. The shared
    number is the mean weighted with 1 / error^2. Its relative error is the smallest of theirs, since the
    line's part is common to them and does not average. Queues that differ keep their own numbers, and the
    note says so.
    """
    found = list(proposals)
    sites: dict[tuple[str, str | None], list[int]] = {}
    for place, (mine, proposal) in enumerate(zip(evidence, proposals, strict=True)):
        if mine.declared.site and proposal.corepower is not None:
            sites.setdefault((mine.declared.site, mine.declared.benchmark), []).append(place)
    for (site, _), places in sites.items():
        if len(places) < 2:
            continue
        numbers = [
            (proposals[place].corepower or 0.0, proposals[place].corepower_err or 0.0) for place in places
        ]
        if any(abs(a - b) > SIBLING_SIGMAS * math.hypot(x, y) for (a, x), (b, y) in combinations(numbers, 2)):
            note = f"Queues of {site} differ by more than {SIBLING_SIGMAS:.0f} errors: see their CPU models."
            for place in places:
                found[place] = replace(proposals[place], note=note)
            continue
        weights = [error**-2 for _, error in numbers]
        mean = sum(w * value for w, (value, _) in zip(weights, numbers, strict=True)) / sum(weights)
        relative = min(error / value for value, error in numbers)
        half = min(
            math.log((proposals[place].high or mean) / (proposals[place].corepower or mean))
            for place in places
        )
        low, high = mean * math.exp(-half), mean * math.exp(half)
        for place in places:
            others = ", ".join(evidence[other].name for other in places if other != place)
            note = f"One value, {mean:.1f} ({low:.1f} to {high:.1f}), serves {others} of {site} as well."
            found[place] = Proposal(mean, relative * mean, note=note, low=low, high=high)
    return found
