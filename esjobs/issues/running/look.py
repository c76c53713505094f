"""A look at running jobs: files of the scheduler and of the monitoring, rules, warnings, the hook.

Nothing of these jobs enters the jobs or their series: they are scored and judged when they have ended.
"""

import glob
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA, given_schema
from esjobs.core.errors import InputError
from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.issues.running.rules import METRICS, RULES, Running
from esjobs.issues.running.states import Look, Row, advanced, due_for_hook
from esjobs.issues.settings import RunningSettings
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.ingest.base import parse_fill
from esjobs.records.ingest.formats.long_series import LongSeries
from esjobs.records.ingest.formats.slurm import SLURM
from esjobs.records.series.assembly import assembled
from esjobs.records.series.blocks import MOST, Block
from esjobs.schema.issues import RUNNING_ISSUES
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore

_FACTS = ("source", "job_id", "queue", "user", "project", "start_time", "requested_wall_s")
_STALE = timedelta(minutes=30)
# no word that a program could take for an option
_JOB_ID = re.compile(r"[0-9][0-9A-Za-z_+.]{0,63}")


def look(store: JobStore, settings: RunningSettings, now: datetime) -> tuple[RunReport, list[Row]]:
    """Judge the running jobs; return the account and the rows of new warnings.

    Raises :class:`InputError` for files that cannot be read, or whose newest sample is half an hour old:
    nothing changes then.
    """
    began = time.perf_counter()
    jobs, refused = running_jobs(settings, now)
    found, seen_jobs, n_refused = _judged(jobs, settings, now)
    stored = read_table(store, RUNNING_ISSUES).to_pylist()
    rows = advanced(stored, found, now)
    failures = _hooks(rows, settings, now)
    sources = sorted({row["source"] for row in (*stored, *rows)})
    changes = [
        store.replace(
            RUNNING_ISSUES,
            source,
            rows_table(RUNNING_ISSUES, [row for row in rows if row["source"] == source]).to_batches(),
        )
        for source in sources
    ]
    if changes:
        store.publish(changes)
        tidy(store)
    warned = [row for row in rows if row["warned_at"] == now]
    counts = {
        "jobs with samples": seen_jobs,
        "series refused": n_refused,
        "warnings": len(warned),
        "hooks run": sum(row.get("hook_at") == now for row in rows),
        "hooks failed": len(failures),
    }
    report = RunReport(
        *("running", f"{now:%Y-%m-%dT%H:%M:%SZ}", len(jobs), len(found.found), time.perf_counter() - began),
        rows_are="running jobs",
        rows_become="findings",
        dropped=refused,
        counts={name: count for name, count in counts.items() if count},
        notes=tuple(failures),
    )
    return report, warned


def running_jobs(settings: RunningSettings, now: datetime) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the records of running jobs in the scheduler's list, and refused rows by reason."""
    fill = parse_fill(settings.fill, SLURM.settable)
    pieces = list(replace(SLURM, running_at=now).parse(Path(settings.jobs), fill))
    table = pa.Table.from_batches([piece.batch for piece in pieces], PUT_SCHEMA)
    names = [*_FACTS, "requested_memory_b", "nodes"]
    return table.select(names).to_pylist(), dict(
        Counter(reject.reason for piece in pieces for reject in piece.rejects)
    )


def _judged(
    jobs: Sequence[Mapping[str, Any]], settings: RunningSettings, now: datetime
) -> tuple[Look, int, int]:
    rows, n_refused = _series(settings)
    by_key = {(job["source"], job["job_id"]): job for job in jobs}
    latest = pc.max(rows.column("end_time")).as_py()
    if by_key and (latest is None or now - latest > _STALE):
        raise InputError(
            f"the newest sample of running jobs is of {latest or 'no time'}; check what writes "
            f"{', '.join(settings.series)}"
        )
    found: dict[tuple[str, str, str], Row] = {}
    cleared: set[tuple[str, str, str]] = set()
    seen: set[tuple[str, str]] = set()
    for key, samples in _samples(rows, by_key, latest):
        seen.add(key)
        for name, rule in RULES.items():
            answer = rule(samples)
            if answer is None:
                continue
            if not answer.flagged:
                cleared.add((*key, name))
                continue
            facts = {each: by_key[key][each] for each in _FACTS[:-1]}
            of_rule = {"value": answer.value, "threshold": answer.threshold, "unit": answer.unit}
            found[(*key, name)] = {**facts, "rule": name, **of_rule, "finding": answer.text}
    return Look(found, cleared, {key: _limit(job) for key, job in by_key.items()}), len(seen), n_refused


def _limit(job: Mapping[str, Any]) -> datetime | None:
    start, length = job["start_time"], job["requested_wall_s"]
    return None if start is None or length is None else start + timedelta(seconds=length)


def _series(settings: RunningSettings) -> tuple[pa.Table, int]:
    """Return the rows of the metrics of rules, and the number of refused series."""
    paths = [Path(name) for pattern in settings.series for name in sorted(glob.glob(pattern))]
    if not paths:
        raise InputError(f"no file is called {', '.join(settings.series)} (issues.running.series)")
    reader = LongSeries() if settings.map is None else LongSeries().mapped(settings.map)
    pieces = [piece for path in paths for piece in reader.only(METRICS).parse(path, {})]
    damaged = [reject for piece in pieces for reject in piece.rejects if reject.reason == "damaged file"]
    if damaged:
        raise InputError(damaged[0].detail)
    batches = [piece.batch for piece in pieces if piece.batch.num_rows]
    return pa.Table.from_batches(batches, given_schema(SERIES)), sum(len(piece.rejects) for piece in pieces)


def _samples(
    rows: pa.Table, jobs: Mapping[tuple[str, str], Mapping[str, Any]], latest: datetime
) -> Iterator[tuple[tuple[str, str], Running]]:
    for piece in assembled(rows, METRICS, MOST):
        block = Block(*piece)
        for number, row in enumerate(block.jobs.to_pylist()):
            key = (row["source"], row["job_id"])
            job = jobs.get(key)
            if job is not None and job["start_time"] is not None:
                yield key, _running(block, number, job, latest)


def _running(block: Block, number: int, job: Mapping[str, Any], latest: datetime) -> Running:
    step = float(block.step_s[number])
    first = float(block.start_time[number].astype(np.int64)) / 1e6 - job["start_time"].timestamp()
    memory = job["requested_memory_b"]
    return Running(
        (latest - job["start_time"]).total_seconds(),
        first + step * np.arange(block.n_samples),
        step,
        {name: values[number, : len(block.units[name][number])] for name, values in block.values.items()},
        {name: units[number] for name, units in block.units.items()},
        float("nan") if memory is None else float(memory),
        job["nodes"] or 0,
    )


def _hooks(rows: Sequence[Row], settings: RunningSettings, now: datetime) -> list[str]:
    """Call the hook for the findings that are due, note it in their rows, and return the failures."""
    failures = []
    due = due_for_hook(rows, now, timedelta(minutes=settings.hook_after_minutes)) if settings.hook else []
    for row in due:
        error = _call(settings, row)
        row.update(hook_at=now, hook_error=error)
        if error is not None:
            failures.append(f"hook for job {visible(row['job_id'])}, {row['rule']}: {error}")
    return failures


def _call(settings: RunningSettings, row: Row) -> str | None:
    """Run the hook with the job's id; return why it failed, None if it did not."""
    if not _JOB_ID.fullmatch(row["job_id"]):
        return "the job id is not a number; nothing was called"
    places = {"{job_id}": row["job_id"], "{rule}": row["rule"]}
    command = [places.get(word, word) for word in settings.hook]
    try:
        done = subprocess.run(  # noqa: S603  a list of arguments of the settings, no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=settings.hook_timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {settings.hook_timeout_s:g} s"
    except (OSError, ValueError) as error:
        return f"cannot run: {error}"
    return None if done.returncode == 0 else f"exit code {done.returncode}"
