"""Speed factors in a session: ``s.speed``."""

from typing import TYPE_CHECKING

from esjobs.core.arguments import Names, Where, WindowLike, conditions, listed, window_of
from esjobs.core.report import RunReport
from esjobs.records.answer import Answer
from esjobs.records.choice import chosen_values, with_values
from esjobs.records.context import Facade
from esjobs.records.jobs.conditions import canonical
from esjobs.records.names import spelling
from esjobs.schema.speed import FACTORS, FLAGS, SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.store.checks import writes

if TYPE_CHECKING:
    from esjobs.speed.chain import Chain


class Speed(Facade):
    """Steps from records to verdicts, and comparison of runs."""

    @writes
    def aggregate(self, window: WindowLike = None, *, rebuild: bool = False) -> RunReport:
        """Aggregate the days of a window with missing or stale buckets; ``rebuild``: all of them."""
        from esjobs.speed.bucketing import publish_buckets

        context = self._context
        question = self._question(window)
        return publish_buckets(
            context.store, context.clock, question, rebuild=rebuild, progress=context.progress
        )

    @writes
    def fit(self, window: WindowLike = None, *, tasks: Names = (), where: Where = ()) -> RunReport:
        """Fit factors from the buckets of a window and publish them, with new lines and verdicts."""
        return self._chain().fit(self._question(window, tasks, where))

    @writes
    def correlate(self, window: WindowLike = None) -> RunReport:
        """Fit lines to the newest factors of a window, and judge them anew.

        Raises :class:`NoResultError` without factors.
        """
        return self._chain().correlate(self._context.days(window))

    @writes
    def flag(self, window: WindowLike = None) -> RunReport:
        """Judge the newest factors of a window by the values declared now.

        Raises :class:`NoResultError` without factors.
        """
        return self._chain().flag(self._context.days(window))

    @writes
    def run(
        self, window: WindowLike = None, *, tasks: Names = (), where: Where = (), rebuild: bool = False
    ) -> list[RunReport]:
        """Aggregate, fit, correlate and flag; the results become visible together, at the end."""
        return self._chain().run(self._question(window, tasks, where), rebuild=rebuild)

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
    ) -> Answer:
        """Compare two runs: factors in standard errors, and verdicts.

        One run is compared with the latest; without any, the latest with the previous one of the same length,
        or with the last one whose data ended before ``since``. Changed verdicts come first, then the largest
        shifts. ``details`` is the pair of runs. Raises :class:`NoResultError` if neither run has a
        ``method``.
        """
        from esjobs.speed.compare import compare_runs, runs_compared

        context = self._context
        within = window_of(since, context.clock)
        pair = runs_compared(context.store, run_a, run_b, within)
        changes = compare_runs(context.store, pair, listed(method))
        chosen = chosen_values(FACTORS, {"level": level, "type": type, "name": name, "site": site})
        # chosen afterwards: the common scale of two runs is that of all their names
        rows = spelling.chosen_rows(FACTORS, chosen, lambda values: with_values(changes, values))
        return Answer(rows, details=pair)

    def probes(self, queue: Names = (), *, run: str | None = None) -> Answer:
        """Benchmarks in job slots beside production and the declared value, of a run (None: the latest).

        See :func:`esjobs.speed.probes.compare_probes`.
        """
        from esjobs.publish.finding import find_run
        from esjobs.speed.probes import compare_probes

        store = self._context.store
        return compare_probes(store, find_run(store, SPEED, (FLAGS.made_by,), run), listed(queue))

    def _chain(self) -> "Chain":
        from esjobs.speed.chain import Chain

        return Chain(self._context.store, self._context.clock, self._context.progress)

    def _question(self, window: WindowLike, tasks: Names = (), where: Where = ()) -> SpeedQuestion:
        days = self._context.days(window)
        return SpeedQuestion.ask(
            SPEED, days, self._context.settings, listed(tasks), canonical(conditions(where))
        )
