"""``FIELD=VALUE`` as people write it, to filters: the same field again means or, another one means and."""

from collections.abc import Iterable, Mapping, Sequence

from esjobs.analysis.cpu_models import resolve_names
from esjobs.core import fields, tables
from esjobs.core.errors import UsageError
from esjobs.core.query import Count, Either, Filter, In, Missing, Query, Value
from esjobs.core.window import Window
from esjobs.store.base import JobStore

BUCKET_KEYS = ("task_id", "core_class", "site", "cpu_model", "processing_type")
"""Fields by which fits can be restricted: what buckets are made by."""


def parse_conditions(conditions: Iterable[str]) -> dict[str, list[Value | None]]:
    """Read ``FIELD=VALUE`` pairs, typed by the catalogue; an empty value stands for missing.

    >>> parse_conditions(["site=CERN", "site=RAL", "cores=8"])
    {'site': ['CERN', 'RAL'], 'cores': [8]}
    """
    found: dict[str, list[Value | None]] = {}
    for condition in conditions:
        name, equals, text = condition.partition("=")
        if not equals or not name:
            raise UsageError(f"'{condition}' is no condition; expected FIELD=VALUE, such as site=CERN")
        field = fields.field(name.strip())
        if not field.groupable:
            raise UsageError(f"jobs cannot be selected by '{field.name}'; see: esjobs fields")
        found.setdefault(field.name, []).append(_value(field, text))
    return found


def _value(field: fields.Field, text: str) -> Value | None:
    if text == "":
        return None
    if field.type in ("integer", "number"):
        try:
            return int(text) if field.type == "integer" else float(text)
        except ValueError:
            raise UsageError(f"'{text}' is no {field.type}, which {field.name} is") from None
    return text


def _filter(name: str, values: Sequence[Value | None]) -> Filter:
    present = tuple(value for value in values if value is not None)
    if None not in values:
        return In(name, present)
    return Either((In(name, present), Missing(name))) if present else Missing(name)


def job_filters(
    store: JobStore, conditions: Iterable[str], window: Window | None = None
) -> tuple[Filter, ...]:
    """Filters on jobs; one on ``cpu_model`` becomes the raw strings that resolve to it (one query)."""
    found = parse_conditions(conditions)
    models = found.pop("cpu_model", None)
    filters = [_filter(name, values) for name, values in found.items()]
    if models is not None:
        raws = store.aggregate(Query(("cpu_raw",), (Count(),), window)).table.column("cpu_raw").to_pylist()
        matching = [raw for raw, name in zip(raws, resolve_names(raws), strict=True) if name in models]
        if None in models:
            matching.append(None)
        filters.append(_filter("cpu_raw", matching))
    return tuple(filters)


def bucket_filters(conditions: Iterable[str], tasks: Iterable[str] = ()) -> tuple[Filter, ...]:
    """Filters on buckets for a restricted fit; :class:`UsageError` for a field that buckets do not have."""
    found = parse_conditions(conditions)
    for name in found:
        if name not in BUCKET_KEYS:
            raise UsageError(f"a fit cannot be restricted by '{name}'; buckets have {', '.join(BUCKET_KEYS)}")
    if chosen := list(tasks):
        found.setdefault("task_id", []).extend(chosen)
    return tuple(_filter(name, values) for name, values in found.items())


def row_filters(table: tables.Table, chosen: Mapping[str, Sequence[str]]) -> tuple[Filter, ...]:
    """Filters on the columns of a result table; a column that the table lacks is refused."""
    filters = []
    for name, values in chosen.items():
        if not values:
            continue
        if name not in table.column_names:
            raise UsageError(f"{table.name} have no {name.replace('_', ' ')} to filter by")
        filters.append(In(name, tuple(values)))
    return tuple(filters)
