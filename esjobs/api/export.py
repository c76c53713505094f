"""Exports of a session: ``s.export``."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from esjobs.core.arguments import Where, WindowLike, conditions, window_of
from esjobs.records.context import Facade
from esjobs.settings import ClusterSettings

if TYPE_CHECKING:
    from esjobs.records.export.jobs import ExportFormat


class Export(Facade):
    """Files for others: jobs, and the dashboards as pages."""

    def jobs(
        self,
        out: str | Path,
        *,
        form: "ExportFormat | None" = None,
        where: Where = (),
        window: WindowLike = None,
        spreadsheet: bool = False,
        key: str | Path | None = None,
    ) -> int:
        """Stream stored jobs in canonical columns into a file; return their number.

        ``spreadsheet``: escape formulas in CSV cells. ``key``: file with the key by which names of users,
        projects and hosts are replaced.
        """
        from esjobs.records.export.pseudonyms import Pseudonyms, read_key
        from esjobs.records.jobs.export import export_jobs

        return export_jobs(
            self._context.store,
            str(out),
            form=form,
            where=conditions(where),
            window=window_of(window, self._context.clock),
            spreadsheet=spreadsheet,
            # only with a key: without one a name would have another pseudonym in every export
            pseudonyms=None if key is None else Pseudonyms(read_key(Path(key))),
        )

    def html(self, out: str | Path, *, job_pages: int = 300) -> Path:
        """Write the dashboards into a folder of HTML that needs no network; return the first page.

        ``job_pages``: number of jobs with a page of their own, those with the worst scores and issues.
        """
        from esjobs.records.clusters.reading import clusters_of
        from esjobs.render.bundles import jobs_of
        from esjobs.render.html_pages import write_pages

        cluster = self._context.settings.section(ClusterSettings)
        jobs = jobs_of(cluster.jobs_index, cluster.field_map)
        # read only when a page has a roofline to draw
        clusters = partial(clusters_of, self._context.settings)
        return write_pages(self._context.store, out, jobs, job_pages, self._context.clock(), clusters)
