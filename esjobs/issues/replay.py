"""What would change under other rules: from stored measures, footprints and records; nothing is written."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import NoResultError
from esjobs.core.query import Days, In
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.issues.catalogue import detector_named
from esjobs.issues.facts import Facts, fields_needed, job_keys, metrics_needed
from esjobs.issues.in_force import Judging, in_force
from esjobs.issues.judging import Measures, eligibility, judged
from esjobs.issues.series_jobs import jobs_without_series, stored_days, with_records
from esjobs.issues.unmeasured import with_unmeasured
from esjobs.publish.publication import read_table
from esjobs.schema.issues import FOOTPRINTS, ISSUE_DAYS, MEASURES, SEVERITIES
from esjobs.store.base import JobStore

NEW, GONE, OTHER = "newly flagged", "no longer flagged", "other severity"
CHANGES = (NEW, GONE, OTHER)
"""What can become of a job under other rules, per rule."""
_EXAMPLES = 5
_JOBS = 20_000

SCHEMA = pa.schema(
    [
        ("rule", pa.string()),
        ("change", pa.string()),
        ("n_jobs", pa.int64()),
        ("n_users", pa.int64()),
        ("core_h", pa.float64()),
        ("idle_core_h", pa.float64()),
        ("idle_gpu_h", pa.float64()),
        ("n_before", pa.int64()),
        ("n_after", pa.int64()),
        ("examples", pa.string()),
    ]
)
"""A row per rule and change. ``core_h``: of the jobs, those of which they are known."""


@dataclass
class _Change:
    jobs: int = 0
    users: set[str] = field(default_factory=set)
    core_h: float = 0.0
    idle_core_h: float = 0.0
    idle_gpu_h: float = 0.0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Verdicts:
    """What a rule says of the jobs of a batch: rank of the severity, -1 where it does not fire."""

    ranks: npt.NDArray[np.int64]
    idle_core_h: npt.NDArray[np.float64]
    idle_gpu_h: npt.NDArray[np.float64]


def replayed(store: JobStore, settings: Sections, files: Iterable[Path], window: Window | None) -> pa.Table:
    """What files of rules would change, read after those of the settings; see :func:`replay`.

    ``window``: whole days; None: all days with jobs or series. Raises :class:`InputError` for a wrong file.
    """
    now, then = in_force(settings), in_force(settings, files)
    return replay(store, now, then, stored_days(store) if window is None else window)


def replay(store: JobStore, now: Judging, then: Judging, window: Window) -> pa.Table:
    """What changes between the rules of ``now`` and of ``then`` in a window (columns :data:`SCHEMA`).

    Both are applied to what is stored, so that the difference is that of the rules alone. Rules that change
    nothing have no row. A variant of a detector that was not measured is measured now, from the stored
    series. Raises :class:`NoResultError` when no day of the window was looked at, or when these series are
    not there any more.
    """
    days = read_table(store, ISSUE_DAYS, [Days.of_window(window)], ["day"]).column("day").to_pylist()
    if not days:
        raise NoResultError(f"no day of {window} was looked at; run: esjobs detect --window {window}")
    changes: dict[tuple[str, str], _Change] = defaultdict(_Change)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for day in sorted(days):
        for jobs, footprints, measures in _batches(store, now, then, day):
            _compare(now, then, jobs, footprints, measures, changes, counts)
    order = {rule.name: place for place, rule in enumerate((*then.rules.rules, *now.rules.rules))}
    rows = [
        {
            "rule": rule,
            "change": change,
            "n_jobs": made.jobs,
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


def _batches(
    store: JobStore, now: Judging, then: Judging, day: date
) -> Iterator[tuple[pa.Table, pa.Table | None, pa.Table | None]]:
    """The jobs of a day some at a time, with their footprints and measures; None for jobs without series."""
    names = tuple(dict.fromkeys((*fields_needed(now.rules), *fields_needed(then.rules))))
    metrics = tuple(sorted(metrics_needed(now.rules) | metrics_needed(then.rules)))
    here = [Days("day", day, day)]
    keys = ["source", "job_id", "end_time"]
    seen = [read_table(store, table, here, keys) for table in (FOOTPRINTS, MEASURES)]
    jobs = pa.concat_tables(seen).group_by(["source", "job_id"]).aggregate([("end_time", "max")])
    jobs = jobs.rename_columns(["source", "job_id", "end_time"])
    if jobs.num_rows:
        footprints = read_table(store, FOOTPRINTS, [*here, In("metric", metrics)])
        detectors = tuple(sorted({name for name, _ in now.wanted | then.wanted}))
        measures = read_table(store, MEASURES, [*here, In("detector", detectors)])
        for judging in (now, then):
            measures = with_unmeasured(store, judging, day, measures)
        for start in range(0, jobs.num_rows, _JOBS):
            piece = jobs.slice(start, _JOBS)
            records, _ = with_records(store, piece, names, day)
            yield records, footprints, measures
    for records in jobs_without_series(store, names, day):
        yield records, None, None


def _compare(
    now: Judging,
    then: Judging,
    jobs: pa.Table,
    footprints: pa.Table | None,
    measures: pa.Table | None,
    changes: dict[tuple[str, str], _Change],
    counts: dict[str, list[int]],
) -> None:
    lasted = None if footprints is None else _series_s(jobs, footprints)
    facts = [Facts(jobs, judging.clusters, footprints, lasted) for judging in (now, then)]
    aligned = {} if measures is None else stored_measures(facts[0], measures)
    before, after = (
        _verdicts(judging, fact, aligned) for judging, fact in zip((now, then), facts, strict=True)
    )
    users = jobs.column("user").to_pylist()
    names = jobs.select(["source", "job_id"]).to_pylist()
    hours = np.nan_to_num(facts[1].column("core_h"))
    for rule in dict.fromkeys((*before, *after)):
        first, second = before.get(rule), after.get(rule)
        missing = np.full(len(users), -1, np.int64)
        old, new = (missing if each is None else each.ranks for each in (first, second))
        counts[rule][0] += int((old >= 0).sum())
        counts[rule][1] += int((new >= 0).sum())
        for change, rows, told in (
            (NEW, (old < 0) & (new >= 0), second),
            (GONE, (old >= 0) & (new < 0), first),
            (OTHER, (old >= 0) & (new >= 0) & (old != new), second),
        ):
            chosen = np.flatnonzero(rows)
            if not len(chosen) or told is None:
                continue
            made = changes[rule, change]
            made.jobs += len(chosen)
            made.users.update(str(users[row]) for row in chosen if users[row] is not None)
            made.core_h += float(hours[chosen].sum())
            made.idle_core_h += float(np.nan_to_num(told.idle_core_h[chosen]).sum())
            made.idle_gpu_h += float(np.nan_to_num(told.idle_gpu_h[chosen]).sum())
            for row in chosen[: _EXAMPLES - len(made.examples)]:
                made.examples.append(_example(names[row], change, int(old[row]), int(new[row])))


def _example(job: Mapping[str, Any], change: str, old: int, new: int) -> str:
    name = f"{job['source']}/{job['job_id']}"
    return f"{name} ({SEVERITIES[old]} to {SEVERITIES[new]})" if change == OTHER else name


def _verdicts(
    judging: Judging, facts: Facts, measures: Mapping[tuple[str, str], Measures]
) -> dict[str, _Verdicts]:
    eligible, _ = eligibility(judging.rules, facts)
    verdicts = {}
    for flagged in judged(judging.rules, facts, eligible, measures):
        columns: list[npt.NDArray[Any]] = []
        for given, missing in (
            (flagged.ranks, -1),
            (flagged.idle_core_h, 0.0),
            (flagged.idle_gpu_h, 0.0),
        ):
            column = np.full(facts.n, missing, given.dtype)
            column[flagged.rows] = given
            columns.append(column)
        verdicts[flagged.rule.name] = _Verdicts(*columns)
    return verdicts


def stored_measures(facts: Facts, measures: pa.Table) -> dict[tuple[str, str], Measures]:
    """Stored measures as columns over the jobs of a batch, by detector and variant."""
    found = facts.rows_of(measures.column("source"), measures.column("job_id"))
    measures, rows = measures.filter(pa.array(found >= 0)), found[found >= 0]
    kinds = pc.binary_join_element_wise(measures.column("detector"), measures.column("variant"), "\0")
    aligned = {}
    for kind in kinds.unique().to_pylist():
        chosen = pc.equal(kinds, kind)
        of_kind, places = measures.filter(chosen), rows[chosen.to_numpy()]
        numbers: dict[str, npt.NDArray[np.float64]] = {}
        simple = {"value": "value", "share": "share_frac", "n_samples": "n_samples"}
        told = [dict(given or ()) for given in of_kind.column("numbers").to_pylist()]
        detector, _, variant = kind.partition("\0")
        # rules name what the detector can give, whether or not it gave it to any of these jobs
        for name in (*simple, *detector_named(detector).numbers):
            column = np.full(facts.n, np.nan)
            values = (
                of_kind.column(simple[name]).to_pylist() if name in simple else [g.get(name) for g in told]
            )
            column[places] = [np.nan if value is None else value for value in values]
            numbers[name] = column
        # what was not assessed has no value, and then nothing of it counts
        unknown = np.isnan(numbers["value"])
        for column in numbers.values():
            column[unknown] = np.nan
        aligned[detector, variant] = Measures(numbers)
    return aligned


def _series_s(jobs: pa.Table, footprints: pa.Table) -> npt.NDArray[np.float64]:
    """How long the series of each job are."""
    places = pc.index_in(
        job_keys(jobs.column("source"), jobs.column("job_id")),
        value_set=job_keys(footprints.column("source"), footprints.column("job_id")),
    )
    lasted = footprints.column("series_s").take(places)
    return np.array(pc.fill_null(lasted, np.nan).to_numpy(), np.float64)
