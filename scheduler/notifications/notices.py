"""Notices: one change of state each, with the data for its message."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Literal, get_args

Kind = Literal[
    "opened",
    "reopened",
    "closed",
    "candidate",
    "acknowledged",
    "expired",
    "answered",
    "declaration_changed",
    "withdrawn",
    "vanished",
    "returned",
    "night_failed",
    "night_missing",
    "night_recovered",
    "ingest_stopped",
    "undelivered",
    "job_issues",
    "incident_opened",
    "incident_lasting",
    "incident_over",
    "delivered",
    "test",
]
KINDS: tuple[Kind, ...] = get_args(Kind)  # Every kind of notice
FLAG_KINDS: tuple[Kind, ...] = KINDS[:11]  # Kinds about a queue or CPU model
SERVICE_KINDS: tuple[Kind, ...] = KINDS[11:16]  # Kinds about this service
JOB_KINDS: tuple[Kind, ...] = ("job_issues",)  # Kinds about jobs of users and projects
# Kinds about efficiency and failures of sites
INCIDENT_KINDS: tuple[Kind, ...] = ("incident_opened", "incident_lasting", "incident_over")
# Kinds cleared to send to a site: changes of confirmed deviations, and its own incidents
SITE_KINDS: tuple[Kind, ...] = ("opened", "reopened", "closed", *INCIDENT_KINDS)
# Kinds of a role without kinds of its own in the settings
ROLE_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "site": SITE_KINDS,
    "coordinator": (*FLAG_KINDS, *INCIDENT_KINDS, "delivered"),
    "operator": SERVICE_KINDS,
    "support": JOB_KINDS,
    "user": JOB_KINDS,
}
Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # From the least


@dataclass(frozen=True)
class Notice:
    """A change to notify about.

    ``id`` follows from the change: the same change is always the same notice. All below ``night`` is of flags
    only; deviations are fractions of the declared value, with their 90 % interval; ``corepower`` (declared)
    and ``proposed_corepower`` (measured, with its 90 % interval ``estimate_low`` to ``estimate_high``) are
    benchmark per core. ``n_groups``: compared sites (CPU models). ``also``: other processing types with the
    same confirmed deviation. ``checks``, ``refuted_by``: as in ``flags``. ``confirmed``: True if cleared to
    send to a site. ``rows``: CSV, ``page``: HTML that a mail carries as files. ``user``: owner of the jobs.
    None: unknown, or not applicable to the kind.
    """

    id: str
    kind: Kind
    severity: Severity
    subject: str
    text: str
    night: date
    level: str | None = None
    processing_type: str | None = None
    name: str | None = None
    site: str | None = None
    from_state: str | None = None
    to_state: str | None = None
    deviation: float | None = None
    deviation_low: float | None = None
    deviation_high: float | None = None
    corepower: float | None = None
    proposed_corepower: float | None = None
    confirmed: bool | None = None
    run: str | None = None
    window_start: datetime | None = None
    window_end: datetime | None = None
    since: date | None = None
    benchmark: str | None = None
    evidence: str | None = None
    reasons: tuple[str, ...] = ()
    n_jobs: int | None = None
    n_tasks: int | None = None
    n_groups: int | None = None
    estimate_low: float | None = None
    estimate_high: float | None = None
    checks: str | None = None
    refuted_by: str | None = None
    also: tuple[str, ...] = ()
    rows: str | None = None
    page: str | None = None
    user: str | None = None

    @property
    def is_flag(self) -> bool:
        """True if it is about a queue or a CPU model."""
        return self.kind in FLAG_KINDS

    @property
    def is_of_site(self) -> bool:
        """True if recipients choose it by site or queue."""
        return self.is_flag or self.kind in INCIDENT_KINDS

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON; times and days are ISO texts."""
        return {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in asdict(self).items()
        }


def written(notices: Iterable[Notice]) -> str:
    """Serialise notices; the same text for the same notices."""
    return json.dumps([notice.plain() for notice in notices], sort_keys=True, ensure_ascii=True)


def read(text: str) -> tuple[Notice, ...]:
    """Parse serialised notices."""
    return tuple(map(_notice, json.loads(text)))


def _notice(row: dict[str, Any]) -> Notice:
    times = {"night": date, "since": date, "window_start": datetime, "window_end": datetime}
    for name, kind in times.items():
        if row[name] is not None:
            row[name] = kind.fromisoformat(row[name])
    return Notice(**row | {name: tuple(row[name]) for name in ("reasons", "also")})
