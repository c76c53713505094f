"""Comparison of rule sets on stored measures, footprints and records; writes nothing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import job_keys
from esjobs.core.errors import NoResultError
from esjobs.core.query import Days, In
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.issues.catalogue import detector_named
from esjobs.issues.facts import Facts, fields_needed, metrics_needed
from esjobs.issues.in_force import Judging, in_force
from esjobs.issues.judging import Measures, eligibility, judged
from esjobs.issues.series_jobs import jobs_without_series, stored_days, with_records
from esjobs.issues.unmeasured import with_unmeasured
from esjobs.publish.publication import read_table
from esjobs.schema.issues import FOOTPRINTS, ISSUE_DAYS, MEASURES, SEVERITIES
from esjobs.store.base import JobStore

NEW, GONE, OTHER = "newly flagged", "no longer flagged", "other severity"
CHANGES = (NEW, GONE, OTHER)
"""Changes of a job's verdict, per rule."""
_EXAMPLES = 5
# jobs judged at a time
_JOBS = 20_000

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("rule", "change")),
        *((name, pa.int64()) for name in ("n_jobs", "n_users")),
        *((name, pa.float64()) for name in ("core_h", "idle_core_h", "idle_gpu_h")),
        *((name, pa.int64()) for name in ("n_before", "n_after")),
        ("examples", pa.string()),
    ]
)
"""One row per rule and change; ``core_h``: of jobs that have them."""


@dataclass
class _Change:
    n_jobs: int = 0
    users: set[str] = field(default_factory=set)
    core_h: float = 0.0
    idle_core_h: float = 0.0
    idle_gpu_h: float = 0.0
    examples: list[str] = field(default_factory=list)

    def add(self, jobs: pa.Table, rows: Ints, hours: Floats, verdicts: "_Verdicts") -> None:
        """Add jobs that changed."""
        users = jobs.column("user").take(pa.array(rows)).to_pylist()
        self.n_jobs += len(rows)
        self.users.update(str(user) for user in users if user is not None)
        self.core_h += float(hours[rows].sum())
        self.idle_core_h += float(np.nan_to_num(verdicts.idle_core_h[rows]).sum())
        self.idle_gpu_h += float(np.nan_to_num(verdicts.idle_gpu_h[rows]).sum())


@dataclass(frozen=True)
class _Verdicts:
    """Verdicts of a rule on a batch: severity rank, -1 where not flagged, and wasted hours."""

    ranks: Ints
    idle_core_h: Floats
    idle_gpu_h: Floats


def replayed(store: JobStore, settings: Sections, files: Iterable[Path], window: Window | None) -> pa.Table:
    """Compare rule files, read after those of the settings, with the rules in force (:func:`replay`).

    ``window``: whole days; None: all days with jobs or series. Raises :class:`InputError` for a wrong file.
    """
    now, then = in_force(settings), in_force(settings, files)
    return replay(store, now, then, stored_days(store) if window is None else window)


def replay(store: JobStore, now: Judging, then: Judging, window: Window) -> pa.Table:
    """Compare two rule sets over a window (columns :data:`SCHEMA`); rules without changes have no row.

    Both are applied to stored data, so that only the rules differ. Variants that were not measured are
    measured now, from stored series. Raises :class:`NoResultError` if no day of the window was processed, or
    if these series are gone.
    """
    days = examined_days(store, window)
    if not days:
        raise NoResultError(f"no day of {window} has been examined; run: esjobs detect --window {window}")
    changes: dict[tuple[str, str], _Change] = defaultdict(_Change)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for day in days:
        for jobs, footprints, measures in batches(store, now, then, day):
            _compare(now, then, jobs, footprints, measures, changes, counts)
    order = {rule.name: index for index, rule in enumerate((*then.rules.rules, *now.rules.rules))}
    rows = [
        {
            "rule": rule,
            "change": change,
            "n_jobs": made.n_jobs,
            "n_users": len(made.users),
            "core_h": made.core_h,
            "idle_core_h": made.idle_core_h,
            "idle_gpu_h": made.idle_gpu_h,
            "n_before": counts[rule][0],
            "n_after": counts[rule][1],
            "examples": ", ".join(made.examples),
        }
        for (rule, change), made in sorted(
            changes.items(), key=lambda item: (order[item[0][0]], CHANGES.index(item[0][1]))
        )
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def examined_days(store: JobStore, window: Window) -> list[date]:
    """Return the days of a window whose jobs were examined, in order."""
    days = read_table(store, ISSUE_DAYS, [Days.of_window(window)], ["day"]).column("day").to_pylist()
    return sorted(set(days))


def batches(
    store: JobStore, now: Judging, then: Judging, day: date
) -> Iterator[tuple[pa.Table, pa.Table | None, pa.Table | None]]:
    """Yield jobs of a day with footprints and measures; None for jobs without series."""
    names = tuple(dict.fromkeys((*fields_needed(now.rules), *fields_needed(then.rules))))
    metrics = tuple(sorted(metrics_needed(now.rules) | metrics_needed(then.rules)))
    here = [Days("day", day, day)]
    keys = ["source", "job_id", "end_time"]
    # a job may have footprints and no detector that could measure it
    seen = [read_table(store, table, here, keys) for table in (FOOTPRINTS, MEASURES)]
    jobs = pa.concat_tables(seen).group_by(["source", "job_id"]).aggregate([("end_time", "max")])
    jobs = jobs.rename_columns(["source", "job_id", "end_time"])
    if jobs.num_rows:
        footprints = read_table(store, FOOTPRINTS, [*here, In("metric", metrics)])
        detectors = tuple(sorted({name for name, _ in now.wanted | then.wanted}))
        measures = read_table(store, MEASURES, [*here, In("detector", detectors)])
        for judging in (now, then):
            # variants that only one of the sets names were not measured by the night
            measures = with_unmeasured(store, judging, day, measures)
        for start in range(0, jobs.num_rows, _JOBS):
            piece = jobs.slice(start, _JOBS)
            records, _ = with_records(store, piece, names, day)
            yield records, footprints, measures
    for records in jobs_without_series(store, names, day):
        yield records, None, None


def flagged_by(
    judging: Judging, jobs: pa.Table, footprints: pa.Table | None, measures: pa.Table | None
) -> dict[str, Mask]:
    """Return by rule which jobs of a batch it flags."""
    ((_, verdicts),) = _judged((judging,), jobs, footprints, measures)
    return {rule: found.ranks >= 0 for rule, found in verdicts.items()}


def _judged(
    judgings: Sequence[Judging], jobs: pa.Table, footprints: pa.Table | None, measures: pa.Table | None
) -> list[tuple[Facts, dict[str, _Verdicts]]]:
    """Return the facts and verdicts of each rule set on a batch."""
    series_s = None if footprints is None else _series_s(jobs, footprints)
    facts = [Facts(jobs, judging.clusters, footprints, series_s) for judging in judgings]
    # one reading for both: rules differ, measurements do not
    measured = {} if measures is None else stored_measures(facts[0], measures)
    return [(fact, _verdicts(judging, fact, measured)) for judging, fact in zip(judgings, facts, strict=True)]


def _compare(
    now: Judging,
    then: Judging,
    jobs: pa.Table,
    footprints: pa.Table | None,
    measures: pa.Table | None,
    changes: dict[tuple[str, str], _Change],
    counts: dict[str, list[int]],
) -> None:
    (_, before), (facts, after) = _judged((now, then), jobs, footprints, measures)
    hours = np.nan_to_num(facts.column("core_h"))
    # of a rule that only one of the sets has; its hours are never asked for
    nothing = _Verdicts(np.full(jobs.num_rows, -1, np.int64), np.empty(0), np.empty(0))
    for rule in dict.fromkeys((*before, *after)):
        first, second = before.get(rule, nothing), after.get(rule, nothing)
        old, new = first.ranks, second.ranks
        counts[rule][0] += int((old >= 0).sum())
        counts[rule][1] += int((new >= 0).sum())
        for change, changed, verdicts in (
            (NEW, (old < 0) & (new >= 0), second),
            (GONE, (old >= 0) & (new < 0), first),
            (OTHER, (old >= 0) & (new >= 0) & (old != new), second),
        ):
            rows = np.flatnonzero(changed)
            if not len(rows):
                continue
            made = changes[rule, change]
            made.add(jobs, rows, hours, verdicts)
            for row in rows[: _EXAMPLES - len(made.examples)]:
                made.examples.append(_example(jobs, int(row), change, int(old[row]), int(new[row])))


def _example(jobs: pa.Table, row: int, change: str, old: int, new: int) -> str:
    name = "/".join(jobs.column(each)[row].as_py() for each in ("source", "job_id"))
    return f"{name} ({SEVERITIES[old]} to {SEVERITIES[new]})" if change == OTHER else name


def _verdicts(judging: Judging, facts: Facts, measures: Measures) -> dict[str, _Verdicts]:
    eligible, _ = eligibility(judging.rules, facts)
    verdicts = {}
    for flagged in judged(judging.rules, facts, eligible, measures):
        found = _Verdicts(np.full(facts.n, -1), np.zeros(facts.n), np.zeros(facts.n))
        found.ranks[flagged.rows] = flagged.ranks
        found.idle_core_h[flagged.rows] = flagged.idle_core_h
        found.idle_gpu_h[flagged.rows] = flagged.idle_gpu_h
        verdicts[flagged.rule.name] = found
    return verdicts


def stored_measures(facts: Facts, measures: pa.Table) -> Measures:
    """Return stored measures as columns over the jobs of a batch, by detector and variant."""
    found = facts.rows_of(measures)
    measures, rows = measures.filter(pa.array(found >= 0)), found[found >= 0]
    kinds = pc.binary_join_element_wise(measures.column("detector"), measures.column("variant"), "\0")
    common = {"value": "value", "share": "share_frac", "n_samples": "n_samples"}
    aligned = {}
    for kind in kinds.unique().to_pylist():
        chosen = pc.equal(kinds, kind)
        of_kind, of_jobs = measures.filter(chosen), rows[chosen.to_numpy()]
        own = [dict(pairs or ()) for pairs in of_kind.column("numbers").to_pylist()]
        detector, _, variant = kind.partition("\0")
        stored = {name: of_kind.column(column).to_pylist() for name, column in common.items()}
        # rules name numbers that the detector can give, also where none of these jobs has them
        stored |= {name: [each.get(name) for each in own] for name in detector_named(detector).numbers}
        # jobs that were not assessed have no value, and then none of their numbers counts
        assessed = np.array([value is not None for value in stored["value"]], np.bool_)
        columns = {name: np.full(facts.n, np.nan) for name in stored}
        for name, values in stored.items():
            columns[name][of_jobs] = np.where(assessed, np.array(values, np.float64), np.nan)
        aligned[detector, variant] = columns
    return aligned


def _series_s(jobs: pa.Table, footprints: pa.Table) -> Floats:
    rows = pc.index_in(job_keys(jobs), value_set=job_keys(footprints))
    return np.array(pc.fill_null(footprints.column("series_s").take(rows), np.nan).to_numpy(), np.float64)
