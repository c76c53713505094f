"""Choice of the names that a page shows of a processing type with many."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from dashboards.targets.html.cells import level_name
from dashboards.view.rows import Row, apart
from esjobs.core.numbers import count
from esjobs.core.text import visible
from esjobs.core.words import CANDIDATE, CONFIRMED, Level

Names = frozenset[tuple[Any, Any]]  # Level and name of each


def by_type(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    """Rows by processing type, where they have one: most views are about one of many."""
    return apart(rows, itemgetter("processing_type")) if rows and "processing_type" in rows[0] else {}


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
    chosen = {level: sorted(rows, key=_standing_first)[:most] for level, rows in judged.items()}
    said = [
        f"{count(len(ranked))} of {count(len(judged[level]))} {level_name(level)}"
        for level, ranked in chosen.items()
        if len(ranked) < len(judged[level])
    ]
    if not said:
        return None, ""
    every = chain.from_iterable(judged.values())
    run = next(filter(None, (row["run"] for row in every)), None)
    values = {"--type": processing_type, "--method": method, "--run": run}
    options = [f"{option} {shlex.quote(str(value))}" for option, value in values.items() if value is not None]
    command = " ".join(["esjobs show flags", *options])
    names = frozenset((level, row["name"]) for level, ranked in chosen.items() for row in ranked)
    return names, (
        f"Shown are {' and '.join(said)}: confirmed deviations and candidates, then those with most jobs. "
        f"Show all: {visible(command)}"
    )


def _standing_first(row: Row) -> tuple[Any, ...]:
    for place, status in enumerate((CONFIRMED, CANDIDATE)):
        if row["status_shown"] == status:
            return place, -abs(row["deviation"] or 0.0), str(row["name"])
    return len((CONFIRMED, CANDIDATE)), -(row["n_jobs"] or 0), str(row["name"])
