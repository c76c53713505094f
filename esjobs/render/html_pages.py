"""The pages of dashboards of a store as a folder of HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path

from dashboards.pages import HEADLINE, PAGES
from dashboards.spec import JOBS, OWN, JobsIndex, Page, View, Where, table
from dashboards.targets.html.pages.files import JOB_STYLE, MARK, Facts, Setting, Site, files_of, site_of
from dashboards.view.ask import groups, query_rows
from dashboards.view.rows import Row, keeps
from esjobs.core.numbers import day_range
from esjobs.core.version import __version__
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.issues.one_job import DescribedClusters
from esjobs.publish.latest import latest_run
from esjobs.publish.stored import StoredRun
from esjobs.records.clusters.description import Clusters
from esjobs.render.freshness import freshness_of
from esjobs.render.job_pages import FOLDER, USUAL_JOBS, JobPages, job_files, job_pages
from esjobs.schema.catalogue import KINDS, kind_of
from esjobs.schema.speed import SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore
from esjobs.store.files.folders import write_folder

NO_JOBS = JobPages()  # No job has a page


def write_pages(
    store: JobStore,
    out: str | Path,
    jobs: JobsIndex = OWN,
    most_jobs: int = USUAL_JOBS,
    now: datetime | None = None,
    clusters: DescribedClusters = Clusters,
) -> Path:
    """Write the pages of a store into a folder, in place of those of before; the page to open.

    ``jobs``: where the jobs are and what is known of them; what is asked of the jobs themselves is about the
    window of the latest run. ``most_jobs``: so many jobs have a page of their own. ``now``: the time of
    writing, at which the age of the run is told. ``clusters``: reads the peaks of nodes, for rooflines. Files
    that are not of pages stay as they are. Without a run the pages say so.
    Raises :class:`InputError` when the folder cannot be written, or has a file of somebody else under a name
    of ours.
    """
    of_jobs = job_pages(store, most_jobs)
    site = pages_of(store, jobs, of_jobs, now)
    pages = job_files(store, of_jobs, f"{site.folder}/{JOB_STYLE}", MARK, clusters)
    write_folder(out, chain(pages, files_of(site)), site.folder, MARK, below=FOLDER)
    return Path(out) / next(iter(site.pages))


def pages_of(
    store: JobStore,
    jobs: JobsIndex = OWN,
    of_jobs: JobPages = NO_JOBS,
    now: datetime | None = None,
    pages: Sequence[Page] = PAGES,
    ways: Facts = (),
    library: str = "",
) -> Site:
    """The pages of a store as files, without those of jobs; the same rows give the same files.

    ``ways``: titles and addresses of pages beside these. ``library``: address of the script that draws;
    empty: a part of these.
    """
    runs = {kind.name: latest_run(store, kind) for kind in KINDS}
    shown = runs[SPEED.name]
    if shown is None:
        setting = Setting(
            _facts(None), _notes(of_jobs), jobs=jobs, of_jobs=of_jobs.files, ways=ways, library=library
        )
        return site_of(pages, Stored(store, {}, HEADLINE), setting)
    fit = SpeedQuestion.of_run(shown).fit
    latest = {name: run.run for name, run in runs.items() if run is not None}
    reader = Stored(store, latest, fit.methods[0], shown.window)
    age = freshness_of(store, shown, now)
    setting = Setting(
        _facts(shown), _notes(of_jobs), fit.deviation_limit, jobs, of_jobs.files, age, ways, library
    )
    return site_of(pages, reader, setting)


def _facts(run: StoredRun | None) -> Facts:
    """Facts of the header: origin of the numbers."""
    if run is None:
        return (("Speed factors", "no run yet"),)
    return ("Window", day_range(run.window.start, run.window.end)), ("Run", run.run)


def _notes(of_jobs: JobPages) -> Facts:
    """Notes of the footer."""
    pages = (("Pages of jobs", of_jobs.summary),) if len(of_jobs.files) else ()
    return *pages, ("esjobs", __version__)


@dataclass(frozen=True)
class Stored:
    """Rows for pages out of a store.

    ``latest``: the latest run by its kind. ``method``: whose results. ``window``: of the jobs themselves,
    those that ended in it; None: all.
    """

    store: JobStore
    latest: Mapping[str, str]
    method: str
    window: Window | None = None

    def rows(self, view: View, columns: Sequence[str]) -> list[Row]:
        """The rows of a view as they are, with some columns; none named: all. With ``first``, its groups'.

        What ``first`` leaves out is left in the store: of a long history a few names are wanted.
        """
        of_run = self._of_latest(view)
        if of_run is None:
            return []
        plain = replace(of_run, by=(), first=())
        if not view.first:
            return query_rows(self.store, plain, ALL_TYPES, self.method, columns)
        read = [*view.by, *(where.column for where in view.first)]
        seen = query_rows(self.store, plain, ALL_TYPES, self.method, read)
        wanted = [{row[column] for row in seen if keeps(row, view.first)} for column in view.by]
        if not all(wanted):
            return []
        values = [tuple(sorted(each - {None}, key=str)) for each in wanted]
        narrow = tuple(Where(column, each) for column, each in zip(view.by, values, strict=True))
        return query_rows(
            self.store, replace(plain, where=(*plain.where, *narrow)), ALL_TYPES, self.method, columns
        )

    def groups(self, view: View, most: int | None = None) -> list[Row] | None:
        """The groups of a view, as the store adds them up; None when there are more than ``most``."""
        of_run = self._of_latest(view)
        if of_run is None:
            return []
        return groups(self.store, of_run, ALL_TYPES, self.method, window=self.window, most=most)

    def _of_latest(self, view: View) -> View | None:
        """A view of the latest run, where runs make its table; None where there is no such run."""
        kind = None if view.table == JOBS.name else kind_of(table(view.table))
        if kind is None or view.runs == "every":
            return view
        run = self.latest.get(kind.name)
        return None if run is None else replace(view, where=(*view.where, Where("run", (run,))))
