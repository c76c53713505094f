"""Fits from a table in a file, without a store: speed factors, and the line through the origin."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

import fitters
from esjobs.core.errors import InputError, UsageError
from esjobs.store.files.destination import writing_text

_RESULT = (
    ("name", pa.string()),
    ("k", pa.float64()),
    ("k_err", pa.float64()),
    ("k_err_sandwich", pa.float64()),
    ("component", pa.int64()),
    ("n_tasks", pa.int64()),
    ("n_buckets", pa.int64()),
    ("status", pa.string()),
    ("reason", pa.string()),
)
_LINE = (
    ("name", pa.string()),
    ("expected_k", pa.float64()),
    ("deviation", pa.float64()),
    ("deviation_err", pa.float64()),
    ("verdict", pa.string()),
    ("significant", pa.bool_()),
    ("proposed_corepower", pa.float64()),
    ("proposed_corepower_err", pa.float64()),
    ("p_off", pa.float64()),
)


# The gauge of a fit, which its errors depend on: in that of one fixed unit they would be larger
SCALE = "the factors of a component sum to their number; k_err is the error of k in that scale"


@dataclass(frozen=True)
class Columns:
    """Column names of the file; ``value``, or ``cpu`` and ``events``."""

    task: str
    unit: str
    value: str | None = None
    cpu: str | None = None
    events: str | None = None
    jobs: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.cpu is None or self.events is None):
            raise UsageError("specify either --value, or both --cpu and --events")


def read_columns(path: Path, labels: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Read the named columns of a CSV (plain or gzip) or Parquet file; ``numbers`` must hold numbers.

    Raises :class:`InputError` naming the file, the column and what the file has.
    """
    rows = _read(path, list(dict.fromkeys([*labels, *numbers])))
    for name in numbers:
        column = rows.column(name)
        if pa.types.is_null(column.type):
            rows = rows.set_column(rows.schema.get_field_index(name), name, column.cast(pa.float64()))
        elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            row = _first_text(column)
            raise InputError(
                f"{path}, column '{name}', row {row + 1}: '{column[row]}' is not a number; every row needs "
                "one"
            )
    return rows


def _first_text(column: pa.ChunkedArray) -> int:
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return row
    return 0


def _read(path: Path, wanted: list[str]) -> pa.Table:
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic == b"PAR1":
            have = parquet.read_schema(path).names
            _require(path, wanted, have)
            return parquet.read_table(path, columns=wanted)
        rows = csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; use an existing file") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} has a column name that is not UTF-8; write the file again in UTF-8"
        ) from error
    except pa.ArrowInvalid as error:
        first = str(error).splitlines()[0]
        raise InputError(f"{path} is not a readable CSV or Parquet file: {first}") from error
    _require(path, wanted, rows.column_names)
    return rows.select(wanted)


def _require(path: Path, wanted: Sequence[str], have: Sequence[str]) -> None:
    for name in wanted:
        if name not in have:
            raise InputError(f"{path} has no column '{name}'; its columns are {', '.join(have)}")


def fit_file(
    path: Path, columns: Columns, options: Mapping[str, Any]
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Fit the speed factors of a table, separately for each value of the group column.

    ``options``: keyword arguments of :func:`fitters.fit_speed_factors`; the minimum of ``paper`` is Minuit's.
    Returns the rows and one summary per group.
    """
    labels = [columns.task, columns.unit, columns.group]
    numbers = [columns.value, columns.cpu, columns.events, columns.jobs]
    table = read_columns(path, list(filter(None, labels)), list(filter(None, numbers)))
    if not table.num_rows:
        raise InputError(f"{path} has no rows; at least one is required")
    tables, summaries = [], []
    for group, part in _groups(table, columns.group):
        try:
            result = _fit(part, columns, options)
        except fitters.FitError as error:
            where = "".join(f", {name} {value}" for name, value in group.items())
            raise InputError(f"{path}{where}: {error}") from error
        units = result.units.columns()
        rows = pa.table({name: _column(units[name], kind) for name, kind in _RESULT})
        for name, value in group.items():
            label = pa.repeat(pa.scalar(value, part.column(name).type), rows.num_rows)
            rows = rows.add_column(0, name, label)
        tables.append(rows)
        summaries.append({**group, **_summary(result)})
    return pa.concat_tables(tables), summaries


def _groups(table: pa.Table, group: str | None) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Yield the value of the group column, by its name, and the rows that have it; null comes last."""
    if group is None:
        yield {}, table
        return
    column = table.column(group)
    for value in sorted(pc.unique(column).to_pylist(), key=lambda value: (value is None, value)):
        chosen = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
        yield {group: value}, table.filter(pc.fill_null(chosen, False))


def _fit(table: pa.Table, columns: Columns, options: Mapping[str, Any]) -> fitters.FitResult:
    def column(name: str | None) -> pa.ChunkedArray | None:
        return None if name is None else table.column(name)

    buckets = fitters.Buckets.from_columns(
        column(columns.task),
        column(columns.unit),
        column(columns.value),
        cpu_s=column(columns.cpu),
        events=column(columns.events),
        jobs=column(columns.jobs),
    )
    search: Literal["minuit", "own"] = "minuit" if options["objective"] == "paper" else "own"
    return fitters.fit_speed_factors(buckets, **options, search=search)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([None if value == "" else str(value) for value in values], kind)
    return pa.array(np.asarray(values), kind, from_pandas=True)


def _summary(result: fitters.FitResult) -> dict[str, Any]:
    components = []
    for row in result.components.rows():
        minuit = row.pop("minuit")
        components.append({**_plain(row), "minuit": None if minuit is None else _plain(minuit.summary)})
    return {
        "rows_in": result.n_rows,
        "rows_used": result.n_used,
        "dropped": dict(result.dropped),
        "scale": SCALE,
        "f": _plain(sum(row["f"] for row in components if row["f"] is not None)),
        "S": _plain(result.S),
        "dof": result.dof,
        "sigma_int": _plain(asdict(result.sigma_int)),
        "components": components,
        "settings": _plain(asdict(result.settings)),
        "seconds": dict(result.timings),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def write_summary(summaries: list[dict[str, Any]], path: Path, *, grouped: bool) -> None:
    """Write the summary as JSON: one object, or an array of them when the file was fitted in groups."""
    text = json.dumps(summaries if grouped else summaries[0], indent=1, allow_nan=False, default=str)
    with writing_text(path) as stream:
        stream.write(text + "\n")


def line_file(
    path: Path, *, name: str, k: str, k_err: str, corepower: str, corepower_err: str | None = None
) -> pa.Table:
    """Compare factors of one component with declared values by a line through the origin, per name."""
    numbers = [k, k_err, corepower, *([corepower_err] if corepower_err else [])]
    table = read_columns(path, [name], numbers)
    if not table.num_rows:
        raise InputError(f"{path} has no rows; at least one is required")
    try:
        line = fitters.fit_line(
            table.column(k),
            table.column(k_err),
            table.column(corepower),
            table.column(corepower_err) if corepower_err else None,
            name=table.column(name).to_pylist(),
        )
    except fitters.FitError as error:
        raise InputError(f"{path}: {error}") from error
    points = line.points.columns()
    points["proposed_corepower"] = points["proposed_c"]
    points["proposed_corepower_err"] = points["proposed_c_err"]
    return pa.table({column: _column(points[column], kind) for column, kind in _LINE})
