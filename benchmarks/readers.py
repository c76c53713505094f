"""Reading PanDA CSV beside what libraries offer: DuckDB's reader with its reject tables, and pyarrow's.

    python -m benchmarks.readers --rows 200000 --out benchmarks/results/readers.md

``esjobs``   the format ``panda``: typed, checked, converted batches, refused rows with line and reason
``duckdb``   ``read_csv`` with types and ``store_rejects``, the columns of the format only, as Arrow batches
``pyarrow``  ``pyarrow.csv``; a cell of another type ends it, so every column is read as text or bytes

What each one says of the same dirty rows stands beside its time: a reader that is quicker and counts other
rows, or cannot say which they were, replaces nothing.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.child import Run, run
from benchmarks.machine import describe
from benchmarks.store_table import table

WAYS = ("esjobs", "duckdb", "pyarrow")
Measured = dict[str, list[tuple[Run, dict[str, Any]]]]


def by_esjobs(path: Path) -> dict[str, Any]:
    """Every row accepted or refused, counted by reason."""
    from esjobs.records.ingest.formats.sources import source

    accepted, refused = 0, Counter[str]()
    for parsed in source("panda").parse(path, {}):
        accepted += parsed.batch.num_rows
        for reject in parsed.rejects:
            refused[reject.reason] += reject.n_rows
    return {"accepted": accepted, "refused": dict(refused), "lines": True}


def by_duckdb(path: Path) -> dict[str, Any]:
    """What the reader takes for rows, and what its table of rejects holds."""
    import duckdb

    types = {name: kind for name, kind in _types().items() if name in _header(path)}
    connection = duckdb.connect(config={"preserve_insertion_order": True})
    columns = ", ".join(f'"{name}"' for name in types)
    listed = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    sql = (
        f"SELECT {columns} FROM read_csv('{path}', header=true, delim=',', quote='\"', escape='\"', "
        f"types={{{listed}}}, store_rejects=true, rejects_limit=0, nullstr=['', 'NULL'])"
    )
    accepted = sum(batch.num_rows for batch in connection.sql(sql).to_arrow_reader(65_536))
    counts = "SELECT error_type, count(DISTINCT line) FROM reject_errors GROUP BY 1"
    rejects = connection.execute(counts).fetchall()
    return {"accepted": accepted, "refused": dict(rejects), "lines": True}


def by_pyarrow(path: Path) -> dict[str, Any]:
    """What the reader takes for rows; only rows with too few or too many cells are handed back."""
    import pyarrow as pa
    import pyarrow.csv

    refused = Counter[str]()

    def handle(row: Any) -> str:
        # the number of the line is known to a reader with one thread only
        refused["wrong number of columns"] += row.actual_columns != row.expected_columns
        return "skip"

    kinds = {"DOUBLE": pa.string(), "BIGINT": pa.string(), "TIMESTAMP": pa.string(), "VARCHAR": pa.binary()}
    types = {name: kinds[kind] for name, kind in _types().items()}
    options = pyarrow.csv.ConvertOptions(
        column_types=types,
        include_columns=[name for name in _header(path) if name in types],
        check_utf8=False,
    )
    reader = pyarrow.csv.open_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=handle, newlines_in_values=True),
        convert_options=options,
    )
    accepted = sum(batch.num_rows for batch in reader)
    return {"accepted": accepted, "refused": dict(refused), "lines": False}


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as stream:
        return stream.readline().rstrip("\r\n").split(",")


def _types() -> dict[str, str]:
    """The columns that the format reads, as the file calls them, with the types of DuckDB."""
    from benchmarks.store_inputs import _PANDA
    from esjobs.core.fields import JOB_FIELDS

    kinds = {"keyword": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "time": "TIMESTAMP"}
    by_name = {item.name: kinds[item.type] for item in JOB_FIELDS}
    return {name: by_name[target] for name, target, _ in _PANDA if target is not None}


def measure(path: Path, repeat: int) -> Measured:
    """Each way in turns, a process each."""
    done: Measured = {way: [] for way in WAYS}
    for _ in range(repeat):
        for way in WAYS:
            ran = run([sys.executable, "-m", "benchmarks.readers", "--way", way, "--file", str(path)])
            done[way].append((ran, json.loads(ran.stdout)))
    return done


def render(rows: int, size: int, done: Measured) -> str:
    """The page in Markdown."""
    machine = describe()
    versions = ", ".join(f"{name} {machine[name]}" for name in ("esjobs", "python", "duckdb", "pyarrow"))
    parts = [
        "# Reading PanDA CSV",
        f"`python -m benchmarks.readers --rows {rows}`; {versions}; {machine['cpu']}, "
        f"{machine['cores']} cores. "
        f"{rows:,} rows, {size / 1e6:,.0f} MB, one in a thousand dirty. Medians of {len(done[WAYS[0]])} "
        "repetitions in turns, one process each, start of Python included; `others`: processors that other "
        "programs kept busy. Where these are many, processor seconds are what to look at.",
        table(
            ("reader", "seconds", "processor s", "peak memory", "rows", "refused", "which lines", "others"),
            [_row(way, runs) for way, runs in done.items()],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _row(way: str, runs: Sequence[tuple[Run, dict[str, Any]]]) -> tuple[str, ...]:
    said = runs[0][1]
    refused = ", ".join(f"{reason} {count}" for reason, count in sorted(said["refused"].items())) or "none"
    return (
        way,
        f"{median(ran.wall_s for ran, _ in runs):.2f}",
        f"{median(ran.cpu_s for ran, _ in runs):.2f}",
        f"{max(ran.peak_b for ran, _ in runs) / 1e6:,.0f} MB",
        f"{said['accepted']:,}",
        refused,
        "yes" if said["lines"] else "no",
        f"{median(ran.others for ran, _ in runs):.1f}",
    )


def main() -> None:
    """Measure and write the table, or run one way once."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/readers.md"))
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--file", type=Path)
    args = parser.parse_args()
    if args.way is not None:
        ways = {"esjobs": by_esjobs, "duckdb": by_duckdb, "pyarrow": by_pyarrow}
        print(json.dumps(ways[args.way](args.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        made = ["--jobs", str(args.rows), "--panda-rows", str(args.rows), "--seed", "1"]
        run([sys.executable, "-m", "benchmarks.store_inputs", folder, *made])
        path = Path(folder) / "panda.csv"
        text = render(args.rows, path.stat().st_size, measure(path, args.repeat))
    args.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
