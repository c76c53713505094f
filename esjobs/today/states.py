"""States of incidents: a pure function of the state before and of what one night found.

So a night that is run again, and those after it, give equal states in any order of runs.
"""

from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from esjobs.core.identity import content_id
from esjobs.schema.today import EVERYWHERE, LASTING, MAINTENANCE
from esjobs.today import sentences
from esjobs.today.findings import HOUR, Finding
from esjobs.today.settings import TodaySettings

CALM = 2.5  # Surprise of the night itself below which it is quiet, whatever several nights say
CALM_COST = 0.25  # Of the mean cost of an incident; a quiet night costs less
USUAL_NIGHTS = 21
"""An incident that lasts longer is learned from: its level becomes the usual one."""


@dataclass(frozen=True)
class Silence:
    """Acknowledgement of the incidents of a site, until a night."""

    by: str
    until: date


@dataclass(frozen=True)
class Incident:
    """One incident after a night; the columns of ``incidents``."""

    incident: str
    night: date
    site: str
    state: str
    change: str | None
    since: date
    until: date | None = None
    nights: int = 0
    seen_on: date | None = None
    quiet_nights: int = 0
    efficiency: float | None = None
    efficiency_expected: float | None = None
    efficiency_low: float | None = None
    efficiency_high: float | None = None
    failed: float | None = None
    failed_expected: float | None = None
    failed_low: float | None = None
    failed_high: float | None = None
    metric: str | None = None
    cost_core_h: float | None = None
    total_core_h: float = 0.0
    week_share: float | None = None
    cause: str | None = None
    cause_share: float | None = None
    cause_key: str | None = None
    n_sites: int = 1
    surprise: float | None = None
    acknowledged_by: str | None = None
    acknowledged_until: date | None = None
    sentence: str | None = None
    what: str | None = None
    observed: float | None = None
    expected: float | None = None
    low: float | None = None
    high: float | None = None
    onset: datetime | None = None
    onset_low: datetime | None = None
    onset_high: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Identity among the incidents of a night: a site and metric, or a part of the jobs everywhere."""
        if self.site == EVERYWHERE:
            return self.site, self.cause_key or ""
        return self.site, self.group

    @property
    def group(self) -> str:
        """Metric; empty for efficiency and failures, which are one incident of a site."""
        return (self.metric or "") if self.what else ""

    @property
    def stream(self) -> str:
        """Metric by which a night goes on with it: failures of one category by these alone."""
        metric, literals = sentences.literals_of(self.cause_key or "")
        category = dict(literals).get("category")
        return self.metric or "" if category is None else f"{metric}: {category}"

    @classmethod
    def key_of(cls, found: Finding) -> tuple[str, str]:
        """Return the identity of the incident that a finding belongs to."""
        if found.site == EVERYWHERE:
            return found.site, sentences.key_of(found.metric, found.literals)
        return found.site, found.metric if found.what else ""

    @property
    def frozen(self) -> bool:
        """True if its days are not learned from."""
        return self.state in LASTING and self.nights <= USUAL_NIGHTS

    @property
    def is_over(self) -> bool:
        """True if closed or withdrawn."""
        return self.until is not None


def after(
    before: Incident | None,
    found: Finding | None,
    night: date,
    settings: TodaySettings,
    silence: Silence | None = None,
    *,
    declared: bool = False,
    over: bool = False,
) -> Incident | None:
    """Return the incident of a place after a night; None if there is none to remember.

    ``found``: None if the place was not judged. A place without jobs, or with few, ends nothing.
    ``declared``: a declared outage covers at least half of the night. ``over``: the work that the incident is
    about has no more jobs, which ends it as quiet nights do.
    """
    if before is None or before.is_over:
        updated = _begun(before, found, night, settings)
    elif found is None and over:
        updated = _quiet(before, night, settings)
    elif found is None:
        updated = replace(before, night=night, change=None if before.state == "noticed" else "lasting")
    else:
        updated = _continued(before, found, night, settings)
    if updated is None:
        return None
    updated = _declared(before, _silenced(updated, silence), declared=declared)
    return replace(updated, sentence=sentences.sentence(updated))


def _begun(
    before: Incident | None, found: Finding | None, night: date, settings: TodaySettings
) -> Incident | None:
    if found is None or not found.surprising:
        if before is None or before.until is None:
            return None
        latest = (night - before.until).days <= settings.reopen_nights
        return replace(before, night=night, change=None) if latest else None
    if before is not None and before.state == "closed" and found.costly:
        seen = replace(before, state="open", change="reopened", until=None, quiet_nights=0)
        return _seen(seen, found, night, found.cost)
    state, change = ("open", "opened") if found.costly else ("noticed", "noticed")
    since = night - timedelta(days=found.began)
    site, what = Incident.key_of(found)
    identity = content_id({"site": site, "what": what, "since": since.isoformat()})
    new = Incident(identity, night, found.site, state, change, since)
    return _seen(new, found, night, found.cost, max(found.earlier, 0.0))


def _continued(before: Incident, found: Finding, night: date, settings: TodaySettings) -> Incident:
    lasting = before.state in LASTING
    mean = before.total_core_h / max(before.nights, 1)
    # of a small incident the cost of a usual night may be as much
    little = max(CALM_COST * mean * HOUR, settings.night_cost * found.week)
    z, cost = found.of_night
    calm = z < CALM and cost <= little
    if not lasting:
        calm = not found.surprising
    if calm and not found.partial:
        return _quiet(before, night, settings)
    change = "lasting" if lasting else None
    state = before.state
    if not lasting and found.surprising and found.costly:
        state, change = "open", "opened"
    return _seen(replace(before, state=state, change=change, quiet_nights=0), found, night, cost)


def _quiet(before: Incident, night: date, settings: TodaySettings) -> Incident:
    """Return the incident after a night without it, which ends it if enough nights are."""
    lasting, quiet = before.state in LASTING, before.quiet_nights + 1
    limit = settings.quiet_nights if lasting else settings.noticed_nights
    if quiet < limit:
        return replace(before, night=night, quiet_nights=quiet, change="lasting" if lasting else None)
    state, end = ("closed", "over") if lasting else ("withdrawn", "withdrawn")
    return replace(before, night=night, quiet_nights=quiet, state=state, change=end, until=before.seen_on)


def _seen(incident: Incident, found: Finding, night: date, cost: float, earlier: float = 0.0) -> Incident:
    """Return the incident with the numbers of a night; those of one that surprises less stay as they were.

    ``earlier``: cost of nights before, of a new one.
    """
    total = incident.total_core_h + (cost + earlier) / HOUR
    incident = replace(
        incident,
        night=night,
        seen_on=night,
        nights=incident.nights + 1,
        cost_core_h=cost / HOUR,
        total_core_h=total,
        week_share=total * HOUR / found.week if found.week > 0 else None,
        surprise=found.surprise,
    )
    if not found.surprising:
        return incident
    ranges: dict[str, Any] = {}
    for name, shown in (("efficiency", found.efficiency), ("failed", found.failed)):
        values = (None,) * 4 if shown is None else (shown.observed, shown.expected, shown.low, shown.high)
        ranges |= dict(zip((name, f"{name}_expected", f"{name}_low", f"{name}_high"), values, strict=True))
    if found.shown is not None:
        ranges |= asdict(found.shown)
    keeps = found.share is None and incident.cause is not None
    cause = {} if keeps else sentences.cause_of(found)
    return replace(incident, metric=found.metric, what=found.what, n_sites=found.n_sites, **ranges, **cause)


def _declared(before: Incident | None, after: Incident, *, declared: bool) -> Incident:
    """Return an incident in maintenance, until a night without a declared outage shows it again."""
    was = before is not None and before.state == MAINTENANCE
    if after.state in LASTING and (declared or (was and after.seen_on != after.night)):
        return replace(after, state=MAINTENANCE, change=None if was else MAINTENANCE)
    if not was:
        return after
    # nobody was told of it: its end is no news, and what goes on is new
    change = {"open": "opened", "acknowledged": after.change}.get(after.state)
    return replace(after, change=change)


def _silenced(incident: Incident, silence: Silence | None) -> Incident:
    if incident.state not in LASTING:
        return replace(incident, acknowledged_by=None, acknowledged_until=None)
    if silence is None or incident.night >= silence.until:
        state = "open"
        return replace(incident, state=state, acknowledged_by=None, acknowledged_until=None)
    changed = incident.change if incident.state == "acknowledged" else "acknowledged"
    return replace(
        incident,
        state="acknowledged",
        change=changed,
        acknowledged_by=silence.by,
        acknowledged_until=silence.until,
    )
