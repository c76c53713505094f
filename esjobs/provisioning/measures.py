"""Inputs of an index from records: job metrics, and reactions to flags and contacts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.query import Days, In
from esjobs.core.window import Window
from esjobs.core.words import NAMED_LEVELS
from esjobs.provisioning.contacts import Rank, contact_effects
from esjobs.publish.publication import finite, read_table
from esjobs.records.jobs.query import METRICS, Question, ask, metric
from esjobs.schema.flags import FLAG_EVENTS, FLAG_NOTES
from esjobs.schema.provisioning import CONTACTS
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Measured:
    """Value from records, or None with a reason."""

    value: float | None
    reason: str = ""


def flags_answered(store: JobStore, period: Window) -> Measured:
    """Return the share of flags opened in a period that were answered."""
    opened = {
        (row["level"], row["name"], row["night"])
        for row in read_table(
            store,
            FLAG_EVENTS,
            [In("kind", ("opened", "reopened")), In("level", NAMED_LEVELS), Days.of_window(period, "night")],
            ["level", "name", "night"],
        ).to_pylist()
    }
    if not opened:
        return Measured(None, "no flag opened in the period")
    notes = read_table(store, FLAG_NOTES, columns=["level", "name", "night"]).to_pylist()
    # an answer from before the flag opened is about another deviation
    answered = {
        flag
        for flag in opened
        if any((note["level"], note["name"]) == flag[:2] and note["night"] >= flag[2] for note in notes)
    }
    return Measured(len(answered) / len(opened))


def contacts_acknowledged(store: JobStore, period: Window) -> Measured:
    """Return the share of contacts of a period that were acknowledged."""
    contacts = read_table(store, CONTACTS, [Days.of_window(period, "contacted_on")]).to_pylist()
    if not contacts:
        return Measured(None, "no contacts in the period")
    return Measured(sum(row["acknowledged_on"] is not None for row in contacts) / len(contacts))


def contacts_improved(store: JobStore, rank: Rank, period: Window) -> Measured:
    """Return the share of contacts of a period that improved, among those with an interval."""
    rows = contact_effects(store, rank, period).to_pylist()
    compared = [row for row in rows if row["verdict"] in ("improved", "worse", "no change seen")]
    if not compared:
        return Measured(None, "no contact of the period has a measurable effect")
    return Measured(sum(row["verdict"] == "improved" for row in compared) / len(compared))


REACTIONS: Mapping[str, Callable[[JobStore, Rank, Window], Measured]] = {
    "flags_answered": lambda store, _, period: flags_answered(store, period),
    "contacts_acknowledged": lambda store, _, period: contacts_acknowledged(store, period),
    "contacts_improved": contacts_improved,
}
"""Measures that are not job metrics."""


def require_measure(name: str, position: str = "") -> None:
    """Raise :class:`UsageError` for an unknown measure."""
    if name in REACTIONS:
        return
    try:
        metric(name)
    except UsageError:
        names = ", ".join((*REACTIONS, *(each.name for each in METRICS)))
        raise UsageError(
            f"{position}unknown measure '{name}'; use one of {names}, or FUNCTION:FIELD such as p90:queue_s"
        ) from None


def measured(store: JobStore, rank: Rank, name: str, period: Window, where: Sequence[str] = ()) -> Measured:
    """Return the value of a measure over a period, or the reason why it is missing."""
    reaction = REACTIONS.get(name)
    if reaction is not None:
        if where:
            return Measured(None, "where selects jobs, but this measure is not about jobs")
        return reaction(store, rank, period)
    try:
        table = ask(store, Question((), (name,), tuple(where), period)).table
    except NoJobsError:
        return Measured(None, "no jobs in the period")
    value = finite(table.column(name)[0].as_py())
    return Measured(value) if value is not None else Measured(None, "no job of the period records it")
