"""``FIELD=VALUE`` as people write it, to filters: the same field again means or, another one means and."""

from collections.abc import Iterable, Mapping, Sequence

from esjobs.core import fields, tables
from esjobs.core.errors import UsageError
from esjobs.core.query import Either, Filter, In, Missing, Value
from esjobs.core.window import Window
from esjobs.core.words import titled
from esjobs.jobs.resolution import source_of, stored_values
from esjobs.jobs.tables import BUCKETS
from esjobs.store.base import JobStore

BUCKET_KEYS = ("task_id", "core_class", "site", "rc_site", "cpu_model", "processing_type")
"""Fields by which fits can be restricted: what buckets are made by, and what it resolves to."""


def parse_conditions(conditions: Iterable[str]) -> dict[str, list[Value | None]]:
    """Read ``FIELD=VALUE`` pairs, typed by the catalogue; an empty value stands for missing.

    >>> parse_conditions(["site=CERN", "site=RAL", "cores=8"])
    {'site': ['CERN', 'RAL'], 'cores': [8]}
    """
    allowed: dict[str, list[Value | None]] = {}
    for condition in conditions:
        name, equals, text = condition.partition("=")
        if not equals or not name:
            raise UsageError(f"'{condition}' is no condition; expected FIELD=VALUE, such as site=CERN")
        field = fields.asked_field(name.strip())
        if not field.groupable:
            raise UsageError(f"jobs cannot be selected by '{field.name}'; see: esjobs fields")
        allowed.setdefault(field.name, []).append(_value(field, text))
    return allowed


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


def canonical(conditions: Iterable[str]) -> tuple[str, ...]:
    """The conditions with the fields' own names, each once: the same question is the same run.

    >>> canonical(["queue=CERN", "site=CERN"])
    ('site=CERN',)
    """
    parts = (condition.partition("=") for condition in conditions)
    # what is no condition stays as it was typed: the refusal names it
    named = (
        f"{fields.ALIASES.get(name.strip(), name) if equals else name}{equals}{text}"
        for name, equals, text in parts
    )
    return tuple(dict.fromkeys(named))


def job_filters(
    store: JobStore, conditions: Iterable[str], window: Window | None = None
) -> tuple[Filter, ...]:
    """Filters on jobs; one on a resolved field becomes the stored values that resolve to it (one query)."""
    return _filters(store, window, parse_conditions(conditions))


def bucket_filters(
    store: JobStore, window: Window, conditions: Iterable[str], tasks: Iterable[str] = ()
) -> tuple[Filter, ...]:
    """Filters on the buckets of a window for a restricted fit.

    Raises :class:`UsageError` for a field that buckets neither have nor resolve.
    """
    chosen = parse_conditions(conditions)
    for name in chosen:
        if name not in BUCKET_KEYS:
            raise UsageError(f"a fit cannot be restricted by '{name}'; buckets have {', '.join(BUCKET_KEYS)}")
    if listed := list(tasks):
        chosen.setdefault("task_id", []).extend(listed)
    return _filters(store, window, chosen, BUCKETS)


def _filters(
    store: JobStore,
    window: Window | None,
    chosen: Mapping[str, Sequence[Value | None]],
    over: tables.Table | None = None,
) -> tuple[Filter, ...]:
    """A filter a field, on jobs or on the rows of a table, which may have resolved fields as columns."""
    filters = []
    for name, wanted in chosen.items():
        if source_of(name) is None or (over is not None and name in over.column_names):
            filters.append(_filter(name, wanted))
        else:
            filters.append(_filter(*stored_values(store, name, wanted, window, over)))
    return tuple(filters)


def row_filters(table: tables.Table, chosen: Mapping[str, Sequence[str]]) -> tuple[Filter, ...]:
    """Filters on the columns of a result table; a column that the table lacks is refused."""
    filters = []
    for name, values in chosen.items():
        if not values:
            continue
        if name not in table.column_names:
            raise UsageError(f"{table.name} have no {titled(name)} to filter by")
        filters.append(In(name, tuple(values)))
    return tuple(filters)
