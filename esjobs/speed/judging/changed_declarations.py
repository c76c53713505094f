"""Detection of declarations that changed since lines and verdicts were made."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from esjobs.core.query import In
from esjobs.core.words import LEVELS, noun
from esjobs.publish.publication import Outcome, read_table
from esjobs.records.declared.origin import same_value
from esjobs.schema.speed import FLAGS, LINES
from esjobs.store.base import JobStore

_DECLARED = ("level", "name", "corepower", "benchmark", "origin")
_LINE = ("level", "processing_type", "method", "benchmark")
_POINTS = ("status", "n_names", "n_entries", "n_groups")


def changed_declarations(store: JobStore, run: str, correlated: Outcome, flagged: Outcome) -> list[str]:
    """Return notes on declarations that differ from those behind the visible results of a run.

    Verdicts are compared by name; a run without verdicts by its lines. No note without a change or without
    anything to compare.
    """
    of_run = [In("run", (run,))]
    before = read_table(store, FLAGS, of_run, _DECLARED)
    if before.num_rows:
        return _moved_names(_by_name(before), _by_name(flagged.rows[FLAGS]))
    columns = (*_LINE, *_POINTS, "slope")
    lines = read_table(store, LINES, of_run, columns)
    if not lines.num_rows or _same_lines(_by_fit(lines), _by_fit(correlated.rows[LINES])):
        return []
    return ["declared values have changed since the lines were fitted; the lines were fitted again"]


def _moved_names(before: Mapping[tuple[str, str], Any], now: Mapping[tuple[str, str], Any]) -> list[str]:
    notes = []
    for level in LEVELS:
        changed = {
            key[1]: _move(before[key], now[key]) for key in before.keys() & now.keys() if key[0] == level
        }
        changed = {name: how for name, how in changed.items() if how}
        if changed:
            counted = Counter(changed.values())
            parts = [f"{counted[how]} {how}" for how in _MOVES if counted[how]]
            first = min(changed)
            notes.append(
                f"declared values of {len(changed)} {noun(level, len(changed))} have changed since the "
                f"verdicts ({', '.join(parts)}), for example {first}; list them: esjobs show corepower"
            )
    return notes


_LOST, _GAINED, _OTHER = "removed", "new", "with another value, benchmark or origin"
_MOVES = (_LOST, _GAINED, _OTHER)


def _move(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if before["corepower"] is None or now["corepower"] is None:
        if before["corepower"] == now["corepower"]:
            return ""
        return _LOST if now["corepower"] is None else _GAINED
    same = all(before[name] == now[name] for name in ("benchmark", "origin"))
    return "" if same and same_value(before["corepower"], now["corepower"]) else _OTHER


def _same_lines(before: Mapping[tuple[Any, ...], Any], now: Mapping[tuple[Any, ...], Any]) -> bool:
    return before.keys() == now.keys() and all(
        all(row[name] == now[key][name] for name in _POINTS) and _close(row["slope"], now[key]["slope"])
        for key, row in before.items()
    )


def _close(left: float | None, right: float | None) -> bool:
    return left == right or (
        left is not None and right is not None and math.isclose(left, right, rel_tol=1e-6)
    )


def _by_name(rows: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["level"], row["name"]): row for row in rows.select(_DECLARED).to_pylist()}


def _by_fit(rows: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in _LINE): row for row in rows.to_pylist()}
