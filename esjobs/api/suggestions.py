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
    """Yield a line per value without jobs in the window, where several are listed; one query per field."""
    for name, conditions in parse_conditions(where).items():
        values = [value for each in conditions if each.operator == "=" for value in each.values]
        # a single value without jobs is an error anyway; of several, the others answer
        if len(values) > 1 and fields.field(name).type == "keyword" and fields.field(name).groupable:
            stored = session.query(name, window=window).rows.column(name).drop_null()
            present = set(map(str, stored.to_pylist()))
            for value in values:
                if value not in present:
                    what_there_is = accepted(value, present, f"esjobs query --by {name}")
                    yield f"no job has {name} '{value}'; {what_there_is}"
