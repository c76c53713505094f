"""What to say to someone who named something that is not there; the command line prints it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from esjobs.core.window import Window
from esjobs.session import Session
from esjobs.steps.conditions import parse_conditions

_LISTED = 12
"""Up to so many values are named; of more only those alike."""


def unknown_values(
    session: Session,
    what: str,
    chosen: Mapping[str, Sequence[str]],
    shown: Iterable[str],
    *,
    run: str | None,
    window: str | None,
) -> Iterator[str]:
    """A line for each value that no row of a result table has.

    ``chosen``: what was asked for, by column; ``shown``: the columns whose values were all found. Reads the
    table without restriction only when something is unknown.
    """
    missing = {column: values for column, values in chosen.items() if values and column not in shown}
    if not missing:
        return
    rows = session.show(what, run=run, window=window)
    for column, values in missing.items():
        there = sorted(set(rows[column].dropna()))
        yield from _lines(
            f"{what} have no {column.replace('_', ' ')}", values, there, f"esjobs show {what} --format csv"
        )


def unmatched_conditions(
    session: Session, where: Iterable[str], window: Window | str | None
) -> Iterator[str]:
    """A line for each ``FIELD=VALUE`` of several that no stored job of the window has; one query a field."""
    for name, values in parse_conditions(where).items():
        if len(values) > 1:
            there = {str(value) for value in session.query(name, window=window)[name].dropna()}
            asked = [str(value) for value in values if value is not None]
            yield from _lines(f"no job has {name}", asked, sorted(there), f"esjobs query --by {name}")


def _lines(start: str, values: Iterable[str], there: Sequence[str], how: str) -> Iterator[str]:
    for value in values:
        if value in there:
            continue
        if not there:
            accepted = "there are no rows at all"
        elif len(there) <= _LISTED:
            accepted = f"there are {', '.join(there)}"
        else:
            close = get_close_matches(value, there, n=3, cutoff=0.5)
            alike = f"close are {', '.join(close)}; " if close else ""
            accepted = f"{alike}list them with: {how}"
        yield f"{start} '{value}'; {accepted}"
