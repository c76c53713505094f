"""Where the rows of a chart come from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Step = dict[str, Any]
"""One transform of Vega-Lite."""


@dataclass(frozen=True)
class Source:
    """Rows: what Vega-Lite is told of them, and the object in each row below which its columns stand.

    A row of a table has its columns itself; a hit of an index has them in ``_source``.
    """

    data: Mapping[str, Any]
    below: str = ""

    def path(self, column: str) -> str:
        """How a lookup names a column."""
        return f"{self.below}.{column}" if self.below else column

    def lifted(self, columns: Iterable[str]) -> list[Step]:
        """Transforms after which the columns are the row's own."""
        if not self.below:
            return []
        return [
            {"calculate": f"datum[{json.dumps(self.below)}][{json.dumps(column)}]", "as": column}
            for column in dict.fromkeys(columns)
        ]

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
