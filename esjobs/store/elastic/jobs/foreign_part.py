"""Foreign indices that have the fields of a question in the same way."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core import fields
from esjobs.core.window import Window
from esjobs.store.elastic.asking.clauses import Clause, measured, negated
from esjobs.store.elastic.asking.days import within
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.jobs.foreign_documents import jobs_of
from esjobs.store.elastic.jobs.job_index import Documents
from esjobs.store.elastic.transport.scan import PointInTime

_TIME_FORMAT = "strict_date_optional_time_nanos"

JUDGED = frozenset(
    {
        *fields.REQUIRED,
        "end_time",
        *("task_id", "cpu_raw", "processing_type", "state", "cores", "events", "cpu_s", "wall_s"),
    }
)
"""Fields that decide if a document is a job, whatever the question: those behind the buckets.

Invalid values of other fields count as missing, so that all questions of a run count the same jobs.
"""


@dataclass(frozen=True)
class ForeignPart:
    """Documents of some indices, read through a field map.

    ``index``: search target. ``names``: the indices with jobs in question.
    """

    index: str
    names: tuple[str, ...]
    live: Mapping[str, LiveField]
    # any field of a document may be a list
    several_values = True

    @property
    def time(self) -> str:
        return self.live["end_time"].paths[0]

    def inside(self, window: Window | None) -> list[Clause]:
        """Return the clauses of documents with an end time, in a window."""
        return within(self.time, window) or [{"exists": {"field": self.time}}]

    def judged(self, names: Collection[str]) -> frozenset[str]:
        """Return the fields that must be valid for a question."""
        return JUDGED.union(names)

    def unjudged(self, names: Collection[str]) -> list[Clause]:
        """Return clauses of documents with negative numbers or without required fields."""
        clauses: list[Clause] = []
        for name in sorted(self.judged(names)):
            live = self.live[name]
            if name in fields.REQUIRED and live.state in ("present", "absent"):
                clauses.append(negated({"exists": {"field": (live.paths or live.source.names)[0]}}))
            if live.state == "present" and live.field.bounded:
                clauses += [measured(live, path, {"range": {path: {"lt": 0}}}) for path in live.paths]
        return clauses

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents by their fields, whatever the index format."""
        wanted = [self.live[name] for name in sorted(self.judged(names))]
        requested: list[Any] = []
        objects = [name for live in wanted if live.field.type == "map" for name in live.read]
        for live in wanted:
            if live.field.type == "map":
                continue
            if live.field.type == "time":
                requested += [{"field": name, "format": _TIME_FORMAT} for name in live.read]
            else:
                requested += live.read
        tie = [self.time, *self.live["job_id"].paths[:1]]
        for hits in at.field_pages(clause, requested, tie, objects):
            documents = [
                hit.get("fields", {}) | _source_objects(hit.get("_source", {}), objects) for hit in hits
            ]
            yield jobs_of(documents, wanted, JUDGED)


def _source_objects(source: Mapping[str, Any], objects: Sequence[str]) -> dict[str, list[Any]]:
    """Return objects of a document from its source, which the index does not hold."""
    found = {}
    for name in objects:
        # a document may have the dotted name as it is, or objects inside each other
        value: Any = source.get(name)
        if value is None:
            value = source
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        found[name] = [] if value is None else [value]
    return found
