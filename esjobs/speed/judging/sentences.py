"""Verdicts in words that may be sent to a site: relative to the others, with an interval, never an order."""

from dataclasses import dataclass

from esjobs.core.numbers import declared as as_declared
from esjobs.core.numbers import exact_percent, signed_percent
from esjobs.core.words import INTERVAL_LEVEL, JUDGED, Verdict
from esjobs.records.declared.origin import Declared
from esjobs.speed.judging.proposals import NOT_CONFIRMED, Proposal
from esjobs.speed.judging.verdicts import Evidence


@dataclass(frozen=True)
class Told:
    """A verdict in words. What is asked to be done reads alike for many names, so it can be had apart."""

    before: str
    advice: str = ""
    after: str = ""

    @property
    def sentence(self) -> str:
        """All of it, as it is sent."""
        return _joined(self.before, self.advice, self.after)

    @property
    def finding(self) -> str:
        """The same without the advice, for lists that give it once."""
        return _joined(self.before, self.after)


def _joined(*texts: str) -> str:
    return " ".join(text for text in texts if text)


def told(
    evidence: Evidence,
    verdict: Verdict,
    why: str,
    proposal: Proposal,
    *,
    level: str = "queue",
    significant: bool | None = None,
    stable: bool | None = None,
    unstable_under: str | None = None,
) -> Told:
    """What a coordinator may read out: relative to the others, with its interval, never an order.

    ``significant``: over all tests of the run. ``stable``: whether the verdict survives what can be wrong,
    None where that was not tested; ``unstable_under``: the change that it does not survive. A deviation that
    lacks either is a candidate, and its sentence says that it is not to be sent, and why.
    """
    declared = evidence.declared
    if verdict not in JUDGED:
        would = _ran_like(evidence, level) if verdict == "undeclared" and evidence.estimate else ""
        return Told(_joined(f"{verdict.capitalize()}: {why}.", would, _declared_note(declared)))
    ran = _joined(_ran_like(evidence, level), _bridge(evidence.via))
    note = _declared_note(declared)
    if verdict != "deviates":
        return Told(_joined(ran, note))
    lacking = _lacking(significant, stable, unstable_under)
    if lacking:
        reasons = [*lacking, *({proposal.reason} - {"", NOT_CONFIRMED})]
        return Told(_joined(ran, f"Candidate, not to be sent: {'; '.join(reasons)}.", note))
    after = _joined(proposal.note or "", note)
    if proposal.corepower is None:
        return Told(_joined(ran, f"Nothing is proposed: {proposal.reason}.", after))
    return Told(ran, _advice(level), after)


def _ran_like(evidence: Evidence, level: str) -> str:
    """What the jobs ran like, and relative to whom: a line has one entry per site or CPU model."""
    estimate = evidence.estimate
    if estimate is None:
        return ""
    whose, own = f"what {evidence.n_line_sites} other sites declare", "is declared"
    if level == "cpu_model":
        whose, own = f"the reference scores of {evidence.n_line_sites} other CPU models", "is its score"
    jobs = f"these jobs ({evidence.only_type} only)" if evidence.only_type else "these jobs"
    ran = (
        f"Relative to {whose}, {jobs} ran like {estimate.corepower:.1f} ({estimate.low:.1f} to "
        f"{estimate.high:.1f}, {exact_percent(INTERVAL_LEVEL)}) {estimate.benchmark} per core"
    )
    declared = evidence.declared
    if declared.origin in ("none", "default"):
        return f"{ran}."
    return f"{ran}; {declared.corepower:.2f} {own} ({signed_percent(evidence.deviation or 0.0)})."


def _lacking(significant: bool | None, stable: bool | None, unstable_under: str | None) -> list[str]:
    """What keeps a deviation from being confirmed."""
    lacking = [] if significant else ["not significant over all tests of the run"]
    if stable is None:
        return [*lacking, "stability is tested for the headline method only"]
    return lacking if stable else [*lacking, f"not stable ({unstable_under})"]


def _advice(level: str) -> str:
    if level == "cpu_model":
        return "Please check the reference score, and whether its hosts share SMT or overcommit."
    return "If your hardware list disagrees, check SMT and overcommit; please benchmark again."


def _bridge(via: str) -> str:
    """What a comparison hangs on that rests on one name; its error is in the interval."""
    return f"Compared via {via} only." if via else ""


def _declared_note(declared: Declared) -> str:
    notes = []
    if declared.parent is not None and declared.origin in ("default", "none"):
        notes.append(f"its site carries {as_declared(declared.parent)}")
    if declared.from_records is not None:
        notes.append(f"the records carry {as_declared(declared.from_records)}")
    if declared.origin == "changed":
        notes.append("the declared value changed inside the window")
    if declared.origin == "inherited":
        notes.append("the declared value is inherited from its site")
    return f"Note: {'; '.join(notes)}." if notes else ""
