"""Session over one open store; the command line is a thin layer over it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from esjobs.api.lazy import FacadeOf
from esjobs.api.page import Page, usage_page
from esjobs.core.arguments import Names, QueryOptions, Where, WindowLike, window_of
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import NoResultError, StoreError
from esjobs.core.report import RunReport
from esjobs.core.words import Level
from esjobs.records.answer import Answer
from esjobs.records.context import Context
from esjobs.records.facade import Records
from esjobs.records.jobs.aggregate import Progress
from esjobs.settings import Settings
from esjobs.store.base import JobStore
from esjobs.store.files.sharing import share_with

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from esjobs.api.export import Export
    from esjobs.api.runs import Runs
    from esjobs.api.speed import DrawnSpeed
    from esjobs.api.tables import Tables
    from esjobs.delivered.facade import Delivered
    from esjobs.errors.facade import Errors
    from esjobs.flags.facade import Flags
    from esjobs.issues.facade import Issues
    from esjobs.issues.one_job import JobStory
    from esjobs.noise.facade import Noise
    from esjobs.pop.facade import Pop
    from esjobs.provisioning.facade import Provisioning
    from esjobs.records.facade import Declared
    from esjobs.records.ingest.base import Source
    from esjobs.render.person import Person
    from esjobs.render.profile.profile import Profile
    from esjobs.scores.facade import Scores
    from esjobs.similar.facade import Similar
    from esjobs.what_if.facade import WhatIf


class Session:
    """Questions, steps and results over one open store."""

    tables: "FacadeOf[Tables]" = FacadeOf("esjobs.api.tables:Tables")
    """Result tables: ``s.tables.flags()``."""
    runs: "FacadeOf[Runs]" = FacadeOf("esjobs.api.runs:Runs")
    """Stored runs: ``s.runs.prune()``."""
    export: "FacadeOf[Export]" = FacadeOf("esjobs.api.export:Export")
    """Exports: ``s.export.jobs("jobs.parquet")``."""
    declared: "FacadeOf[Declared]" = FacadeOf("esjobs.records.facade:Declared")
    """Declared and reference scores: ``s.declared.import_values("corepower.csv")``."""
    speed: "FacadeOf[DrawnSpeed]" = FacadeOf("esjobs.api.speed:DrawnSpeed")
    """Steps of the fit, and comparison of runs: ``s.speed.compare()``."""
    flags: "FacadeOf[Flags]" = FacadeOf("flags")
    """Deviations and their history: ``s.flags.verdicts()``."""
    scores: "FacadeOf[Scores]" = FacadeOf("scores")
    """Scores of jobs: ``s.scores.rank("user")``."""
    issues: "FacadeOf[Issues]" = FacadeOf("issues")
    """Issues of jobs: ``s.issues.detect()``."""
    pop: "FacadeOf[Pop]" = FacadeOf("pop")
    """Parallel efficiency: ``s.pop.gather()``."""
    similar: "FacadeOf[Similar]" = FacadeOf("similar")
    """Similar jobs: ``s.similar.jobs("4711")``."""
    noise: "FacadeOf[Noise]" = FacadeOf("noise")
    """Cost of monitoring: ``s.noise.keep("ldms-1s", off, on)``."""
    provisioning: "FacadeOf[Provisioning]" = FacadeOf("provisioning")
    """Quality of provisioning: ``s.provisioning.waiting("queue")``."""
    delivered: "FacadeOf[Delivered]" = FacadeOf("delivered")
    """Delivered work: ``s.delivered.work("site")``."""
    nights: "FacadeOf[Any]" = FacadeOf("nights")
    """Nightly runs: ``s.nights.tend()`` does what is due."""
    if TYPE_CHECKING:
        # reached by __getattr__: completion offers thirty names at most
        errors: "FacadeOf[Errors]"
        """Lost work by reason, and failing nodes: ``s.errors.lost("error")``."""
        what_if: "FacadeOf[WhatIf]"
        """Forecasts of changes, and profiles of tasks: ``s.what_if.drain("SITE")``."""

    def __init__(
        self,
        store: JobStore | None,
        settings: Settings,
        *,
        opener: Callable[[], JobStore] | None = None,
        read_only: bool = False,
        progress: Progress | None = None,
        clock: Clock = system_clock,
        called: str | None = None,
    ) -> None:
        self._store = store
        self._called = settings.location if called is None else called
        self._opener = opener
        self._settings = settings
        # per process: of several sessions the last one decides
        share_with(settings.share)
        self._context = Context(lambda: self.store, settings, clock, progress, read_only)

    @property
    def store(self) -> JobStore:
        """The store; opened now, if the session was opened late."""
        if self._store is None:
            if self._opener is None:
                raise StoreError("the session is closed; open it again")
            self._store = self._opener()
        return self._store

    @property
    def settings(self) -> Settings:
        """Settings that the session was opened with."""
        return self._settings

    def close(self) -> None:
        """Release the store."""
        # or a late session would open again at its next question
        self._opener = None
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # so that a misspelt attribute is an error of types

        def __getattr__(self, name: str) -> Any:
            """Facade of a capability that has no attribute above: one of another package."""
            if not name.startswith("_"):
                with suppress(LookupError):
                    return self._context.facade(name)
            raise AttributeError(f"a session has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<esjobs.Session {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items())
        return f"<table>{''.join(cells)}</table>"

    def _facts(self) -> dict[str, str]:
        """Store, jobs and latest run; nothing is opened for it."""
        facts = {"store": self._called}
        if self._store is None:
            return {**facts, "state": "closed" if self._opener is None else "not opened yet"}
        try:
            span = self._store.span()
            window = "none" if span.first is None else f"{self.runs.window()}"
            facts["jobs"] = f"{span.jobs:,} jobs" + ("" if span.first is None else f" [{window}]")
            shown = self.runs.shown("flags")
            facts["latest run"] = "" if shown is None else f"latest {shown.title}"
        except NoResultError:
            facts["latest run"] = "no run yet"
        except StoreError:
            facts["state"] = "closed"
        return facts

    def ingest(
        self,
        form: str | None = None,
        files: "str | Path | Sequence[str | Path] | pd.DataFrame | pa.Table" = (),
        *,
        source: "Source | None" = None,
        fill: Sequence[str] | Mapping[str, object] = (),
        dry_run: bool = False,
        mapping: str | Path | None = None,
    ) -> RunReport:
        """Load files of a format (``panda``, ``jobs``, ...): all files of the call or none.

        ``files`` may be a pandas frame or an Arrow table with the columns of a file of the format.
        ``source``: an object that reads a format, instead of its name; see
        :class:`esjobs.records.ingest.base.Source`. ``fill``: ``FIELD=VALUE`` texts or a mapping, for fields
        that a record lacks. ``mapping``: a file that maps columns and metrics of the format ``series``.
        Raises :class:`UsageError` for an object that is not a source.
        """
        return Records(self._context).ingest(
            form, files, source=source, fill=fill, dry_run=dry_run, mapping=mapping
        )

    def undo(self, load: str) -> RunReport:
        """Undo a load and restore what it had replaced."""
        return Records(self._context).undo(load)

    def run(
        self, window: WindowLike = None, *, tasks: Names = (), where: Where = (), rebuild: bool = False
    ) -> list[RunReport]:
        """Aggregate, fit, correlate and flag; the results become visible together, at the end."""
        return self.speed.run(window, tasks=tasks, where=where, rebuild=rebuild)

    def query(
        self,
        by: Names = (),
        metrics: Names = ("jobs",),
        *,
        where: Where = (),
        window: WindowLike = None,
        clean: bool = False,
        **more: Unpack[QueryOptions],
    ) -> Answer:
        """Aggregate the stored jobs by fields, ``week``, ``month`` or ``hour``; metrics: ``esjobs fields``.

        ``where``: ``FIELD=VALUE`` texts; values of one field are alternatives, all fields must match. All
        jobs count unless ``clean``. Ratios are ratios of sums over the jobs that have every term. One row
        without anything to group by. Other keywords: :class:`~esjobs.core.arguments.QueryOptions`.

            s.query("queue", "efficiency", sort="efficiency", descending=False, min_jobs=100, top=10)
        """
        from esjobs.api.asking import ask_groups

        return ask_groups(self._context, by, metrics, where, window, clean, more)

    def jobs(
        self,
        *,
        where: Where = (),
        window: WindowLike = None,
        columns: Names = (),
        sort: str | None = None,
        desc: bool = False,
        top: int | None = None,
    ) -> Answer:
        """Stored jobs in canonical columns; read when they are used, in batches if they are many.

        ``columns``: these fields only, derived and resolved ones too. ``sort``: field to sort by, smallest
        first, or largest with ``desc``; jobs without a value come last, equal ones by source and job_id.
        ``top``: the first N; without ``sort`` those that ended last.

        >>> import esjobs
        >>> with esjobs.open("duckdb::memory:") as session:
        ...     sum(batch.num_rows for batch in session.jobs(columns=["queue", "cpu_s"]).batches())
        0
        """
        from esjobs.api.asking import ask_jobs

        return ask_jobs(self._context, where, window, columns, sort, desc, top)

    def sql(self, text: str, *, timeout_s: float = 300.0) -> Answer:
        """Rows of one SELECT on the embedded store: ``jobs``, result tables, ``latest_factors``, ...

        It cannot change anything or read files; afterwards no statement of this session can read files.
        Raises :class:`UsageError` for anything but one SELECT, and on a cluster; :class:`StoreError` after
        ``timeout_s`` seconds.
        """
        from esjobs.api.asking import ask_sql

        return ask_sql(self._context, text, timeout_s)

    def site(self, name: str) -> "Page[Profile]":
        """Profile of a site with all its queues, as of the latest run; case does not matter.

        Raises :class:`UsageError` with close names, :class:`NoJobsError` when nothing is stored.
        """
        return self._profile("queue", name)

    def queue(self, name: str) -> "Page[Profile]":
        """Profile of a queue; as :meth:`site`."""
        return self._profile("queue", name)

    def cpu(self, name: str) -> "Page[Profile]":
        """Profile of a CPU model; as :meth:`site`."""
        return self._profile("cpu_model", name)

    def _profile(self, level: Level, name: str) -> "Page[Profile]":
        from esjobs.render.profile.profile import profile
        from esjobs.render.text.profile import page_text

        content, clock = profile(self.store, level, name), self._context.clock

        def html() -> str:
            from esjobs.render.profile_page import profile_html

            return profile_html(content, clock())

        return Page(content, html, lambda: page_text(content))

    def user(self, name: str, *, window: WindowLike = None) -> "Page[Person]":
        """Page of a user: hours, scores, ranking, issues with hints, jobs to look at.

        Raises :class:`UsageError` with close names, :class:`NoJobsError` when nothing is stored.
        """
        return self._person("user", name, window)

    def project(self, name: str, *, window: WindowLike = None) -> "Page[Person]":
        """Page of a project; as :meth:`user`."""
        return self._person("project", name, window)

    def _person(self, kind: str, name: str, window: WindowLike) -> "Page[Person]":
        from esjobs.render.person import person
        from esjobs.render.text.profile import page_text

        content = person(self.store, kind, name, window_of(window, self._context.clock))

        def html() -> str:
            from esjobs.render.person_page import person_html

            return person_html(content)

        return Page(content, html, partial(page_text, content))

    def job(self, job_id: str, *, source: str | None = None) -> "Page[JobStory]":
        """Report on one job: record, scores, issues, time series, roofline, earlier runs of its name.

        Raises :class:`NoResultError` for an unknown job, :class:`UsageError` if a ``source`` is needed.
        """
        from esjobs.issues.earlier_runs import earlier_runs
        from esjobs.issues.one_job import job_story
        from esjobs.records.clusters.reading import clusters_of

        settings = self._context.settings
        found = job_story(self.store, job_id, source, clusters=partial(clusters_of, settings))
        scores = found.scores
        if scores is None:
            # ordinary jobs of large days have no row
            from esjobs.scores.score import score_of_job

            scores = score_of_job(self.store, found.source, found.job_id, settings)
        runs = earlier_runs(self.store, found)
        story = replace(found, scores=scores, monitoring=self.noise.sentences(), runs=runs)

        def html() -> str:
            from esjobs.render.job_page import job_html

            return job_html(story)

        return Page(story, html)

    def report(
        self,
        out: str | Path | None = None,
        *,
        run: str | None = None,
        method: str | None = None,
        usage: WindowLike | bool = False,
    ) -> "Page[Any]":
        """Report of a run (None: the latest) as one HTML file; written to ``out``, if named.

        ``method``: method whose results it shows; None: the default method of the run. ``usage``: report
        hours, people, failures, waiting, scores and issues of a window instead (True: of all jobs); so does
        a store without any run, as where records carry no events.
        """
        if isinstance(usage, bool):
            page = self._usage(None) if usage else self._speed_report(run, method)
        else:
            page = self._usage(usage)
        if out is not None:
            page.save(out)
        return page

    def _speed_report(self, run: str | None, method: str | None) -> "Page[Any]":
        from dashboards.targets.html.report import render
        from esjobs.publish.stored import stored_runs
        from esjobs.render.report import report_data
        from esjobs.schema.speed import SPEED

        if run is None and method is None and not stored_runs(self.store, SPEED):
            return self._usage(None)
        data = report_data(self.store, run, method, self._context.clock())
        return Page(data, partial(render, data))

    def _usage(self, window: WindowLike) -> "Page[Any]":
        return usage_page(self.store, self._context.days(window))
