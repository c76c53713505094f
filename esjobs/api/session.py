"""One open store and everything that can be asked of it; the command line is a thin layer over this."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import date
from functools import partial
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import pyarrow as pa

from esjobs.api.answers import Answers
from esjobs.api.arguments import (
    Names,
    QueryOptions,
    Where,
    WindowLike,
    conditions,
    count_of_runs,
    day_of,
    listed,
    paths,
    window_of,
)
from esjobs.api.factory import open_store, require_address
from esjobs.api.tables import ResultTables
from esjobs.core import fields
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import NoJobsError, NoResultError, StoreError, UsageError
from esjobs.core.report import RunReport
from esjobs.core.text import kind_of
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import Progress
from esjobs.render.frames import frame_of
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import KINDS, TABLES
from esjobs.schema.speed import FLAGS, SPEED
from esjobs.settings import Settings, load
from esjobs.store.base import JobStore, require_store
from esjobs.store.checks import writes
from esjobs.store.files.sharing import share_with

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from esjobs.issues.one_job import JobStory
    from esjobs.noise.budget import NoiseBudget
    from esjobs.provisioning.desk import Provisioning
    from esjobs.publish.stored import StoredRun
    from esjobs.records.export.jobs import ExportFormat
    from esjobs.records.ingest.base import Source
    from esjobs.records.jobs.forgetting import Forgotten
    from esjobs.render.profile.profile import Profile
    from esjobs.scores.rank import Ranking
    from esjobs.similar.programs import SimilarPrograms
    from esjobs.similar.similar import SimilarJobs
    from esjobs.speed.chain import Chain
    from esjobs.speed.question import SpeedQuestion
    from scheduler.condition import Condition
    from scheduler.nights import Nights
    from scheduler.notifications.notifier import Notifier


def open(  # noqa: A001  used as esjobs.open(...)
    store: str | JobStore | None = None,
    *,
    config: str | Path | None = None,
    settings: Settings | None = None,
    create: bool = True,
    late: bool = False,
    read_only: bool = False,
    progress: Progress | None = None,
    clock: Clock = system_clock,
) -> "Session":
    """Open a store and return a session; use it as a context manager or close it.

    ``create``: make the store when it does not exist; otherwise that is an error. ``late``: open it when it
    is needed first, so that a file that cannot be read neither makes nor locks it.

    ``store``: ``duckdb:PATH``, ``duckdb::memory:`` or the address of a cluster; without it the settings
    decide. It may also be an object of your own that keeps the promises of
    :class:`esjobs.store.base.JobStore`, opened with the tables of ``esjobs.schema.catalogue.TABLES``; the
    session closes it. ``progress`` is called with what is being done, how much is done, and of how much.
    Raises :class:`EsjobsError`, :class:`UsageError` for an object that is no store.
    """
    if store is not None and not isinstance(store, str):
        if settings is None:
            settings = load(Path(config) if config is not None else None, None)
        return Session(
            require_store(store),
            settings,
            read_only=read_only,
            progress=progress,
            clock=clock,
            called=kind_of(store),
        )
    if settings is None:
        settings = load(Path(config) if config is not None else None, store)
    elif store is not None:
        settings = settings.model_copy(update={"store": store})
    opener = partial(open_store, settings, create=create, read_only=read_only)
    if not late:
        return Session(opener(), settings, read_only=read_only, progress=progress, clock=clock)
    require_address(settings)
    return Session(None, settings, opener=opener, read_only=read_only, progress=progress, clock=clock)


class Session(ResultTables):
    """Steps, results and questions over one open store. Frames come back with typed columns."""

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
        self._called = settings.place if called is None else called
        self._opener = opener
        self.read_only = read_only
        self.settings = settings
        share_with(settings.share)
        self._progress = progress
        self._clock = clock

    @property
    def store(self) -> JobStore:
        """The store; opened now, if the session was told to do so late."""
        if self._store is None:
            if self._opener is None:
                raise StoreError("the session is closed; open it again")
            self._store = self._opener()
        return self._store

    @property
    def arrow(self) -> Answers:
        """The same questions with Arrow tables for answers: for large ones, and where no pandas is needed."""
        return Answers(self.store, self.settings.rules, self._clock)

    def __repr__(self) -> str:
        return f"<esjobs.Session {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        """The same facts as a table, for notebooks."""
        cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items())
        return f"<table>{''.join(cells)}</table>"

    def _facts(self) -> dict[str, str]:
        """What a person would ask of a session first; nothing is opened for it."""
        facts = {"store": self._called}
        if self._store is None:
            return {**facts, "state": "closed" if self._opener is None else "not opened yet"}
        try:
            span = self._store.span()
            window = "none" if span.first is None else f"{self.stored_window()}"
            facts["jobs"] = f"{span.jobs:,} jobs" + ("" if span.first is None else f" [{window}]")
            shown = self.run_shown("flags")
            facts["latest run"] = "" if shown is None else f"latest {shown.title}"
        except NoResultError:
            facts["latest run"] = "no run yet"
        except StoreError:
            facts["state"] = "closed"
        return facts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the store."""
        self._opener = None
        if self._store is not None:
            self._store.close()

    @writes
    def ingest(
        self,
        form: str | None = None,
        files: "str | Path | Sequence[str | Path] | pd.DataFrame | pa.Table" = (),
        *,
        source: "Source | None" = None,
        fill: Sequence[str] | Mapping[str, object] = (),
        dry_run: bool = False,
    ) -> RunReport:
        """Read files of a format (``panda``, ``jobs``, ...); all files of the call or none.

        ``files`` may be a table in memory, a frame of pandas or a table of Arrow, with the columns that a
        file of the format has; it is read as a Parquet file of them would be.
        ``source``: an object of your own that reads a format, instead of the name of one; see
        :class:`esjobs.records.ingest.base.Source`. ``fill``: ``FIELD=VALUE`` texts or a mapping; fills fields
        where a record lacks them. Raises :class:`UsageError` for an object that is no source.
        """
        from esjobs.records.ingest.base import parse_fill, require_source, settable
        from esjobs.records.ingest.formats import sources
        from esjobs.records.ingest.formats.declared_values import DeclaredValues
        from esjobs.records.ingest.frames import as_file, is_frame
        from esjobs.records.jobs.corepower import ingest_declared
        from esjobs.records.jobs.ingest import ingest

        if (form is None) == (source is None):
            raise UsageError("name a format or give a source, one of them: s.ingest('panda', files)")
        chosen = sources.source(form) if form is not None else require_source(source)

        pairs = [f"{name}={value}" for name, value in fill.items()] if isinstance(fill, Mapping) else fill
        step = partial(ingest_declared, "ingest") if isinstance(chosen, DeclaredValues) else ingest
        filled = parse_fill(pairs, settable(chosen))
        given: AbstractContextManager[Any] = as_file(files) if is_frame(files) else nullcontext(files)
        with given as named:
            report = step(
                lambda: self.store,
                chosen,
                paths(named),
                filled,
                dry_run=dry_run,
                now=self._clock(),
                progress=self._progress,
            )
        return report if dry_run else self._with_talp(report)

    @writes
    def gather_talp(
        self, spools: Sequence[str] = (), *, source: str | None = None, join: bool = True
    ) -> RunReport:
        """Take finished reports of TALP from spools, those of the settings unless named; then join them.

        ``source``: what records of jobs have as theirs, for spools that are named. ``join``: False where
        :meth:`join_talp` follows. Raises :class:`UsageError` where there is no spool, :class:`InputError`
        when none can be read.
        """
        from esjobs.pop.gathering import gather
        from esjobs.pop.settings import spools_of
        from esjobs.records.ingest.formats.talp import Talp
        from esjobs.records.jobs.ingest import ingest

        settings = self.settings.talp
        chosen = spools_of(spools, source) if spools else settings.spools
        if not chosen:
            raise UsageError("no spool to gather from; name a folder, or set talp.spools in the settings")

        def put(files: Sequence[Path], of_source: str | None) -> RunReport:
            fill = {} if of_source is None else {"source": of_source}
            return ingest(lambda: self.store, Talp(), list(files), fill, now=self._clock())

        report = gather(self.store, settings, chosen, put, self._clock().timestamp())
        return self._with_talp(report) if join else report

    @writes
    def undo(self, load: str) -> RunReport:
        """Take a load back and bring back what it had replaced."""
        from esjobs.records.jobs.undo import undo

        return self._with_talp(undo(self.store, load, capabilities.TABLES))

    @writes
    def forget_user(
        self, name: str, *, pseudonymise: bool = False, keep_texts: bool = False, dry_run: bool = False
    ) -> "Forgotten":
        """Take a person's name out of jobs and every table; see :mod:`esjobs.records.jobs.forgetting`."""
        from esjobs.records.jobs.forgetting import forget_user

        return forget_user(
            self.store,
            TABLES,
            name,
            pseudonymise=pseudonymise,
            keep_texts=keep_texts,
            dry_run=dry_run,
        )

    def _with_talp(self, report: RunReport) -> RunReport:
        """The account of a load with what it means for reports of TALP, where there are any."""
        from esjobs.pop.joining import is_used

        if not is_used(self.store):
            return report
        joined = self.join_talp()
        if not joined.counts["days"]:
            return report
        of_jobs, aside = (joined.counts[name] for name in ("reports joined", "reports kept aside"))
        told = f"reports of TALP: {of_jobs:,} of known jobs, {aside:,} kept aside"
        return replace(report, notes=(*report.notes, told, *joined.notes))

    @writes
    def join_talp(self, *, rebuild: bool = False) -> RunReport:
        """Join reports of TALP with the records of their jobs: ``pop``, ``orphans``, ``scaling``.

        :meth:`ingest` does it of itself. ``rebuild``: of every day, also for records that changed since.
        """
        from esjobs.pop.joining import join

        drift = self.settings.drift
        return join(self.store, rebuild=rebuild, significance=drift.significance, smallest=drift.smallest)

    @writes
    def import_corepower(
        self,
        file: str | Path,
        *,
        form: str = "csv",
        benchmark: str | None = None,
        level: str | None = None,
        valid_from: str | None = None,
    ) -> RunReport:
        """Import declared values by queue or CPU model, from CSV or CRIC's description (``cric``)."""
        from esjobs.records.jobs.corepower import import_corepower

        return import_corepower(
            lambda: self.store,
            Path(file),
            form=form,
            benchmark=benchmark,
            level=level,
            valid_from=valid_from,
            now=self._clock(),
        )

    @writes
    def remove_corepower(self, import_id: str) -> RunReport:
        """Take an import of declared values back; :class:`NoResultError` when there is no such import."""
        from esjobs.publish.imports import remove_import
        from esjobs.schema.declared import COREPOWER

        return remove_import(self.store, COREPOWER, import_id, "corepower remove")

    @writes
    def import_references(self, file: str | Path, *, form: str) -> RunReport:
        """Import scores of CPU models that others have measured; ``form``: ``hepix-hs23``, ...

        Raises :class:`UsageError` for an unknown form, :class:`InputError` for a file of another one.
        """
        from esjobs.records.ingest.formats.sources import REFERENCE_SOURCES
        from esjobs.records.jobs.references import import_references

        for source in REFERENCE_SOURCES:
            if source.name == form:
                return import_references(lambda: self.store, source, Path(file), now=self._clock())
        known = ", ".join(source.name for source in REFERENCE_SOURCES)
        raise UsageError(f"no form '{form}' of reference tables; there are {known}")

    @writes
    def remove_references(self, import_id: str) -> RunReport:
        """Take an import of reference scores back; :class:`NoResultError` when there is no such import."""
        from esjobs.publish.imports import remove_import
        from esjobs.schema.references import REFERENCES

        return remove_import(self.store, REFERENCES, import_id, "reference remove")

    @writes
    def aggregate(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Make the buckets of the days of the window that are missing or stale."""
        from esjobs.speed.bucketing import publish_buckets

        question = self._question(window)
        return publish_buckets(self.store, self._clock, question, rebuild=rebuild, progress=self._progress)

    @writes
    def fit(self, window: WindowLike = None, *, tasks: Names = (), where: Where = ()) -> RunReport:
        """Fit factors from the buckets of the window and publish them; what rests on them is made again."""
        return self._chain().fit(self._question(window, tasks, where))

    @writes
    def correlate(self, window: WindowLike = None) -> RunReport:
        """Fit lines to the newest factors of the window, restricted or not; verdicts are made again, too.

        Raises :class:`NoResultError` when there are none.
        """
        return self._chain().correlate(self._days(window))

    @writes
    def flag(self, window: WindowLike = None) -> RunReport:
        """Judge the newest factors of the window, restricted or not, by the declarations of now.

        Raises :class:`NoResultError` when there are none.
        """
        return self._chain().flag(self._days(window))

    @writes
    def run(
        self, window: WindowLike = None, *, tasks: Names = (), where: Where = (), rebuild: bool = False
    ) -> list[RunReport]:
        """Aggregate, fit, correlate and flag; the results become visible together, at the end."""
        return self._chain().run(self._question(window, tasks, where), rebuild=rebuild)

    @writes
    def watch(self, night: date | str | None = None) -> RunReport:
        """Bring the memory of flags up to a night, the day that its windows end with; None: the latest run's.

        What opens, closes, or is reopened then stands in ``flag_events``, what every flag is after the last
        night in ``flag_states``. A night that is watched again gives the same rows. Raises
        :class:`NoResultError` when no complete run of everything ends with the night.
        """
        from esjobs.flags.nights import watch

        asked = None if night is None else day_of(night)
        return watch(self.store, asked, self.settings.watch, self.settings.nights.headline)

    def open_flags(self, states: Names | None = None) -> "pd.DataFrame":
        """What stands open, a row a name; ``states``: others than open and acknowledged."""
        return frame_of(self.arrow.open_flags(states))

    def flag_history(
        self, name: str, *, level: Names | None = None, processing_type: Names | None = None
    ) -> "pd.DataFrame":
        """Everything that happened to the flags of a name: rows of ``flag_events``, oldest first."""
        return frame_of(self.arrow.flag_history(name, level=level, processing_type=processing_type))

    @writes
    def acknowledge_flag(
        self,
        name: str,
        *,
        until: date | str,
        by: str,
        note: str = "",
        level: str | None = None,
        processing_type: str | None = None,
    ) -> RunReport:
        """Keep quiet about the open flags of a name until a night; then they are open again.

        ``processing_type``: only about that kind of work. Raises :class:`NoResultError` when nothing of the
        name is open, :class:`UsageError` for a day that has passed.
        """
        from esjobs.flags.notes import acknowledge

        return acknowledge(
            self.store,
            name,
            self.settings.watch,
            self.settings.nights.headline,
            until=day_of(until),
            by=by,
            text=note,
            level=level,
            processing_type=processing_type,
            now=self._clock(),
        )

    @writes
    def answer_flag(
        self,
        name: str,
        *,
        text: str,
        by: str | None = None,
        level: str | None = None,
        processing_type: str | None = None,
    ) -> RunReport:
        """Keep what a site answered about the flags of a name; ``by``: the WLCG site unless given."""
        from esjobs.flags.notes import answer

        return answer(
            self.store,
            name,
            self.settings.watch,
            self.settings.nights.headline,
            text=text,
            by=by,
            level=level,
            processing_type=processing_type,
            now=self._clock(),
        )

    @writes
    def reasons(self, window: WindowLike = None) -> RunReport:
        """Take the deviations of a run's queues apart: CPU mix, SMT, declaration, rest; publish the parts.

        ``window``: as for :meth:`drift`. ``s.show("reasons")`` gives the parts.
        """
        from esjobs.flags.decomposition.reasons import reasons

        chosen = None if window is None else self._days(window)
        return reasons(self.store, self._clock, self.settings, chosen)

    @writes
    def drift(self, window: WindowLike = None) -> RunReport:
        """Look for days from which on queues or CPU models ran faster or slower; publish what is found.

        ``window``: one that was run, without restriction; None: that of the latest run. Raises
        :class:`NoResultError` when there is none.
        """
        from esjobs.flags.drift.drift import drift

        chosen = None if window is None else self._days(window)
        return drift(self.store, self._clock, self.settings, chosen)

    @writes
    def score(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Score the jobs of the days of a window (None: of all days) whose scores are missing or stale.

        ``rebuild``: of every day. ``s.show("scores")`` has a row per job, :meth:`rank` who does worst.
        """
        from esjobs.scores.step import score_window

        return score_window(self.store, self._days(window), self.settings, rebuild, self._progress)

    def rank(
        self,
        by: str,
        score: str = "cpu_efficiency",
        *,
        window: WindowLike = None,
        top: int | None = 25,
        weight: str = "node_hours",
        variant: str | None = None,
        predicted: bool = False,
    ) -> "pd.DataFrame":
        """Who uses what they are given worst: names by the mean of a score, weighted by their hours.

        ``by``: user, project, site, application, processing_type, cpu_model or job. ``score``: a score,
        ``cpu_efficiency``, or ``sum`` of the scores of a job. Scores are 0 at best and 100 at worst. What has
        to be said of the numbers stands in ``attrs["notes"]`` of the frame. Scores must have been made:
        :meth:`score`.

        >>> import esjobs
        >>> from esjobs.core.errors import NoResultError
        >>> with esjobs.open("duckdb::memory:") as session:
        ...     try:
        ...         session.rank("user", "score_cpu")
        ...     except NoResultError as error:
        ...         print(error)
        no job is scored; make scores: esjobs score
        """
        ranked = self.ranking(
            by, score, window=window, top=top, weight=weight, variant=variant, predicted=predicted
        )
        frame = frame_of(ranked.rows)
        frame.attrs["notes"] = ranked.notes
        return frame

    def ranking(
        self,
        by: str,
        score: str = "cpu_efficiency",
        *,
        window: WindowLike = None,
        top: int | None = 25,
        weight: str = "node_hours",
        variant: str | None = None,
        predicted: bool = False,
    ) -> "Ranking":
        """The same as an Arrow table with its notes."""
        from esjobs.scores.rank import rank

        within = window_of(window, self._clock)
        ranked = rank(
            self.store,
            by,
            score,
            window=within,
            top=top,
            weight=weight,
            variant=variant,
            predicted=predicted,
        )
        costs = (f"cost of monitoring: {each}" for each in self.noise.sentences())
        return replace(ranked, notes=(*ranked.notes, *costs))

    @writes
    def detect(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Look for tags and issues of the jobs of some days, by the rules of the settings; publish them.

        ``window``: whole days; None: all with jobs or time series. Days that are up to date stay as they are
        unless ``rebuild``. ``s.show("issues")`` gives what is found, ``measures`` and ``footprints`` what it
        follows from. Raises :class:`InputError` for a file of rules that is wrong, :class:`NoJobsError` when
        nothing is stored.
        """
        from esjobs.issues.detect import detect
        from esjobs.issues.in_force import in_force
        from esjobs.issues.series_jobs import stored_days

        judging = in_force(self.settings)
        days = stored_days(self.store) if window is None else self._days(window)
        return detect(self.store, judging, days, rebuild=rebuild, progress=self._progress)

    def replay_rules(
        self, files: str | Path | Sequence[str | Path], window: WindowLike = None
    ) -> "pd.DataFrame":
        """What files of rules would change, read after those of the settings; nothing is written.

        A row per rule and change (newly flagged, no longer flagged, other severity): jobs, users, core-hours,
        examples. ``window``: whole days; None: all that was looked at. Raises :class:`InputError` for a file
        that is wrong, :class:`NoResultError` where nothing was measured.
        """
        from esjobs.issues.replay import replayed

        days = None if window is None else self._days(window)
        return frame_of(replayed(self.store, self.settings, paths(files), days))

    def similar(
        self,
        job_id: str,
        *,
        source: str | None = None,
        window: WindowLike = None,
        top: int | None = 10,
        metrics: Sequence[str] = (),
        by: str = "dynamic",
    ) -> "pd.DataFrame":
        """The jobs whose time series are nearest to those of a job, the nearest first.

        ``by``: ``dynamic``, or ``static``: by the symbols of their executables (:meth:`scan_symbols`).
        ``window``: when they ended; None: whenever. ``metrics``: in which they are compared; none: every
        known one that the job has. ``top`` None: all of them. Raises :class:`NoResultError` when there is
        nothing to compare, :class:`UsageError` for a metric that is none or a source that is to be named.
        """
        if by not in ("dynamic", "static"):
            raise UsageError(f"by is 'dynamic' or 'static', not '{by}'")
        if by == "static":
            if metrics:
                raise UsageError("metrics are of time series; leave them out, or by='static'")
            return frame_of(self.similar_programs(job_id, source=source, window=window, top=top).rows)
        found = self.similar_jobs(job_id, source=source, window=window, top=top, metrics=metrics)
        return frame_of(found.rows)

    def similar_jobs(
        self,
        job_id: str,
        *,
        source: str | None = None,
        window: WindowLike = None,
        top: int | None = 10,
        metrics: Sequence[str] = (),
    ) -> "SimilarJobs":
        """The same as an Arrow table, with how many were compared and how many were not, by reason."""
        from esjobs.similar.similar import similar_jobs

        within = window_of(window, self._clock)
        return similar_jobs(self.store, job_id, source, window=within, top=top, metrics=metrics)

    def similar_programs(
        self,
        job_id: str,
        *,
        source: str | None = None,
        window: WindowLike = None,
        top: int | None = 10,
    ) -> "SimilarPrograms":
        """Jobs whose programs are most like that of a job, as an Arrow table, with books of the others."""
        from esjobs.similar.programs import similar_programs

        within = window_of(window, self._clock)
        method = self.settings.similar.programs
        return similar_programs(self.store, job_id, source, window=within, top=top, method=method)

    @writes
    def scan_symbols(
        self, files: str | Path | Sequence[str | Path], *, module: str | None = None
    ) -> RunReport:
        """Keep the names of the symbols of executables, folders searched; ``s.show("executables")`` has them.

        ``module``: what provides them. Raises :class:`InputError` for a path that does not exist.
        """
        from esjobs.similar.scan import scan

        return scan(self.store, paths(files), module=module, now=self._clock())

    @writes
    def predict_scores(self, window: WindowLike = None) -> RunReport:
        """Predict the scores that jobs of some days lack from measured jobs that behaved alike.

        ``window``: whole days; None: all. ``s.show("predicted_scores")`` has them, apart from measured ones.
        Raises :class:`NoResultError` where nothing is scored, or too few jobs were measured to predict from.
        """
        from esjobs.similar.prediction import predict

        return predict(self.store, self._days(window), self.settings.similar)

    def evaluate_predictions(self, most: int | None = 2000) -> "pd.DataFrame":
        """How good predictions are: measured jobs predicted from those of other runs, and of other users.

        ``most``: jobs that are predicted; None: all. Raises :class:`NoResultError` where none was measured.
        """
        return frame_of(self.arrow_evaluation(most))

    def arrow_evaluation(self, most: int | None = 2000) -> pa.Table:
        """The same as an Arrow table."""
        from esjobs.similar.evaluation import evaluate

        return evaluate(self.store, self.settings.similar, most)

    def job(self, job_id: str, *, source: str | None = None) -> "JobStory":
        """Everything about one job: record, scores, issues, footprint, measures, its series to be drawn.

        ``source``: where several have a job of this name. :meth:`job_page` writes it as a page. Raises
        :class:`NoResultError` when nothing of it is stored, :class:`UsageError` when a source is to be named.
        """
        from esjobs.issues.one_job import job_story

        story = job_story(self.store, job_id, source)
        return replace(story, monitoring=self.noise.sentences())

    def job_page(self, job_id: str, out: str | Path, *, source: str | None = None) -> Path:
        """Write the page of one job as an HTML file that needs nothing else; as :meth:`job`."""
        from esjobs.render.job_page import write_job_page

        return write_job_page(self.job(job_id, source=source), out)

    def site(self, name: str) -> "Profile":
        """Everything about one WLCG site, with all its queues, or about one queue, as of the latest run.

        Its attributes are rows of tables; ``print`` shows the page of ``esjobs site``, :meth:`profile_page`
        writes it. Case is forgiven; raises :class:`UsageError` with close names, :class:`NoJobsError` when
        nothing is stored.
        """
        from esjobs.render.profile.profile import profile

        return profile(self.store, "site", name)

    def cpu(self, name: str) -> "Profile":
        """Everything about one CPU model; as :meth:`site`."""
        from esjobs.render.profile.profile import profile

        return profile(self.store, "cpu_model", name)

    def profile_page(self, profile: "Profile", out: str | Path) -> Path:
        """Write what :meth:`site` or :meth:`cpu` gave as an HTML file that needs nothing else."""
        from esjobs.render.profile_page import write_profile_page

        return write_profile_page(profile, out, self._clock())

    @writes
    def prune(
        self,
        keep: int | None = None,
        *,
        newest: int | None = None,
        daily: int | None = None,
        weekly: int | None = None,
        monthly: int | None = None,
        bucket_months: int | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Remove results of old runs, buckets of old months, and what old loads replaced.

        Jobs and what people entered stay.

        ``keep``: of each kind, so many runs stay, the latest and those made last. ``newest``, ``daily``,
        ``weekly``, ``monthly``: of each kind, length of windows and restriction, the newest runs and one of
        each day, week and month, so many of them; the latest always stays, also with 0. With nothing
        given the settings decide (``retention``). ``bucket_months``: what is kept per day (buckets, books,
        daily factors, scores, issues) of so many of the newest months stays; with nothing given the settings
        decide, and where they do not, all stay. Versions of jobs that a load replaced stay for
        ``retention.undo_days``. ``dry_run``: notes say what would go, and why.
        """
        from esjobs.publish.retention import Keep, prune
        from esjobs.records.jobs.retention import prune_days, prune_replaced

        given = {"newest": newest, "daily": daily, "weekly": weekly, "monthly": monthly}
        for name, number in {"keep": keep, **given}.items():
            count_of_runs(name, number)
        count_of_runs("bucket_months", bucket_months, "months")
        rule = {name: number for name, number in given.items() if number is not None}
        if keep is not None and rule:
            raise UsageError(f"prune takes a number of runs, or a rule ({', '.join(rule)}); leave one out")
        settings = self.settings.retention
        usual = {name: getattr(settings, f"keep_{name}") for name in given}
        report = prune(
            self.store, KINDS, keep if keep is not None else Keep(**(rule or usual)), dry_run=dry_run
        )
        months = settings.keep_bucket_months if bucket_months is None else bucket_months
        if months is not None:
            per_day = [table for table in TABLES if table.partition == "day"]
            report = prune_days(self.store, per_day, months, report, dry_run=dry_run)
        return prune_replaced(self.store, settings.undo_days, self._clock(), report, dry_run=dry_run)

    @property
    def nightly(self) -> "Nights":
        """The nights: ``s.nightly.tend()`` does what is due; also ``show``, ``catch_up``, ``rerun``."""
        from scheduler.nights import Nights

        return Nights(self, self._clock)

    def condition(self) -> "Condition":
        """How the installation is: nights, flags, fits, the newest job; what the metrics tell."""
        from scheduler.condition import condition

        return condition(self.store, self._clock(), self.settings.nights.ingest_stopped_h)

    @property
    def provisioning(self) -> "Provisioning":
        """The quality of provisioning: ``s.provisioning.waiting("site")``; also ``used``, ``lost``, ..."""
        from esjobs.provisioning.desk import Provisioning
        from esjobs.scores.rank import rank

        return Provisioning(self.store, self._clock, rank=rank, read_only=self.read_only)

    @property
    def noise(self) -> "NoiseBudget":
        """What collectors of monitoring data cost: ``s.noise.keep("ldms-1s", off, on)``, ``sentences``."""
        from esjobs.noise.budget import NoiseBudget

        return NoiseBudget(self.store, self._clock, read_only=self.read_only)

    @property
    def notifier(self) -> "Notifier":
        """Messages to people: ``s.notifier.send(night)``; also ``preview``, ``test`` and ``log``."""
        from scheduler.notifications.notifier import Notifier
        from scheduler.notifications.step import Office

        settings = self.settings
        office = Office(settings.notify, settings.fit.deviation_limit, self._clock, settings.place)
        return Notifier(lambda: self.store, office)

    def query(
        self,
        by: Names = (),
        metrics: Names = ("jobs",),
        *,
        where: Where = (),
        window: WindowLike = None,
        clean: bool = False,
        **more: Unpack[QueryOptions],
    ) -> "pd.DataFrame":
        """Group the stored jobs by fields, ``week``, ``month`` or ``hour``; metrics: ``esjobs fields``.

        ``where``: ``FIELD=VALUE`` texts; the same field again means or, another field means and. All stored
        jobs count unless ``clean``. Ratios are ratios of sums over the jobs that have every term. Without
        anything to group by there is one row. The other keywords:
        :class:`~esjobs.api.arguments.QueryOptions`.

            s.query("queue", "efficiency", sort="efficiency", descending=False, min_jobs=100, top=10)
        """
        return frame_of(self.arrow.query(by, metrics, where=where, window=window, clean=clean, **more))

    def plot(
        self,
        by: Names,
        metrics: Names = ("jobs",),
        *,
        where: Where = (),
        window: WindowLike = None,
        clean: bool = False,
        **more: Unpack[QueryOptions],
    ) -> "alt.TopLevelMixin":
        """The answer of :meth:`query` as a chart for notebooks: bars, over time a line, of two a heat map."""
        import altair as alt

        from esjobs.render.charts.query import specification

        answer = self.arrow.ask(by, metrics, where=where, window=window, clean=clean, **more)
        return alt.VConcatChart.from_dict(specification(answer))

    def compare(
        self,
        run_a: str | None = None,
        run_b: str | None = None,
        *,
        level: Names | None = None,
        type: Names | None = None,  # noqa: A002
        name: Names | None = None,
        site: Names | None = None,
        method: Names = (),
        since: WindowLike = None,
    ) -> "pd.DataFrame":
        """What changed between two runs: factors in sigma, and verdicts.

        One run is compared with the latest; without any, the latest with the one before it of a window as
        long, or with the last one whose data ended with ``since``. Columns name both. Changed verdicts come
        first, then the largest shifts. ``level``, ``type``, ``name``, ``site`` as in :meth:`show`;
        ``method``: only these, :class:`NoResultError` where neither has them.
        """
        return frame_of(
            self.arrow.compare(
                run_a, run_b, level=level, type=type, name=name, site=site, method=method, since=since
            )
        )

    def runs_compared(
        self, run_a: str | None = None, run_b: str | None = None, since: WindowLike = None
    ) -> "tuple[StoredRun, StoredRun]":
        """The two runs that :meth:`compare` holds against each other."""
        from esjobs.speed.compare import runs_compared

        return runs_compared(self.store, run_a, run_b, since=window_of(since, self._clock))

    def jobs(
        self,
        *,
        where: Where = (),
        window: WindowLike = None,
        columns: Names = (),
        sort: str | None = None,
        desc: bool = False,
        top: int | None = None,
    ) -> "pd.DataFrame":
        """Stored jobs in canonical columns; mind the memory, and choose with ``where`` and ``window``.

        ``columns``: only these fields, derived and resolved ones too. ``sort``: the field to sort by, the
        smallest first, or the largest with ``desc``; jobs without a value come last, equal ones by source and
        job_id. ``top``: the first so many; without ``sort`` those that ended last. Of more jobs than fit,
        :meth:`batches` gives one piece after the other.
        """
        asked = self.arrow.jobs(where=where, window=window, columns=columns, sort=sort, desc=desc, top=top)
        return frame_of(asked.read_all())

    def sql(self, text: str, *, timeout_s: float = 300.0) -> "pd.DataFrame":
        """The rows of one SELECT over the embedded store: ``jobs``, result tables, ``latest_factors``, ...

        Nothing can be changed by it and no file be read; from the first call on, no other statement of this
        session's database can reach files either. Raises :class:`UsageError` for anything but one SELECT, and
        on a cluster; :class:`StoreError` when it takes longer than ``timeout_s`` seconds.
        """
        return frame_of(self.arrow.sql(text, timeout_s=timeout_s).read_all())

    def batches(
        self,
        what: str = "jobs",
        *,
        where: Where = (),
        window: WindowLike = None,
        run: str | None = None,
        columns: Names = (),
    ) -> pa.RecordBatchReader:
        """Stream jobs, or the rows of a result table, as Arrow batches: memory does not grow with the answer.

        ``what``: ``jobs`` or a table. ``where``: as for :meth:`query`; only jobs take it. ``window`` and
        ``run`` choose as in :meth:`show`. ``columns``: only these. Rows are those of the moment of the call,
        in no order, and corepower as it was imported. The reader is Arrow's: it has a schema, can be iterated
        once, and whatever reads Arrow streams takes it (DuckDB, Polars, ``pyarrow.parquet``).

        >>> import esjobs
        >>> with esjobs.open("duckdb::memory:") as session:
        ...     sum(batch.num_rows for batch in session.batches("jobs", columns=["site", "cpu_s"]))
        0
        """
        return self.arrow.batches(what, where=where, window=window, run=run, columns=columns)

    def export_jobs(
        self,
        out: str | Path,
        *,
        form: "ExportFormat | None" = None,
        where: Where = (),
        window: WindowLike = None,
        spreadsheet: bool = False,
        key: str | Path | None = None,
    ) -> int:
        """Stream stored jobs in canonical columns into a file; how many they were.

        ``spreadsheet``: in CSV, text that a spreadsheet would take for a formula gets an apostrophe.
        ``key``: a file with the key under which names of users, projects and machines are replaced.
        """
        from esjobs.records.export.pseudonyms import Pseudonyms, read_key
        from esjobs.records.jobs.export import export_jobs

        chosen = window_of(window, self._clock)
        return export_jobs(
            self.store,
            str(out),
            form=form,
            where=conditions(where),
            window=chosen,
            spreadsheet=spreadsheet,
            pseudonyms=None if key is None else Pseudonyms(read_key(Path(key))),
        )

    def search(self, what: str = "flags") -> Any:
        """A search of ``elasticsearch.dsl`` on the latest rows of a table, or on ``jobs``; hits are typed.

        For those who know Elasticsearch: ``s.search("flags").filter("term", level="site")`` and all that the
        library can do; see ``docs/elasticsearch_questions.md``. It asks the alias
        (``esjobs-latest-flags``) itself, with no filter but your own. Raises :class:`UsageError`
        where the store is no Elasticsearch, with what to use instead.
        """
        table = None if what == "jobs" else capabilities.table(what)
        ask = getattr(self.store, "search", None)
        if ask is None:
            raise UsageError(
                f"a search of elasticsearch.dsl needs Elasticsearch, and {self._called} is none: take "
                f"s.show({what!r}), s.query(), or DuckDB on s.batches({what!r})"
            )
        return ask(table)

    def check_fields(self) -> "pd.DataFrame":
        """Every stored field as the jobs' index has it: foreign name, state, type, and what it costs."""
        return frame_of(self.arrow.check_fields())

    def report(self, out: str | Path, *, run: str | None = None, method: str | None = None) -> Path:
        """Write the report of a run (None: the latest) as one HTML file that needs no network; its path.

        ``method``: whose results it shows; None: the headline of the run.
        """
        from esjobs.render.report import write_report

        return write_report(self.store, out, run=run, method=method, now=self._clock())

    def report_page(self, *, run: str | None = None, method: str | None = None) -> str:
        """The report of a run as HTML, as :meth:`report` writes it."""
        from esjobs.render.report import report_page

        return report_page(self.store, run, method, self._clock())

    def export_html(self, out: str | Path, *, job_pages: int = 300) -> Path:
        """Write the pages of dashboards into a folder of HTML that needs no network; the page to open.

        ``job_pages``: so many jobs have a page of their own, those with the worst scores and issues.
        """
        from esjobs.render.bundles import jobs_of
        from esjobs.render.html_pages import write_pages

        cluster = self.settings.cluster
        jobs = jobs_of(cluster.jobs_index, cluster.field_map)
        return write_pages(self.store, out, jobs, job_pages, self._clock())

    def plot_line(
        self,
        level: str = "site",
        type: str = "all",  # noqa: A002
        method: str | None = None,
        run: str | None = None,
    ) -> "alt.TopLevelMixin":
        """The report's chart of factors against declared corepower, for notebooks.

        ``method``: the headline of the run unless it is named.
        """
        import altair as alt

        from dashboards.targets.html.charts import line_chart
        from esjobs.publish.finding import find_run
        from esjobs.speed.question import SpeedQuestion

        drawn = find_run(self.store, SPEED, (FLAGS.made_by,), run)
        fit = SpeedQuestion.of_run(drawn).fit
        chosen = method or fit.methods[0]
        flags = self.flags(level=level, type=type, method=chosen, run=drawn.run)
        lines = self.lines(level=level, type=type, method=chosen, run=drawn.run)
        chart = line_chart(flags, lines, limit=fit.deviation_limit)
        return alt.LayerChart.from_dict(chart)

    def stored_window(self) -> Window:
        """The whole days that the stored jobs span; :class:`NoJobsError` when there are none."""
        span = self.store.span()
        if span.first is None or span.last is None:
            raise NoJobsError("no jobs are stored; ingest some first: esjobs ingest")
        return Window.of_days(span.first.date(), span.last.date())

    def _chain(self) -> "Chain":
        from esjobs.speed.chain import Chain

        return Chain(self.store, self._clock, self._progress)

    def _question(self, window: WindowLike, tasks: Names = (), where: Where = ()) -> "SpeedQuestion":
        from esjobs.records.jobs.conditions import canonical
        from esjobs.speed.question import SpeedQuestion

        asked = canonical(conditions(where))
        return SpeedQuestion.ask(SPEED, self._days(window), self.settings, listed(tasks), asked)

    def _days(self, window: WindowLike) -> Window:
        if window is not None:
            return Window.of(window, self._clock()).require_whole_days("this step")
        return self.stored_window()


def fields_table() -> pa.Table:
    """Every field and metric that queries take: kind, name, type, unit, meaning."""
    from esjobs.records.jobs.query import METRICS

    rows: list[dict[str, object]] = [
        {
            "kind": "field",
            "name": field.name,
            "type": field.type,
            "unit": field.unit,
            "by": field.groupable,
            "meaning": field.meaning + (" (required)" if field.required else ""),
        }
        for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS)
    ]
    rows += [
        {
            "kind": "metric",
            "name": metric.name,
            "type": "number",
            "unit": metric.unit,
            "by": False,
            "meaning": metric.meaning,
        }
        for metric in METRICS
    ]
    return pa.Table.from_pylist(rows)
