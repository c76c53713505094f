"""The result tables of a store as frames: one method for each of them, and ``show`` for any."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from esjobs.api.answers import Answers
from esjobs.api.arguments import Filters, ShowOptions, WindowLike
from esjobs.core.tables import Table
from esjobs.render.frames import frame_of
from esjobs.schema import catalogue as capabilities

if TYPE_CHECKING:
    import pandas as pd

    from esjobs.publish.stored import StoredRun


class ResultTables:
    """What a session gives of its results; every table of the catalogue is a method: ``s.flags(...)``."""

    if TYPE_CHECKING:

        @property
        def arrow(self) -> Answers:
            """The same answers as Arrow tables."""

        def __getattr__(self, name: str) -> Callable[..., "pd.DataFrame"]: ...

    def verdicts(self, **filters: Unpack[Filters]) -> "pd.DataFrame":
        """The headline: verdicts of the queues, all types together, by the headline method.

        What may be sent comes first, the largest deviation first. Filters as in :meth:`show`: ``level``,
        ``type`` and ``method`` name others.
        """
        return frame_of(self.arrow.verdicts(**filters))

    def show(self, what: str, **options: Unpack[ShowOptions]) -> "pd.DataFrame":
        """The rows of a result table, those of the latest run unless ``run`` names another.

        The latest run is the complete one of the newest window; a restricted run (``tasks``, ``where``) or an
        incomplete one counts only where there is no other. :meth:`run_shown` says which one it is.

        ``level``, ``type``, ``name``, ``method``, and ``site``, the WLCG site behind a queue: one value or
        several; only tables with such columns take them. Upper and lower case of a value do not matter where
        only one is meant. Buckets, days, loads, rejects, runs and corepower belong to no run: all visible
        rows are given, buckets and days of the window, runs of the run and of exactly the window; where these
        mean nothing they are refused.

        ``sort``: a column or several; missing values come last. ``descending`` None: numbers from the
        largest, names and times from the first. ``top``: so many rows, of the usual order without ``sort``.
        ``columns``: these and no others, in this order; no others are read.

        Raises :class:`NoResultError` when no run has the results, :class:`KeywordError` (a TypeError) for an
        unknown keyword, and :class:`UsageError` for a column that the table lacks and a value that no row
        has; all name what is close.
        """
        return frame_of(self.arrow.show(what, **options))

    def run_shown(
        self, what: str, *, run: str | None = None, window: WindowLike = None
    ) -> "StoredRun | None":
        """The run whose rows :meth:`show` gives; None for tables that belong to no run.

        Raises :class:`NoResultError` when no run has the results.
        """
        return self.arrow.run_shown(what, run=run, window=window)


def _reader(table: Table) -> Callable[..., Any]:
    """The method that shows a table."""

    def read(self: ResultTables, **options: Unpack[ShowOptions]) -> "pd.DataFrame":
        return self.show(table.name, **options)

    read.__name__ = read.__qualname__ = table.name
    read.__doc__ = f"{table.meaning[0].upper()}{table.meaning[1:]}; keywords as in :meth:`show`."
    return read


for _table in capabilities.TABLES:
    setattr(ResultTables, _table.name, _reader(_table))
