"""Verdicts in words for a site: relative to the others, with an interval, never an order."""

from dataclasses import dataclass

from esjobs.core.numbers import declared as as_declared
from esjobs.core.numbers import exact_percent, speed, sure
from esjobs.core.words import DEVIATION_LIMIT, INTERVAL_LEVEL, JUDGED, SURE, Verdict, noun
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
    limit: float = DEVIATION_LIMIT,
    doubt: str = "",
    stable: bool | None = None,
    unstable_under: str | None = None,
) -> VerdictText:
    """Describe a verdict for a coordinator: relative to the others, with its interval.

    ``doubt``: why the line does not tell who is wrong. ``stable``: None if not tested; ``unstable_under``:
    the change that the verdict does not survive. A deviation with either is a candidate, not cleared to send.
    """
    declared = evidence.declared
    if verdict not in JUDGED:
        measured = verdict in ("undeclared", "via CPU models") and evidence.estimate
        would = _ran_like(evidence, verdict, level, limit) if measured else ""
        said = f"{verdict[:1].upper()}{verdict[1:]}: {why}."
        return VerdictText(_joined(said, would, _declared_note(declared)))
    via = evidence.sole_link
    link = f"Linked to other {noun(level)} only through {via}." if via else ""
    ran = _joined(_ran_like(evidence, verdict, level, limit), link)
    note = _declared_note(declared)
    if verdict != "deviates":
        return VerdictText(_joined(ran, note))
    lacking = _lacking(doubt, stable, unstable_under)
    if lacking:
        reasons = [*lacking, *({proposal.reason} - {"", NOT_CONFIRMED})]
        return VerdictText(_joined(ran, f"Candidate, do not send: {'; '.join(reasons)}.", note))
    after = _joined(proposal.note or "", note)
    if proposal.corepower is None:
        return VerdictText(_joined(ran, f"No proposed value: {proposal.reason}.", after))
    return VerdictText(ran, _advice(level, evidence.deviation or 0.0), after)


def _ran_like(evidence: Evidence, verdict: Verdict, level: str, limit: float) -> str:
    # A line has one entry per site or CPU model.
    estimate = evidence.estimate
    if estimate is None:
        return ""
    scale, own, expected = f"{evidence.n_line_sites} other sites", "Declared", "declared"
    if level == "cpu_model":
        scale = f"the reference scores of {evidence.n_line_sites} other CPU models"
        own, expected = "Reference score", "its reference score"
    jobs = f"Jobs ({evidence.only_type} only)" if evidence.only_type else "Jobs"
    ran = (
        f"{jobs} ran as fast as {estimate.corepower:.1f} {estimate.benchmark} per core "
        f"({exact_percent(INTERVAL_LEVEL)} interval: {estimate.low:.1f} to {estimate.high:.1f}), on the "
        f"scale of {scale}."
    )
    declared = evidence.declared
    if declared.origin in ("none", "default"):
        return ran
    deviation = speed(evidence.deviation or 0.0)
    said = f"{ran} {own}: {declared.corepower:.2f}. Jobs run {deviation} than {expected}"
    return f"{said}." if evidence.p_off is None else f"{said}: {_sureness(evidence.p_off, verdict, limit)}."


def _sureness(p_off: float, verdict: Verdict, limit: float) -> str:
    if verdict == "deviates":
        return f"off by more than {exact_percent(limit)}, {sure(p_off)} sure"
    if verdict == "ok":
        return f"within {exact_percent(limit)}, {sure(1 - p_off)} sure"
    if p_off < 1 - SURE:
        # its own jobs allow more than the probability does, which rests on the others, too
        return (
            f"its interval reaches beyond {exact_percent(limit)}; as most others declare the right value, "
            f"the probability of more is {sure(p_off)}"
        )
    return f"off by more than {exact_percent(limit)} with a probability of {sure(p_off)}"


def _lacking(doubt: str, stable: bool | None, unstable_under: str | None) -> list[str]:
    lacking = ["two groups disagree, and either may declare wrong"] if doubt else []
    if stable is None:
        return [*lacking, "stability is tested for the default method only"]
    return lacking if stable else [*lacking, f"the verdict changes in a stability check ({unstable_under})"]


def _advice(level: str, deviation: float) -> str:
    if level == "cpu_model":
        return "Check the reference score, and whether the hosts use SMT or overcommit."
    what = "SMT and overcommit" if deviation < 0 else "SMT, empty job slots and the event counts of jobs"
    return f"If this contradicts your hardware list, check {what}, or run the benchmark again."


def _declared_note(declared: Declared) -> str:
    notes = []
    if declared.parent is not None and declared.origin in ("default", "none"):
        notes.append(f"The site declares {as_declared(declared.parent)}.")
    if declared.from_records is not None:
        notes.append(f"Job records imply {as_declared(declared.from_records)}.")
    if declared.origin == "changed":
        notes.append("The declared value changed inside the window.")
    if declared.before is not None:
        notes.append(f"Inside the window it replaced {as_declared(declared.before)}.")
    if declared.origin == "mean":
        notes.append("The declared value is the mean of its queues.")
    if declared.origin == "inherited":
        notes.append("The declared value is inherited from the site.")
    return " ".join(notes)
