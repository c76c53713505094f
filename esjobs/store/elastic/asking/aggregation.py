"""Aggregating in the cluster: groups by composite aggregation, and what it cannot judge by reading it.

All of an answer is of one moment. Three kinds of documents add up to the jobs of the window: those
that a rule certainly drops are counted, those that are certainly kept are grouped by the cluster, and the
rest (a quotient too close to its limit, a value that the index does not know) are read and asked again in
the embedded engine. The cluster's groups must count exactly the jobs that its filters count; if they do
not, or if a question cannot be put to the index at all, everything is read.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.keys import beginning
from esjobs.core.query import DropRule, Query
from esjobs.core.window import Window
from esjobs.store.base import Aggregate
from esjobs.store.books import Kind, Outcome, books_table
from esjobs.store.duck.compile_sql import compile_aggregate, noted_rules
from esjobs.store.elastic.asking import composite, cuts
from esjobs.store.elastic.asking.at_once import answered_at_once, asked_at_once
from esjobs.store.elastic.asking.clauses import EVERY, NONE, Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.days import day_of, per_day, within
from esjobs.store.elastic.asking.doubts import judged
from esjobs.store.elastic.asking.limits import count_of, require_allowed
from esjobs.store.elastic.asking.made_keys import span_of, with_made_keys, without_made_keys
from esjobs.store.elastic.asking.numbers import forms_of
from esjobs.store.elastic.asking.quantiles import (
    COUNT,
    Distribution,
    distribution_of,
    quantiles_in,
    with_count,
    with_quantiles,
)
from esjobs.store.elastic.asking.reading import Unread, documents_of, possible, used_fields
from esjobs.store.elastic.asking.refinement import InconsistentError
from esjobs.store.elastic.asking.sums import plan_sums
from esjobs.store.elastic.jobs.job_index import JobIndex, JobSource
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import encoded, merged, one_row

_PARTS_IN_FLIGHT = 2
"""Each part has two searches under way; more would leave nothing of a small cluster to others."""


def aggregate(cluster: Cluster, jobs: JobSource, query: Query, *, by_reading: bool = False) -> Aggregate:
    """Group and sum, with the books of the same snapshots. ``by_reading``: read every document.

    Keys that a question makes are made of the groups by their fields, where that can be. Quantiles are looked
    for when the groups are known; see `quantiles`.

    Indices that differ are asked in parts, each in its own way, two parts at a time; the answers are added up
    in the order of the parts.
    """
    compile_aggregate(query)  # refuses what makes no sense before anything is asked
    parts = jobs.parts(query.window, used_fields(query))
    if len(parts) == 1 and not by_reading:
        answer = answered_at_once(cluster, parts[0], query)
        if answer is not None:
            return answer
    with ExitStack() as stack:
        # all snapshots before the first question, so that they are of one moment
        snapshots = [(stack.enter_context(PointInTime(cluster, part.index)), part) for part in parts]
        there = [(at, part) for at, part in snapshots if not at.empty]
        if jobs.most_read is not None:
            _require_allowed(cluster, jobs, there, query)
        of_parts = [None] * len(there) if by_reading else _side_by_side(there, query)
        try:
            return _joined(cluster, jobs, there, of_parts, query)
        except InconsistentError:
            return _joined(cluster, jobs, there, [None] * len(there), query)


def _joined(
    cluster: Cluster,
    jobs: JobSource,
    there: Sequence[tuple[PointInTime, JobIndex]],
    of_parts: "Sequence[_Grouped | None]",
    query: Query,
) -> Aggregate:
    """The answers of the cluster for its parts, and what is read, as one."""
    if quantiles_in(query) and None in of_parts:
        # those of some jobs and those of others are not those of all
        of_parts = [None] * len(there)
    unread: list[Unread] = []
    for (at, part), grouped in zip(there, of_parts, strict=True):
        if grouped is None and jobs.most_read is not None and is_groupable(part, query):
            n_jobs = count_of(cluster, part, part.inside(query.window))
            require_allowed(jobs, n_jobs, ["documents cannot be counted as they are"])
        rest = EVERY if grouped is None else grouped.rest
        if rest != NONE:
            unread.append(Unread(at, part, rest))
    known = [grouped for grouped in of_parts if grouped is not None]
    if not known:
        with documents_of(unread, query) as documents:
            return documents.groups(query)
    plainer = _plainer(query) or query
    counting = with_count(plainer) if quantiles_in(query) else plainer
    answers = [grouped.answer for grouped in known]
    read: pa.Table | None = None
    if unread:
        with documents_of(unread, query) as documents:
            answers.append(documents.groups(counting))
            if quantiles_in(query):
                read = documents.numbers(plainer)
    answer = _sum_of(answers, counting)
    made = replace(query, metrics=counting.metrics)
    if query.made:
        answer = replace(answer, table=with_made_keys(answer.table, made))
    if not quantiles_in(query):
        return answer
    of_known = [grouped.distribution for grouped in known]
    return replace(answer, table=with_quantiles(answer.table, query, of_known, read))


def _sum_of(answers: Sequence[Aggregate], query: Query) -> Aggregate:
    """Answers for different jobs as one; of more than one every metric is a sum."""
    if len(answers) == 1:
        return answers[0]
    filled = [encoded(answer.table) for answer in answers if answer.table.num_rows]
    tables = filled or [encoded(answers[0].table)]
    table = tables[0] if len(tables) == 1 else merged(pa.concat_tables(tables), query.keys)
    return Aggregate(table, _added(*(answer.books for answer in answers)))


@dataclass(frozen=True)
class _Rules:
    """Drop rules as clauses: per rule what it keeps, and what it cannot judge."""

    keeps: tuple[Clause, ...]
    doubts: tuple[Clause, ...]

    def passed(self, count: int) -> tuple[list[Clause], list[Clause]]:
        """What certainly passes the first rules: what holds, and what does not."""
        return list(self.keeps[:count]), [clause for clause in self.doubts[:count] if clause != NONE]

    def dropped(self, number: int) -> Clause:
        """What a rule certainly drops."""
        holds, fails = self.passed(number)
        doubt = [clause for clause in self.doubts[number : number + 1] if clause != NONE]
        return all_of(holds, [*fails, *doubt, self.keeps[number]])

    def doubted(self) -> Clause:
        """What passes the rules before one that cannot judge it."""
        clauses = []
        for number, doubt in enumerate(self.doubts):
            if doubt != NONE:
                holds, fails = self.passed(number)
                clauses.append(all_of([*holds, doubt], fails))
        return any_of(clauses)


def is_groupable(jobs: JobIndex, query: Query) -> bool:
    """Whether the cluster can group the jobs of a question, as far as its fields tell."""
    plainer = _plainer(query)
    if plainer is None:
        return False
    counting, clauses = with_count(plainer), Clauses(jobs.live, lambda _: [])
    sums = plan_sums(counting, jobs.live, clauses)
    return (
        sums is not None
        and composite.grouping(counting, jobs.live, sums) is not None
        and clauses.filters(query.where) is not None
        and _rules(query.drops, clauses, lambda _keeps, _aggregations: {}) is not None
        and all(forms_of(metric.field, clauses) is not None for metric in quantiles_in(query))
    )


def what_forbids_groups(jobs: JobIndex, query: Query) -> list[str]:
    """Why the cluster cannot group the jobs of a question."""
    used = (jobs.live[name] for name in sorted(used_fields(query)))
    return [live.note for live in used if not live.askable] or ["no cluster can say what is asked"]


def _require_allowed(
    cluster: Cluster, jobs: JobSource, parts: Sequence[tuple[PointInTime, JobIndex]], query: Query
) -> None:
    """Refuse to read more documents than the settings allow, before anything is read."""
    n_read = 0
    why: list[str] = []
    for at, part in parts:
        if not is_groupable(part, query):
            n_read += count_of(cluster, part, [*part.inside(query.window), *possible(part, query, at)])
            why += what_forbids_groups(part, query)
    require_allowed(jobs, n_read, list(dict.fromkeys(why)))


def _plainer(query: Query) -> Query | None:
    """The question by fields of the index; None where its keys cannot be put so."""
    return without_made_keys(query)


@dataclass(frozen=True)
class _Grouped:
    """What the cluster can answer, and the clause of the documents that are still to be read.

    ``distribution``: how it tells the numbers of the jobs that it can judge.
    """

    answer: Aggregate
    rest: Clause
    distribution: Distribution


def _side_by_side(parts: Sequence[tuple[PointInTime, JobIndex]], query: Query) -> "list[_Grouped | None]":
    """The answers for several parts, in their order; None where every document is to be read."""
    if len(parts) == 1:
        ((at, part),) = parts
        return [_answer_of_part(at, part, query)]
    with ThreadPoolExecutor(_PARTS_IN_FLIGHT, "esjobs-parts") as pool:
        try:
            return list(pool.map(lambda one: _answer_of_part(one[0], one[1], query), parts))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _answer_of_part(at: PointInTime, jobs: JobIndex, query: Query) -> _Grouped | None:
    """The answer of the cluster; None when all documents are to be read."""
    try:
        return _grouped(at, jobs, query)
    except composite.NotExactError:
        return None


def _grouped(at: PointInTime, jobs: JobIndex, query: Query) -> _Grouped | None:
    """The answer of the cluster; None when the question cannot be put to the index."""
    plainer = _plainer(query)
    if plainer is None:
        return None
    counting = with_count(plainer)
    base = jobs.inside(query.window)
    everything = all_of(base)
    clauses = Clauses(jobs.live, lambda path: cuts.distinct(at, path, everything))
    sums = plan_sums(counting, jobs.live, clauses)
    asked = composite.grouping(counting, jobs.live, sums) if sums is not None else None
    if asked is None:
        return None
    asked = replace(asked, span=span_of(query))
    where = clauses.filters(query.where)
    numbers = distribution_of(at, jobs, query, plainer, clauses)
    if where is None or numbers is None:
        return None
    if quantiles_in(query):
        quick = asked_at_once(partial(_whole, at), jobs, query)
        if quick is not None:
            grouped = Aggregate(quick.table, books_table({}))
            return _Grouped(grouped, NONE, numbers.of(quick.kept, quick.n_jobs, quick.first, quick.last))
    odd = jobs.odd(used_fields(query))

    def answer(keeps: Sequence[Clause], aggregations: Mapping[str, Any]) -> Mapping[str, Any]:
        inside = all_of([*base, *where, *keeps], odd)
        body = {"size": 0, "query": inside, "aggs": aggregations, "track_total_hits": False}
        of_cells: Mapping[str, Any] = at.search(body)["aggregations"]
        return of_cells

    rules = _rules(query.drops, clauses, answer)
    if rules is None:
        return None
    counted = _counted(at, jobs, query, _Parts(base, where, odd, rules), clauses, asked)
    if counted is None:
        return None
    holds, fails = rules.passed(len(rules.keeps))
    # a clause that nothing matches would still be looked up in each range
    absent = [*(odd if counted.n_odd else []), *(fails if counted.n_doubted else [])]
    kept = all_of([*base, *where, *holds], absent)
    all_keys = plan_sums(counting, jobs.live, clauses, by_value=True)
    by_value = composite.grouping(counting, jobs.live, all_keys) if all_keys is not None else None
    table = _groups(at, (asked, by_value), kept, counted, _time(jobs))
    n_jobs = sum(counted.binned.values())
    if (pc.sum(table.column(COUNT)).as_py() or 0) != n_jobs:
        return None
    shown = counting
    if not quantiles_in(query):
        table, shown = table.drop_columns([COUNT]), plainer
    grouped = Aggregate(one_row(table, shown), books_table(counted.books))
    days = sorted(day for day, n_of_day in counted.binned.items() if n_of_day)
    if days:
        whole = Window.of_days(days[0], days[-1])
        numbers = numbers.of(kept, n_jobs, whole.start, whole.end)
    if not counted.n_odd and not counted.n_doubted:
        return _Grouped(grouped, NONE, numbers)
    return _Grouped(grouped, any_of([*odd, all_of([*where, rules.doubted()], odd)]), numbers)


def _whole(at: PointInTime, body: Mapping[str, Any], decode: Callable[[bytes | str], Any]) -> Any:
    """An answer that is about all shards."""
    answer = at.decoded_search(body, decode)
    answer.require_whole(at)
    return answer


def _time(jobs: JobIndex) -> str:
    """What queries call the end time."""
    return jobs.live["end_time"].paths[0]


def _added(*books: pa.Table) -> pa.Table:
    """Books of different jobs as one."""
    counts: Counter[Outcome] = Counter()
    for row in pa.concat_tables(books).to_pylist():
        counts[Outcome(row["day"], row["outcome"], row["kind"])] += row["n_jobs"]
    return books_table(counts)


_Answer = Callable[[Sequence[Clause], Mapping[str, Any]], Mapping[str, Any]]
"""Answers aggregations over the documents of the question for which some clauses hold."""


def _rules(drops: Sequence[DropRule], clauses: Clauses, answer: _Answer) -> _Rules | None:
    keeps: list[Clause] = []
    doubts: list[Clause] = []
    for number, rule in enumerate(drops):
        keep, doubt = clauses.keep(rule), NONE
        if keep is None:
            judgement = judged(rule, drops[:number], clauses, partial(answer, list(keeps)))
            if judgement is None:
                return None
            keep, doubt = judgement.keep, judgement.doubt
        keeps.append(keep)
        doubts.append(doubt)
    return _Rules(tuple(keeps), tuple(doubts))


@dataclass(frozen=True)
class _Parts:
    """The clauses of a question: the window, what was asked for, what must be read, the rules."""

    base: list[Clause]
    where: list[Clause]
    odd: list[Clause]
    rules: _Rules


@dataclass(frozen=True)
class _Counted:
    """The books of what the cluster can judge, binned jobs per day, and how many jobs it cannot judge.

    ``n_odd``: because of a value that the index does not know; ``n_doubted``: because of a rule. ``most``:
    how many groups there are at most, about.
    """

    books: Counter[Outcome]
    binned: dict[date, int]
    n_odd: int
    n_doubted: int
    most: float = math.inf


def _counted(
    at: PointInTime,
    jobs: JobIndex,
    query: Query,
    parts: _Parts,
    clauses: Clauses,
    asked: composite.Grouping,
) -> _Counted | None:
    """Count the jobs by what becomes of them; None when a field has several values somewhere."""
    rules = parts.rules
    holds, fails = rules.passed(len(rules.keeps))
    outcomes: list[tuple[str, Kind, Clause]] = [("binned", "binned", all_of(holds, fails))]
    for number, rule in enumerate(query.drops):
        outcomes.append((rule.reason, "dropped", rules.dropped(number)))
    for rule in noted_rules(query):
        present = clauses.present(rule.keep.field) or NONE
        outcomes.append((str(rule.unknown), "note", all_of(holds, [*fails, present])))
    named = {str(number): clause for number, (_, _, clause) in enumerate(outcomes)}
    days = per_day(_time(jobs), {"outcomes": {"filters": {"filters": named}}})
    # who wants books wants buckets, of which there are too many anyway
    distinct = {} if query.books else _distinct(asked)
    body = {
        "sane": {"filter": all_of(parts.where, parts.odd), "aggs": {"days": days, **distinct}},
        "odd": {"filter": any_of(parts.odd)},
        "doubted": {"filter": all_of([*parts.where, rules.doubted()], parts.odd)},
        **_values_and_documents(jobs, query),
    }
    answer = at.search({"size": 0, "query": all_of(parts.base), "aggs": body, "track_total_hits": False})
    counts = answer["aggregations"]
    for name in counts:
        if name.startswith(_VALUES) and counts[name]["value"] != counts[_DOCUMENTS + name]["doc_count"]:
            return None
    books: Counter[Outcome] = Counter()
    binned: dict[date, int] = {}
    for bucket in counts["sane"]["days"]["buckets"]:
        day = day_of(bucket)
        for number, (name, kind, _) in enumerate(outcomes):
            books[Outcome(day, name, kind)] += bucket["outcomes"]["buckets"][str(number)]["doc_count"]
        binned[day] = books[Outcome(day, "binned", "binned")]
    most = math.inf
    if not query.books:
        # a missing value is one more
        most = math.prod(counts["sane"][name]["value"] + 1 for name in distinct)
        if "day" in asked.query.keys:
            most *= len({day if asked.span == "day" else beginning(asked.span, day) for day in binned})
    return _Counted(books, binned, counts["odd"]["doc_count"], counts["doubted"]["doc_count"], most)


def _distinct(asked: composite.Grouping) -> dict[str, Any]:
    """Aggregations that tell how many values each of the columns has, about."""
    return {
        f"distinct_{name}": {"cardinality": {"field": column.path}} for name, column in asked.columns.items()
    }


_VALUES, _DOCUMENTS = "values_of_", "documents_with_"


def _values_and_documents(jobs: JobIndex, query: Query) -> dict[str, Any]:
    """Aggregations that tell whether a document has several values of a field."""
    if not jobs.several_values:
        return {}
    aggregations: dict[str, Any] = {}
    for name in sorted(jobs.judged(used_fields(query))):
        for path in jobs.live[name].paths:
            aggregations[f"{_VALUES}{path}"] = {"value_count": {"field": path}}
            aggregations[f"{_DOCUMENTS}{_VALUES}{path}"] = {"filter": {"exists": {"field": path}}}
    return aggregations


def _groups(
    at: PointInTime,
    ways: tuple[composite.Grouping, composite.Grouping | None],
    kept: Clause,
    counted: _Counted,
    time: str,
) -> pa.Table:
    """The groups of the cluster, in one of two ways; by day, a day at a time."""
    asked, by_value = ways
    by_day = "day" in asked.query.keys
    if counted.most <= cuts.PAGE:
        return composite.few_groups(at, replace(asked, days=time if by_day else ""), kept)
    if not by_day:
        return composite.groups(at, asked, kept, sum(counted.binned.values()), by_value)
    inner = asked.schema()
    names = [*asked.query.keys, *(metric.name for metric in asked.query.metrics)]
    schema = pa.schema([pa.field("day", pa.date32()) if n == "day" else inner.field(n) for n in names])
    parts = [schema.empty_table()]
    for day, n_jobs in counted.binned.items():
        if n_jobs:
            inside = all_of([kept, *within(time, Window.of_days(day, day))])
            of_day = composite.groups(at, asked, inside, n_jobs, by_value)
            with_day = of_day.append_column("day", pa.repeat(pa.scalar(day), of_day.num_rows))
            parts.append(with_day.select(names))
    return pa.concat_tables(parts).unify_dictionaries()
