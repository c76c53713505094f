"""Speed factors in a session, with the chart of a run."""

from esjobs.publish.finding import find_run, read_results
from esjobs.records.answer import Answer
from esjobs.records.jobs.conditions import row_filters
from esjobs.records.names.spelling import Chosen
from esjobs.render.charts.line import drawn_line
from esjobs.schema.speed import FLAGS, LINES, SPEED
from esjobs.speed.facade import Speed
from esjobs.speed.question import SpeedQuestion


class DrawnSpeed(Speed):
    """Steps from records to verdicts, comparison of runs, and the line of a run."""

    def line(
        self,
        level: str = "queue",
        type: str = "all",  # noqa: A002
        method: str | None = None,
        run: str | None = None,
    ) -> Answer:
        """Factors against declared corepower, to be drawn with :meth:`Answer.plot`.

        ``method``: the default method of the run unless named.
        """
        store = self._context.store
        stored = find_run(store, SPEED, (FLAGS.made_by,), run)
        # limits of the run, not of the present settings
        fit = SpeedQuestion.of_run(stored).fit
        values: Chosen = {
            ("level",): (level,),
            ("processing_type",): (type,),
            ("method",): (method or fit.methods[0],),
        }
        flags, lines = (
            read_results(store, table, stored, list(row_filters(table, values))) for table in (FLAGS, LINES)
        )
        return Answer(flags, run=stored, chart=lambda: drawn_line(flags, lines, fit.deviation_limit))
