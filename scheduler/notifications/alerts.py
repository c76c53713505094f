"""Alerts of a night besides flags: users and projects with issues, incidents, the month."""

from collections.abc import Iterator
from datetime import date, timedelta

from esjobs.core.sections import Sections
from esjobs.flags.answering.settings import WebSettings
from esjobs.issues.recurrence import recurrences
from esjobs.issues.settings import DetectSettings
from esjobs.store.base import JobStore
from scheduler.notifications.incident_notices import incident_notices
from scheduler.notifications.job_issues import MOST, identity_of, job_issue, more_job_issues
from scheduler.notifications.monthly import monthly_notice
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import Outbox
from scheduler.notifications.settings import NotifySettings


def alerts_of(store: JobStore, settings: Sections, night: date) -> list[Notice]:
    """Return the alerts of a night; the same before and after they were sent."""
    base_url = settings.section(WebSettings).base_url
    issues = _job_issues(store, settings.section(DetectSettings), night, base_url)
    alerts = [*issues, *incident_notices(store, night)]
    month = monthly_notice(store, night, settings.section(NotifySettings).monthly_on)
    return alerts if month is None else [*alerts, month]


def _job_issues(
    store: JobStore, detect: DetectSettings, night: date, base_url: str | None
) -> Iterator[Notice]:
    """Yield notices about users and projects of which the last days had none."""
    # by messages, not by issues: the first one after a recipient was added is sent
    days = [night - timedelta(days=back) for back in range(1, detect.quiet_days)]
    entries = Outbox(store).between(days[-1], days[0]) if days else []
    reported = {identity for entry in entries for identity in entry.notices.split()}
    found = [
        one
        for one in recurrences(store, night, detect.told_from)
        if not any(identity_of(one.what, one.name, day) in reported for day in days)
    ]
    yield from (job_issue(one, detect.told_from, base_url) for one in found[:MOST])
    if len(found) > MOST:
        yield more_job_issues(len(found) - MOST, night, detect.told_from)
