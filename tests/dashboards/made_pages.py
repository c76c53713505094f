"""Pages of a made-up run, whose rows are frames in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dashboards.pages import PAGES
from dashboards.spec import JOBS, View
from dashboards.targets.html.pages.files import Setting, Site, site_of
from dashboards.targets.html.report import ReportData
from dashboards.view.rows import Row, rows_of, select
from esjobs.core.words import ALL_TYPES


@dataclass(frozen=True)
class Frames:
    """Rows for pages out of the tables of one run: it is the latest, and all of history."""

    data: ReportData
    method: str = "gamma"

    def rows(self, view: View, columns: Sequence[str]) -> list[Row]:
        """The rows of a view."""
        del columns
        held = {view.table: rows_of(view.table, getattr(self.data, view.table, None))}
        bare = replace(view, by=(), metrics=(), over="", first=(), sort=view.sort if view.most else ())
        return select(bare, held[view.table], ALL_TYPES, self.method)

    def groups(self, view: View, most: int | None = None) -> list[Row] | None:
        """The groups of a view; there are no jobs."""
        del most
        if view.table == JOBS.name:
            return []
        held = rows_of(view.table, getattr(self.data, view.table, None))
        return select(replace(view, sort=()), held, ALL_TYPES, self.method)


def pages(data: ReportData) -> Site:
    """The pages of a made-up run."""
    return site_of(PAGES, Frames(data), Setting((("Run", "run-4f1c2a"),)))
