"""What the Python interface takes in several forms: windows, names, conditions."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypedDict

from esjobs.core.errors import UsageError
from esjobs.core.window import Window

WindowLike = Window | str | tuple[str | date, str | date] | None
"""A window, its text, a pair of times (pandas' too), a pandas Period; None where there is a usual one."""
Names = str | Iterable[str]
"""One name or several."""
Where = str | Iterable[str | tuple[str, object]] | Mapping[str, object]
"""Conditions on fields: ``FIELD=VALUE`` texts, pairs, or a mapping, whose values may be several."""


class Filters(TypedDict, total=False):
    """How :meth:`Session.show` narrows a result table; one value or several each, None as if left out."""

    level: Names | None
    type: Names | None
    name: Names | None
    site: Names | None
    method: Names | None
    run: str | None
    window: WindowLike


def window_of(window: WindowLike) -> Window | None:
    """The window, if one is given."""
    return None if window is None else Window.of(window)


def listed(values: Names) -> tuple[str, ...]:
    """Names as a tuple.

    >>> listed("CERN"), listed(["CERN", "BNL"])
    (('CERN',), ('CERN', 'BNL'))
    """
    return (values,) if isinstance(values, str) else tuple(values)


def conditions(where: Where) -> tuple[str, ...]:
    """Conditions as ``FIELD=VALUE`` texts; a value that is None stands for missing, no value is refused.

    >>> conditions({"site": ["CERN", "BNL"], "task_id": None})
    ('site=CERN', 'site=BNL', 'task_id=')
    """
    if isinstance(where, str):
        return (where,)
    texts: list[str] = []
    for item in where.items() if isinstance(where, Mapping) else where:
        if isinstance(item, str):
            texts.append(item)
            continue
        name, value = item
        values = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        if not values:
            # left out, it would answer another question than the one that was asked
            raise UsageError(f"no value of {name} is given; leave {name} out to choose every one")
        texts += [f"{name}={'' if one is None else one}" for one in values]
    return tuple(texts)
