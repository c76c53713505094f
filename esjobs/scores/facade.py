"""Scores of jobs in a session: ``s.scores``."""

from esjobs.core.arguments import WindowLike, window_of
from esjobs.core.report import RunReport
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.store.checks import writes


class Scores(Facade):
    """Scores of jobs: 0 is best, 100 worst."""

    @writes
    def compute(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Score jobs of days whose scores are missing or stale; ``rebuild``: of all days.

        ``s.tables.scores()`` has a row per job; ordinary jobs of large days share rows.
        """
        from esjobs.scores.score import score

        context = self._context
        return score(
            context.store, context.days(window), context.settings, rebuild=rebuild, progress=context.progress
        )

    def rank(
        self,
        by: str,
        score: str = "cpu_efficiency",
        *,
        window: WindowLike = None,
        top: int | None = 25,
        weight: str | None = None,
        variant: str | None = None,
        predicted: bool = False,
    ) -> Answer:
        """Rank names by the mean of a score, weighted by their hours, worst first.

        ``by``: user, project, site, application, processing_type, cpu_model or job. ``score``: a score,
        ``cpu_efficiency``, ``gpu_efficiency``, or ``sum`` of the scores of a job. ``weight`` None: ``gpu_h``
        for ``gpu_efficiency``, else ``node_h``. Raises :class:`NoResultError` without scores.

        >>> import esjobs
        >>> from esjobs.core.errors import NoResultError
        >>> with esjobs.open("duckdb::memory:") as session:
        ...     try:
        ...         session.scores.rank("user", "score_cpu")
        ...     except NoResultError as error:
        ...         print(error)
        no scored job; run: esjobs score, or see the reasons: esjobs show scores
        """
        from esjobs.scores.rank import rank

        ranked = rank(
            self._context.store,
            by,
            score,
            window=window_of(window, self._context.clock),
            top=top,
            weight=weight,
            variant=variant,
            predicted=predicted,
        )
        costs = self._context.peers["noise.sentences"](self._context.store)
        return Answer(ranked.rows, (*ranked.notes, *(f"cost of monitoring: {each}" for each in costs)))
