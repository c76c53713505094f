"""Backfill step of a night: older days of its windows without buckets, newest first, in pieces."""

from collections.abc import Mapping
from datetime import date, timedelta

from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.day_spans import adjacent
from esjobs.records.night import (
    NightAccount,
    NightStep,
    NightWork,
    aggregated_days,
    backfilled_days,
    longest_window,
)
from esjobs.schema.jobs import DAYS
from esjobs.store.base import JobStore
from scheduler.aggregating import aggregated
from scheduler.ledger import days_between
from scheduler.settings import NightsSettings


def backfill_night(work: NightWork) -> NightAccount:
    """Make the buckets of the next piece; a night that is run again keeps the piece of its first run."""
    without = days_without_buckets(work.store, older_days(work))
    piece = backfilled_days(work) or next_piece(without, work.settings.section(NightsSettings).backfill_jobs)
    if piece is None:
        return NightAccount(notes=(days_left(without),) if without else ())
    account = aggregated(work, piece)
    left = {day: jobs for day, jobs in without.items() if day < piece.first_day}
    notes = (*account.notes, *((days_left(left),) if left else ()))
    return NightAccount(account.rows_in, account.rows_out, notes, {"backfill": str(piece)})


def backfill_inputs(work: NightWork) -> str:
    """Return a digest of days and budget, not of jobs: a night makes up for one piece."""
    budget = work.settings.section(NightsSettings).backfill_jobs
    return content_id({"from": str(longest_window(work)), "jobs": budget})


def older_days(work: NightWork) -> Window | None:
    """Return the days of the longest window that the night does not look at anyway."""
    first, last = longest_window(work).first_day, aggregated_days(work).first_day - timedelta(days=1)
    return Window.of_days(first, last) if first <= last else None


def days_without_buckets(store: JobStore, window: Window | None) -> dict[date, int]:
    """Return the days that have jobs and no buckets, with their jobs, newest first."""
    if window is None:
        return {}
    rows = read_table(store, DAYS, [Days.of_window(window)], ["day"])
    made = set(rows.column("day").to_pylist())
    unmade = [day for day in days_between(window.first_day, window.last_day) if day not in made]
    # days with buckets between them are not read
    spans = [Window.of_days(run[0], run[-1]) for run in adjacent(unmade)]
    prints = [row for span in spans for row in store.day_fingerprints(span).to_pylist()]
    return dict(sorted(((row["day"], row["n_jobs"]) for row in prints), reverse=True))


def next_piece(without: Mapping[date, int], budget: int) -> Window | None:
    """Return the newest days whose jobs the budget covers, one day at least; None without any.

    >>> jobs = {date(2025, 6, day): 400 for day in (9, 8, 7)}
    >>> str(next_piece(jobs, 1000)), str(next_piece(jobs, 1)), next_piece(jobs, 0)
    ('2025-06-08/2025-06-10', '2025-06-09/2025-06-10', None)
    """
    chosen: list[date] = []
    n_jobs = 0
    for day, jobs in without.items():
        n_jobs += jobs
        # one day always fits, or a day larger than the budget would hold up all before it
        if not budget or (chosen and n_jobs > budget):
            break
        chosen.append(day)
    return Window.of_days(chosen[-1], chosen[0]) if chosen else None


def covered_since(work: NightWork) -> date:
    """Return the day after the newest older day that has jobs and no buckets; without any, the first day."""
    return after_newest(days_without_buckets(work.store, older_days(work)))


def after_newest(without: Mapping[date, int]) -> date:
    """Return the day after the newest of some days; the first of all days without any."""
    return max(without) + timedelta(days=1) if without else date.min


def days_left(without: Mapping[date, int]) -> str:
    """Describe the days that a backfill has left."""
    return f"{len(without)} older days without buckets are left, {sum(without.values()):,} jobs"


BACKFILL = NightStep("backfill", backfill_night, inputs=backfill_inputs)
