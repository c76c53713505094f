"""The account of an import of declared values."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.window import format_time
from esjobs.core.words import LEVELS, noun
from esjobs.publish.publication import read_table
from esjobs.records.declared.origin import DEFAULT_TOLERANCE, DEFAULTS, is_default
from esjobs.records.names.cpu_models import canonical
from esjobs.schema.declared import COREPOWER
from esjobs.store.base import JobStore

_NAMES_SHOWN = 5


def account(
    step: str, store: JobStore, read: RunReport, names_of_jobs: Callable[[str], Collection[str]]
) -> RunReport:
    """Report on a load of declared values (``read``): how many, valid since when, for which names.

    ``names_of_jobs``: names of a level in all stored jobs.
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
    if not rows:
        return
    dates = sorted({format_time(row["valid_from"]) for row in rows})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    yield f"values are valid from {span}; windows that end earlier do not use them"
    yield from _defaults(rows)
    if not store.span().jobs:
        return
    for level in LEVELS:
        # jobs have resolved CPU names: a raw one in the table would never match
        names = {canonical(row) for row in rows if row["level"] == level}
        missing = sorted(names - set(names_of_jobs(level))) if names else []
        if missing:
            listed = _listed(missing)
            yield f"{len(missing)} of {len(names)} {noun(level)} have no jobs in the store: {listed}"


def _defaults(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    declaring = [row for row in rows if row["corepower"] is not None]
    defaults = {canonical(row): row["corepower"] for row in declaring if is_default(row["corepower"])}
    if defaults:
        usual = " or ".join(f"{value:g}" for value in DEFAULTS)
        listed = _listed([f"{name} {value:g}" for name, value in sorted(defaults.items())])
        yield (
            f"{len(defaults)} of {len(rows)} values are within {DEFAULT_TOLERANCE:g} of the system default "
            f"{usual} and count as undeclared: {listed}"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
