"""Aggregation in the cluster by composite aggregation; documents it cannot judge are read.

Three kinds of documents of one snapshot add up to the jobs of the window: certainly dropped (counted),
certainly kept (grouped by the cluster), doubtful (read into the embedded engine). If groups and counts
disagree, or the index cannot express the question, everything is read.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa

from esjobs.core.keys import beginning
from esjobs.core.query import DropRule, Query
from esjobs.core.window import Window
from esjobs.store.base import Aggregate
from esjobs.store.books import Kind, Outcome, books_table
from esjobs.store.duck.compile_sql import compile_aggregate, noted_rules
from esjobs.store.elastic.asking import composite, partitions
from esjobs.store.elastic.asking.clauses import EVERY, NONE, Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.days import day_of, per_day, within
from esjobs.store.elastic.asking.derived_keys import span_of, with_made_keys, without_made_keys
from esjobs.store.elastic.asking.limits import count_of, require_allowed
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
from esjobs.store.elastic.asking.single_search import search_groups, single_search_answer
from esjobs.store.elastic.asking.three_valued import judged
from esjobs.store.elastic.jobs.job_index import JobIndex, JobSource
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.parallel import in_parallel
from esjobs.store.elastic.transport.scan import PointInTime, only_aggregations
from esjobs.store.merge import encoded, merged, one_row, total

# Each part has two searches under way; more would leave nothing of a small cluster to others
_PARTS_IN_FLIGHT = 2


def aggregate(cluster: Cluster, jobs: JobSource, query: Query, *, by_reading: bool = False) -> Aggregate:
    """Group and sum, with the books of the same snapshots. ``by_reading``: read every document.

    Indices that differ are asked in parts, whose answers are added up. Derived keys are made from the groups;
    quantiles follow when the groups are known.
    """
    compile_aggregate(query)  # refuses what makes no sense before anything is asked
    parts = jobs.parts(query.window, used_fields(query))
    if len(parts) == 1 and not by_reading:
        # one search is one snapshot anyway; None where the answer needs several
        answer = single_search_answer(cluster, parts[0], query)
        if answer is not None:
            return answer
    with ExitStack() as stack:
        # all snapshots before the first question, so that they are of one moment
        snapshots = [(stack.enter_context(PointInTime(cluster, part.index)), part) for part in parts]
        nonempty = [(at, part) for at, part in snapshots if not at.empty]
        if jobs.most_read is not None:
            _require_allowed(cluster, jobs, nonempty, query)
        of_parts: list[_Grouped | None] = [None] * len(nonempty)
        if not by_reading:
            of_parts = in_parallel(
                lambda part: _answer_of_part(*part, query), nonempty, _PARTS_IN_FLIGHT, "esjobs-parts"
            )
        try:
            return _joined(cluster, jobs, nonempty, of_parts, query)
        except InconsistentError:
            return _joined(cluster, jobs, nonempty, [None] * len(nonempty), query)


def _joined(
    cluster: Cluster,
    jobs: JobSource,
    nonempty: Sequence[tuple[PointInTime, JobIndex]],
    of_parts: "Sequence[_Grouped | None]",
    query: Query,
) -> Aggregate:
    if quantiles_in(query) and None in of_parts:
        # those of some jobs and those of others are not those of all
        of_parts = [None] * len(nonempty)
    unread: list[Unread] = []
    for (at, part), grouped in zip(nonempty, of_parts, strict=True):
        if grouped is None:
            _require_few(cluster, jobs, part, query)
        # a part that the cluster cannot group is read completely
        rest = EVERY if grouped is None else grouped.rest
        if rest != NONE:
            unread.append(Unread(at, part, rest))
    answered = [grouped for grouped in of_parts if grouped is not None]
    if answered:
        return _completed(answered, unread, query)
    with documents_of(unread, query) as documents:
        return documents.groups(query)


def _require_few(cluster: Cluster, jobs: JobSource, part: JobIndex, query: Query) -> None:
    if jobs.most_read is not None and is_groupable(part, query):
        # the cluster was to group them, so they were not counted before
        n_jobs = count_of(cluster, part, part.inside(query.window))
        require_allowed(jobs, n_jobs, ["the cluster cannot count these documents exactly"])


def _completed(answered: "Sequence[_Grouped]", unread: Sequence[Unread], query: Query) -> Aggregate:
    plainer = without_made_keys(query) or query
    has_quantiles = bool(quantiles_in(query))
    counting = with_count(plainer) if has_quantiles else plainer
    answers = [grouped.answer for grouped in answered]
    read: pa.Table | None = None
    if unread:
        with documents_of(unread, query) as documents:
            answers.append(documents.groups(counting))
            if has_quantiles:
                read = documents.numbers(plainer)
    answer = _sum_of(answers, counting)
    if query.made:
        made = replace(query, metrics=counting.metrics)
        answer = replace(answer, table=with_made_keys(answer.table, made))
    if has_quantiles:
        # last: their groups are those of the whole answer
        of_known = [grouped.distribution for grouped in answered]
        answer = replace(answer, table=with_quantiles(answer.table, query, of_known, read))
    return answer


def _sum_of(answers: Sequence[Aggregate], query: Query) -> Aggregate:
    if len(answers) == 1:
        return answers[0]
    filled = [encoded(answer.table) for answer in answers if answer.table.num_rows]
    tables = filled or [encoded(answers[0].table)]
    table = tables[0] if len(tables) == 1 else merged(pa.concat_tables(tables), query.keys)
    return Aggregate(table, _added(*(answer.books for answer in answers)))


@dataclass(frozen=True)
class _Rules:
    """Drop rules as clauses: per rule the kept documents, and the undecidable ones."""

    keeps: tuple[Clause, ...]
    undecided: tuple[Clause, ...]

    def passed(self, count: int) -> tuple[list[Clause], list[Clause]]:
        """Return what certainly passes the first rules: clauses that hold, and that do not."""
        return list(self.keeps[:count]), [clause for clause in self.undecided[:count] if clause != NONE]

    def dropped(self, number: int) -> Clause:
        """Return the documents that a rule certainly drops."""
        holds, fails = self.passed(number)
        # where the rule is uncertain the document is read, not counted as dropped
        doubt = [clause for clause in self.undecided[number : number + 1] if clause != NONE]
        return all_of(holds, [*fails, *doubt, self.keeps[number]])

    def doubted(self) -> Clause:
        """Return the documents that reach a rule which cannot judge them."""
        clauses = []
        for number, doubt in enumerate(self.undecided):
            if doubt != NONE:
                holds, fails = self.passed(number)
                clauses.append(all_of([*holds, doubt], fails))
        return any_of(clauses)


def is_groupable(jobs: JobIndex, query: Query) -> bool:
    """True if the cluster can group the jobs of a question, as far as its fields tell."""
    plainer = without_made_keys(query)
    clauses = Clauses(jobs.live, lambda _: [])
    return (
        plainer is not None
        and composite.grouping(with_count(plainer), jobs.live, clauses) is not None
        and clauses.filters(query.where) is not None
        and _rules(query.drops, clauses, lambda _keeps, _aggregations: {}) is not None
        and all(forms_of(metric.field, clauses) is not None for metric in quantiles_in(query))
    )


def what_forbids_groups(jobs: JobIndex, query: Query) -> list[str]:
    """Return the reasons that prevent grouping in the cluster."""
    used = (jobs.live[name] for name in sorted(used_fields(query)))
    return [live.note for live in used if not live.askable] or ["the cluster cannot answer this question"]


def _require_allowed(
    cluster: Cluster, jobs: JobSource, parts: Sequence[tuple[PointInTime, JobIndex]], query: Query
) -> None:
    n_read = 0
    why: list[str] = []
    for at, part in parts:
        if not is_groupable(part, query):
            n_read += count_of(cluster, part, [*part.inside(query.window), *possible(part, query, at)])
            why += what_forbids_groups(part, query)
    require_allowed(jobs, n_read, list(dict.fromkeys(why)))


@dataclass(frozen=True)
class _Grouped:
    """Answer of the cluster, the clause of the unread documents, and the access to quantiles."""

    answer: Aggregate
    rest: Clause
    distribution: Distribution


def _side_by_side(parts: Sequence[tuple[PointInTime, JobIndex]], query: Query) -> "list[_Grouped | None]":
    return in_parallel(lambda part: _answer_of_part(*part, query), parts, _PARTS_IN_FLIGHT, "esjobs-parts")


def _answer_of_part(at: PointInTime, jobs: JobIndex, query: Query) -> _Grouped | None:
    """Return the answer for a part; None where every document is to be read."""
    with suppress(composite.NotExactError):
        return _grouped(at, jobs, query)
    return None


def _grouped(at: PointInTime, jobs: JobIndex, query: Query) -> _Grouped | None:
    """Return the answer of the cluster; None if the index cannot express the question."""
    plainer = without_made_keys(query)
    if plainer is None:
        return None
    counting = with_count(plainer)
    base = jobs.inside(query.window)
    everything = all_of(base)
    clauses = Clauses(jobs.live, lambda path: partitions.distinct(at, path, everything))
    requested = composite.grouping(counting, jobs.live, clauses)
    if requested is None:
        return None
    requested = replace(requested, span=span_of(query))
    where = clauses.filters(query.where)
    numbers = distribution_of(at, jobs, query, plainer, clauses)
    if where is None or numbers is None:
        return None
    has_quantiles = bool(quantiles_in(query))
    quick = search_groups(partial(_complete_search, at), jobs, query) if has_quantiles else None
    if quick is not None:
        grouped = Aggregate(quick.table, books_table({}))
        return _Grouped(grouped, NONE, numbers.of(quick.kept, quick.n_jobs, quick.first, quick.last))
    unjudged = jobs.unjudged(used_fields(query))

    def answer(keeps: Sequence[Clause], aggregations: Mapping[str, Any]) -> Mapping[str, Any]:
        inside = all_of([*base, *where, *keeps], unjudged)
        of_cells: Mapping[str, Any] = at.search(only_aggregations(inside, aggregations))["aggregations"]
        return of_cells

    rules = _rules(query.drops, clauses, answer)
    if rules is None:
        return None
    parts = _Parts(base, where, unjudged, rules)
    # before the groups: the number of jobs decides how they are cut
    counted = _counted(at, jobs, query, parts, clauses, requested)
    if counted is None:
        return None
    kept = parts.kept(counted)
    by_value = composite.grouping(counting, jobs.live, clauses, by_value=True)
    table = _groups(at, (requested, by_value), kept, counted, _time(jobs))
    # the balance of the books: a group that the cluster dropped silently shows here
    if total(table, COUNT) != counted.n_binned:
        return None
    shown = counting
    if not has_quantiles:
        table, shown = table.drop_columns([COUNT]), plainer
    grouped = Aggregate(one_row(table, shown), books_table(counted.books))
    return _Grouped(grouped, parts.rest(counted), _over_days(numbers, kept, counted))


def _over_days(numbers: Distribution, kept: Clause, counted: "_Counted") -> Distribution:
    """Return the distribution over the days that have jobs: a sample of empty ones tells nothing."""
    days = [day for day, n_of_day in counted.binned.items() if n_of_day]
    if not days:
        return numbers
    covered = Window.of_days(min(days), max(days))
    return numbers.of(kept, counted.n_binned, covered.start, covered.end)


def _complete_search(at: PointInTime, body: Mapping[str, Any], decode: Callable[[bytes | str], Any]) -> Any:
    answer = at.decoded_search(body, decode)
    answer.require_whole(at)
    return answer


def _time(jobs: JobIndex) -> str:
    return jobs.live["end_time"].paths[0]


def _added(*books: pa.Table) -> pa.Table:
    counts: Counter[Outcome] = Counter()
    for row in pa.concat_tables(books).to_pylist():
        counts[Outcome(row["day"], row["outcome"], row["kind"])] += row["n_jobs"]
    return books_table(counts)


# Answers aggregations over the documents of the question for which some clauses hold
_Answer = Callable[[Sequence[Clause], Mapping[str, Any]], Mapping[str, Any]]


def _rules(drops: Sequence[DropRule], clauses: Clauses, answer: _Answer) -> _Rules | None:
    keeps: list[Clause] = []
    undecided: list[Clause] = []
    for number, rule in enumerate(drops):
        keep, doubt = clauses.keep(rule), NONE
        if keep is None:
            judgement = judged(rule, drops[:number], clauses, partial(answer, list(keeps)))
            if judgement is None:
                return None
            keep, doubt = judgement.keep, judgement.doubt
        keeps.append(keep)
        undecided.append(doubt)
    return _Rules(tuple(keeps), tuple(undecided))


@dataclass(frozen=True)
class _Parts:
    """Clauses of a question: window, filters, unjudgeable documents, rules."""

    base: list[Clause]
    where: list[Clause]
    unjudged: list[Clause]
    rules: _Rules

    def kept(self, counted: "_Counted") -> Clause:
        """Return the clause of the judgeable jobs that are certainly kept."""
        holds, fails = self.rules.passed(len(self.rules.keeps))
        # a clause that nothing matches would still be looked up in each range
        absent = [*(self.unjudged if counted.n_odd else []), *(fails if counted.n_doubted else [])]
        return all_of([*self.base, *self.where, *holds], absent)

    def rest(self, counted: "_Counted") -> Clause:
        """Return the clause of the documents that are still to be read."""
        if not counted.n_odd and not counted.n_doubted:
            return NONE
        doubted = all_of([*self.where, self.rules.doubted()], self.unjudged)
        return any_of([*self.unjudged, doubted])


@dataclass(frozen=True)
class _Counted:
    """Books of the judgeable jobs, binned jobs per day, and the number of the others.

    ``n_odd``: with a value unknown to the index; ``n_doubted``: by a rule. ``most``: estimated maximum of
    groups.
    """

    books: Counter[Outcome]
    binned: dict[date, int]
    n_odd: int
    n_doubted: int
    most: float = math.inf

    @property
    def n_binned(self) -> int:
        """Number of binned jobs."""
        return sum(self.binned.values())


def _counted(
    at: PointInTime,
    jobs: JobIndex,
    query: Query,
    parts: _Parts,
    clauses: Clauses,
    requested: composite.Grouping,
) -> _Counted | None:
    """Count the jobs by outcome; None if a field has several values somewhere."""
    rules = parts.rules
    outcomes = _outcomes(query, rules, clauses)
    # by number: a reason may be any text
    named = {str(number): clause for number, (_, _, clause) in enumerate(outcomes)}
    days = per_day(_time(jobs), {"outcomes": {"filters": {"filters": named}}})
    # who wants books wants buckets, of which there are too many anyway
    distinct = {} if query.books else _distinct(requested)
    body = {
        "sane": {"filter": all_of(parts.where, parts.unjudged), "aggs": {"days": days, **distinct}},
        "unjudged": {"filter": any_of(parts.unjudged)},
        "doubted": {"filter": all_of([*parts.where, rules.doubted()], parts.unjudged)},
        **_values_and_documents(jobs, query),
    }
    answer = at.search(only_aggregations(all_of(parts.base), body))
    counts = answer["aggregations"]
    if _has_several_values(counts):
        return None
    books: Counter[Outcome] = Counter()
    binned: dict[date, int] = {}
    for bucket in counts["sane"]["days"]["buckets"]:
        day = day_of(bucket)
        for number, (name, kind, _) in enumerate(outcomes):
            books[Outcome(day, name, kind)] += bucket["outcomes"]["buckets"][str(number)]["doc_count"]
        binned[day] = books[Outcome(day, "binned", "binned")]
    most = math.inf if query.books else _most_groups(requested, counts["sane"], distinct, binned)
    return _Counted(books, binned, counts["unjudged"]["doc_count"], counts["doubted"]["doc_count"], most)


def _outcomes(query: Query, rules: _Rules, clauses: Clauses) -> list[tuple[str, Kind, Clause]]:
    holds, fails = rules.passed(len(rules.keeps))
    outcomes: list[tuple[str, Kind, Clause]] = [("binned", "binned", all_of(holds, fails))]
    for number, rule in enumerate(query.drops):
        outcomes.append((rule.reason, "dropped", rules.dropped(number)))
    for rule in noted_rules(query):
        # noted are jobs that lack the field and pass all rules
        present = clauses.present(rule.keep.field) or NONE
        outcomes.append((str(rule.unknown), "note", all_of(holds, [*fails, present])))
    return outcomes


def _most_groups(
    requested: composite.Grouping, sane: Mapping[str, Any], distinct: Iterable[str], days: Iterable[date]
) -> float:
    """Estimate the maximum number of groups: the product of the distinct values of each key."""
    # a missing value is one more
    most: float = math.prod(sane[name]["value"] + 1 for name in distinct)
    if "day" in requested.query.keys:
        most *= len({day if requested.span == "day" else beginning(requested.span, day) for day in days})
    return most


def _distinct(requested: composite.Grouping) -> dict[str, Any]:
    return {
        f"distinct_{name}": {"cardinality": {"field": column.path}}
        for name, column in requested.columns.items()
    }


_VALUES, _DOCUMENTS = "values_of_", "documents_with_"


def _values_and_documents(jobs: JobIndex, query: Query) -> dict[str, Any]:
    # our own documents have one value per field
    if not jobs.several_values:
        return {}
    aggregations: dict[str, Any] = {}
    for name in sorted(jobs.judged(used_fields(query))):
        for path in jobs.live[name].paths:
            aggregations[f"{_VALUES}{path}"] = {"value_count": {"field": path}}
            aggregations[f"{_DOCUMENTS}{_VALUES}{path}"] = {"filter": {"exists": {"field": path}}}
    return aggregations


def _has_several_values(counts: Mapping[str, Any]) -> bool:
    """True if a document has more than one value of a field: its sums would count it more than once."""
    return any(
        counts[name]["value"] != counts[_DOCUMENTS + name]["doc_count"]
        for name in counts
        if name.startswith(_VALUES)
    )


def _groups(
    at: PointInTime,
    ways: tuple[composite.Grouping, composite.Grouping | None],
    kept: Clause,
    counted: _Counted,
    time: str,
) -> pa.Table:
    requested, by_value = ways
    by_day = "day" in requested.query.keys
    if counted.most <= partitions.PAGE:
        return composite.few_groups(at, replace(requested, days=time if by_day else ""), kept)
    if not by_day:
        return composite.groups(at, requested, kept, counted.n_binned, by_value)
    inner = requested.schema()
    names = [*requested.query.keys, *(metric.name for metric in requested.query.metrics)]
    schema = pa.schema([pa.field("day", pa.date32()) if n == "day" else inner.field(n) for n in names])
    parts = [schema.empty_table()]
    for day, n_jobs in counted.binned.items():
        if n_jobs:
            inside = all_of([kept, *within(time, Window.of_days(day, day))])
            of_day = composite.groups(at, requested, inside, n_jobs, by_value)
            with_day = of_day.append_column("day", pa.repeat(pa.scalar(day), of_day.num_rows))
            parts.append(with_day.select(names))
    return pa.concat_tables(parts).unify_dictionaries()
