"""Events of flags in words, never an order."""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from esjobs.core.numbers import MISSING, speed, speed_range
from esjobs.core.numbers import declared as as_declared
from esjobs.core.words import ALL_TYPES, noun

if TYPE_CHECKING:
    from esjobs.flags.states import Flag, Sighting


def of_state(flag: "Flag", seen: "Sighting | None") -> str:
    """Describe the state of a flag with the newest verdict, or why it was not compared."""
    words = {
        "new": f"Candidate since {flag.since}, {_nights(flag.nights)}.",
        "open": f"Open since {flag.since}, {_nights(flag.nights)}.",
        "acknowledged": (
            f"Open since {flag.since}, {_nights(flag.nights)}; acknowledged by {flag.acknowledged_by} until "
            f"{flag.acknowledged_until}."
        ),
        "resolved": f"Resolved on {flag.until}.",
    }
    said = words[flag.state or "resolved"]
    if flag.state == "resolved":
        return said
    if seen is None or not seen.compared:
        return f"{said} {absence(flag, seen)}."
    return f"{said} {seen.sentence}"


def noticed(flag: "Flag") -> str:
    """Describe a new candidate."""
    return f"{_who(flag)} runs {_slower(flag)}: new candidate, not confirmed."


def lacking(confirmed: bool | None) -> str:
    """Describe the tests that a candidate has not passed."""
    if confirmed is True:
        return "confirmed once; jobs of other days or of another processing type have not confirmed it yet"
    return "not confirmed"


def opened(flag: "Flag", *, again: bool) -> str:
    """Describe a deviation confirmed twice. ``again``: the flag was open before, to the same side."""
    runs = "runs again" if again else "runs"
    before = flag.opened_deviation
    turned = "" if again or before is None else f" The deviation before was {speed(before)}."
    return f"{_who(flag)} {runs} {_slower(flag)}, confirmed on two disjoint sets of jobs.{turned}"


def closed(flag: "Flag") -> str:
    """Describe a deviation that ended."""
    return (
        f"{_who(flag)} no longer deviates: it runs {_slower(flag)}. The deviation lasted "
        f"{_nights(flag.nights)} since {flag.since}."
    )


def withdrawn(flag: "Flag") -> str:
    """Describe a candidate that was never confirmed twice."""
    return f"{_who(flag)} was dropped as a candidate after {_nights(flag.nights)} (since {flag.since})."


def vanished(flag: "Flag") -> str:
    """Describe an open flag without comparable jobs."""
    return f"{_who(flag)} had no comparable jobs for {_nights(flag.absent_nights)}; its flag stays open."


def absence(flag: "Flag", seen: "Sighting | None") -> str:
    """Return the reason why a name was not compared."""
    since = f"not compared since {flag.compared_on}" if flag.compared_on else "not compared"
    if seen is None:
        return f"{since}: no jobs in the window"
    return f"{since}: {seen.sentence.rstrip('.')}"


def returned(flag: "Flag") -> str:
    """Describe a name that is comparable again."""
    return f"{_who(flag)} has comparable jobs again: it runs {_slower(flag)}."


def declared(flag: "Flag", before: float, since: date) -> str:
    """Describe a changed declaration."""
    benchmark = f" {flag.benchmark} per core" if flag.benchmark else ""
    now = MISSING if flag.corepower is None else as_declared(flag.corepower)
    return f"{_who(flag)} declares {now}{benchmark} since {since} (before: {as_declared(before)})."


def acknowledged(flag: "Flag") -> str:
    """Describe an acknowledgement."""
    note = f": {flag.note}" if flag.note else ""
    return (
        f"{flag.acknowledged_by} acknowledged the flag of {_who(flag)} until {flag.acknowledged_until}{note}"
    )


def expired(flag: "Flag", night: date) -> str:
    """Describe the end of an acknowledgement."""
    return (
        f"The acknowledgement of {_who(flag)} by {flag.acknowledged_by} expired; its flag is open again "
        f"since {night}."
    )


def answered(flag: "Flag", answers: Sequence[tuple[str, str]]) -> str:
    """Describe the answers of a site in a night, oldest first, each an author and a text."""
    authors = list(dict.fromkeys(by for by, _ in answers))
    texts = [text if len(authors) == 1 else f"{by}: {text}" for by, text in answers]
    numbered = texts if len(texts) == 1 else [f"({number}) {text}" for number, text in enumerate(texts, 1)]
    return f"{' and '.join(authors)} answered about {_who(flag)}: {' '.join(numbered)}"


def _who(flag: "Flag") -> str:
    kind = "" if flag.processing_type == ALL_TYPES else f" ({flag.processing_type})"
    what = "" if flag.level == "queue" else f"{noun(flag.level, 1)} "
    return f"{what}{flag.name}{kind}"


def _slower(flag: "Flag") -> str:
    expected = "than its reference score" if flag.level == "cpu_model" else "than declared"
    if flag.deviation is None or flag.deviation_low is None or flag.deviation_high is None:
        return f"slower or faster {expected}, by an unknown amount"
    return (
        f"{speed(flag.deviation)} {expected} (90 % interval: "
        f"{speed_range(flag.deviation_low, flag.deviation_high)})"
    )


def _nights(count: int) -> str:
    return f"{count} night{'' if count == 1 else 's'}"
