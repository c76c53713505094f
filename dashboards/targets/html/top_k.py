"""Choice of the names that a page shows of a processing type with many."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.targets.html.cells import level_name
from dashboards.view.rows import Row
from esjobs.core.numbers import count
from esjobs.core.text import visible
from esjobs.core.words import CANDIDATE, CONFIRMED, Level

Names = frozenset[tuple[Any, Any]]  # Level and name of each


def by_type(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    """Rows by processing type, where they have one: most views are about one of many."""
    apart: dict[Any, list[Row]] = {}
    for row in rows:
        if "processing_type" not in row:
            return {}
        apart.setdefault(row["processing_type"], []).append(row)
    return apart


def top_k(
    judged: Mapping[Level, Sequence[Row]],
    most: int | None,
    processing_type: str,
    method: str | None = None,
) -> tuple[Names | None, str]:
    """At most so many names of each level, and what is said of it; None and nothing where all are shown.

    ``judged``: the verdicts of the type by level. ``method``: whose they are, where it is not the headline of
    the run. Confirmed deviations come first, then candidates, the
    largest first, then the names of most jobs.
    """
    chosen: set[tuple[Any, Any]] = set()
    said, runs = [], [row["run"] for rows in judged.values() for row in rows if row["run"]]
    for level, rows in judged.items():
        ranked = sorted(rows, key=_standing_first)[:most]
        chosen.update((level, row["name"]) for row in ranked)
        if len(ranked) < len(rows):
            said.append(f"{count(len(ranked))} of {count(len(rows))} {level_name(level)}")
    if not said:
        return None, ""
    values = {"--type": processing_type, "--method": method, "--run": runs[0] if runs else None}
    options = [f"{option} {shlex.quote(str(value))}" for option, value in values.items() if value is not None]
    command = " ".join(["esjobs show flags", *options])
    return frozenset(chosen), (
        f"Shown are {' and '.join(said)}: confirmed deviations and candidates, then those with most jobs. "
        f"Show all: {visible(command)}"
    )


def _standing_first(row: Row) -> tuple[Any, ...]:
    for place, status in enumerate((CONFIRMED, CANDIDATE)):
        if row["status_shown"] == status:
            return place, -abs(row["deviation"] or 0.0), str(row["name"])
    return len((CONFIRMED, CANDIDATE)), -(row["n_jobs"] or 0), str(row["name"])
