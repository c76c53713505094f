"""Jobs and rows of the contract, under the name that the tests of other rooms use."""

from esjobs.testing.rows import (
    START,
    Row,
    batch,
    books,
    day,
    groups,
    hours,
    job,
    put,
    selected,
    table_batch,
    visible,
)

__all__ = [
    "START",
    "Row",
    "batch",
    "books",
    "day",
    "groups",
    "hours",
    "job",
    "put",
    "selected",
    "table_batch",
    "visible",
]
