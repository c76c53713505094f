"""Rules against jobs that people labelled: precision and recall; writes nothing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Mask
from esjobs.core.errors import InputError, NoResultError
from esjobs.core.rates import wilson
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.issues.in_force import in_force
from esjobs.issues.replay import batches, examined_days, flagged_by
from esjobs.issues.series_jobs import stored_days
from esjobs.records.answer import Answer
from esjobs.records.ingest.formats.reference_scores import cells
from esjobs.records.ingest.reading.small_files import text_of
from esjobs.store.base import JobStore

_EXAMPLES = 5
_COUNTS = ("n_jobs", "n_labelled", "n_flagged", "n_right")
_SHARES = ("precision", "recall")
SCHEMA = pa.schema(
    [
        ("rule", pa.string()),
        *((name, pa.int64()) for name in _COUNTS),
        *((f"{name}{end}", pa.float64()) for name in _SHARES for end in ("", "_low", "_high")),
        *((name, pa.string()) for name in ("missed", "false")),
    ]
)
"""One row per labelled rule. ``n_jobs``: labelled jobs that were examined."""

Labels = Mapping[tuple[str | None, str], frozenset[str]]
"""Rules that hold for a job by source and id; None: of any source."""


def read_labels(path: Path) -> Labels:
    """Return the labels of a CSV file: columns job_id and rule, optional source; a row per job and rule.

    A row without a rule is a job with nothing to be found. Raises :class:`InputError` for a wrong file.
    """
    found: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    for line, row in cells(text_of(path, path, "labels"), path, ("job_id", "rule"), "labels"):
        if not row["job_id"]:
            raise InputError(f"{path}, line {line}: job_id is empty")
        found[row.get("source") or None, row["job_id"]] |= {row["rule"]} if row["rule"] else set()
    if not found:
        raise InputError(f"{path} has no labels; write a row per job and rule")
    return {job: frozenset(rules) for job, rules in found.items()}


@dataclass
class _Tally:
    n_labelled: int = 0
    n_flagged: int = 0
    n_right: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    def add(self, job: str, *, labelled: bool, flagged: bool) -> None:
        """Count a job; keep its name where label and finding disagree."""
        self.n_labelled += labelled
        self.n_flagged += flagged
        self.n_right += labelled and flagged
        if labelled != flagged:
            (self.missed if labelled else self.false).append(job)


def _labelled(
    jobs: pa.RecordBatch, labels: Labels
) -> tuple[list[tuple[str, str]], dict[int, frozenset[str]]]:
    """Return source and id of every job, and the rules of the labelled ones by row."""
    names = list(zip(*(jobs.column(name).to_pylist() for name in ("source", "job_id")), strict=True))
    of_rows = {}
    for row, (source, job) in enumerate(names):
        # a label without a source holds for the job of any source, and wins
        found = labels.get((None, job), labels.get((source, job)))
        if found is not None:
            of_rows[row] = found
    return names, of_rows


def _add(
    tally: _Tally,
    rule: str,
    names: Sequence[tuple[str, str]],
    labelled: Mapping[int, frozenset[str]],
    flagged: Mask | None,
) -> None:
    for row, rules in labelled.items():
        # a rule without verdicts was not applicable, and flagged no job
        is_flagged = flagged is not None and bool(flagged[row])
        tally.add("/".join(names[row]), labelled=rule in rules, flagged=is_flagged)


def against_labels(
    store: JobStore, settings: Sections, files: Iterable[Path], labels: Path, window: Window | None
) -> Answer:
    """Return precision and recall of each labelled rule on labelled jobs, with 95 % intervals (Wilson).

    ``files``: rules read after those of the settings. Jobs without a label do not count. Cost: the stored
    measurements of the days. Raises :class:`InputError` for a wrong file or an unknown rule,
    :class:`NoResultError` if none of the jobs was examined.
    """
    judging, wanted = in_force(settings, files), read_labels(labels)
    named = frozenset().union(*wanted.values())
    # of a rule that nobody looked for no finding is false
    rules = [rule.name for rule in judging.rules.rules if rule.name in named]
    if unknown := sorted(named - set(rules)):
        raise InputError(f"{labels}: unknown rule '{unknown[0]}'; list: esjobs rules show")
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    n_jobs = 0
    days = examined_days(store, window or stored_days(store))
    of_days = chain.from_iterable(batches(store, judging, judging, day) for day in days)
    for jobs, footprints, measures in of_days:
        names, mine = _labelled(jobs, wanted)
        if not mine:
            continue
        n_jobs += len(mine)
        flagged = flagged_by(judging, jobs, footprints, measures)
        for rule in rules:
            _add(tallies[rule], rule, names, mine, flagged.get(rule))
    if not n_jobs:
        raise NoResultError(f"no labelled job was examined; run: esjobs detect, and check job_id in {labels}")
    rows = pa.Table.from_pylist([_row(rule, n_jobs, tallies[rule]) for rule in rules], SCHEMA)
    # a label without a source may hold for jobs of several
    absent = len(wanted) - n_jobs
    notes = (f"{absent:,} of {len(wanted):,} labelled jobs were not examined",) if absent > 0 else ()
    return Answer(rows, notes)


def _row(rule: str, n_jobs: int, tally: _Tally) -> dict[str, object]:
    row: dict[str, object] = {"rule": rule, "n_jobs": n_jobs}
    row |= {name: getattr(tally, name) for name in _COUNTS[1:]}
    for name, number in zip(_SHARES, (tally.n_flagged, tally.n_labelled), strict=True):
        if number:
            share = tally.n_right / number
            low, high = wilson(np.array([share]), np.array([float(number)]))
            # at 0 and 1 an end is the share itself but for rounding
            ends = min(float(low[0]), share), max(float(high[0]), share)
            row |= {name: share, f"{name}_low": ends[0] if share else 0.0, f"{name}_high": ends[1]}
    row |= {name: ", ".join(getattr(tally, name)[:_EXAMPLES]) for name in ("missed", "false")}
    return row
