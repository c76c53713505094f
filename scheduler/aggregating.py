"""Aggregation step of a night: its own day, and earlier days with late records."""

import logging
from collections import defaultdict
from dataclasses import replace
from datetime import date
from typing import Any

from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import read_table, tidy
from esjobs.records.jobs.aggregate import aggregate, buckets_version
from esjobs.records.night import NightAccount, NightStep, NightWork, aggregated_days
from esjobs.schema.jobs import DAYS

_log = logging.getLogger(__name__)


def aggregate_night(work: NightWork) -> NightAccount:
    """Make the buckets of the night and of changed days before it."""
    window = aggregated_days(work)
    before = _fingerprints(work, window)
    account = aggregated(work, window)
    after = _fingerprints(work, window)
    made = sorted(day for day in after if before.get(day) != after[day])
    _log.info("night %s: aggregated %s days: %s", work.night, len(made), ", ".join(map(str, made)) or "-")
    if not account.rows_in:
        return account
    return replace(account, counts={"late_days": sum(day < work.night for day in made)})


def aggregated(work: NightWork, window: Window) -> NightAccount:
    """Make and publish the buckets of days that are missing or changed."""
    rules = work.settings.section(CleaningRules)
    try:
        outcome = aggregate(work.store, window, rules, run="night")
    except NoJobsError:
        # a run that was cut off may have left rows that nothing shows
        tidy(work.store)
        return NightAccount(notes=(f"no jobs in {window}",))
    if outcome.written:
        work.store.publish(outcome.written)
        tidy(work.store)
    report = outcome.report
    dropped = [f"{count} {reason}" for reason, count in report.dropped.items()]
    notes = (f"days {window}", *((f"dropped: {', '.join(dropped)}",) if dropped else ()), *report.notes)
    return NightAccount(report.rows_in, report.rows_out, notes)


def aggregate_inputs(work: NightWork) -> str:
    """Return a digest of the jobs of these days and of the bucket rules."""
    window = aggregated_days(work)
    # of the jobs themselves, not of loads: a load that brings nothing new makes no work
    prints = work.store.day_fingerprints(window).to_pylist()
    return content_id(
        {
            "window": str(window),
            "days": [[str(row["day"]), row["n_jobs"], row["fingerprint"]] for row in prints],
            "rules": work.settings.section(CleaningRules).digest,
            "resolver": buckets_version(),
        }
    )


def _fingerprints(work: NightWork, window: Window) -> dict[date, set[tuple[Any, ...]]]:
    rows = read_table(work.store, DAYS, [Days.of_window(window)], ["day", "fingerprint", "rules", "resolver"])
    # a day has a row per processing type
    found: dict[date, set[tuple[Any, ...]]] = defaultdict(set)
    for row in rows.to_pylist():
        found[row["day"]].add((row["fingerprint"], row["rules"], row["resolver"]))
    return found


AGGREGATE = NightStep("aggregate", aggregate_night, inputs=aggregate_inputs, needs=(), idle=True)
