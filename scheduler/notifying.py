"""Notification step of a night, also of a failed one."""

from esjobs.issues.recurrence import recurrences
from esjobs.issues.settings import DetectSettings
from esjobs.records.night import NightAccount, NightStep, NightWork
from scheduler.ledger import Ledger
from scheduler.night import why_missing
from scheduler.notifications.gathering import ingest_stopped, night_notices
from scheduler.notifications.incident_notices import incident_notices
from scheduler.notifications.job_issues import MOST, job_issue, more_job_issues
from scheduler.notifications.monthly import monthly_notice
from scheduler.notifications.notices import Notice
from scheduler.notifications.notifier import notifier
from scheduler.notifications.settings import NotifySettings
from scheduler.settings import NightsSettings


def _job_issues(work: NightWork) -> list[Notice]:
    detect = work.settings.section(DetectSettings)
    found = list(recurrences(work.store, work.night, detect.told_from, detect.quiet_days))
    notices = [
        job_issue(
            one.what,
            one.name,
            one.day,
            one.severity,
            one.n_jobs,
            one.rules,
            one.idle_core_h,
            one.idle_gpu_h,
            detect.told_from,
            one.repeated,
        )
        for one in found[:MOST]
    ]
    if len(found) > MOST:
        notices.append(more_job_issues(len(found) - MOST, work.night, detect.told_from))
    return notices


def notify_night(work: NightWork) -> NightAccount:
    """Notify about changes and failures of the night; send the outbox."""
    if not work.settings.section(NotifySettings).recipients:
        return NightAccount()
    report = notifier(work.context).send(work.night, alerts=_alerts(work))
    counts = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, (*counts, *report.notes))


def _alerts(work: NightWork) -> list[Notice]:
    # Alerts without a table: this very night has no jobs, and no jobs arrive any more.
    alerts = []
    row = Ledger(work.store, work.clock).night(work.night)
    if not work.windows and row is not None and row["state"] == "running":
        alerts += night_notices(
            [{"night": work.night, "state": "missing", "reason": why_missing(work)}], since=work.night
        )
    alerts += _job_issues(work)
    alerts += incident_notices(work.store, work.night)
    day = work.settings.section(NotifySettings).monthly_on
    month = monthly_notice(work.store, work.night, day)
    alerts += [] if month is None else [month]
    now, hours = work.clock(), work.settings.section(NightsSettings).ingest_stopped_h
    last = work.store.span().last
    if last is not None and (now - last).total_seconds() > 3600 * hours:
        alerts.append(ingest_stopped(last, hours, now))
    return alerts


NOTIFY = NightStep("notify", notify_night, needs=(), idle=True, after_failure=True)
