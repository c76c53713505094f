"""Filters by which people choose rows of result tables: the same words on the command line and in Python."""

from dataclasses import dataclass

from esjobs.core.words import LEVELS, METHODS


@dataclass(frozen=True)
class RowFilter:
    """A filter: its keyword, the columns that it looks at, its help.

    ``columns``: groups of columns; the first group of which a table has any decides, and a row is chosen by
    any of them. ``choices``: all values there are, where these do not come from records.
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    help: str
    choices: tuple[str, ...] = ()

    def columns_in(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that it looks at in a table with these; of a table without any, the first of all.

        >>> _, _, name, *_ = ROW_FILTERS
        >>> name.columns_in(("day", "cpu_model", "queue")), name.columns_in(("queue", "name"))
        (('queue', 'cpu_model'), ('name',))
        """
        groups = (tuple(name for name in group if name in names) for group in self.columns)
        return next(filter(None, groups), self.columns[0])


ROW_FILTERS = (
    RowFilter("level", (("level",),), "queue or cpu_model; default: both.", LEVELS),
    RowFilter("type", (("processing_type",),), "Processing type, or all."),
    RowFilter(
        "name",
        (("name",), ("queue", "cpu_model", "model"), ("recipient",), ("collector",)),
        "Queue or CPU model.",
    ),
    RowFilter("site", (("site",),), "Site: all its queues."),
    RowFilter(
        "method",
        (("method",),),
        "Whose results: a method of the fit; default: the headline in tables, else all.",
        METHODS,
    ),
    RowFilter("user", (("user",),), "Of jobs: who they ran for."),
    RowFilter("project", (("project",),), "Of jobs: what they count for."),
    RowFilter("detector", (("detector",),), "Issues of this rule or detector."),
    RowFilter("application", (("application",),), "Of jobs: what they ran."),
)
"""In the order in which help lists them."""
