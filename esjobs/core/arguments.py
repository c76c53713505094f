"""Windows, names and conditions in the several forms that the Python interface accepts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from os import PathLike
from pathlib import Path
from typing import TypedDict

from esjobs.core.conditions import written
from esjobs.core.errors import UsageError
from esjobs.core.text import kind_of
from esjobs.core.window import Window

WindowLike = Window | str | date | tuple[str | date, str | date] | None
"""A window, its text (``2018-08-01/2018-09-01``, ``2018-W31``, ``last-week``, ``7d``), a day, a pair of
times (pandas' too), a pandas Period; None where there is a usual one."""
Names = str | Iterable[str]
"""One name or several."""
Where = str | Iterable[str | tuple[str, object] | tuple[str, str, object]] | Mapping[str, object]
"""Conditions on fields: texts (``efficiency<0.1``), pairs of a field and a value that it equals, triples with
an operator between, or a mapping. Values of pairs, triples and mappings may be several, and are taken as they
are: none is a list with commas, none needs quotes."""


class Filters(TypedDict, total=False):
    """Filters of result tables, as ``s.tables`` takes them; None is the same as omitted."""

    level: Names | None
    type: Names | None
    name: Names | None
    site: Names | None
    method: Names | None
    run: str | None
    window: WindowLike
    user: Names | None
    project: Names | None
    detector: Names | None
    application: Names | None
    job: Names | None
    region: Names | None
    min_severity: str | None


class ShowOptions(Filters, total=False):
    """Keywords of ``s.tables``: filters, sort order and columns.

    ``descending`` None: numbers largest first, names and times ascending. ``top`` 0 or None: all rows.
    """

    sort: Names | None
    descending: bool | None
    top: int | None
    columns: Names | None


class QueryOptions(TypedDict, total=False):
    """Keywords of :meth:`Session.query` besides groups, metrics and jobs.

    ``bins``: ``FIELD=NUMBER`` or ``FIELD=EDGE,EDGE,...``. ``descending`` None: numbers largest first, names
    ascending. ``top``: N groups, the rest as one row ``others``. ``errors``: standard errors where defined.
    ``compare``: another window, or ``previous``. ``versus``: conditions of the jobs to compare with instead.
    ``share_of``: shares of the total of each value of a field. ``strata``: fields that tell kinds of work
    apart. ``changed``: only rows that changed beyond noise.
    """

    bins: Names
    sort: str | None
    descending: bool | None
    top: int | None
    min_jobs: int
    total: bool
    share: bool
    errors: bool
    compare: WindowLike
    versus: Where
    share_of: str | None
    strata: Names
    changed: bool


def window_of(window: WindowLike, now: Callable[[], datetime] | None = None) -> Window | None:
    """Return the window, or None; ``now``: clock of relative periods such as ``yesterday``."""
    return None if window is None else Window.of(window, None if now is None else now())


def day_of(day: date | str) -> date:
    """Return a day from a date or ISO text. Raises :class:`UsageError` otherwise.

    >>> day_of("2018-08-01")
    datetime.date(2018, 8, 1)
    """
    # first: a datetime is a date too
    if isinstance(day, datetime):
        return day.date()
    if isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day)
    except (TypeError, ValueError):
        raise UsageError(f"{day!r:.60} is not a day; expected a date such as 2018-08-01") from None


def listed(values: Names) -> tuple[str, ...]:
    """Return names as a tuple. Raises :class:`UsageError` if one is not text.

    >>> listed("CERN"), listed(["CERN", "BNL"])
    (('CERN',), ('CERN', 'BNL'))
    """
    if isinstance(values, str):
        return (values,)
    supplied: object = values
    if not isinstance(supplied, Iterable):
        raise UsageError(f"expected one or several names as texts; got {_described(supplied)}")
    # read once: an iterator is empty afterwards
    names = tuple(supplied)
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"expected names as texts; one of them is {_described(name)}")
    return names


def split(values: Names) -> tuple[str, ...]:
    """Return names, each text split at commas as on the command line.

    >>> split("queue, week"), split(["queue", "week"])
    (('queue', 'week'), ('queue', 'week'))
    """
    return tuple(name.strip() for text in listed(values) for name in text.split(",") if name.strip())


def paths(files: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return files as paths. Raises :class:`UsageError` for anything that does not name a file."""
    supplied: object = [files] if isinstance(files, str | Path) else files
    if not isinstance(supplied, Iterable):
        raise UsageError(f"expected one or several files as paths; got {_described(supplied)}")
    named = list(supplied)
    for name in named:
        if not isinstance(name, str | PathLike):
            raise UsageError(f"expected files as paths; one of them is {_described(name)}")
        if name == "":
            # the current folder, for pathlib: of a variable of the shell that is not set
            raise UsageError("the name of a file is empty; specify a file")
    return [Path(name) for name in named]


def count_of_runs(name: str, number: object, what: str = "runs") -> None:
    """Raise :class:`UsageError` unless a count is None or a non-negative integer."""
    # True is an integer to Python
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
        raise UsageError(f"{name} must be a whole number of {what}, 0 or more; got {number!r}")


def _described(supplied: object) -> str:
    return "None" if supplied is None else f"{supplied!r:.60}, {kind_of(supplied)}"


def conditions(where: Where) -> tuple[str, ...]:
    """Return conditions as texts; a value of None means missing, an empty list of values is refused.

    >>> conditions({"queue": ["CERN", "a,b"], "task_id": None}), conditions([("efficiency", "<", 0.1)])
    (('queue=CERN', 'queue="a,b"', 'task_id='), ('efficiency<0.1',))
    """
    if isinstance(where, str):
        return (where,)
    supplied: object = where.items() if isinstance(where, Mapping) else where
    if not isinstance(supplied, Iterable):
        raise UsageError(
            f"expected conditions as FIELD=VALUE texts or as a mapping; got {_described(supplied)}"
        )
    texts: list[str] = []
    for item in supplied:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, tuple | list) and len(item) in (2, 3):  # field, operator unless it is =, value
            texts += _of_values(str(item[0]), "=" if len(item) == 2 else str(item[1]), item[-1])
        else:
            raise UsageError(f"expected FIELD=VALUE or a pair of both; got {_described(item)}")
    return tuple(texts)


def _of_values(name: str, operator: str, value: object) -> list[str]:
    values = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    if not values:
        # left out, it would answer another question than the one that was asked
        raise UsageError(f"the list of values for {name} is empty; omit {name} to select all")
    if operator == "=":
        # one by one, so that the same question is the same run however it was asked
        return [f"{name}=" if _is_none(one) else written(name, "=", [str(one)]) for one in values]
    if any(_is_none(one) for one in values):
        if operator == "!=" and len(values) == 1:
            return [f"{name}!="]
        raise UsageError(f"{name} {operator} None is not a comparison; omit it or use: is missing")
    return [written(name, operator, map(str, values))]


def _is_none(value: object) -> bool:
    return value is None or value == ""
