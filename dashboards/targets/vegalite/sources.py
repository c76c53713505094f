"""Where the rows of a chart come from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROWS = "rows"
"""What expressions call the rows of a chart's own view."""

Step = dict[str, Any]
"""One transform of Vega-Lite."""


@dataclass(frozen=True)
class Source:
    """Rows: what Vega-Lite is told of them, and where in each row its columns stand.

    A row of a table has its columns itself; a hit of an index has them ``below`` its ``_source``; a group has
    some in its key and each sum in an object of its own, which ``paths`` says by column, with dots.
    ``unfolded``: transforms that make a row of each of the groups that stand inside others.
    """

    data: Mapping[str, Any]
    below: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)
    unfolded: tuple[Step, ...] = ()

    def path(self, column: str) -> str:
        """How a lookup names a column."""
        return self.paths.get(column, f"{self.below}.{column}" if self.below else column)

    def lifted(self, columns: Iterable[str]) -> list[Step]:
        """Transforms after which the columns are the row's own."""
        paths = {column: self.path(column) for column in columns}
        taken: list[Step] = [
            {"calculate": "datum" + "".join(f"[{json.dumps(part)}]" for part in path.split(".")), "as": name}
            for name, path in paths.items()
            if path != name
        ]
        return [*(dict(step) for step in self.unfolded), *taken]

    def lookup(self, on: str, columns: Sequence[str]) -> Step:
        """A transform that takes columns from the row here that is equal in one."""
        return {
            "lookup": on,
            "from": {
                "data": dict(self.data),
                "key": self.path(on),
                "fields": [self.path(column) for column in columns],
            },
            "as": list(columns),
        }


def dataset(name: str) -> Source:
    """Rows under a name, which the page supplies."""
    return Source({"name": name})
