"""Ten million jobs to buckets in four ways, one process each: through the store and by hand-written SQL.

``store``       the bucket query through the store, its answer as an Arrow table, books included
``sql``         the same buckets by the SQL that one writes by hand, fetched as an Arrow table; no books
``step``        the whole step: what is stale, books, CPU models, writing, publishing, closing the file
``sql-table``   the same SQL into a table of the same file, the CPU models given, closing the file

All have the file, the memory limit and the number of threads in common. Opening the file is not timed.
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet

import esjobs
from esjobs import Settings
from esjobs.core.query import Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.records.names.cpu_models import resolve_names

WAYS = ("store", "sql", "step", "sql-table")

BUCKETS = """
SELECT
    end_time::DATE AS day,
    task_id,
    CASE WHEN cores > 1 THEN 'multi' ELSE 'single' END AS core_class,
    queue,
    {cpu},
    processing_type,
    count(*) AS n_jobs,
    sum(events)::DOUBLE AS events,
    sum(events::DOUBLE * events) AS events_sq,
    sum(cpu_s) AS cpu_s,
    sum(cpu_s * cpu_s) AS cpu_s_sq,
    sum(events * cpu_s) AS events_cpu_s,
    sum(wall_s) AS wall_s,
    sum(wall_s * cores) AS core_s,
    sum(cpu_s / events) AS cpe_sum,
    sum((cpu_s / events) * (cpu_s / events)) AS cpe_sq
FROM jobs {models}
WHERE end_time >= $first AND end_time < $after
  AND (state = 'finished' OR state IS NULL)
  AND events >= 1
  AND cores >= 1
  AND wall_s > 60 AND wall_s < 30 * 86400
  AND cpu_s > 0 AND cpu_s < 2 * wall_s * cores
  AND (processing_type IS NULL OR NOT (
        lower(processing_type) IN ('merge', 'pmerge')
        OR lower(processing_type) LIKE 'panda%'
        OR lower(processing_type) LIKE 'ganga%'
        OR lower(processing_type) LIKE 'hammercloud%'
        OR lower(processing_type) LIKE 'gangarobot%'))
  AND task_id IS NOT NULL
GROUP BY ALL
"""


@dataclass(frozen=True)
class Timing:
    """One way, once: seconds, processor seconds of all threads, buckets made."""

    wall_s: float
    cpu_s: float
    buckets: int


class _Clock:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self, buckets: int) -> Timing:
        return Timing(time.perf_counter() - self._wall, time.process_time() - self._cpu, buckets)


def through_store(path: Path, window: Window, settings: Settings, keep: Path | None) -> Timing:
    """The bucket query of the aggregate step, answered by the store."""
    query = Query(BUCKET_KEYS, BUCKET_METRICS, window, drops=CleaningRules().drops())
    with esjobs.open(f"duckdb:{path}", settings=settings) as session:
        clock = _Clock()
        answer = session.store.aggregate(query)
        timing = clock.stop(answer.table.num_rows)
    _keep(answer.table, keep)
    return timing


def by_hand(path: Path, window: Window, settings: Settings, keep: Path | None) -> Timing:
    """The hand-written query on the same file."""
    with _connect(path, settings) as connection:
        clock = _Clock()
        sql = BUCKETS.format(cpu="cpu_raw", models="")
        table = connection.sql(sql, params=_bounds(window)).to_arrow_table()
        timing = clock.stop(table.num_rows)
    _keep(table, keep)
    return timing


def whole_step(path: Path, window: Window, settings: Settings) -> Timing:
    """The aggregate step of a session that takes every day as stale; ends when the file is closed."""
    with esjobs.open(f"duckdb:{path}", settings=settings) as session:
        clock = _Clock()
        report = session.speed.aggregate(window, rebuild=True)
    return clock.stop(report.counts["new buckets"])


def table_by_hand(path: Path, window: Window, settings: Settings) -> Timing:
    """The hand-written query into a table, joined with the CPU model of each raw string."""
    with _connect(path, settings) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS by_hand")
        raws = [raw for (raw,) in connection.execute("SELECT DISTINCT cpu_raw FROM jobs").fetchall()]
        models = pa.table({"cpu_raw": pa.array(raws, pa.string()), "cpu_model": resolve_names(raws)})
        connection.register("models", models)
        sql = BUCKETS.format(cpu="cpu_model", models="LEFT JOIN models USING (cpu_raw)")
        clock = _Clock()
        connection.execute(f"CREATE OR REPLACE TABLE by_hand.buckets AS {sql}", _bounds(window))
        ((buckets,),) = connection.execute("SELECT count(*) FROM by_hand.buckets").fetchall()
    return clock.stop(buckets)


def differences(first: str, second: str, cpu: str, connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """How two sets of buckets differ: rows without a counterpart, unequal counts, the largest relative error.

    ``first``, ``second``: what stands after FROM. ``cpu``: the name of the CPU key.
    """
    keys = (cpu if key == "cpu_raw" else key for key in BUCKET_KEYS)
    same = " AND ".join(f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in keys)
    errors = ", ".join(
        f"abs(a.{name} - b.{name}) / greatest(abs(a.{name}), abs(b.{name}), 1e-300)"
        for name in (metric.name for metric in BUCKET_METRICS[1:])
    )
    row = connection.execute(
        f"""
        SELECT count(*), count(*) FILTER (a.n_jobs IS NULL OR b.n_jobs IS NULL),
            count(*) FILTER (a.n_jobs <> b.n_jobs), coalesce(sum(a.n_jobs), 0), max(greatest({errors}))
        FROM {first} a FULL JOIN {second} b ON {same}
        """
    ).fetchall()[0]
    names = ("buckets", "unmatched", "unequal_counts", "jobs_binned", "largest_relative_difference")
    return dict(zip(names, row, strict=True))


def compare(path: Path, kept: Path, settings: Settings) -> dict[str, dict[str, float]]:
    """Compare what the ways in memory kept as Parquet, and what the others left in the file."""
    with _connect(path, settings) as connection:
        return {
            "sql": differences(f"'{kept}/store.parquet'", f"'{kept}/sql.parquet'", "cpu_raw", connection),
            "sql-table": differences("main.buckets", "by_hand.buckets", "cpu_model", connection),
        }


def _connect(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": settings.memory,
        "preserve_insertion_order": False,
        "temp_directory": f"{path}.by_hand",
    }
    return duckdb.connect(os.fspath(path), config=config)


def _bounds(window: Window) -> dict[str, object]:
    return {"first": window.start.replace(tzinfo=None), "after": window.end.replace(tzinfo=None)}


def _keep(table: pa.Table, target: Path | None) -> None:
    if target is not None:
        pyarrow.parquet.write_table(table, target)


def main() -> None:
    """Run one way once, or compare the answers, and say the result as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("way", choices=[*WAYS, "compare"])
    parser.add_argument("store", type=Path)
    parser.add_argument("--window", type=Window.parse, required=True)
    parser.add_argument("--keep", type=Path, help="folder for the answers of the ways in memory")
    args = parser.parse_args()
    settings, window = Settings(), args.window
    kept = args.keep and args.keep / f"{args.way}.parquet"
    match args.way:
        case "store":
            result = asdict(through_store(args.store, window, settings, kept))
        case "sql":
            result = asdict(by_hand(args.store, window, settings, kept))
        case "step":
            result = asdict(whole_step(args.store, window, settings))
        case "sql-table":
            result = asdict(table_by_hand(args.store, window, settings))
        case _:
            result = compare(args.store, args.keep, settings)
    print(json.dumps(result, default=float))


if __name__ == "__main__":
    main()
