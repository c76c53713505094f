"""Similar jobs in a session: ``s.similar``."""

from collections.abc import Sequence
from pathlib import Path

from esjobs.core.arguments import WindowLike, paths, window_of
from esjobs.core.report import RunReport
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.similar.settings import SimilarSettings
from esjobs.store.checks import writes


class Similar(Facade):
    """Jobs similar by time series or by program, and scores predicted from them."""

    def jobs(
        self,
        job_id: str,
        *,
        source: str | None = None,
        window: WindowLike = None,
        top: int | None = 10,
        metrics: Sequence[str] = (),
    ) -> Answer:
        """Jobs whose time series are nearest to those of a job, nearest first.

        ``window``: when they ended; None: at any time. ``metrics``: default: all of the job. ``top`` None:
        all jobs. ``details`` counts jobs compared and not compared. Raises :class:`NoResultError` if nothing
        can be compared, :class:`UsageError` for an unknown metric or an ambiguous job.
        """
        from esjobs.similar.similar import similar_jobs

        context = self._context
        within = window_of(window, context.clock)
        found = similar_jobs(context.store, job_id, source, window=within, top=top, metrics=metrics)
        return Answer(found.rows, details=found)

    def programs(
        self, job_id: str, *, source: str | None = None, window: WindowLike = None, top: int | None = 10
    ) -> Answer:
        """Jobs whose programs are most similar to that of a job, by the symbols of their executables."""
        from esjobs.similar.programs import similar_programs

        context = self._context
        within = window_of(window, context.clock)
        method = self._settings.programs
        found = similar_programs(context.store, job_id, source, window=within, top=top, method=method)
        return Answer(found.rows, details=found)

    @writes
    def scan(self, files: str | Path | Sequence[str | Path], *, module: str | None = None) -> RunReport:
        """Store the names of the symbols of executables; folders are searched.

        ``module``: the module that provides them. Raises :class:`InputError` for a path that does not exist.
        """
        from esjobs.similar.scan import scan

        return scan(self._context.store, paths(files), module=module, now=self._context.clock())

    @writes
    def predict(self, window: WindowLike = None) -> RunReport:
        """Predict scores of jobs without counters from similar measured jobs.

        ``window``: whole days; None: all. Raises :class:`NoResultError` where nothing is scored, or too few
        jobs were measured.
        """
        from esjobs.similar.prediction import predict

        return predict(self._context.store, self._context.days(window), self._settings)

    def evaluate(self, most: int | None = 2000) -> Answer:
        """Cross-validate predicted scores on measured jobs of other runs and of other users.

        ``most``: jobs predicted; None: all. Raises :class:`NoResultError` where none was measured.
        """
        from esjobs.similar.evaluation import evaluate

        return Answer(evaluate(self._context.store, self._settings, most))

    @property
    def _settings(self) -> SimilarSettings:
        return self._context.settings.section(SimilarSettings)
