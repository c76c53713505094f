"""Keys that a question makes, from the groups by the fields behind them: no cluster needs to know them."""

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
    """The question by the fields behind its made keys; None when it cannot be put so.

    Weeks and months are made of days, names of what they stand for. Hours and bins cannot be: a cluster
    groups by no time of the day, and by no interval of a number.
    """
    if any(_behind(made) is None for made in query.made):
        return None
    sources = {made.name: _behind(made) or "" for made in query.made}
    keys = dict.fromkeys(sources.get(key, key) for key in query.keys)
    return replace(query, keys=tuple(keys), made=())


def with_made_keys(table: pa.Table, query: Query) -> pa.Table:
    """The answer to a question without its made keys, as the one that was asked for."""
    names = [metric.name for metric in query.metrics]
    columns: list[Any] = [*made_columns(table, query), *plain(table.select(names)).columns]
    return merged(pa.table(columns, names=[*query.keys, *names]), query.keys)


def made_columns(table: pa.Table, query: Query) -> list[Any]:
    """The keys of a question, a column each, from the groups of the one without its made keys."""
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
    """How long the days are that a question needs: weeks or months where it asks for nothing shorter."""
    spans: set[str] = {"day"} if "day" in query.keys else set()
    spans |= {made.part for made in query.made if isinstance(made, TimePart)}
    if spans == {"week"}:
        return "week"
    return "month" if spans == {"month"} else "day"


def _behind(made: MadeKey) -> str | None:
    """The key of which a made one follows."""
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
