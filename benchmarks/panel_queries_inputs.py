"""Years of results and a month of jobs for the benchmark of panels, written as steps write them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import esjobs
from dashboards.pages import HEADLINE
from esjobs import Settings
from esjobs.core.arrow import PUT_SCHEMA, table_schema
from esjobs.core.tables import Table
from esjobs.core.words import ALL_TYPES
from esjobs.schema.catalogue import table
from esjobs.schema.speed import SPEED
from esjobs.settings import ClusterSettings
from esjobs.store.base import Change, JobStore, PointLatest

FIRST = datetime(2025, 10, 1, tzinfo=UTC)
MODELS = [f"CPU model {number}" for number in range(40)]
STANDINGS = ("ok", "ok", "ok", "ok", "undecided", "undeclared", "confirmed", "candidate")
TOGETHER = 25
"""Nights whose rows are written together; the last one is alone, for it is the latest run."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much there is."""

    sites: int = 300
    types: int = 5
    nights: int = 400
    jobs: int = 100_000


def fill(url: str, prefix: str, sizes: Sizes) -> None:
    """Write everything into a store at an address."""
    settings = Settings(store=url, cluster=ClusterSettings(prefix=prefix))
    with esjobs.open(settings=settings) as session:
        store = session.store
        store.set_up()
        store.put_jobs(_jobs(sizes), "load")
        last = sizes.nights - 1
        for first in [*range(0, last, TOGETHER), last]:
            nights = range(first, min(first + TOGETHER, last)) if first < last else range(last, last + 1)
            store.publish(list(_written(store, sizes, nights)))
        store.publish([PointLatest(each, _run(last)) for each in SPEED.tables])
        for name, rows in _others(sizes):
            asked = table(name)
            schema = table_schema(asked)
            store.publish(
                [
                    store.replace(asked, partition, [pa.RecordBatch.from_pylist(made, schema=schema)])
                    for partition, made in rows.items()
                ]
            )


def _written(store: JobStore, sizes: Sizes, nights: range) -> Iterator[Change]:
    """Some nights, those of a table as one partition, which is named by the first of them."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    for night in nights:
        for each in _of_night(sizes, night):
            batches.setdefault(each.table.name, []).append(each.batch(_run(night)))
    for name, made in batches.items():
        yield store.replace(table(name), _run(nights[0]), made)


def _run(night: int) -> str:
    return f"run{night:04}"


@dataclass(frozen=True)
class _Rows:
    """Rows of a table of a night by column; what is not named is null."""

    table: Table
    count: int
    values: Values

    def batch(self, run: str) -> pa.RecordBatch:
        schema = table_schema(self.table)
        columns = []
        for item in schema:
            if item.name == "run":
                columns.append(pa.array([run] * self.count, item.type))
            elif item.name in self.values:
                columns.append(_column(self.values[item.name], self.count, item.type))
            else:
                columns.append(pa.nulls(self.count, item.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    if isinstance(value, np.ndarray | list):
        return pa.array(value, kind)
    return pa.array([value] * count, kind)


def _of_night(sizes: Sizes, night: int) -> Iterator[_Rows]:
    dice = np.random.default_rng(night)
    end = FIRST + timedelta(days=night + 1)
    always = {
        "method": HEADLINE,
        "window_start": end - timedelta(days=30),
        "window_end": end,
        "window_days": 30,
        "scope": "all",
        "program_version": "1",
    }
    kinds = [ALL_TYPES, *(f"type{number}" for number in range(sizes.types))]
    for level, names in (("queue", _queues(sizes)), ("cpu_model", MODELS)):
        yield from _of_level(dice, always, kinds, level, names)
    count = len(kinds)
    of_fits = {"level": "queue", "processing_type": kinds, "status": "ok", "n_jobs": 1000, **always}
    yield _Rows(table("fits"), count, {**of_fits, "n_names": sizes.sites, "jobs_share": 0.9, "dof": 100})
    yield _Rows(table("lines"), count, {**of_fits, "benchmark": "HS06", "slope": 0.09, "component": 0})
    said = {**of_fits, "sentence": "6 of 300 comparable queues deviate.", "evidence": "They are stable."}
    yield _Rows(table("fit_summaries"), count, {name: said[name] for name in said if name != "status"})


def _of_level(
    dice: np.random.Generator, always: Values, kinds: list[str], level: str, names: list[str]
) -> Iterator[_Rows]:
    count = len(names) * len(kinds)
    k = dice.normal(1.0, 0.15, count)
    standing = dice.choice(STANDINGS, count)
    named = {
        **always,
        "level": level,
        "name": names * len(kinds),
        "processing_type": [kind for kind in kinds for _ in names],
        "site": [f"SITE-{number // 2}" for number in range(len(names))] * len(kinds),
        "k": k,
        "k_err": np.full(count, 0.02),
        "component": 0,
        "n_jobs": dice.integers(100, 10_000, count),
        "n_tasks": dice.integers(2, 60, count),
    }
    yield _Rows(
        table("factors"),
        count,
        {
            **named,
            "status": "ok",
            "efficiency": dice.uniform(0.6, 0.95, count),
            "method_shift": dice.normal(0, 0.01, count),
            "method_sigmas": dice.normal(0, 1, count),
            "mix_k": k + dice.normal(0, 0.02, count),
            "mix_k_err": np.full(count, 0.01),
            "mix_share": 0.95,
        },
    )
    yield _Rows(
        table("flags"),
        count,
        {
            **named,
            "corepower": dice.uniform(8, 20, count),
            "benchmark": "HS06",
            "origin": "own",
            "deviation": dice.normal(0, 0.15, count),
            "deviation_err": np.full(count, 0.03),
            "verdict": [{"confirmed": "deviates", "candidate": "deviates"}.get(w, w) for w in standing],
            "status_shown": standing.tolist(),
            "confirmed": (standing == "confirmed").tolist(),
            "proposed_corepower": dice.uniform(8, 20, count),
            "estimate": dice.uniform(8, 20, count),
            "estimate_low": dice.uniform(7, 8, count),
            "estimate_high": dice.uniform(20, 21, count),
            "country": [f"Country {number % 40}" for number in range(len(names))] * len(kinds),
            "sentence": "These jobs ran like 12.2 (11.9 to 12.5, 90 %) HS06 per core; 11.0 is declared.",
        },
    )


def _queues(sizes: Sizes) -> list[str]:
    return [f"QUEUE-{number:03}" for number in range(sizes.sites)]


def _others(sizes: Sizes) -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """Rows of the tables that are no history of verdicts, by partition."""
    dice = np.random.default_rng(5)
    last = _run(sizes.nights - 1)
    end = FIRST + timedelta(days=sizes.nights)
    always = {
        "method": HEADLINE,
        "level": "queue",
        "window_start": end - timedelta(days=30),
        "window_end": end,
        "window_days": 30,
        "scope": "all",
    }
    residual = {
        "core_class": "single",
        "task_type": "type0",
        "status": "used",
        "deviation": 0.01,
        "pull": 0.1,
    }
    yield (
        "residuals",
        {
            last: [
                {
                    **always,
                    **residual,
                    "run": last,
                    "name": name,
                    "task_id": f"task{task}",
                    "n_jobs": 20 + task,
                }
                for name in _queues(sizes)
                for task in range(25)
            ]
        },
    )
    yield (
        "cpu_mix",
        {
            last: [
                {
                    **{key: value for key, value in always.items() if key != "method"},
                    "run": last,
                    "name": name,
                    "cpu_model": MODELS[number],
                    "core_s": 3.6e6 * float(dice.uniform(1, 9)),
                    "n_jobs": 50,
                }
                for name in _queues(sizes)
                for number in dice.choice(len(MODELS), 4, replace=False)
            ]
        },
    )
    ends = [(number / 2 - 5, number / 2 - 4.5) for number in range(20)]
    of_all = {**always, "run": last, "processing_type": ALL_TYPES}
    pulls = [{**of_all, "low": low, "high": high} for low, high in ends]
    yield "pulls", {last: [{**row, "n_buckets": 30} for row in pulls]}
    yield (
        "components",
        {last: [{**always, "run": last, "processing_type": ALL_TYPES, "component": n} for n in range(3)]},
    )
    days = [(FIRST + timedelta(days=night)).date() for night in range(sizes.nights)]
    outcomes = [("binned", "binned"), *((f"reason {n}", "dropped") for n in range(7))]
    books: dict[str, list[dict[str, Any]]] = {}
    for day in days:
        books.setdefault(str(day.replace(day=1)), []).extend(
            {"day": day, "outcome": outcome, "kind": kind, "n_jobs": 900 if kind == "binned" else 9}
            for outcome, kind in outcomes
        )
    yield "days", books
    yield "buckets", {str(days[-1]): [row for day in days[-30:] for row in _buckets(sizes, day, dice)]}
    yield from _account(sizes)


def _buckets(sizes: Sizes, day: date, dice: np.random.Generator) -> Iterator[dict[str, Any]]:
    for name in _queues(sizes):
        for task in range(10):
            core_s = float(dice.uniform(1e4, 1e6))
            yield {
                "day": day,
                "task_id": f"task{task}",
                "core_class": "single",
                "queue": name,
                "cpu_model": MODELS[task],
                "processing_type": f"type{task % sizes.types}",
                "n_jobs": 10,
                "cpu_s": 0.8 * core_s,
                "core_s": core_s,
            }


def _account(sizes: Sizes) -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    steps = ("aggregate", "fit", "correlate", "flag")
    entries: list[dict[str, Any]] = []
    counts: list[dict[str, Any]] = []
    for night in range(sizes.nights):
        end = FIRST + timedelta(days=night + 1)
        for step in steps:
            name = f"{_run(night)}-{step}"
            row = {"run_step": name, "run": _run(night), "step": step, "window_end": end, "scope": "all"}
            entries.append({**row, "rows_out": 1800})
            counts.append({**row, "kind": "dropped", "place": 1, "name": "not finished", "n": 9})
    yield "runs", {"all": entries}
    yield "run_counts", {"all": counts}
    end = FIRST + timedelta(days=sizes.nights)
    last = {"kind": "speed", "run": _run(sizes.nights - 1), "window_end": end, "data_end": end}
    yield "latest_runs", {"speed": [{**last, "window_days": 30, "scope": "all", "shown": True}]}


def _jobs(sizes: Sizes) -> Iterator[pa.RecordBatch]:
    """Jobs of the last thirty days."""
    dice = np.random.default_rng(9)
    count = sizes.jobs
    end = FIRST + timedelta(days=sizes.nights)
    offsets = np.sort(dice.uniform(0, 30 * 86_400, count))
    cores = dice.choice([1, 4, 8], count)
    wall = dice.uniform(600, 40_000, count)
    made: dict[str, Callable[[], Any]] = {
        "source": lambda: ["panda"] * count,
        "job_id": lambda: [str(number) for number in range(count)],
        "task_id": lambda: [f"task{number % 200}" for number in range(count)],
        "queue": lambda: [f"QUEUE-{number:03}" for number in dice.integers(0, sizes.sites, count)],
        "cpu_raw": lambda: [MODELS[number % len(MODELS)] for number in range(count)],
        "processing_type": lambda: [f"type{number % sizes.types}" for number in range(count)],
        "state": lambda: dice.choice(["finished"] * 17 + ["failed", "failed", "cancelled"], count).tolist(),
        "user": lambda: [f"user{number}" for number in dice.integers(0, 500, count)],
        "project": lambda: [f"project{number}" for number in dice.integers(0, 60, count)],
        "end_time": lambda: [end - timedelta(seconds=float(offset)) for offset in offsets],
        "cores": lambda: cores,
        "events": lambda: dice.integers(100, 9_000, count),
        "cpu_s": lambda: wall * cores * dice.uniform(0.4, 0.95, count),
        "wall_s": lambda: wall,
        "queue_s": lambda: dice.exponential(5_000, count),
    }
    columns = [
        pa.array(made[item.name](), item.type) if item.name in made else pa.nulls(count, item.type)
        for item in PUT_SCHEMA
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=PUT_SCHEMA)
    for start in range(0, count, 10_000):
        yield batch.slice(start, 10_000)
