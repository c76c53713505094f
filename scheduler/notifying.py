"""Notification step of a night, also of a failed one."""

from esjobs.records.night import NightAccount, NightStep, NightWork
from scheduler.ledger import Ledger
from scheduler.night import why_missing
from scheduler.notifications.alerts import alerts_of
from scheduler.notifications.gathering import ingest_stopped, night_notices
from scheduler.notifications.notices import Notice
from scheduler.notifications.notifier import notifier
from scheduler.notifications.settings import NotifySettings
from scheduler.settings import NightsSettings


def notify_night(work: NightWork) -> NightAccount:
    """Notify about changes and failures of the night; send the outbox."""
    if not work.settings.section(NotifySettings).recipients:
        return NightAccount()
    report = notifier(work.context).send(work.night, alerts=_alerts(work))
    counts = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, (*counts, *report.notes))


def _alerts(work: NightWork) -> list[Notice]:
    # alerts without a table: this very night has no jobs, or no jobs arrive any longer
    alerts = list[Notice]()
    row = Ledger(work.store, work.clock).night(work.night)
    # the account says "running" until the last step, this one, is done
    if not work.windows and row is not None and row["state"] == "running":
        missing = {"night": work.night, "state": "missing", "reason": why_missing(work)}
        alerts += night_notices([missing], since=work.night)
    alerts += alerts_of(work.store, work.settings, work.night)
    now, hours = work.clock(), work.settings.section(NightsSettings).ingest_stopped_h
    last = work.store.span().last
    if last is not None and (now - last).total_seconds() > 3600 * hours:
        alerts.append(ingest_stopped(last, hours, now))
    return alerts


NOTIFY = NightStep("notify", notify_night, needs=(), idle=True, after_failure=True)
