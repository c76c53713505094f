"""A result table that no capability has: every type of the catalogue, as a store may be asked to keep it."""

from esjobs.core.fields import Field, FieldType
from esjobs.core.tables import Table


def _c(name: str, kind: FieldType) -> Field:
    groupable = kind in ("keyword", "integer", "boolean", "day")
    return Field(name, kind, "", f"a column of type {kind}", groupable=groupable)


MADE_UP = Table(
    "made_up",
    "rows of a capability that tests make up",
    "name",
    (
        _c("name", "keyword"),
        _c("kind", "keyword"),
        _c("day", "day"),
        _c("moment", "time"),
        _c("nodes", "integer"),
        _c("good", "boolean"),
        _c("score", "number"),
        _c("weight", "number"),
        _c("words", "text"),
        _c("counters", "map"),
        _c("series", "list"),
    ),
    time="moment",
)
