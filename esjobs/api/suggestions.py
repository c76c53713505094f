"""Suggestions for values that no job has."""

from collections.abc import Iterable, Iterator

from esjobs.api.session import Session
from esjobs.core import fields
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import parse_conditions
from esjobs.records.names.spelling import accepted


def unmatched_conditions(
    session: Session, where: Iterable[str], window: Window | str | None
) -> Iterator[str]:
    """A line for each of several values that no stored job of the window has; one query a field."""
    for name, conditions in parse_conditions(where).items():
        values = [value for each in conditions if each.operator == "=" for value in each.values]
        if len(values) > 1 and fields.field(name).type == "keyword" and fields.field(name).groupable:
            stored = session.query(name, window=window).rows.column(name).drop_null()
            present = set(map(str, stored.to_pylist()))
            for value in values:
                if value not in present:
                    what_there_is = accepted(value, present, f"esjobs query --by {name}")
                    yield f"no job has {name} '{value}'; {what_there_is}"
