"""Verdicts in words for a site: relative to the others, with an interval, never an order."""

from dataclasses import dataclass

from esjobs.core.numbers import declared as as_declared
from esjobs.core.numbers import exact_percent, signed_percent
from esjobs.core.words import INTERVAL_LEVEL, JUDGED, Verdict
from esjobs.records.declared.origin import Declared
from esjobs.speed.judging.proposals import NOT_CONFIRMED, Proposal
from esjobs.speed.judging.verdicts import Evidence


@dataclass(frozen=True)
class VerdictText:
    """A verdict in words; the advice is separate because it is the same for many names."""

    before: str
    advice: str = ""
    after: str = ""

    @property
    def sentence(self) -> str:
        """Complete text, as sent."""
        return _joined(self.before, self.advice, self.after)

    @property
    def finding(self) -> str:
        """Text without the advice, for lists that give it once."""
        return _joined(self.before, self.after)


def _joined(*texts: str) -> str:
    return " ".join(text for text in texts if text)


def describe_verdict(
    evidence: Evidence,
    verdict: Verdict,
    why: str,
    proposal: Proposal,
    *,
    level: str = "queue",
    significant: bool | None = None,
    stable: bool | None = None,
    unstable_under: str | None = None,
) -> VerdictText:
    """Describe a verdict for a coordinator: relative to the others, with its interval.

    ``significant``: over all tests of the run. ``stable``: None if not tested; ``unstable_under``: the change
    that the verdict does not survive. A deviation without either is a candidate, not cleared to send.
    """
    declared = evidence.declared
    if verdict not in JUDGED:
        would = _ran_like(evidence, level) if verdict == "undeclared" and evidence.estimate else ""
        return VerdictText(_joined(f"{verdict.capitalize()}: {why}.", would, _declared_note(declared)))
    ran = _joined(_ran_like(evidence, level), _bridge(evidence.sole_link))
    note = _declared_note(declared)
    if verdict != "deviates":
        return VerdictText(_joined(ran, note))
    lacking = _lacking(significant, stable, unstable_under)
    if lacking:
        reasons = [*lacking, *({proposal.reason} - {"", NOT_CONFIRMED})]
        return VerdictText(_joined(ran, f"Candidate, not to be sent: {'; '.join(reasons)}.", note))
    after = _joined(proposal.note or "", note)
    if proposal.corepower is None:
        return VerdictText(_joined(ran, f"Nothing is proposed: {proposal.reason}.", after))
    return VerdictText(ran, _advice(level), after)


def _ran_like(evidence: Evidence, level: str) -> str:
    # A line has one entry per site or CPU model.
    estimate = evidence.estimate
    if estimate is None:
        return ""
    own = "is what its queues declare" if evidence.declared.origin == "mean" else "is declared"
    whose = f"what {evidence.n_line_sites} other sites declare"
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
    lacking = [] if significant else ["not significant over all tests of the run"]
    if stable is None:
        return [*lacking, "stability is tested for the headline method only"]
    return lacking if stable else [*lacking, f"not stable ({unstable_under})"]


def _advice(level: str) -> str:
    if level == "cpu_model":
        return "Please check the reference score, and whether its hosts share SMT or overcommit."
    return "If your hardware list disagrees, check SMT and overcommit; please benchmark again."


def _bridge(via: str) -> str:
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
