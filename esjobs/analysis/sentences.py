"""Verdicts in words that may be sent to a site: relative to the others, with an interval, never an order."""

import math

from esjobs.analysis.declarations import Declared
from esjobs.analysis.proposals import Proposal
from esjobs.analysis.verdicts import FEW_JOBS_BRIDGE, Z90, Evidence, Verdict


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
        note = f" {proposal.note}" if proposal.note else ""
        caution = f" Not stable, so not to be sent: {unstable_under}." if unstable_under else ""
        return ran + _bridge(evidence.via) + advice + note + caution + _declared_note(declared)
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
