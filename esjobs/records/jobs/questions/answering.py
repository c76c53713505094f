"""The answer to a question: what the store must give, and the rows of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from esjobs.core.conditions import named
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.query import adds_up
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.questions.arranged import COUNT, Arranged, sorted_by_size
from esjobs.records.jobs.questions.asking import Groups, Jobs, aligned, bins_of, groups
from esjobs.records.jobs.questions.cells import read_cells
from esjobs.records.jobs.questions.columns import Wanted
from esjobs.records.jobs.questions.dimensions import Dimension, dimensions, parse_bins
from esjobs.records.jobs.questions.formulas import Part, Ratio, together
from esjobs.records.jobs.questions.gaps import filled
from esjobs.records.jobs.questions.metrics import QueryMetric, metric
from esjobs.records.jobs.questions.question import Answer, Question
from esjobs.store.base import JobStore

_PREVIOUS = "previous"


def answered(store: JobStore, question: Question, nothing: Callable[[], str]) -> Answer:
    """Return the answer; ``nothing`` gives the sentence for no matching job.

    One aggregation per window; one more for a total of numbers that do not add up, for bins of equal width,
    and for comparing by task and queue. Raises :class:`NoJobsError` if nothing matches, :class:`UsageError`
    for nonsense.
    """
    chosen = tuple(metric(name) for name in dict.fromkeys(question.metrics))
    _refuse_nonsense(question)
    before = _window_before(question)
    wanted = _wanted(question, chosen)
    jobs = _jobs(store, question, question.window)
    by = tuple(dimensions(question.by, bins_of(store, parse_bins(question.bins), jobs)))
    if before is not None:
        _refuse_calendar(by)
    sorting = _sorting_metric(question, by, wanted)
    parts = _parts(question, by, wanted, sorting)
    requested = [jobs, *_others(store, question, before)]
    sides = [groups(store, by, parts, one) for one in requested]
    if not any(side.has_jobs for side in sides):
        raise NoJobsError(nothing())
    cells = None
    if question.compares:
        sides = aligned(*sides)
        cells = read_cells(store, by, chosen, requested, sides[0], dimensions(question.strata))
    # days without jobs are rows too, or a line over time would hide them
    elif len(by) == 1 and question.has_all_groups:
        sides = [filled(sides[0], by[0])]
    totals = [_total(store, question, by, parts, *each) for each in zip(requested, sides, strict=True)]
    arranged = Arranged(question, by, wanted, sorting, sides, totals, cells)
    return Answer(arranged.table(), question, by, chosen, tuple(arranged.notes()), before)


def _total(
    store: JobStore,
    question: Question,
    by: Sequence[Dimension],
    parts: tuple[Part, ...],
    jobs: Jobs,
    side: Groups,
) -> Groups:
    # quantiles and extremes of all jobs do not follow from those of groups
    if question.total and by and not all(map(adds_up, parts)):
        return groups(store, [], parts, jobs)
    return Groups({}, together(side.parts, np.ones(side.number, np.bool_)))


def _wanted(question: Question, metrics: tuple[QueryMetric, ...]) -> Wanted:
    return Wanted(
        metrics,
        question.errors,
        question.share or question.share_of is not None,
        question.compares,
        "" if question.compares else _ranked(question, metrics),
        share_changes=question.share_of is not None,
        strata=bool(question.strata),
    )


def _others(store: JobStore, question: Question, before: Window | None) -> list[Jobs]:
    """Return the jobs to compare with; empty: the question compares nothing."""
    if not question.compares:
        return []
    fields = {named(condition) for condition in question.versus}
    where = (*(each for each in question.where if named(each) not in fields), *question.versus)
    return [_jobs(store, replace(question, where=where), before or question.window)]


def _jobs(store: JobStore, question: Question, window: Window | None) -> Jobs:
    drops = question.clean.drops() if question.clean else ()
    return Jobs(window, job_filters(store, question.where, window), drops)


def _parts(
    question: Question, by: Sequence[Dimension], wanted: Wanted, sorting: QueryMetric | None
) -> tuple[Part, ...]:
    parts = wanted.parts() if sorting is None else (*wanted.parts(), *sorting.formula.parts(errors=False))
    # the number of jobs costs a column of the query, so only where something asks for it
    counted = not by or question.min_jobs or sorted_by_size(question, by, wanted)
    return (COUNT, *parts) if counted else parts


def _refuse_calendar(by: Sequence[Dimension]) -> None:
    if any(dimension.calendar for dimension in by):
        raise UsageError("another window has other days; compare by something else, such as queue")


def _refuse_nonsense(question: Question) -> None:
    if not question.metrics:
        raise UsageError("no metric given; add --metric jobs (list: esjobs fields)")
    if (question.strata or question.changed) and not question.compares:
        raise UsageError("--strata and --changed are about a comparison; add --compare or --versus")
    _refuse_groups(question)


def _refuse_groups(question: Question) -> None:
    if question.top is not None and question.top < 1:
        raise UsageError(f"--top {question.top} shows no groups; use 1 or more, or omit it")
    if question.min_jobs < 0:
        raise UsageError(f"min_jobs must be 0 or more; got {question.min_jobs}")
    if question.share_of is not None and question.share_of not in question.by:
        raise UsageError(
            f"shares of each {question.share_of} need it in --by, as --by {question.share_of},..."
        )
    if (question.total or not question.has_all_groups) and not (question.by or question.bins):
        raise UsageError("without a field to group by there is one row; omit top, total and min_jobs")


def _ranked(question: Question, metrics: Sequence[QueryMetric]) -> str:
    by = question.by or question.bins
    rates = [one.name for one in metrics if isinstance(one.formula, Ratio) and one.name == question.sort]
    return rates[0] if rates and by else ""


def _window_before(question: Question) -> Window | None:
    if question.compare is None:
        return None
    if question.window is None:
        raise UsageError("no window precedes all stored jobs; specify the window to compare with")
    if question.compare == _PREVIOUS:
        length = question.window.end - question.window.start
        try:
            return Window(question.window.start - length, question.window.start)
        except OverflowError:
            raise UsageError(f"no window of the same length precedes {question.window}") from None
    return Window.of(question.compare)


def _sorting_metric(question: Question, by: Sequence[Dimension], wanted: Wanted) -> QueryMetric | None:
    # it is no column of the answer
    name = question.sort
    if name is None or name in wanted.names or name in [dimension.name for dimension in by]:
        return None
    try:
        return metric(name)
    except UsageError:
        accepted = ", ".join([*(dimension.name for dimension in by), *wanted.names])
        raise UsageError(f"cannot sort by '{name}'; use one of {accepted}, or any metric") from None
