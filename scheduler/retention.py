"""Retention step of a night: results of old runs, and accounts of old nights by the same rule."""

from collections.abc import Callable, Sequence
from datetime import date

from esjobs.publish.retention import Keep
from esjobs.records.jobs.retention import prune_all
from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.settings import RetentionSettings
from scheduler.ledger import Ledger


def prune_night(work: NightWork) -> NightAccount:
    """Prune by the settings (``[retention]``), as ``esjobs prune`` does, and the ledger."""
    settings = work.settings.section(RetentionSettings)
    keep = Keep(settings.keep_newest, settings.keep_daily, settings.keep_weekly, settings.keep_monthly)
    report = prune_all(work.store, keep, settings.keep_bucket_months, settings.undo_days, work.clock())
    ledger = Ledger(work.store, work.clock)
    nights = [row["night"] for row in ledger.nights()]
    # the running night stays, even one of long ago: its account is still written
    gone = sorted({*nights} - kept_nights(nights, keep) - {work.night})
    ledger.remove(gone)
    return NightAccount(
        report.rows_in + len(nights),
        report.rows_out + len(nights) - len(gone),
        (f"removed {report.rows_in - report.rows_out} runs and {len(gone)} nights",),
    )


def kept_nights(nights: Sequence[date], keep: Keep) -> set[date]:
    """Return the nights to keep: the newest, and the newest of each day, week and month.

    >>> days = [date(2025, 1, 1 + number) for number in range(31)]
    >>> [night.day for night in sorted(kept_nights(days, Keep(2, 3, 2, 1)))]
    [26, 29, 30, 31]
    """
    ordered = sorted(nights, reverse=True)
    # there is one night a day
    kept = set(ordered[: max(keep.newest, keep.daily, 1)])
    periods: tuple[tuple[int, Callable[[date], tuple[int, ...]]], ...] = (
        (keep.weekly, lambda night: night.isocalendar()[:2]),
        (keep.monthly, lambda night: (night.year, night.month)),
    )
    for number, period in periods:
        first: dict[tuple[int, ...], date] = {}
        for night in ordered:
            first.setdefault(period(night), night)
        kept.update(list(first.values())[:number])
    return kept


PRUNE = NightStep("prune", prune_night, idle=True)
