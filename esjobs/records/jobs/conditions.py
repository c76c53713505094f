"""Conditions as people write them, to filters: the same field again means or, another one means and.

The grammar is in `core/conditions`, what values of a field mean in `condition_filters`; here conditions on
several fields come together, and those on resolved fields become conditions on what is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from esjobs.core import fields, tables
from esjobs.core.conditions import Condition, canonical, read_condition
from esjobs.core.errors import UsageError
from esjobs.core.query import Either, Filter, In, Missing
from esjobs.core.window import Window
from esjobs.core.words import titled
from esjobs.records.jobs.condition_filters import filters_of, holds
from esjobs.records.jobs.resolution import source_of, stored_values
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore

__all__ = ["BUCKET_KEYS", "bucket_filters", "canonical", "job_filters", "parse_conditions", "row_filters"]

BUCKET_KEYS = ("task_id", "core_class", "queue", "site", "cpu_model", "processing_type")
"""Fields by which fits can be restricted: what buckets are made by, and what it resolves to."""


def parse_conditions(conditions: Iterable[str]) -> dict[str, list[Condition]]:
    """Read conditions, those on the same field together, checked against the catalogue.

    >>> [str(each) for each in parse_conditions(["queue=CERN", "queue=RAL", "cores>=8"])["queue"]]
    ['queue=CERN', 'queue=RAL']
    """
    by_field: dict[str, list[Condition]] = {}
    for text in conditions:
        condition = read_condition(text)
        by_field.setdefault(condition.field, []).append(condition)
    for name, on_field in by_field.items():
        # for its errors: a resolved field is searched for by other filters
        filters_of(fields.field(name), on_field)
    return by_field


def job_filters(
    store: JobStore, conditions: Iterable[str], window: Window | None = None
) -> tuple[Filter, ...]:
    """Filters on jobs; one on a resolved field becomes the stored values that resolve to it (one query)."""
    return _filters(store, window, parse_conditions(conditions))


def bucket_filters(
    store: JobStore, window: Window, conditions: Iterable[str], tasks: Iterable[str] = ()
) -> tuple[Filter, ...]:
    """Return filters on the buckets of a window; :class:`UsageError` for a field that they cannot resolve."""
    chosen = parse_conditions(conditions)
    for name in chosen:
        if name not in BUCKET_KEYS:
            raise UsageError(f"a fit cannot be restricted by '{name}'; use one of: {', '.join(BUCKET_KEYS)}")
    if listed := tuple(tasks):
        chosen.setdefault("task_id", []).append(Condition("task_id", "=", listed))
    return _filters(store, window, chosen, BUCKETS)


def _filters(
    store: JobStore,
    window: Window | None,
    chosen: Mapping[str, Sequence[Condition]],
    over: tables.Table | None = None,
) -> tuple[Filter, ...]:
    filters: list[Filter] = []
    for name, conditions in chosen.items():
        # buckets hold CPU models by their resolved names
        if source_of(name) is None or (over is not None and name in over.column_names):
            filters += filters_of(fields.field(name), conditions)
        else:
            source, values = stored_values(store, name, partial(holds, conditions), window, over)
            filters.append(_one_of(source, values))
    return tuple(filters)


def _one_of(name: str, values: Sequence[str | None]) -> Filter:
    present = tuple(value for value in values if value is not None)
    if None not in values:
        return In(name, present)
    return Either((In(name, present), Missing(name))) if present else Missing(name)


def row_filters(table: tables.Table, chosen: Mapping[tuple[str, ...], Sequence[str]]) -> tuple[Filter, ...]:
    """Filters on the columns of a result table, any of several each; one that the table lacks is refused."""
    filters: list[Filter] = []
    for names, values in chosen.items():
        if not values:
            continue
        for name in names:
            if name not in table.column_names:
                raise UsageError(f"table {table.name} has no {titled(name)} to filter by")
        either = tuple(In(name, tuple(values)) for name in names)
        filters.append(either[0] if len(either) == 1 else Either(either))
    return tuple(filters)
