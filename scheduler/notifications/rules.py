"""Who is told what: a recipient's role, kinds, severity and sites against a notice."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from scheduler.notifications.notices import ROLE_KINDS, Notice, at_least
from scheduler.notifications.settings import Recipient

_TOLD_STATES = ("open", "acknowledged")
"""States that a site has been told of: what ends from there is told, too."""


def takes(recipient: Recipient, notice: Notice) -> bool:
    """Whether a recipient is told of a notice.

    A site never gets what is not confirmed, nor anything but its own queues, whatever its settings say.
    """
    if notice.kind not in (recipient.kinds or ROLE_KINDS[recipient.role]):
        return False
    if not at_least(notice.severity, recipient.severity):
        return False
    if recipient.role == "site" and not _may_be_sent(notice):
        return False
    return not notice.is_flag or matches(recipient.patterns, notice.site, notice.name)


def _may_be_sent(notice: Notice) -> bool:
    """Whether a site may be told at all."""
    if notice.level != "site" or notice.kind not in ROLE_KINDS["site"]:
        return False
    return notice.from_state in _TOLD_STATES if notice.kind == "closed" else notice.confirmed is True


def matches(patterns: Sequence[str], *names: str | None) -> bool:
    """Whether one of the names is what one of the patterns means, in upper or lower case.

    >>> matches(["cern-*"], "CERN-PROD", "CERN-PROD_UCORE"), matches(["CERN"], "CERN-PROD")
    (True, False)
    """
    known = [name.casefold() for name in names if name is not None]
    return any(
        pattern == "*" or any(fnmatchcase(name, pattern.casefold()) for name in known) for pattern in patterns
    )


def without_match(recipient: Recipient, names: Iterable[tuple[str | None, str | None]]) -> tuple[str, ...]:
    """The patterns of a recipient that mean none of these pairs of site and queue."""
    known = list(names)
    return tuple(
        pattern for pattern in recipient.sites if not any(matches([pattern], *pair) for pair in known)
    )
