"""Step: factors of the days that have none, then change points up to the end of the window."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as midnight
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.clock import Clock
from esjobs.core.identity import content_id
from esjobs.core.query import Days, In
from esjobs.core.report import RunReport
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.flags.drift.causes import (
    ReleaseChange,
    declared_edits,
    described,
    edit_beside,
    mix_change,
    mixes_beside,
    queue_behind,
)
from esjobs.flags.drift.daily import factors_of_day
from esjobs.flags.drift.releases import release_behind, through_models
from esjobs.flags.drift.series import Change, Search, find_changes
from esjobs.flags.drift.settings import DriftSettings
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import Outcome, read_table, rows_table
from esjobs.publish.publisher import Publisher
from esjobs.publish.question import Question
from esjobs.publish.stored import StoredRun, of_headline
from esjobs.records.declared.values import known_sites
from esjobs.records.jobs.late_jobs import fingerprints_by_day
from esjobs.records.names.cpu_models import RESOLVER
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.solved import KnownOfTasks
from esjobs.schema.drift import DAILY_FACTORS, DRIFT, DRIFTS
from esjobs.schema.jobs import DAYS
from esjobs.schema.speed import FACTORS, SPEED
from esjobs.store.base import JobStore

# What of the factors of days that are stored a search looks at
_LOOKED_AT = columns("day level name k k_err_stat k_err_int fingerprint tasks task_parts site")


_COUNTED = {
    "n_names": "names examined",
    "n_short": "names with too few days",
    "n_small": "changes below the relevance limit",
}


class DriftQuestion(Question):
    """Question about change points of names, as of the end of a window."""

    @cached_property
    def drift(self) -> DriftSettings:
        """Settings of the search."""
        return DriftSettings.model_validate(self.settings["drift"])


def drift(store: JobStore, clock: Clock, settings: object, window: Window | None = None) -> RunReport:
    """Find change points in the days up to the end of a window, and publish them.

    ``window``: of an unrestricted run; None: the latest. Days are fitted with the start-up times of that run.
    A day is fitted once, and again if its jobs change, not for a later run: nights can be repeated. Raises
    :class:`NoResultError` without such a run.

    Cost: the buckets of the fitted days, day by day; the daily factors of the period; two small queries per
    change of a queue.
    """
    run = run_of_everything(store, SPEED, "fit", window)
    question = DriftQuestion.ask(DRIFT, run.window, settings, versions=RESOLVER)
    outcome = find_drifts(store, question, run)
    report = Publisher(store, clock).publish(question, [outcome])[-1]
    # how much was left to do is no part of the account: made again, it is the same
    return replace(report, counts={"days fitted": len(outcome.written), **report.counts})


def find_drifts(store: JobStore, question: DriftQuestion, run: StoredRun) -> Outcome:
    """Return the outcome that :func:`drift` publishes."""
    began = time.perf_counter()
    solved = KnownOfTasks.of_run(store, run)
    first = question.window.last_day - timedelta(days=question.drift.days - 1)
    looked_at = Days("day", first, question.window.last_day)
    fingerprints = fingerprints_of_days(store, looked_at)
    stored = read_table(store, DAILY_FACTORS, [looked_at], _LOOKED_AT)
    # without its tasks it is unknown what a day has in common with others: it is made again, or left out
    stored = stored.filter(pc.and_(_of_days(stored, fingerprints), pc.is_valid(stored["tasks"])))
    sites = known_sites(store, run.window)
    wanted = _wanted(stored, fingerprints, run.window.first_day, sites)
    made: list[dict[str, Any]] = []
    written = []
    for day in wanted:
        rows = list(factors_of_day(store, day, fingerprints[day], solved, sites))
        made += rows
        batches = rows_table(DAILY_FACTORS, rows).to_batches()
        written.append(store.replace(DAILY_FACTORS, str(day), batches))
    fresh = rows_table(DAILY_FACTORS, made).select(stored.column_names)
    daily = pa.concat_tables([stored.filter(pc.invert(_of_days(stored, wanted))), fresh])
    searches: dict[str, Search] = {level: find_changes(daily, level, question.drift) for level in LEVELS}
    last: date | None = pc.max(daily["day"]).as_py()
    queues = _queues_of_sites(daily)
    changed = any(search.changes for search in searches.values())
    k = _cpu_factors(store, run) if changed else {}
    releases = _releases(store, searches["cpu_model"].changes, k, last)
    found = [
        row for level in LEVELS for row in _drift_rows(store, run, searches, level, last, queues, k, releases)
    ]
    report = RunReport(
        "drift",
        question.run,
        daily.num_rows,
        len(found),
        time.perf_counter() - began,
        rows_are="daily factors",
        rows_become="changes",
        counts={
            what: sum(getattr(search, name) for search in searches.values())
            for name, what in _COUNTED.items()
        },
        window=str(question.window),
    )
    # noon of the last day with factors: until then the data reach
    moment = None if last is None else datetime.combine(last, midnight(12), UTC)
    return Outcome(report, {DRIFTS: rows_table(DRIFTS, found)}, written, moment)


def fingerprints_of_days(store: JobStore, days: Days) -> dict[date, str]:
    """Return, by day with buckets, a digest of the inputs of its factors except the run."""
    rows = read_table(store, DAYS, [days, In("kind", ("binned",))], ["day", "fingerprint"]).to_pylist()
    return {
        day: content_id({"jobs": "+".join(sorted(prints)), "layout": DAILY_FACTORS.layout})
        for day, prints in fingerprints_by_day(rows).items()
    }


def _of_days(rows: pa.Table, days: Iterable[date]) -> pa.ChunkedArray:
    return pc.is_in(rows["day"], value_set=pa.array(list(days), pa.date32()))


def _releases(
    store: JobStore, changes: Iterable[Change], k: Mapping[str, tuple[float, float]], last: date | None
) -> dict[str, ReleaseChange]:
    """Return the releases behind changes of CPU models, by model; none without a last day of data."""
    if last is None:
        return {}
    behind = {change.name: release_behind(store, change, k, last) for change in changes}
    return {name: release for name, release in behind.items() if release is not None}


def _wanted(stored: pa.Table, fingerprints: Mapping[date, str], first: date, sites: Sites) -> list[date]:
    # Days without factors, with other jobs than when they were made, or with a queue that was of another
    # site. `first`: of the window of the run, which says nothing of days before it.
    fitted = dict(zip(stored["day"].to_pylist(), stored["fingerprint"].to_pylist(), strict=True))
    rows = stored.filter(pc.equal(stored["level"], "queue")).select(["day", "name", "site"]).to_pylist()
    relocated = {row["day"] for row in rows if sites.of(row["name"]).name != row["site"]}
    return [
        day
        for day, fingerprint in sorted(fingerprints.items())
        if day >= first and (fitted.get(day) != fingerprint or day in relocated)
    ]


def _queues_of_sites(daily: pa.Table) -> dict[str, set[str]]:
    queues = daily.filter(pc.equal(daily["level"], "queue"))
    found: dict[str, set[str]] = defaultdict(set)
    for site, name in zip(queues["site"].to_pylist(), queues["name"].to_pylist(), strict=True):
        found[site].add(name)
    return found


def _jobs_of(change: Change, queues: Sequence[str]) -> In | None:
    """Return the jobs of a site or model; None where no single queue can be behind its change."""
    if change.level == "cpu_model":
        return In("cpu_model", (change.name,))
    # the one queue of a site is the site
    return In("queue", tuple(queues)) if change.level == "site" and len(queues) != 1 else None


def _drift_rows(
    store: JobStore,
    run: StoredRun,
    searches: Mapping[str, Search],
    level: str,
    last: date | None,
    queues_of: Mapping[str, Collection[str]],
    k: Mapping[str, tuple[float, float]],
    releases: Mapping[str, ReleaseChange],
) -> list[dict[str, Any]]:
    changes = searches[level].changes
    if not changes or last is None:
        return []
    edits = declared_edits(store, level, sorted({change.name for change in changes}))
    factors = {} if level == "cpu_model" else k
    rows = []
    for change in changes:
        mine = sorted(queues_of.get(change.name, ())) if level == "site" else [change.name]
        mix, release = None, releases.get(change.name) if level == "cpu_model" else None
        if factors:
            before, after = mixes_beside(store, change, mine, last)
            mix = mix_change(before, after, factors)
            release = through_models(releases, after, change)
        queue = None
        if where := _jobs_of(change, mine):
            queue = queue_behind(store, change, searches["queue"].changes, where, last)
        edit = edit_beside(edits.get(change.name, ()), change)
        rows.append({**_found(change), **described(change, mix, edit, queue, release), "speed_run": run.run})
    return rows


def _found(change: Change) -> dict[str, Any]:
    step = change.step
    return {
        "level": change.level,
        "processing_type": ALL_TYPES,
        "name": change.name,
        "day": date.fromordinal(step.day),
        "day_low": date.fromordinal(step.day_low),
        "day_high": date.fromordinal(step.day_high),
        "significance": step.significance,
        "n_days": change.n_days,
    }


def _cpu_factors(store: JobStore, run: StoredRun) -> dict[str, tuple[float, float]]:
    where = of_headline(run, "cpu_model")
    rows = read_table(store, FACTORS, where, ["name", "k", "k_err", "component"]).to_pylist()
    return {
        row["name"]: (row["k"], row["k_err"])
        for row in rows
        if row["component"] == 0 and row["k"] is not None and row["k_err"] is not None
    }
