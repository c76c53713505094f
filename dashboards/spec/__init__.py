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
from dashboards.spec.looks import EVERY_LOOK, GROUPS, LOOKS, STATES, Look, look_of
from dashboards.spec.pages import COLUMNS, Choice, Page, Placed, hinted, stacked
from dashboards.spec.panels import ONE_SIGMA, Kind, Panel, Tile
from dashboards.spec.tables import has_levels, table
from dashboards.spec.views import UNFILTERED, Join, Mean, View, Where

__all__ = [
    "COLUMNS",
    "EVERY_LOOK",
    "GROUPS",
    "JOBS",
    "LOOKS",
    "ONE_SIGMA",
    "OWN",
    "STATES",
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
