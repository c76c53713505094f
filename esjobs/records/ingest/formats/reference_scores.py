"""Formats of reference tables: a small file, its rows checked, and the range of scores of each model.

A row that cannot be used is rejected and counted. Rows of one CPU model are never averaged: machines differ
in threads, clock, memory and settings, and nobody knows which of them a job ran on.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from esjobs.core.arrow import given_schema
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats.entered_tables import (
    OUT_OF_RANGE,
    EnteredRow,
    EnteredTables,
    amount,
    require_columns,
    table_rows,
)
from esjobs.records.names.cpu_models import resolve
from esjobs.schema.references import REFERENCES, SAME_SCORE

NO_VALUE = "no score"
NO_MODEL = "no CPU model"

LARGEST_PER_CORE = 100.0
"""No core delivers more HS06 or HS23 than this; HEPiX's best are at 40."""
# Columns that can tell two rows of a CPU model apart, and what people call them.
_DIFFERING = {
    "smt": "smt",
    "cores": "cores",
    "clock_mhz": "clock",
    "board": "board",
    "remark": "settings",
    "measured_by": "site",
}


Line = tuple[int, str, Callable[[], Mapping[str, Any]]]
"""Row of a file: its number, its text for the list of refused rows, and what types it.

The last raises :class:`RowError`.
"""


def reference_scores(name: str, lines: Callable[[str, Path], Iterator[Line]]) -> EnteredTables:
    """Return a source of reference tables.

    ``lines``: the rows of a text, :class:`InputError` for another format. Rows have ``cpu_raw`` and ``value``
    at least; model, score per core and range follow.
    """

    def rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[EnteredRow]:
        for number, line, typed in lines(text, path):
            yield EnteredRow(number, REFERENCES, line, partial(_completed, typed, path))

    return EnteredTables(name, "reference scores", (REFERENCES,), rows, notes=_notes, finished=_with_ranges)


def _notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ambiguous = len({row["cpu_model"] for row in rows if row["ambiguous"]})
    models = len({row["cpu_model"] for row in rows})
    yield f"{models} CPU models; {ambiguous} of them have several scores or a name completed by esjobs"


def _completed(typed: Callable[[], Mapping[str, Any]], path: Path) -> dict[str, Any]:
    columns = typed()
    raw = columns["cpu_raw"]
    model = resolve(raw)
    if model is None:
        raise RowError(NO_MODEL, "cpu_raw", f"'{raw[:60]}' does not name a CPU model")
    row: dict[str, Any] = {name: columns.get(name) for name in given_schema(REFERENCES).names}
    # a factor is per core already
    relative = row["benchmark"] == "factor"
    cores = row["cores"]
    if cores is None and not relative:
        raise RowError(NO_VALUE, "cores", "no number of cores to divide the score by")
    per_core = row["value"] if relative else row["value"] / cores
    # NaN is in no range
    if not 0 < per_core < LARGEST_PER_CORE:
        raise RowError(
            OUT_OF_RANGE,
            "value",
            f"{row['value']:g} on {cores or 1} cores; expected more than 0 and less than "
            f"{LARGEST_PER_CORE:g} per core",
        )
    row |= {
        "cpu_model": model.name,
        "value_per_core": per_core,
        # a name by a hypervisor stands for many models
        "ambiguous": model.virtual,
        "source": row["source"] or path.name,
        "watts_per_core": row["power_w"] / cores if row["power_w"] and cores else None,
    }
    return row


def _with_ranges(rows: Sequence[dict[str, Any]]) -> None:
    groups: dict[tuple[str, str, str | None], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        # fits of unlike scale are unlike benchmarks
        scale = row["source"] if row["benchmark"] == "factor" else None
        groups[row["benchmark"], row["cpu_model"], scale].append(row)
    for group in groups.values():
        low, high, differ = _range_of(group)
        apart = high > low * (1 + SAME_SCORE)
        for row in group:
            row |= {
                "value_per_core_low": low,
                "value_per_core_high": high,
                "ambiguous": bool(apart or row["ambiguous"]),
                "differ_in": differ if apart and differ else None,
            }


def _range_of(group: Sequence[Mapping[str, Any]]) -> tuple[float, float, str]:
    """Return the lowest and highest score of a CPU model, and what its rows differ in."""
    values = [row["value_per_core"] for row in group]
    # to tell people why one model has several scores
    differ = [called for name, called in _DIFFERING.items() if len({row[name] for row in group}) > 1]
    return min(values), max(values), ", ".join(differ)


def cells(text: str, path: Path, wanted: Sequence[str], what: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells of each row of a table with a header; :class:`InputError` when columns are missing."""
    header, rows = table_rows(text, path, fold=False)
    require_columns(header, wanted, path, what)
    return rows


def number(name: str, text: str) -> float | None:
    """A number, None where nothing or '-' stands; :class:`RowError` for anything else."""
    return amount(text, name, math.inf, -math.inf)


def count(name: str, text: str) -> int | None:
    """A whole number above 0, None where nothing, '-' or a negative number (not known) stands."""
    value = number(name, text)
    if value is None or value < 0:
        return None
    if value != int(value) or not 0 < value < 1e6:
        raise RowError(OUT_OF_RANGE, name, f"'{text[:60]}' is not a number of cores or measurements")
    return int(value)


def score(name: str, text: str) -> float:
    """The score of a machine; :class:`RowError` without one."""
    value = number(name, text)
    if value is None:
        raise RowError(NO_VALUE, name, "no measurement")
    return value
