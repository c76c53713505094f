"""Answers to questions held against each other, whoever gave them."""

from typing import Any

import pytest

from esjobs.core.query import Query
from esjobs.store.base import Aggregate


def rows(found: Aggregate, query: Query) -> dict[tuple[Any, ...], dict[str, Any]]:
    table = found.table.to_pylist()
    by_key = {tuple(row.pop(key) for key in query.keys): row for row in table}
    assert len(by_key) == len(table), "a group appears twice"
    return by_key


def require_same(query: Query, *found: tuple[dict[Any, Any], dict[Any, int]]) -> None:
    (groups, books), *others = found
    for other_groups, other_books in others:
        differing = {
            place: (other_books.get(place), books.get(place))
            for place in other_books.keys() | books.keys()
            if other_books.get(place) != books.get(place)
        }
        assert not differing, query
        assert other_groups.keys() == groups.keys()
        for key, row in groups.items():
            for name, value in row.items():
                other = other_groups[key][name]
                assert (other is None) == (value is None), (key, name, other, value)
                assert value is None or other == pytest.approx(value, rel=1e-12), (key, name)


def counted(found: Aggregate) -> dict[Any, int]:
    return {(row["day"], row["outcome"], row["kind"]): row["n_jobs"] for row in found.books.to_pylist()}
