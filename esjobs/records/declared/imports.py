"""The account of an import of declared values."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.window import format_time
from esjobs.publish.publication import read_table
from esjobs.records.declared.origin import DEFAULT_TOLERANCE, DEFAULTS, is_default
from esjobs.records.names.cpu_models import resolve_names
from esjobs.schema.declared import COREPOWER
from esjobs.store.base import JobStore

_NAMES_SHOWN = 5


def account(
    step: str, store: JobStore, read: RunReport, names_of_jobs: Callable[[str], Collection[str]]
) -> RunReport:
    """What a load of declared values (``read``) means: how many declare something, since when, for whom.

    ``step``: what it is called. ``names_of_jobs``: the queues, or CPU models, of all stored jobs.
    """
    rows = read_table(store, COREPOWER, [In("import_id", (read.run,))]).to_pylist()
    declared = sum(row["corepower"] is not None for row in rows)
    return RunReport(
        step,
        read.run,
        read.rows_in,
        declared,
        read.seconds,
        rows_become="declared values",
        dropped=read.dropped,
        counts={**read.counts, "rows without a value": len(rows) - declared},
        notes=(*read.notes, *_notes(store, rows, names_of_jobs)),
    )


def _notes(
    store: JobStore, rows: Sequence[Mapping[str, Any]], names_of_jobs: Callable[[str], Collection[str]]
) -> Iterator[str]:
    """Since when the values hold, and which names no stored job has."""
    if not rows:
        return
    dates = sorted({format_time(row["valid_from"]) for row in rows})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    yield f"valid from {span}: a window that ends before takes no value from here"
    defaults = {canonical(row): row["corepower"] for row in rows if _fills_in(row["corepower"])}
    if defaults:
        listed = [f"{name} {value:g}" for name, value in sorted(defaults.items())]
        shown = ", ".join(listed[:_NAMES_SHOWN]) + (", ..." if len(listed) > _NAMES_SHOWN else "")
        known = " or ".join(f"{value:g}" for value in DEFAULTS)
        yield (
            f"within {DEFAULT_TOLERANCE:g} of {known}, which systems fill in where nobody declared any, "
            f"so not taken for a declaration: {len(defaults)} of {len(rows)}: {shown}"
        )
    if not store.span().jobs:
        return
    for level, what in (("queue", "queues"), ("cpu_model", "CPU models")):
        names = {canonical(row) for row in rows if row["level"] == level}
        missing = sorted(names - set(names_of_jobs(level))) if names else []
        if missing:
            shown = ", ".join(missing[:_NAMES_SHOWN]) + (", ..." if len(missing) > _NAMES_SHOWN else "")
            yield f"{len(missing)} of {len(names)} {what} have no jobs in the store: {shown}"


def _fills_in(value: float | None) -> bool:
    return value is not None and is_default(value)


def canonical(row: Mapping[str, object]) -> str:
    """The name that a row is found under: a CPU model may be written in many ways."""
    name = str(row["name"])
    return (resolve_names([name])[0] or name) if row["level"] == "cpu_model" else name
