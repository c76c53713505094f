"""View of a message for its templates: grouped notices, formatted numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar
from urllib.parse import quote

from esjobs.core.numbers import day_range, declared, many, signed_percent, speed, speed_range
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, noun
from esjobs.speed.judging.checks import SEPARATOR
from scheduler.notifications.notices import KINDS, Kind, Notice
from scheduler.notifications.settings import Role

Value = TypeVar("Value")
MOST_LINES = 150  # Flags of one kind in one message, which counts the others


@dataclass(frozen=True)
class Line:
    """A flag in a message: texts, ``-`` if missing. ``work``: processing type. ``slower`` None: unknown.

    ``deviation``: signed; ``speed`` and ``interval``: the same in words, without sign. ``answer``: address of
    the form for its answer, empty without one.
    """

    name: str
    site: str
    noun: str
    work: str
    declared: str
    measured: str
    deviation: str
    speed: str
    interval: str
    since: str
    window: str
    sentence: str
    evidence: str
    reasons: tuple[str, ...]
    basis: str
    checks: tuple[str, ...]
    refuted_by: str
    also: tuple[str, ...]
    link: str
    slower: bool | None
    answer: str = ""


@dataclass(frozen=True)
class Group:
    """Flags of one kind; ``more``: number of omitted ones."""

    kind: Kind
    lines: tuple[Line, ...]
    more: int = 0


@dataclass(frozen=True)
class Alert:
    """Notice about the service itself, or a test."""

    kind: Kind
    severity: str
    subject: str
    text: str


@dataclass(frozen=True)
class Digest:
    """Content of a message. ``whose``: the queue or site it is about, or the first two queues.
    ``slower``, ``faster``: True if it has a deviation of that sign. ``nights``: first and last.
    """

    id: str
    recipient: str
    role: Role
    groups: tuple[Group, ...]
    alerts: tuple[Alert, ...]
    nights: tuple[date, date]
    whose: str
    slower: bool
    faster: bool

    def of(self, *kinds: str) -> tuple[Line, ...]:
        """Return all lines of these kinds."""
        return tuple(line for group in self.groups if group.kind in kinds for line in group.lines)

    def count(self, *kinds: str, but: tuple[str, ...] = ()) -> int:
        """Return the number of names of these kinds, each once; ``but``: without names that are also of
        these.
        """
        more = sum(group.more for group in self.groups if group.kind in kinds)
        others = {(line.noun, line.name) for line in self.of(*but)}
        return len({(line.noun, line.name) for line in self.of(*kinds)} - others) + more

    @property
    def links(self) -> tuple[str, ...]:
        """Distinct addresses of its queues."""
        lines = (line for group in self.groups for line in group.lines)
        return tuple(dict.fromkeys(line.link for line in lines if line.link))

    @property
    def answers(self) -> bool:
        """True if some queue has a form for its answer."""
        return any(line.answer for group in self.groups for line in group.lines)

    @property
    def days(self) -> str:
        """Nights as text."""
        first, last = self.nights
        return f"{last}" if first == last else f"{first} to {last}"

    @property
    def is_test(self) -> bool:
        """True if all alerts are of a test message."""
        return bool(self.alerts) and all(alert.kind == "test" for alert in self.alerts)


def digest_of(
    name: str,
    recipient: str,
    role: Role,
    notices: Sequence[Notice],
    link: str | None = None,
    answer: Callable[[Notice], str] = lambda _notice: "",
) -> Digest:
    """Return the digest of notices; ``name``: of the notification; ``link``: from the settings; ``answer``:
    address of the form for an answer.
    """
    flags = [notice for notice in notices if notice.is_flag]
    updated = [n.deviation or 0.0 for n in flags if n.kind in ("opened", "reopened", "candidate")]
    nights = [notice.night for notice in notices]
    return Digest(
        id=name,
        recipient=recipient,
        role=role,
        groups=tuple(_groups(flags, link, answer)),
        alerts=_alerts(notices),
        nights=(min(nights), max(nights)),
        whose=_whose(flags),
        slower=min(updated, default=0.0) < 0,
        faster=max(updated, default=0.0) > 0,
    )


def _groups(flags: Sequence[Notice], link: str | None, answer: Callable[[Notice], str]) -> Iterator[Group]:
    """Yield the flags of each kind, as many as a message shows."""
    for kind in KINDS:
        of_kind = sorted((notice for notice in flags if notice.kind == kind), key=_order)
        if of_kind:
            shown = of_kind[:MOST_LINES]
            lines = tuple(replace(line_of(one, link), answer=answer(one)) for one in shown)
            yield Group(kind, lines, len(of_kind) - len(shown))


def _alerts(notices: Sequence[Notice]) -> tuple[Alert, ...]:
    others = [notice for notice in notices if not notice.is_flag]
    others.sort(key=lambda notice: (KINDS.index(notice.kind), notice.night, notice.id))
    return tuple(Alert(n.kind, n.severity, visible(n.subject), visible(n.text)) for n in others)


def _whose(flags: Sequence[Notice]) -> str:
    sites = sorted({notice.site or notice.name or "" for notice in flags})
    names = sorted({notice.name or "" for notice in flags})
    if len(names) == 1 or len(sites) == 1:
        return visible((names if len(names) == 1 else sites)[0])
    return visible(", ".join(names[:2])) + (", ..." if len(names) > 2 else "")


def _order(notice: Notice) -> tuple[str, str, bool, str, str]:
    # Queues before CPU models, by site and name, all kinds of work first.
    return (
        "" if notice.level == "queue" else notice.level or "",
        (notice.site or notice.name or "") + "\0" + (notice.name or ""),
        notice.processing_type != ALL_TYPES,
        notice.processing_type or "",
        notice.id,
    )


def _text(value: Value | None, form: Callable[[Value], str]) -> str:
    return "-" if value is None else form(value)


def _shown(text: str | None, missing: str = "") -> str:
    return visible(text or missing)


def line_of(notice: Notice, link: str | None = None) -> Line:
    """Format a flag."""
    low, high = notice.deviation_low, notice.deviation_high
    unit = f" {visible(notice.benchmark)}" if notice.benchmark else ""
    is_of_all = notice.processing_type == ALL_TYPES
    return Line(
        name=_shown(notice.name, "-"),
        site=_shown(notice.site, "-"),
        noun=noun(notice.level or "queue", 1),
        work="all processing types" if is_of_all else _shown(notice.processing_type, "-"),
        declared=_text(notice.corepower, lambda value: f"{declared(value)}{unit} per core"),
        measured=_measured(notice, unit),
        deviation=_text(notice.deviation, signed_percent),
        speed=_text(notice.deviation, speed),
        interval="-" if low is None or high is None else speed_range(low, high),
        since=_text(notice.since, date.isoformat),
        window=_window(notice),
        sentence=visible(notice.text),
        evidence=_shown(notice.evidence),
        reasons=tuple(map(visible, notice.reasons)),
        basis=_basis(notice),
        checks=tuple(visible(notice.checks).split(SEPARATOR)) if notice.checks else (),
        refuted_by=_shown(notice.refuted_by),
        also=tuple(map(visible, notice.also)),
        link=link_to(link, notice) if link else "",
        slower=notice.deviation < 0 if notice.deviation else None,
    )


def _measured(notice: Notice, unit: str) -> str:
    if notice.proposed_corepower is None:
        return "-"
    low, high = notice.estimate_low, notice.estimate_high
    interval = "" if low is None or high is None else f" (90 % interval: {low:.1f} to {high:.1f})"
    return f"{notice.proposed_corepower:.1f}{unit} per core{interval}"


def _basis(notice: Notice) -> str:
    if notice.n_jobs is None:
        return ""
    tasks = "" if notice.n_tasks is None else f" of {many(notice.n_tasks, 'task')}"
    others = "CPU model" if notice.level == "cpu_model" else "site"
    compared = "" if notice.n_groups is None else f", compared over {many(notice.n_groups, others)}"
    return f"{many(notice.n_jobs, 'job')}{tasks}{compared}"


def link_to(link: str, notice: Notice) -> str:
    """Return the link to a queue: placeholders filled, or the queue behind ``#``.

    ``{queue}`` and ``{site}`` become the percent-encoded names. An address without them and without ``#``
    gets ``#queue=NAME``, which opens the queue in a report of esjobs.

    >>> from scheduler.notifications.notices import Notice
    >>> one = Notice("", "opened", "info", "", "", date(2026, 1, 1), name="A B", site="S", level="queue")
    >>> link_to("https://h.example/r", one), link_to("https://h.example/{site}?q={queue}", one)
    ('https://h.example/r#queue=A%20B', 'https://h.example/S?q=A%20B')
    """
    queue, site = (quote(text or "", safe="") for text in (notice.name, notice.site))
    filled = link.replace("{queue}", queue).replace("{site}", site)
    if filled != link or "#" in link or notice.level != "queue":
        return filled
    return f"{link}#queue={queue}"


def _window(notice: Notice) -> str:
    if notice.window_start is None or notice.window_end is None:
        return "-"
    days = (notice.window_end - notice.window_start).days
    return f"{day_range(notice.window_start, notice.window_end)} ({many(days, 'day')})"
