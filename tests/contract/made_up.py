"""Result tables that no capability has: every type of the catalogue, and what a source may give."""

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
        _c("packed", "bytes"),
    ),
    time="moment",
)

READINGS = Table(
    "readings",
    "rows that a made-up source gives beside jobs, a partition a load",
    "load_id",
    (
        _c("load_id", "keyword"),
        _c("job_id", "keyword"),
        _c("counters", "map"),
        _c("series", "list"),
        _c("loaded_at", "time"),
    ),
)

WEATHER = Table(
    "weather",
    "rows that a made-up source gives beside jobs, a partition a day",
    "day",
    (_c("day", "day"), _c("degrees", "number"), _c("load_id", "keyword")),
    time="day",
)

NOTES = Table(
    "notes",
    "rows that people enter",
    "import_id",
    (_c("import_id", "keyword"), _c("words", "text"), _c("imported_at", "time")),
    entered=True,
)
