"""The vocabulary of panels: what is shown, from which result table, in which role; never how it is drawn.

A panel is a plain fact: a frozen record that names a table of :mod:`esjobs.core.tables`, its columns and
the rows it wants. Every target (the HTML report, saved objects of a dashboard server, a chart in a
notebook) reads the same records, so that the same question has the same answer everywhere. The report's
panels, in order, are listed in :mod:`dashboards.panels`.
"""

from dashboards.spec.fields import Entry, Role, Show
from dashboards.spec.jobs import (
    JOBS,
    OWN,
    WASTED_IS,
    IndexFields,
    JobsIndex,
    factors_of,
    lacking,
    multipliers,
)
from dashboards.spec.looks import (
    CARE,
    EVERY_LOOK,
    FIXED_COLOURS,
    GO,
    GROUPS,
    LOOKS,
    NEUTRAL,
    STATES,
    STOP,
    Look,
    look_of,
)
from dashboards.spec.pages import COLUMNS, Choice, Page, Placed, hinted, stacked
from dashboards.spec.panels import ONE_SIGMA, Kind, Panel, Tile
from dashboards.spec.tables import has_levels, table
from dashboards.spec.views import UNFILTERED, Join, Mean, View, Where

__all__ = [
    "CARE",
    "COLUMNS",
    "EVERY_LOOK",
    "FIXED_COLOURS",
    "GO",
    "GROUPS",
    "JOBS",
    "LOOKS",
    "NEUTRAL",
    "ONE_SIGMA",
    "OWN",
    "STATES",
    "STOP",
    "UNFILTERED",
    "WASTED_IS",
    "Choice",
    "Entry",
    "IndexFields",
    "JobsIndex",
    "Join",
    "Kind",
    "Look",
    "Mean",
    "Page",
    "Panel",
    "Placed",
    "Role",
    "Show",
    "Tile",
    "View",
    "Where",
    "factors_of",
    "has_levels",
    "hinted",
    "lacking",
    "look_of",
    "multipliers",
    "stacked",
    "table",
]
