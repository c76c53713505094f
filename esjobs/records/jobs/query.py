"""The coordinator's ad-hoc question: numbers of the stored jobs by whatever they can be grouped by."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.conditions import Condition, named
from esjobs.core.errors import UsageError
from esjobs.core.fields import Field
from esjobs.core.window import Window
from esjobs.records.declared.values import stored_window
from esjobs.records.jobs.conditions import parse_conditions
from esjobs.records.jobs.questions.answering import answered
from esjobs.records.jobs.questions.metrics import METRICS, QueryMetric, metric
from esjobs.records.jobs.questions.question import Answer, Question
from esjobs.store.base import JobStore

__all__ = ["METRICS", "Answer", "QueryMetric", "Question", "ask", "metric", "query_jobs"]


def query_jobs(
    store: JobStore,
    by: Sequence[str],
    metrics: Sequence[str],
    *,
    where: Sequence[str] = (),
    window: Window | None = None,
) -> pa.Table:
    """Group the stored jobs by fields and return the metrics, most jobs first; days in order of time.

    All jobs count, whatever their state. Ratios are ratios of sums over the
    jobs that have every term; null if no job has. Raises :class:`NoJobsError` if nothing matches.
    """
    return ask(store, Question(tuple(by), tuple(metrics), tuple(where), window)).table


def ask(store: JobStore, question: Question) -> Answer:
    """The answer to a question; see :func:`~esjobs.records.jobs.questions.answering.answered`."""
    _require_no_metrics(question.where)
    return answered(store, question, lambda: _nothing(store, question.window, question.where))


def _require_no_metrics(where: Sequence[str]) -> None:
    # the catalogue would only say that it has no such field
    for condition in where:
        name = named(condition)
        if not fields.is_field(name) and any(each.name == name for each in METRICS):
            raise UsageError(
                f"'{condition}': {name} is a count of groups, not a field of jobs; use --min-jobs, --sort or "
                "--top"
            )


def _nothing(store: JobStore, window: Window | None, where: Sequence[str]) -> str:
    stored = stored_window(store)
    if stored is None:
        return "no jobs stored; load some: esjobs ingest"
    condition = f" with {', '.join(where)}" if where else ""
    parsed = parse_conditions(where)
    groupable = [name for name in parsed if fields.field(name).groupable]
    if "queue" in groupable and "site" not in groupable:
        groupable.append("site")
    commands = ", ".join(f"esjobs query --by {name}" for name in groupable)
    listed = f"; list the values: {commands}" if commands else ""
    where_jobs_are = f"stored jobs end in {stored}{listed}{_hints(parsed)}"
    return f"no jobs{condition} in {window or stored}; {where_jobs_are}"


_HINTS: tuple[tuple[Callable[[Field, str, str], bool], str], ...] = (
    (
        lambda field, operator, _: operator == "=" and field.type in ("keyword", "text"),
        "= is case-sensitive, ~ is not",
    ),
    (
        lambda _, operator, value: operator == "~" and "*" not in value,
        "without * a pattern matches the complete value; ~*{value}* matches a part",
    ),
    (
        lambda _, __, value: len(value) > 1 and value[0] == value[-1] == "'",
        "single quotes are part of the value; omit them",
    ),
)


def _hints(parsed: Mapping[str, Sequence[Condition]]) -> str:
    entered = [
        (fields.field(name), each.operator, value)
        for name, of in parsed.items()
        for each in of
        for value in each.values
    ]
    hints = (next((h.format(value=one[2]) for one in entered if holds(*one)), "") for holds, h in _HINTS)
    return "".join(f"; {hint}" for hint in hints if hint)
