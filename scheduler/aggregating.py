"""The days that a night brings up to date: its own, and those before it with late records."""

import logging
from datetime import date, timedelta
from typing import Any

from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.core.window import Window
from esjobs.publish.publication import read_table, tidy
from esjobs.records.jobs.aggregate import aggregate, buckets_version
from esjobs.schema.jobs import DAYS
from scheduler.ledger import Ledger
from scheduler.work import NightAccount, NightWork

_log = logging.getLogger(__name__)


def aggregate_night(work: NightWork) -> NightAccount:
    """Make the buckets of the night, of days before it that changed, and of those that are not made yet."""
    window = aggregated_days(work)
    rules = work.settings.rules
    before = _marks(work, window)
    try:
        outcome = aggregate(work.store, window, rules, run="night")
    except NoJobsError:
        tidy(work.store)
        return NightAccount(notes=(f"no jobs in {window}",))
    if outcome.written:
        work.store.publish(outcome.written)
        tidy(work.store)
    report = outcome.report
    after = _marks(work, window)
    made = sorted(day for day in after if before.get(day) != after[day])
    _log.info("night %s: %s days were made: %s", work.night, len(made), ", ".join(map(str, made)) or "-")
    dropped = [f"{count} {reason}" for reason, count in report.dropped.items()]
    return NightAccount(
        report.rows_in,
        report.rows_out,
        (
            f"days {window}",
            *((f"dropped: {', '.join(dropped)}",) if dropped else ()),
            *report.notes,
        ),
        {"late_days": sum(day < work.night for day in made)},
    )


def aggregate_inputs(work: NightWork) -> str:
    """A digest of the jobs of these days, and of how they are put into buckets."""
    window = aggregated_days(work)
    prints = work.store.day_fingerprints(window).to_pylist()
    return content_id(
        {
            "window": str(window),
            "days": [[str(row["day"]), row["n_jobs"], row["mark"]] for row in prints],
            "rules": work.settings.rules.digest,
            "resolver": buckets_version(),
        }
    )


def aggregated_days(work: NightWork) -> Window:
    """The days that a night looks at: so many before it that records may be late.

    All days of its longest window where no night was done within that before: a first one, or one after a
    long pause. And back to the first day of that window whose buckets were made in another way.
    """
    settings = work.settings.nights
    start = work.night - timedelta(days=settings.windows[-1] - 1)
    late = work.night - timedelta(days=settings.late_days)
    ledger = Ledger(work.store, work.clock)
    recent = ledger.nights(late - timedelta(days=1), work.night - timedelta(days=1))
    if late <= start or not any(row["state"] == "done" for row in recent):
        return Window.of_days(min(start, late), work.night)
    made = read_table(
        work.store, DAYS, [Days.of_window(Window.of_days(start, late))], ["day", "rules", "resolver"]
    )
    current = (work.settings.rules.digest, buckets_version())
    others = [row["day"] for row in made.to_pylist() if (row["rules"], row["resolver"]) != current]
    return Window.of_days(min([late, *others]), work.night)


def _marks(work: NightWork, window: Window) -> dict[date, tuple[Any, ...]]:
    rows = read_table(work.store, DAYS, [Days.of_window(window)], ["day", "mark", "rules", "resolver"])
    return {row["day"]: (row["mark"], row["rules"], row["resolver"]) for row in rows.to_pylist()}
