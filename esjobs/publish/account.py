"""Report of a step as rows of ``runs`` and ``run_counts``."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs.core.report import RunReport
from esjobs.core.version import __version__
from esjobs.publish.publication import Outcome, rows_table, run_step
from esjobs.publish.question import Question
from esjobs.publish.stored import day_after, scope_of
from esjobs.schema.runs import RUN_COUNTS, RUNS
from esjobs.store.base import Generation, JobStore


def origin(question: Question, run: str) -> dict[str, object]:
    """Return the columns RUN, PROVENANCE and SCOPE of a run."""
    return {
        "run": run,
        "window_start": question.window.start,
        "window_end": question.window.end,
        "program_version": __version__,
        "window_days": question.window.days,
        "scope": scope_of(question.tasks, question.where),
    }


def signed(rows: pa.Table, stamp: Mapping[str, object]) -> pa.Table:
    """Return rows with the columns of their origin filled."""
    for index, field in enumerate(rows.schema):
        if field.name in stamp:
            value = pa.scalar(stamp[field.name], field.type)
            rows = rows.set_column(index, field, pa.repeat(value, rows.num_rows))
    return rows


def entry(question: Question, outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return the row of ``runs``; the only results with a clock time."""
    report, window = outcome.report, question.window
    last = outcome.last_data
    return {
        "run_step": run_step(report.run, report.step),
        **origin(question, report.run),
        "step": report.step,
        "at": now,
        "seconds": report.seconds,
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "dropped": json.dumps(report.dropped),
        "counts": json.dumps(report.counts),
        "notes": json.dumps(report.notes),
        "settings": json.dumps(question.describe(), sort_keys=True),
        "data_end": window.end if last is None else min(window.end, day_after(last)),
    }


def record(store: JobStore, row: Mapping[str, Any], report: RunReport) -> list[Generation]:
    """Write an entry of ``runs`` with its counts; not yet visible."""
    head = {name: row[name] for name in RUN_COUNTS.column_names if name in row}
    counts = [{**head, **count} for count in count_rows(report)]
    return [
        store.replace(table, row["run_step"], rows_table(table, rows).to_batches())
        for table, rows in ((RUNS, [row]), (RUN_COUNTS, counts))
    ]


def count_rows(report: RunReport) -> Iterator[dict[str, object]]:
    """Yield counts and notes of a report, one row each."""
    for kind, counted in (("dropped", report.dropped), ("count", report.counts)):
        for position, (name, n) in enumerate(counted.items(), 1):
            yield {"kind": kind, "position": position, "name": name, "n": n}
    for position, note in enumerate(report.notes, 1):
        yield {"kind": "note", "position": position, "text": note}
