"""Rows of ``measures`` and ``issues``."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import table_schema
from esjobs.issues.cost import Costed
from esjobs.issues.facts import CARRIED, Facts
from esjobs.issues.judging import Flagged
from esjobs.issues.measuring import Measurement
from esjobs.records.series.blocks import Block
from esjobs.schema.issues import ISSUES, MEASURES, SEVERITIES

_MEASURES, _ISSUES = table_schema(MEASURES), table_schema(ISSUES)
_MOMENT = pa.timestamp("us", "UTC")


def finite(values: npt.ArrayLike) -> pa.Array:
    """Return numbers as stored, with null for NaN."""
    numbers = np.asarray(values, np.float64)
    return pa.array(numbers, pa.float64(), mask=~np.isfinite(numbers))


def aligned(measurement: Measurement, n: int, n_samples: int) -> dict[str, Floats]:
    """Return a measurement as columns over all jobs of a batch, NaN if not assessed."""
    answers = measurement.answers
    assessed = np.zeros(n, np.bool_)
    good = [reason is None for reason in measurement.reasons]
    assessed[measurement.rows[np.array(good, np.bool_)]] = True
    numbers = {"value": answers.value, "share": answers.share, **answers.numbers}
    columns = {name: np.where(assessed, values, np.nan) for name, values in numbers.items()}
    columns["n_samples"] = np.where(assessed, float(n_samples), np.nan)
    return columns


def measure_rows(
    day: date,
    jobs: Mapping[str, pa.Array],
    block: Block,
    measurement: Measurement,
    eligible: Mask,
    why_not: Sequence[str | None],
) -> pa.RecordBatch:
    """Return rows of ``measures`` of one detector. ``jobs``: source, job_id, end_time of the block's jobs."""
    rows, answers = measurement.rows, measurement.answers
    evidence = _evidence(block, measurement)
    numbers = {name: values[rows] for name, values in answers.numbers.items()}
    taken = pa.array(rows)
    columns: dict[str, Any] = {
        "day": pa.array([day] * len(rows), pa.date32()),
        **{name: jobs[name].take(taken) for name in ("source", "job_id", "end_time")},
        "detector": [measurement.detector.name] * len(rows),
        "variant": [measurement.variant] * len(rows),
        "value": finite(answers.value[rows]),
        "eligible": pa.array(eligible[rows]),
        "reason": [reason or why_not[row] for reason, row in zip(measurement.reasons, rows, strict=True)],
        **evidence,
        "n_samples": [block.n_samples] * len(rows),
        "numbers": [
            [(name, float(values[row])) for name, values in numbers.items() if np.isfinite(values[row])]
            for row in range(len(rows))
        ],
        "share_frac": finite(answers.share[rows]),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_MEASURES)


def _evidence(block: Block, measurement: Measurement) -> dict[str, Any]:
    rows, answers = measurement.rows, measurement.answers
    units, scopes = [], []
    for metric, row in zip(measurement.metrics, rows, strict=True):
        names, unit = block.units[metric][row], int(answers.unit[row])
        # a job of one unnamed unit has no name to show
        units.append(names[unit] if 0 <= unit < len(names) and names[unit] else None)
        scopes.append(block.scopes[metric][row] or None)
    return {
        "metric": list(measurement.metrics),
        "scope": scopes,
        "unit": units,
        "begin": _moments(block, rows, answers.begin[rows]),
        "until": _moments(block, rows, answers.end[rows]),
    }


def _moments(block: Block, rows: Ints, samples: Ints) -> pa.Array:
    """Return the time of a sample of each job; null for -1."""
    # microseconds: steps are not whole seconds everywhere
    offset = np.maximum(samples, 0) * np.nan_to_num(block.step_s[rows])
    moments = block.start_time[rows].astype("datetime64[us]").astype(np.int64) + np.rint(offset * 1e6).astype(
        np.int64
    )
    return pa.array(moments, pa.int64(), mask=samples < 0).cast(_MOMENT)


def issue_rows(
    day: date,
    facts: Facts,
    ends: pa.Array,
    cost: Costed,
    evidence: Mapping[tuple[str, str], pa.Table] | None = None,
) -> pa.RecordBatch:
    """Return rows of ``issues`` of one rule.

    ``ends``: end of each job. ``evidence``: rows of ``measures`` by detector and variant.
    """
    flagged = cost.flagged
    rule, rows = flagged.rule, flagged.rows
    taken = pa.array(rows)
    jobs = facts.jobs.take(taken)
    seen = _seen(facts, flagged, evidence or {})
    hints = _hints(facts, flagged, seen)
    n = len(rows)
    columns: dict[str, Any] = {
        "day": pa.array([day] * n, pa.date32()),
        **{name: jobs.column(name).combine_chunks() for name in CARRIED},
        "end_time": ends.take(taken),
        "node_h": finite(facts.column("node_h")[rows]),
        "kind": [rule.kind] * n,
        "detector": [rule.name] * n,
        "area": [rule.area] * n,
        "severity": [SEVERITIES[rank] for rank in flagged.ranks],
        "value": finite(flagged.values),
        "threshold": [flagged.threshold] * n,
        **seen,
        "idle_core_h": finite(flagged.idle_core_h),
        "idle_gpu_h": finite(flagged.idle_gpu_h),
        "lost_node_h": finite(cost.lost),
        "weighted_node_h": finite(cost.weighted),
        "job_lost_node_h": finite(cost.job_lost),
        "job_idle_core_h": finite(cost.job_idle_core_h),
        "job_idle_gpu_h": finite(cost.job_idle_gpu_h),
        "n_jobs": pa.array(cost.leads.astype(np.int64)),
        "hint": hints,
        "variant": [rule.variant or None] * n,
        "severity_rank": pa.array(flagged.ranks),
        "n_issues": [1] * n,
    }
    return pa.RecordBatch.from_pydict(columns, schema=_ISSUES)


_SEEN = ("metric", "scope", "unit", "begin", "until", "share_frac")


def _seen(facts: Facts, flagged: Flagged, evidence: Mapping[tuple[str, str], pa.Table]) -> dict[str, Any]:
    """Return the evidence: of detectors from their measures, of tags the whole job."""
    rule, n = flagged.rule, len(flagged.rows)
    measured = evidence.get((rule.detector, rule.variant)) if rule.detector else None
    if measured is None:
        columns: dict[str, Any] = {name: pa.nulls(n, _ISSUES.field(name).type) for name in _SEEN}
        columns["metric"] = [rule.metric or None] * n
        # a tag is about the job from its beginning to its end
        columns["share_frac"] = [1.0] * n
        return columns
    row_of_job = np.full(facts.n, -1, np.int64)
    row_of_job[facts.rows_of(measured)] = np.arange(measured.num_rows)
    rows = measured.take(pa.array(row_of_job[flagged.rows]))
    return {name: rows.column(name).combine_chunks() for name in _SEEN}


# names of units in hints, by scope
_PLURALS: Mapping[str | None, str] = {
    "thread": "hardware threads",
    "core": "cores",
    "accelerator": "GPUs",
    "socket": "sockets",
    "node": "nodes",
}


def _hints(facts: Facts, flagged: Flagged, shown: Mapping[str, Any]) -> list[str]:
    rule, rows = flagged.rule, flagged.rows
    evidence = {name: pa.array(shown[name]).to_pylist() for name in ("metric", "unit", "begin", "until")}
    own: dict[str, Sequence[Any]] = {
        **{name: column[rows].tolist() for name, column in flagged.numbers.items()},
        **evidence,
        "value": flagged.values.tolist(),
        "idle_core_h": flagged.idle_core_h.tolist(),
        "idle_gpu_h": flagged.idle_gpu_h.tolist(),
        "share": pa.array(shown["share_frac"]).to_pylist(),
        "scope": [_PLURALS.get(scope, "units") for scope in pa.array(shown["scope"]).to_pylist()],
    }
    # the few that a hint names, not all columns
    for name in rule.hint.names - set(own):
        own[name] = _fact(facts, flagged, name)
    return rule.hint.filled_rows(own, len(rows))


def _fact(facts: Facts, flagged: Flagged, name: str) -> Sequence[Any]:
    limits = {"threshold": flagged.threshold, **flagged.rule.limits}
    if name in limits:
        return [limits[name]] * len(flagged.rows)
    if name in ("job_id", "source"):
        values: list[Any] = facts.jobs.column(name).take(pa.array(flagged.rows)).to_pylist()
    else:
        values = facts.column(name)[flagged.rows].tolist()
    return values
