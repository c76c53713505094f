"""The tables that views are about: every result table, and the jobs themselves."""

from dashboards.spec.jobs import JOBS
from esjobs.core.tables import Table
from esjobs.schema import catalogue as capabilities


def table(name: str) -> Table:
    """Look a table up by name; :class:`esjobs.core.errors.UsageError` that lists the result tables.

    >>> table("jobs").time, table("flags").time
    ('end_time', 'window_end')
    """
    return JOBS if name == JOBS.name else capabilities.table(name)


def has_levels(name: str) -> bool:
    """True if column ``level`` of a table distinguishes queues, sites and CPU models.

    Efficiencies of programs have a column of that name, too: what their times are of.

    >>> has_levels("flags"), has_levels("fits"), has_levels("pop"), has_levels("scores")
    (True, True, False, False)
    """
    found = table(name)
    # that column lists no values; one that lists its own is about something else
    return "level" in found.column_names and not found.column("level").values
