"""Questions about jobs, from the arguments of a session."""

from functools import partial

from esjobs.core import fields
from esjobs.core.arguments import Names, QueryOptions, Where, WindowLike, conditions, listed, split, window_of
from esjobs.core.errors import UsageError
from esjobs.core.rules import CleaningRules
from esjobs.records.answer import Answer
from esjobs.records.context import Context
from esjobs.records.jobs.query import Question, ask
from esjobs.records.jobs.streams import listed_jobs, streamed_jobs
from esjobs.records.names.spelling import refuse_unknown_keywords
from esjobs.store.base import SpeakingSQL


def ask_groups(
    context: Context,
    by: Names,
    metrics: Names,
    where: Where,
    window: WindowLike,
    clean: bool,
    more: QueryOptions,
) -> Answer:
    """Groups of jobs with their metrics; ``details`` is the answer with its question."""
    from esjobs.render.charts.query import specification

    refuse_unknown_keywords(more, QueryOptions.__annotations__)
    compare = more.get("compare")
    question = Question(
        by=split(by),
        metrics=split(metrics),
        where=conditions(where),
        window=window_of(window, context.clock),
        clean=context.settings.section(CleaningRules) if clean else None,
        bins=tuple(listed(more.get("bins", ()))),
        sort=more.get("sort"),
        descending=more.get("descending"),
        # 0 of a command line: all
        top=more.get("top") or None,
        min_jobs=more.get("min_jobs", 0),
        total=more.get("total", False),
        share=more.get("share", False),
        errors=more.get("errors", False),
        compare="previous" if compare == "previous" else window_of(compare, context.clock),
        versus=conditions(more.get("versus", ())),
        share_of=more.get("share_of"),
        strata=split(more.get("strata", ())),
        changed=more.get("changed", False),
    )
    groups = ask(context.store, question)
    return Answer(
        groups.table, groups.notes, title=groups.title, details=groups, chart=partial(specification, groups)
    )


def ask_jobs(
    context: Context,
    where: Where,
    window: WindowLike,
    columns: Names,
    sort: str | None,
    desc: bool,
    top: int | None,
) -> Answer:
    """Stored jobs; without an order they are streamed as they lie in the store."""
    # an order or a limit needs all matching jobs first; everything else streams
    within, chosen = window_of(window, context.clock), conditions(where)
    if sort is None and not top:
        return Answer(lambda: streamed_jobs(context.store, chosen, within, listed(columns)))
    names = listed(columns) or tuple(item.name for item in fields.JOB_FIELDS)
    order = "-end_time" if sort is None else f"-{sort}" if desc else sort
    return Answer(lambda: listed_jobs(context.store, chosen, within, names, order, top or None))


def ask_sql(context: Context, text: str, timeout_s: float) -> Answer:
    """Rows of one SELECT on an embedded store."""
    store = context.store
    # a cluster has a SQL of its own, without our fences
    if not isinstance(store, SpeakingSQL):
        raise UsageError(
            "SQL requires an embedded store; for a cluster use esjobs query, jobs and show, or its own "
            "query language: docs/elasticsearch.md"
        )
    return Answer(lambda: store.sql(text, timeout_s))
