"""What to say to someone who named something that is not there; the command line prints it."""

from collections.abc import Iterable, Iterator

from esjobs.core.window import Window
from esjobs.jobs.conditions import parse_conditions
from esjobs.names.spelling import accepted
from esjobs.session import Session


def unmatched_conditions(
    session: Session, where: Iterable[str], window: Window | str | None
) -> Iterator[str]:
    """A line for each ``FIELD=VALUE`` of several that no stored job of the window has; one query a field."""
    for name, values in parse_conditions(where).items():
        if len(values) > 1:
            stored = session.arrow.query(name, window=window).column(name).drop_null()
            there = set(map(str, stored.to_pylist()))
            for value in values:
                if value is not None and str(value) not in there:
                    what_there_is = accepted(str(value), there, f"esjobs query --by {name}")
                    yield f"no job has {name} '{value}'; {what_there_is}"
