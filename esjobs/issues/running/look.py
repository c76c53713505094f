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
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import given_schema
from esjobs.core.errors import InputError
from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.issues.running.rules import METRICS, RULES, Found, Running
from esjobs.issues.running.states import Look, Row, advanced, due_for_hook
from esjobs.issues.settings import RunningSettings
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.ingest.base import parse_fill
from esjobs.records.ingest.formats.job_files import DAMAGED
from esjobs.records.ingest.formats.long_series import LongSeries
from esjobs.records.ingest.formats.slurm import SLURM
from esjobs.records.series.assembly import assembled
from esjobs.records.series.blocks import MOST, Block
from esjobs.schema.issues import RUNNING_ISSUES
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore

_CARRIED = ("source", "job_id", "queue", "user", "project", "start_time")
_READ = [*_CARRIED, "requested_wall_s", "requested_memory_b", "nodes"]
# files this old are those of a writer that has stopped
_STALE = timedelta(minutes=30)
# no word that a program could take for an option
_JOB_ID = re.compile(r"[0-9][0-9A-Za-z_+.]{0,63}")


def look(store: JobStore, settings: RunningSettings, now: datetime) -> tuple[RunReport, list[Row]]:
    """Judge the running jobs; return the account and the rows of warnings that still hold.

    Raises :class:`InputError` for files that cannot be read, or whose newest sample is half an hour old:
    nothing changes then.
    """
    began = time.perf_counter()
    fill = parse_fill(settings.fill, SLURM.settable)
    pieces = list(replace(SLURM, running_at=now).parse(Path(settings.jobs), fill))
    jobs = list(chain.from_iterable(piece.batch.select(_READ).to_pylist() for piece in pieces))
    found, counts = _judged(jobs, settings, now)
    # all of them: a job that is gone from the file has ended
    stored = read_table(store, RUNNING_ISSUES).to_pylist()
    rows = advanced(stored, found, now)
    failures = _hooks(rows, settings, now)
    # also sources without a finding now, whose old rows must go
    _publish(store, rows, sorted({row["source"] for row in (*stored, *rows)}))
    counts["warnings"] = sum(row["warned_at"] == now for row in rows)
    counts["hooks run"] = sum(row["hook_at"] == now for row in rows)
    counts["hooks failed"] = len(failures)
    rejects = chain.from_iterable(piece.rejects for piece in pieces)
    report = RunReport(
        *("running", f"{now:%Y-%m-%dT%H:%M:%SZ}", len(jobs), len(found.found), time.perf_counter() - began),
        rows_are="running jobs",
        rows_become="findings",
        dropped=dict(Counter(reject.reason for reject in rejects)),
        counts=dict(+Counter(counts)),
        notes=tuple(failures),
    )
    return report, [row for row in rows if row["warned_at"] is not None and row["ended_at"] is None]


def _publish(store: JobStore, rows: Sequence[Row], sources: Sequence[str]) -> None:
    changes = []
    for source in sources:
        mine = rows_table(RUNNING_ISSUES, [row for row in rows if row["source"] == source])
        changes.append(store.replace(RUNNING_ISSUES, source, mine.to_batches()))
    if changes:
        store.publish(changes)
        tidy(store)


def _require_fresh(latest: datetime | None, settings: RunningSettings, now: datetime) -> None:
    if latest is None or now - latest > _STALE:
        files = ", ".join(settings.series)
        raise InputError(f"{files}: newest sample {latest or 'missing'}; check what writes them")


def _finding(job: Row, rule: str, answer: Found) -> Row:
    facts = {name: job[name] for name in _CARRIED}
    of_rule = {"rule": rule, "value": answer.value, "threshold": answer.threshold}
    return {**facts, **of_rule, "unit": answer.unit, "finding": answer.text}


def _judged(jobs: Sequence[Row], settings: RunningSettings, now: datetime) -> tuple[Look, dict[str, int]]:
    rows, n_refused = _series(settings)
    by_key = {(job["source"], job["job_id"]): job for job in jobs}
    latest = pc.max(rows.column("end_time")).as_py()
    if by_key:
        _require_fresh(latest, settings, now)
    found, cleared, n_seen = {}, set(), 0
    for job, samples in _samples(rows, by_key, latest):
        n_seen += 1
        for name, rule in RULES.items():
            answer, key = rule(samples), (job["source"], job["job_id"], name)
            if answer is None:
                continue
            if answer.flagged:
                found[key] = _finding(job, name, answer)
            else:
                cleared.add(key)
    limits = {key: _limit(job) for key, job in by_key.items()}
    return Look(found, cleared, limits), {"jobs with samples": n_seen, "series refused": n_refused}


def _limit(job: Row) -> datetime | None:
    start, length = job["start_time"], job["requested_wall_s"]
    return None if start is None or length is None else start + timedelta(seconds=length)


def _paths(patterns: Sequence[str]) -> list[Path]:
    return [Path(name) for pattern in patterns for name in sorted(glob.glob(pattern))]


def _series(settings: RunningSettings) -> tuple[pa.Table, int]:
    """Return the rows of the metrics of rules, and the number of refused series."""
    paths = _paths(settings.series)
    if not paths:
        raise InputError(f"no file is called {', '.join(settings.series)}; set issues.running.series")
    reader = (LongSeries() if settings.map is None else LongSeries().mapped(settings.map)).only(METRICS)
    pieces = list(chain.from_iterable(reader.parse(path, {}) for path in paths))
    rejects = list(chain.from_iterable(piece.rejects for piece in pieces))
    # half a file would look like jobs that fell silent
    damaged = next((reject for reject in rejects if reject.reason == DAMAGED), None)
    if damaged is not None:
        raise InputError(damaged.detail)
    batches = [piece.batch for piece in pieces if piece.batch.num_rows]
    return pa.Table.from_batches(batches, given_schema(SERIES)), len(rejects)


def _samples(
    rows: pa.Table, jobs: Mapping[tuple[str, str], Row], latest: datetime
) -> Iterator[tuple[Row, Running]]:
    for piece in assembled(rows, METRICS, MOST):
        block = Block(*piece)
        for number, row in enumerate(block.jobs.to_pylist()):
            job = jobs.get((row["source"], row["job_id"]))
            if job is not None and job["start_time"] is not None:
                yield job, _running(block, number, job, latest)


def _running(block: Block, number: int, job: Row, latest: datetime) -> Running:
    step = float(block.step_s[number])
    first = float(block.start_time[number].astype(np.int64)) / 1e6 - job["start_time"].timestamp()
    return Running(
        (latest - job["start_time"]).total_seconds(),
        first + step * np.arange(block.n_samples),
        step,
        {name: values[number, : len(block.units[name][number])] for name, values in block.values.items()},
        {name: units[number] for name, units in block.units.items()},
        float(job["requested_memory_b"] or "nan"),
        job["nodes"] or 0,
    )


def _hooks(rows: Sequence[Row], settings: RunningSettings, now: datetime) -> list[str]:
    """Call the hook for the findings that are due, note it in their rows, and return the failures."""
    failures = []
    after = timedelta(minutes=settings.hook_after_minutes)
    for row in due_for_hook(rows, now, after) if settings.hook else ():
        row.update(hook_at=now, hook_error=_call(settings, row))
        if row["hook_error"] is not None:
            failures.append(f"hook for job {visible(row['job_id'])}, {row['rule']}: {row['hook_error']}")
    return failures


def _call(settings: RunningSettings, row: Row) -> str | None:
    """Run the hook with the job's id; return why it failed, None if it did not."""
    if not _JOB_ID.fullmatch(row["job_id"]):
        return "the job id is not a number; nothing was called"
    places = {"{job_id}": row["job_id"], "{rule}": row["rule"]}
    command = [places.get(word, word) for word in settings.hook]
    try:
        # a list of arguments of the settings, no shell
        done = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=settings.hook_timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {settings.hook_timeout_s:g} s"
    except (OSError, ValueError) as error:
        return f"cannot run: {error}"
    return None if done.returncode == 0 else f"exit code {done.returncode}"
