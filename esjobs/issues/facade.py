"""Issues of jobs in a session: ``s.issues``."""

from collections.abc import Sequence
from pathlib import Path

from esjobs.core.arguments import WindowLike, paths
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

    def replay(self, files: str | Path | Sequence[str | Path], window: WindowLike = None) -> Answer:
        """Compare rule files with the rules in force; writes nothing.

        One row per rule and change (newly flagged, no longer flagged, other severity). ``window``: whole
        days; None: all with results. Raises :class:`InputError` for an invalid file, :class:`NoResultError`
        without measurements.
        """
        from esjobs.issues.replay import replayed

        context = self._context
        days = None if window is None else context.days(window)
        return Answer(replayed(context.store, context.settings, paths(files), days))
