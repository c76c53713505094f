"""Sources of the rows of a chart."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROWS = "rows"  # Name of the rows of a chart in expressions

Step = dict[str, Any]  # One transform of Vega-Lite


@dataclass(frozen=True)
class Source:
    """Rows: what Vega-Lite is told of them, and where in each row its columns stand.

    A row of a table has its columns itself; a hit of an index has them ``below`` its ``_source``; a group has
    some in its key and each sum in an object of its own, which ``paths`` says by column, with dots.
    ``unfolded``: transforms that make a row of each of the groups that stand inside others. ``grouped``: the
    data is the answer of an index as it came, and its groups become rows first, with these of their parts.
    """

    data: Mapping[str, Any]
    below: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)
    unfolded: tuple[Step, ...] = ()
    grouped: tuple[str, ...] = ()

    def path(self, column: str) -> str:
        """Return the name of a column in a lookup."""
        return self.paths.get(column, f"{self.below}.{column}" if self.below else column)

    def lifted(self, columns: Iterable[str]) -> list[Step]:
        """Transforms after which the columns are the row's own."""
        paths = {column: self.path(column) for column in columns}
        taken: list[Step] = [
            {"calculate": f"datum{_inside(path)}", "as": name} for name, path in paths.items() if path != name
        ]
        return [*_groups(self.grouped), *(dict(step) for step in self.unfolded), *taken]

    def lookup(self, on: str, columns: Sequence[str]) -> list[Step]:
        """Transforms that take columns from the row here that is equal in one."""
        if self.grouped:
            return list(self._taken(on, columns))
        taken = {
            "data": self._named(on, columns),
            "key": self.path(on),
            "fields": [self.path(column) for column in columns],
        }
        return [{"lookup": on, "from": taken, "as": list(columns)}]

    def _named(self, on: str, columns: Sequence[str]) -> Step:
        """The data under a name of its own: of several without, Kibana gives one the answer of another."""
        return {"name": named_by(on, columns), **self.data}

    def _taken(self, on: str, columns: Sequence[str]) -> Iterator[Step]:
        """The same of the groups of an answer, which is brought to every row first."""
        yield {"calculate": "false", "as": _LATE}
        taken = {"data": self._named(on, columns), "key": "timed_out", "fields": ["aggregations"]}
        yield {"lookup": _LATE, "from": taken, "as": ["aggregations"]}
        yield {"calculate": groups_in("datum"), "as": _OTHERS}
        place = f"indexof(pluck(datum.{_OTHERS}, {json.dumps(self.path(on))}), datum[{json.dumps(on)}])"
        yield {"calculate": place, "as": _PLACE}
        for column in columns:
            value = f"datum.{_OTHERS}[datum.{_PLACE}]{_inside(self.path(column))}"
            yield {"calculate": f"datum.{_PLACE} < 0 ? null : {value}", "as": column}


def named_by(on: str, columns: Sequence[str]) -> str:
    """Name of the data in which a chart looks columns up.

    >>> named_by("cpu_model", ["low", "high"])
    'low, high by cpu_model'
    """
    return f"{', '.join(columns)} by {on}"


GROUPS = "groups"  # Name of the groups of an answer
# The form of an answer of an index whose groups a chart takes out itself (:attr:`Source.grouped`). Nobody
# else could: of an index that does not exist, servers answer without any groups, and a property that is not
# there ends a chart with an error.
ANSWER: Mapping[str, Any] = {"type": "json"}


def groups_in(answer: str) -> str:
    """An expression: the groups of an answer, none where its index does not exist."""
    return f"({answer}.aggregations ? {answer}.aggregations.{GROUPS}.buckets : [])"


def _groups(parts: Sequence[str]) -> Iterator[Step]:
    """Transforms that make rows of the groups of an answer, each with some of its parts."""
    if not parts:
        return
    yield {"calculate": groups_in("datum"), "as": _GROUP}
    yield {"flatten": [_GROUP]}
    for part in parts:
        yield {"calculate": f"datum.{_GROUP}[{json.dumps(part)}]", "as": part}


_GROUP, _OTHERS, _PLACE, _LATE = "group_of_answer", "other_groups", "place_of_other", "late"


def _inside(path: str) -> str:
    """Return the suffix of an expression for a dotted path.

    >>> _inside("key.name")
    '["key"]["name"]'
    """
    return "".join(f"[{json.dumps(part)}]" for part in path.split("."))


def dataset(name: str) -> Source:
    """Rows under a name, which the page supplies."""
    return Source({"name": name})
