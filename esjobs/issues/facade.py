"""Issues of jobs in a session: ``s.issues``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from esjobs.core.arguments import Names, WindowLike, listed, paths, window_of
from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.store.checks import writes


class Issues(Facade):
    """Tags and issues of jobs, and their rules."""

    @writes
    def detect(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Find tags and issues of jobs by the rules of the settings.

        ``window``: whole days; None: all with jobs or series. ``rebuild``: also days that are up to date.
        Results: ``issues``, ``measures``, ``footprints`` of ``s.tables``. Raises :class:`InputError` for an
        invalid rule file, :class:`NoJobsError` without data.
        """
        from esjobs.issues.detect import detect
        from esjobs.issues.in_force import in_force
        from esjobs.issues.series_jobs import stored_days

        context = self._context
        judging = in_force(context.settings)
        days = stored_days(context.store) if window is None else context.days(window)
        return detect(context.store, judging, days, rebuild=rebuild, progress=context.progress)

    @writes
    def look_at_running(self) -> tuple[RunReport, list[dict[str, Any]]]:
        """Judge running jobs: :func:`~esjobs.issues.running.look.look`. Raises :class:`UsageError` without
        the section ``[issues.running]``.
        """
        from esjobs.issues.running.look import look
        from esjobs.issues.settings import DetectSettings

        context = self._context
        settings = context.settings.section(DetectSettings).running
        if settings is None:
            raise UsageError("looks at running jobs need files; set [issues.running] (docs/settings.md)")
        return look(context.store, settings, context.clock())

    def replay(
        self,
        files: str | Path | Sequence[str | Path] = (),
        window: WindowLike = None,
        *,
        labels: str | Path | None = None,
    ) -> Answer:
        """Compare rule files with the rules in force, or with labelled jobs; writes nothing.

        One row per rule and change (newly flagged, no longer flagged, other severity). ``window``: whole
        days; None: all with results. ``labels``: a CSV file of jobs that people judged; one row per rule,
        with precision and recall (:func:`~esjobs.issues.labelled.against_labels`). Raises
        :class:`InputError` for an invalid file, :class:`NoResultError` without measurements.
        """
        from esjobs.issues.labelled import against_labels
        from esjobs.issues.replay import replayed

        context = self._context
        days = None if window is None else context.days(window)
        common = (context.store, context.settings, paths(files))
        if labels is not None:
            return against_labels(*common, Path(labels), days)
        rows = replayed(*common, days)
        return Answer(rows, title="" if rows.num_rows else "no changes")

    def work_list(
        self,
        by: Names = "user",
        *,
        window: WindowLike = None,
        where: Mapping[str, Names] | None = None,
        least: str = "minor",
    ) -> Answer:
        """Rank names by what their jobs lost: :func:`~esjobs.issues.worklist.work_list`.

        ``by``: user, project, queue, application, processing_type, cpu_model, job_name, detector or job; one
        or several. ``where``: values by such a field. ``least``: least severity.
        """
        from esjobs.issues.worklist import left_out, work_list

        context = self._context
        inside = window_of(window, context.clock)
        rows = work_list(context.store, listed(by), window=inside, where=where, least=least)
        note = left_out(context.store, inside, where, least)
        return Answer(rows, (note,) if note else ())
