"""Derived keys, made from groups by the fields behind them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.keys import MadeKey, Named, TimePart, beginning
from esjobs.core.query import Query
from esjobs.store.elastic.asking.composite import Span
from esjobs.store.merge import merged, plain


def without_made_keys(query: Query) -> Query | None:
    """Return the question by the fields behind its derived keys; None if that is impossible.

    Weeks and months derive from days, names from values. Hours and bins cannot be grouped by a cluster.
    """
    if any(_behind(made) is None for made in query.made):
        return None
    # several derived keys may have one field behind them, which is asked for once
    sources = {made.name: _behind(made) or "" for made in query.made}
    keys = dict.fromkeys(sources.get(key, key) for key in query.keys)
    return replace(query, keys=tuple(keys), made=())


def with_made_keys(table: pa.Table, query: Query) -> pa.Table:
    """Return the answer with the derived keys."""
    names = [metric.name for metric in query.metrics]
    columns: list[Any] = [*made_columns(table, query), *plain(table.select(names)).columns]
    # several days or values became one key
    return merged(pa.table(columns, names=[*query.keys, *names]), query.keys)


def made_columns(table: pa.Table, query: Query) -> list[Any]:
    """Return one column per key of a question, derived ones included."""
    texts = plain(table)
    columns: list[Any] = []
    for key in query.keys:
        made = query.made_key(key)
        if made is None:
            columns.append(texts.column(key))
            continue
        stored = texts.column(_behind(made) or "").to_pylist()
        columns.append(pa.array(_translated(made, stored), arrow_type(made.meaning.type)))
    return columns


def span_of(query: Query) -> Span:
    """Return the length of the days that a question requires."""
    spans: set[str] = {"day"} if "day" in query.keys else set()
    spans |= {made.part for made in query.made if isinstance(made, TimePart)}
    # weeks and months together need days: neither is made of the other
    if spans == {"week"}:
        return "week"
    return "month" if spans == {"month"} else "day"


def _behind(made: MadeKey) -> str | None:
    if isinstance(made, Named):
        return made.field
    if isinstance(made, TimePart) and made.field == "end_time" and made.part != "hour":
        return "day"
    return None


def _translated(made: MadeKey, stored: Sequence[Any]) -> list[Any]:
    if isinstance(made, Named):
        names = dict(made.names)
        return [names.get(value) for value in stored]
    if isinstance(made, TimePart) and made.part != "hour":
        return [None if day is None else beginning(made.part, day) for day in stored]
    return list(stored)
