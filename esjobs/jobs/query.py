"""The coordinator's ad-hoc question: numbers of the stored jobs by whatever they can be grouped by."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.jobs.conditions import parse_conditions
from esjobs.jobs.questions.metrics import METRICS, QueryMetric, metric
from esjobs.jobs.questions.question import Answer, Question, answered
from esjobs.store.base import JobStore

__all__ = ["METRICS", "Answer", "QueryMetric", "Question", "ask", "metric", "query_jobs"]


def query_jobs(
    store: JobStore,
    by: Sequence[str],
    metrics: Sequence[str],
    *,
    where: Sequence[str] = (),
    window: Window | None = None,
    clean: CleaningRules | None = None,
) -> pa.Table:
    """Group the stored jobs by fields and give the metrics, most jobs first; by day in order of time.

    Columns of groups are called as the fields were asked for: ``queue`` or ``site``.

    All stored jobs count, whatever their state, unless ``clean`` names rules. Ratios are ratios of sums over
    the jobs that have every term; null where no job has. Raises :class:`NoJobsError` when nothing matches.
    """
    return ask(store, Question(tuple(by), tuple(metrics), tuple(where), window, clean)).table


def ask(store: JobStore, question: Question) -> Answer:
    """The answer to a question; see :func:`~esjobs.jobs.questions.question.answered`."""
    return answered(store, question, lambda: _nothing(store, question.window, question.where))


def _nothing(store: JobStore, window: Window | None, where: Sequence[str]) -> str:
    span = store.span()
    if span.first is None or span.last is None:
        return "no jobs are stored; ingest some first: esjobs ingest"
    stored = Window.of_days(span.first.date(), span.last.date())
    condition = f" with {', '.join(where)}" if where else ""
    parsed = parse_conditions(where)
    groupable = [name for name in parsed if fields.field(name).groupable]
    if "site" in groupable and "rc_site" not in groupable:
        groupable.append("rc_site")  # people say site and mean the one behind the queue
    commands = ", ".join(f"esjobs query --by {name}" for name in groupable)
    listed = f"; what there is: {commands}" if commands else ""
    if any(each.operator == "=" and _is_text(name) for name, of in parsed.items() for each in of):
        listed += "; = minds the case, ~ does not"
    return f"no jobs{condition} in {window or stored}; the stored jobs lie in {stored}{listed}"


def _is_text(name: str) -> bool:
    return fields.field(name).type in ("keyword", "text")
