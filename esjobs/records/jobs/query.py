"""The coordinator's ad-hoc question: numbers of the stored jobs by whatever they can be grouped by."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.conditions import named
from esjobs.core.errors import UsageError
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import parse_conditions
from esjobs.records.jobs.questions.metrics import METRICS, QueryMetric, metric
from esjobs.records.jobs.questions.question import Answer, Question, answered
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

    All stored jobs count, whatever their state, unless ``clean`` names rules. Ratios are ratios of sums over
    the jobs that have every term; null where no job has. Raises :class:`NoJobsError` when nothing matches.
    """
    return ask(store, Question(tuple(by), tuple(metrics), tuple(where), window, clean)).table


def ask(store: JobStore, question: Question) -> Answer:
    """The answer to a question; see :func:`~esjobs.records.jobs.questions.question.answered`."""
    _require_no_metrics(question.where)
    return answered(store, question, lambda: _nothing(store, question.window, question.where))


def _require_no_metrics(where: Sequence[str]) -> None:
    """Conditions are about jobs; of numbers of groups the catalogue would only say that it has no field."""
    for condition in where:
        name = named(condition)
        if not fields.is_field(name) and any(each.name == name for each in METRICS):
            raise UsageError(
                f"'{condition}': {name} is a number of groups, and conditions are about jobs; --min-jobs "
                "leaves out groups of few jobs, --sort and --top the rest"
            )


def _nothing(store: JobStore, window: Window | None, where: Sequence[str]) -> str:
    span = store.span()
    if span.first is None or span.last is None:
        return "no jobs are stored; ingest some first: esjobs ingest"
    stored = Window.of_days(span.first.date(), span.last.date())
    condition = f" with {', '.join(where)}" if where else ""
    parsed = parse_conditions(where)
    groupable = [name for name in parsed if fields.field(name).groupable]
    if "queue" in groupable and "site" not in groupable:
        groupable.append("site")
    commands = ", ".join(f"esjobs query --by {name}" for name in groupable)
    listed = f"; what there is: {commands}" if commands else ""
    given = [(name, each) for name, of in parsed.items() for each in of]
    if any(each.operator == "=" and _is_text(name) for name, each in given):
        listed += "; = minds the case, ~ does not"
    whole = [value for _, each in given for value in each.values if each.operator == "~" and "*" not in value]
    if whole:
        listed += f"; without * a pattern is the whole value: ~*{whole[0]}* is part of it"
    if any(_in_single_quotes(value) for _, each in given for value in each.values):
        listed += "; single quotes are taken as part of the value: leave them out"
    return f"no jobs{condition} in {window or stored}; the stored jobs lie in {stored}{listed}"


def _in_single_quotes(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] == "'"


def _is_text(name: str) -> bool:
    return fields.field(name).type in ("keyword", "text")
