"""Routing of notifications by role, kind, severity and site."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from esjobs.schema.today import EVERYWHERE
from scheduler.notifications.notices import INCIDENT_KINDS, ROLE_KINDS, SEVERITIES, SITE_KINDS, Notice
from scheduler.notifications.settings import Recipient

# States of flags that were sent to their site, which also receives their end
_SENT_STATES = ("open", "acknowledged")


def takes(recipient: Recipient, notice: Notice) -> bool:
    """True if a recipient receives a notice. A site never receives unconfirmed notices or those of other
    queues.
    """
    if notice.kind not in (recipient.kinds or ROLE_KINDS[recipient.role]):
        return False
    if SEVERITIES.index(notice.severity) < SEVERITIES.index(recipient.severity):
        return False
    if recipient.role == "site" and not _may_be_sent(notice):
        return False
    if recipient.role == "user" and (notice.user is None or notice.user != recipient.user):
        return False
    return not notice.is_of_site or matches(recipient.patterns, notice.site, notice.name)


def _may_be_sent(notice: Notice) -> bool:
    if notice.kind in INCIDENT_KINDS:
        return notice.site not in (None, EVERYWHERE)
    if notice.level != "queue" or notice.kind not in SITE_KINDS:
        return False
    # a closed flag is no longer confirmed: its last state counts
    return notice.from_state in _SENT_STATES if notice.kind == "closed" else notice.confirmed is True


def matches(patterns: Sequence[str], *names: str | None) -> bool:
    """True if one of the names matches one of the patterns, ignoring case.

    >>> matches(["cern-*"], "CERN-PROD", "CERN-PROD_UCORE"), matches(["CERN"], "CERN-PROD")
    (True, False)
    """
    lower = [name.casefold() for name in names if name is not None]
    return any(
        pattern == "*" or any(fnmatchcase(name, pattern.casefold()) for name in lower) for pattern in patterns
    )


def without_match(recipient: Recipient, names: Iterable[tuple[str | None, str | None]]) -> tuple[str, ...]:
    """Return the patterns of a recipient that match none of these pairs of site and queue."""
    pairs = list(names)
    return tuple(each for each in recipient.sites if not any(matches([each], *pair) for pair in pairs))
