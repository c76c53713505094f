"""Row filters of result tables, shared by command line and Python."""

from dataclasses import dataclass

from esjobs.core.words import LEVELS, METHODS


@dataclass(frozen=True)
class RowFilter:
    """Filter of rows: keyword, columns, help.

    The first group of ``columns`` that a table has decides; any column of it may match.
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    help: str
    choices: tuple[str, ...] = ()

    def columns_in(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns that the filter reads in a table; the first group if it has none.

        >>> _, _, name, *_ = ROW_FILTERS
        >>> name.columns_in(("day", "cpu_model", "queue")), name.columns_in(("queue", "name"))
        (('queue', 'cpu_model'), ('name',))
        """
        groups = (tuple(name for name in group if name in names) for group in self.columns)
        return next(filter(None, groups), self.columns[0])


ROW_FILTERS = (
    RowFilter("level", (("level",),), "queue, site or cpu_model; default: all.", LEVELS),
    RowFilter("type", (("processing_type",),), "Processing type, or all."),
    RowFilter(
        "name",
        (("name",), ("queue", "cpu_model", "model"), ("recipient",), ("collector",)),
        "Queue, site or CPU model.",
    ),
    RowFilter("site", (("site",),), "Site: itself and all its queues."),
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
    RowFilter("job", (("job_id",),), "Job, by its id."),
    RowFilter("region", (("region",),), "Region of a program (pop)."),
)
"""In the order in which help lists them."""
