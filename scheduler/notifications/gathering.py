"""Notices of a night: flag events, and nights that failed or are missing."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from esjobs.core.identity import content_id
from esjobs.core.numbers import signed_percent
from esjobs.core.tables import columns
from esjobs.core.text import visible
from esjobs.core.window import format_time
from scheduler.notifications.explanations import Basis, Flag
from scheduler.notifications.notices import FLAG_KINDS, Kind, Notice, Severity

# Kind of an event to that of its notice
_KINDS: Mapping[str, Kind] = {"noticed": "candidate", **{kind: kind for kind in FLAG_KINDS}}


def flag_notices(
    events: Iterable[Mapping[str, Any]],
    reasons: Mapping[Flag, tuple[str, ...]] | None = None,
    bases: Mapping[Flag, Basis] | None = None,
    *,
    critical: float = 0.5,
) -> list[Notice]:
    """Return the notices of rows of ``flag_events``.

    ``reasons``, ``bases``: by run, level, processing type and name. ``critical``: a confirmed deviation is
    critical if its interval lies beyond this.
    """
    notices = []
    for row in events:
        kind = _KINDS.get(row["kind"])
        if kind is None:
            continue
        key = (row.get("run") or "", row["level"], row["processing_type"], row["name"])
        copied: dict[str, Any] = {name: row.get(name) for name in _COPIED}
        notices.append(
            Notice(
                id=row["event"],
                kind=kind,
                severity=_severity(kind, row, critical),
                subject=_subject(kind, row),
                text=row.get("sentence") or "",
                night=row["night"],
                reasons=(reasons or {}).get(key, ()),
                **vars((bases or {}).get(key, _NO_BASIS)),
                **copied,
            )
        )
    return notices


_NO_BASIS = Basis()
# Fields of a notice that are columns of the event
_COPIED = columns(
    "level processing_type name site from_state to_state deviation deviation_low deviation_high corepower "
    "proposed_corepower confirmed run window_start window_end since benchmark evidence"
)


def _severity(kind: Kind, row: Mapping[str, Any], critical: float) -> Severity:
    if kind not in ("opened", "reopened", "expired") or row.get("confirmed") is not True:
        return "info"
    low, high = row.get("deviation_low"), row.get("deviation_high")
    beyond = low is not None and high is not None and (low >= critical or high <= -critical)
    return "critical" if beyond else "warning"


def _subject(kind: Kind, row: Mapping[str, Any]) -> str:
    deviation = row.get("deviation")
    size = "" if deviation is None else f", {signed_percent(deviation)}"
    return f"{row['name']}: {kind.replace('_', ' ')}{size}"


def night_notices(
    rows: Iterable[Mapping[str, Any]], *, since: date, reported: Iterable[str] = ()
) -> list[Notice]:
    """Return the notices of rows of ``nights`` from ``since`` on.

    ``reported``: ids of earlier notices; a night done is reported only if its failure was.
    """
    # ids follow from kind and night: a night that failed twice is reported once
    earlier = set(reported)
    notices = []
    for row in sorted(rows, key=lambda row: row["night"]):
        night = row["night"]
        if night < since:
            continue
        if row["state"] in ("failed", "missing"):
            kind: Kind = "night_failed" if row["state"] == "failed" else "night_missing"
            reason = visible(str(row.get("reason") or "no reason recorded")).rstrip(".")
            subject = f"Night {night} {_STATES[kind]}: {reason}"
            text = (
                f"The night has no results; those of the night before stay visible. Reason: {reason}. "
                f"Details: esjobs show night_steps. Run it again: esjobs rerun {night}"
            )
            notices.append(_of_service(kind, "critical", subject, text, night))
        elif row["state"] == "done" and earlier & {_service_id(kind, night) for kind in _STATES}:
            text = "The night had failed or was missing; its results are now complete."
            notices.append(_of_service("night_recovered", "info", f"Night {night} is complete", text, night))
    return notices


_STATES: Mapping[Kind, str] = {"night_failed": "failed", "night_missing": "is missing"}


def ingest_stopped(last: datetime | None, hours: float, now: datetime) -> Notice:
    """Return the alert that no new jobs arrive: once per last job.

    ``last``: end of the last job, or None. ``hours``: limit.
    """
    since = "no job has been stored yet" if last is None else f"the last job ended at {format_time(last)}"
    text = f"No new jobs for more than {hours:g} hours: {since}. Check the program that delivers job records."
    night = now.date() - timedelta(days=1)
    identity = content_id({"kind": "ingest_stopped", "last": None if last is None else last.isoformat()}, 20)
    return Notice(identity, "ingest_stopped", "critical", "No new jobs", text, night)


def undelivered(notification: str, recipient: str, subject: str, error: str, night: date) -> Notice:
    """Return the notice about an abandoned message: a wrong address must become visible."""
    identity = content_id({"kind": "undelivered", "notification": notification}, 20)
    text = (
        f"'{visible(subject)}' to {recipient}: {error}. Fix this, test it with: esjobs notify test "
        f"{recipient}. Then send the message again: esjobs notify send --retry"
    )
    return Notice(identity, "undelivered", "warning", f"A message to {recipient} was abandoned", text, night)


def sample_notice(recipient: str, now: datetime) -> Notice:
    """Return the notice of a test message."""
    identity = content_id({"kind": "test", "recipient": recipient, "at": now.isoformat()}, 20)
    text = f"Test message of esjobs to {recipient}."
    return Notice(identity, "test", "info", "Test message", text, now.date())


def _service_id(kind: Kind, night: date) -> str:
    return content_id({"kind": kind, "night": night.isoformat()}, 20)


def _of_service(kind: Kind, severity: Severity, subject: str, text: str, night: date) -> Notice:
    return Notice(_service_id(kind, night), kind, severity, subject, text, night)
