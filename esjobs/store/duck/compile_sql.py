"""Query language as DuckDB SQL: pure functions from questions to text and parameters.

Identifiers come from the catalogue, values are bound. Comparisons follow the language: missing and NaN are in
no range, although DuckDB sorts NaN above every number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from esjobs.core import fields
from esjobs.core.errors import UsageError
from esjobs.core.fields import CoreClassOf, DayOf, Field, FieldType, Quotient, Resolved
from esjobs.core.keys import Bins, Named, TimePart
from esjobs.core.query import (
    Count,
    Days,
    DropRule,
    Either,
    Filter,
    In,
    Like,
    Maximum,
    Metric,
    Minimum,
    Missing,
    Moment,
    NotIn,
    NotLike,
    Present,
    Quantile,
    Query,
    Range,
    Select,
    Sum,
    SumProduct,
    SumWhere,
    Times,
    Value,
    is_count,
)
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.store.duck.per_job import PerJob
from esjobs.store.duck.schema import quote
from esjobs.store.values import naive, typed

_ESCAPE = "!"


@dataclass(frozen=True)
class Compiled:
    """SQL text with placeholders ``$1``, ``$2``, ... and their values."""

    sql: str
    params: tuple[object, ...]


@dataclass
class Binding:
    """Collector of bound values."""

    values: list[object] = field(default_factory=list)

    def bind(self, value: object) -> str:
        """Return the placeholder of a value."""
        self.values.append(value)
        return f"${len(self.values)}"


@dataclass(frozen=True)
class Column:
    """Field as an SQL expression."""

    sql: str
    type: FieldType
    name: str


Resolve = Callable[[str], Column]


JOBS = "jobs"


def jobs_of_loads(after: int, upto: int) -> str:
    """Return the source of the jobs of some loads."""
    # numbers, not parameters: the text is a source that several statements share
    return f"(FROM jobs WHERE load_number > {after:d} AND load_number <= {upto:d}) AS jobs"


def compile_select(select: Select, jobs: str = JOBS) -> Compiled:
    """Compile a selection of jobs."""
    names = select.fields or tuple(item.name for item in fields.JOB_FIELDS)
    bound = Binding()
    columns = [f"{_column(name).sql} AS {quote(name)}" for name in names]
    kept = [_keeps(rule, bound) for rule in select.drops]
    where = _where(_window(select.window, bound) + _filters(select.where, _column, bound) + kept)
    sql = f"SELECT\n  {_listed(columns)}\nFROM {jobs}{where}"
    if select.order:
        first = _job_order(_column(select.sorted_by[0]), descending=select.order.startswith("-"))
        # ties are broken by identity, as the other engines do: a limit takes the same jobs everywhere
        sql += f"\nORDER BY {first}, source NULLS LAST, job_id"
    if select.limit is not None:
        sql += f"\nLIMIT {bound.bind(select.limit)}"
    return _compiled(sql, bound)


def _job_order(column: Column, *, descending: bool) -> str:
    """Return the sort expression of jobs; NaN counts as missing."""
    if column.type in ("map", "list", "text", "bytes"):
        raise UsageError(f"jobs cannot be sorted by '{column.name}', which is of type {column.type}")
    finite = f"CASE WHEN NOT isnan({column.sql}) THEN {column.sql} END"
    key = finite if column.type == "number" else column.sql
    return f"{key} {'DESC' if descending else 'ASC'} NULLS LAST"


def compile_aggregate(query: Query, jobs: str = JOBS) -> Compiled:
    """Compile the table of a query."""
    _refuse_equal_names(query)
    bound = Binding()
    resolve = _columns_of(query.over)
    keys, joined = _keys(query, resolve, bound)
    per_job = PerJob(lambda filters: " AND ".join(_filters(filters, resolve, bound)))
    fractions = _fractions(query.metrics)
    metrics = [
        f"{_metric(metric, resolve, per_job, fractions)} AS {quote(metric.name)}" for metric in query.metrics
    ]
    kept = [_keeps(rule, bound) for rule in query.drops]
    where = _where(_window(query.window, bound, query.over) + _filters(query.where, resolve, bound) + kept)
    # by position: a key may have the name of a stored column, which DuckDB would group by instead
    group = f"\nGROUP BY {', '.join(str(n) for n in range(1, len(keys) + 1))}" if keys else ""
    rows, where = per_job.rows(jobs if query.over is None else quote(query.over.name), where)
    return _compiled(f"SELECT\n  {_listed([*keys, *metrics])}\nFROM {rows}{joined}{where}{group}", bound)


def _keys(query: Query, resolve: Resolve, bound: Binding) -> tuple[list[str], str]:
    keys: list[str] = []
    joined = ""
    for key in query.keys:
        made = query.made_key(key)
        if made is None:
            column = resolve(key).sql
        elif isinstance(made, Named):
            column, join = _named(made, len(keys), bound)
            joined += join
        else:
            column = _made(made, bound)
        keys.append(f"{column} AS {quote(key)}")
    return keys, joined


def _fractions(metrics: Sequence[Metric]) -> dict[str, list[float]]:
    """Return all quantiles of a field, which is sorted once for them."""
    fractions: dict[str, list[float]] = {}
    for metric in metrics:
        if isinstance(metric, Quantile):
            fractions.setdefault(metric.field, []).append(float(metric.fraction))
    return fractions


def _made(key: TimePart | Bins, bound: Binding) -> str:
    column = _column(key.field)
    if isinstance(key, TimePart):
        if key.part == "hour":
            return f"CAST(extract('hour' FROM {column.sql}) AS BIGINT)"
        return f"CAST(date_trunc('{key.part}', CAST({column.sql} AS DATE)) AS DATE)"
    value = _double(_numeric(key.field, _column))
    # the first edge above a value decides, so the lower bounds need no conditions
    below = [f"WHEN {value} < {bound.bind(edge)} THEN {number}" for number, edge in enumerate(key.edges)]
    unknown = f"WHEN {value} IS NULL OR isnan({value}) THEN NULL"
    return f"CAST(CASE {' '.join([unknown, *below])} ELSE {len(key.edges)} END AS BIGINT)"


def _named(key: Named, number: int, bound: Binding) -> tuple[str, str]:
    values, names = ([pair[position] for pair in key.names] for position in (0, 1))
    pairs = (
        f"SELECT unnest(CAST({bound.bind(values)} AS VARCHAR[])) AS stored_{number}, "
        f"unnest(CAST({bound.bind(names)} AS VARCHAR[])) AS named_{number}"
    )
    # null-safe: jobs without a value may have a name too
    same = f"{_column(key.field).sql} IS NOT DISTINCT FROM stored_{number}"
    return f"named_{number}", f"\nLEFT JOIN ({pairs}) ON {same}"


def compile_books(query: Query, jobs: str = JOBS) -> Compiled:
    """Compile the books: day, number of the dropping rule (0: binned), n_jobs, one column per note.

    A note counts binned jobs that passed a rule because the field is missing.
    """
    # Every rule is evaluated on whole columns first: inside the CASE it would see a selection of rows, for
    # which DuckDB evaluates strings row by row instead of once per distinct value.
    bound = Binding()
    noted = [f"unknown_{number}" for number in range(len(noted_rules(query)))]
    columns = [f"{_column('day').sql} AS day"]
    columns += [f"{_keeps(rule, bound)} AS keep_{n}" for n, rule in enumerate(query.drops, start=1)]
    columns += [
        f"{_column(rule.keep.field).sql} IS NULL AS {name}"
        for name, rule in zip(noted, noted_rules(query), strict=True)
    ]
    where = _where(_window(query.window, bound) + _filters(query.where, _column, bound))
    rules = [f"WHEN keep_{number} IS NOT TRUE THEN {number}" for number in range(1, len(query.drops) + 1)]
    rule = f"CASE {' '.join(rules)} ELSE 0 END AS rule" if rules else "0 AS rule"
    counts = ["count(*) AS n_jobs", *(f"count(*) FILTER (WHERE rule = 0 AND {name})" for name in noted)]
    return _compiled(
        f"WITH judged AS (\nSELECT\n  {_listed(columns)}\nFROM {jobs}{where}\n),\n"
        f"ruled AS (\nSELECT\n  {_listed(['day', rule, *noted])}\nFROM judged\n)\n"
        f"SELECT\n  {_listed(['day', 'rule', *counts])}\nFROM ruled\nGROUP BY 1, 2",
        bound,
    )


def _listed(columns: Sequence[str]) -> str:
    return ",\n  ".join(columns)


def noted_rules(query: Query) -> list[DropRule]:
    """Return the rules that pass missing fields and note them."""
    return [rule for rule in query.drops if rule.missing == "pass" and rule.unknown is not None]


def compile_read(
    table: Table,
    where: Sequence[Filter],
    columns: Sequence[str],
    order: Sequence[str] = (),
    limit: int | None = None,
) -> Compiled:
    """Compile a read of visible rows; see :meth:`JobStore.read`."""
    bound = Binding()
    resolve = _columns_of(table)
    shown = ", ".join(resolve(name).sql for name in columns or table.column_names)
    sql = f"SELECT {shown}\nFROM {quote(table.name)}{_where(_filters(where, resolve, bound))}"
    if order:
        sql += f"\nORDER BY {', '.join(_sorted(resolve, item) for item in order)}"
    if limit is not None:
        sql += f"\nLIMIT {bound.bind(limit)}"
    return _compiled(sql, bound)


def _sorted(resolve: Resolve, item: str) -> str:
    column = resolve(item.removeprefix("-"))
    if column.type in ("map", "list", "text", "bytes"):
        raise UsageError(f"rows cannot be sorted by '{column.name}', which is of type {column.type}")
    return f"{column.sql} {'DESC' if item.startswith('-') else 'ASC'} NULLS LAST"


def _columns_of(table: Table | None) -> Resolve:
    if table is None:
        return _column

    def resolve(name: str) -> Column:
        return Column(quote(name), table.column(name).type, name)

    return resolve


def compile_window(window: Window | None) -> Compiled:
    """Compile a window as WHERE clause; empty for all jobs."""
    bound = Binding()
    return _compiled(_where(_window(window, bound)), bound)


def metric_type(query: Query, metric: Metric) -> FieldType:
    """Return the type of a metric: counts are integers, sums numbers, extremes like their field."""
    if is_count(metric):
        return "integer"
    return query.field(metric.field).type if isinstance(metric, Minimum | Maximum) else "number"


def _column(name: str) -> Column:
    item = fields.field(name)
    return Column(_expression(item), item.type, name)


def _expression(item: Field) -> str:
    match item.derived:
        case None:
            return quote(item.name)
        case DayOf(source):
            return f"CAST({_column(source).sql} AS DATE)"
        case CoreClassOf(source):
            cores = _column(source).sql
            return f"CASE WHEN {cores} > 1 THEN 'multi' WHEN {cores} = 1 THEN 'single' END"
        case Quotient(over, under):
            product = _product(over)
            return f"({product} / {_divisor(under)})" if under else f"({product})"
        case Resolved(source):
            raise UsageError(f"'{item.name}' is resolved above the store; use '{source}'")


def _product(names: Sequence[str]) -> str:
    return " * ".join(_double(_column(name)) for name in names)


def _divisor(names: Sequence[str]) -> str:
    """Return a product as double, null if 0; integers are compared as integers, which is cheaper."""
    if len(names) == 1 and _column(names[0]).type == "integer":
        return f"CAST(nullif({_column(names[0]).sql}, 0) AS DOUBLE)"
    return f"nullif({_product(names)}, 0)"


def _double(column: Column) -> str:
    return column.sql if column.type == "number" else f"CAST({column.sql} AS DOUBLE)"


def _numeric(name: str, resolve: Resolve) -> Column:
    column = resolve(name)
    if column.type not in ("integer", "number"):
        raise UsageError(f"'{name}' is not a number and cannot be summed; list fields: esjobs fields")
    return column


def _metric(metric: Metric, resolve: Resolve, per_job: PerJob, fractions: dict[str, list[float]]) -> str:
    match metric:
        case Moment():
            return _moment(metric, resolve, per_job)
        case Quantile(name, fraction):
            return _quantile(_numeric(name, resolve), float(fraction), fractions[name], per_job)
        case Count():
            return "count(*)"
        case Sum(name):
            return _sum(_numeric(name, resolve), "")
        case SumProduct(left, right):
            return f"sum({_double(_numeric(left, resolve))} * {_double(_numeric(right, resolve))})"
        case SumWhere(name, having):
            present = " AND ".join(f"{resolve(other).sql} IS NOT NULL" for other in having)
            return _sum(_numeric(name, resolve), f" FILTER (WHERE {present})" if present else "")
        case Minimum(name):
            return f"min({resolve(name).sql})"
        case Maximum(name):
            return f"max({resolve(name).sql})"


def _quantile(column: Column, fraction: float, of_field: list[float], per_job: PerJob) -> str:
    value = _double(column)
    if column.type == "number":
        # NaN would be the largest number of the field
        value = per_job.named(f"CASE WHEN NOT isnan({value}) THEN {value} END")
    # one aggregate with a list sorts the numbers once for all fractions
    return f"quantile_cont({value}, {of_field!r})[{of_field.index(fraction) + 1}]"


def _moment(moment: Moment, resolve: Resolve, per_job: PerJob) -> str:
    factors = [_once(_numeric(name, resolve), per_job) for name in moment.factors]
    required = [_once(resolve(name), per_job) for name in moment.having if name not in moment.factors]
    if not factors:
        # counting a column is counting where it is not null
        counted = required.pop().sql if required else "*"
        return f"count({counted}){_restriction(moment, required, per_job)}"
    restriction = _restriction(moment, required, per_job)
    if len(factors) == 1:
        return _sum(factors[0], restriction)
    return f"sum({' * '.join(_double(column) for column in factors)}){restriction}"


def _restriction(moment: Moment, required: Sequence[Column], per_job: PerJob) -> str:
    """Return the filter of a moment, applied before the sum: what does not count is not worked out."""
    kept = [f"{column.sql} IS NOT NULL" for column in required]
    if moment.where:
        kept.append(per_job.condition(moment.where))
    return f" FILTER (WHERE {' AND '.join(kept)})" if kept else ""


def _once(column: Column, per_job: PerJob) -> Column:
    """Return a column whose expression is evaluated once per job."""
    if column.sql == quote(column.name):
        return column
    return Column(per_job.named(column.sql), column.type, column.name)


def _sum(column: Column, restriction: str) -> str:
    if column.type == "integer":
        # Integers are summed exactly and rounded once.
        return f"CAST(sum({column.sql}){restriction} AS DOUBLE)"
    return f"sum({column.sql}){restriction}"


def _refuse_equal_names(query: Query) -> None:
    names = [*query.keys, *(metric.name for metric in query.metrics)]
    # DuckDB would answer with a syntax error
    if not names:
        raise UsageError("a query requires at least one key or metric")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UsageError(f"the query has two columns named '{min(twice)}'; rename one")


def _window(window: Window | None, bound: Binding, table: Table | None = None) -> list[str]:
    if window is None:
        return []
    # bounds on the plain column: row groups outside of them are not read
    name = "end_time" if table is None else table.time
    start, end = bound.bind(naive(window.start)), bound.bind(naive(window.end))
    return [f"{quote(name)} >= {start}", f"{quote(name)} < {end}"]


def _filters(filters: Sequence[Filter], resolve: Resolve, bound: Binding) -> list[str]:
    return [_condition(item, resolve, bound) for item in filters]


def _condition(item: Filter, resolve: Resolve, bound: Binding) -> str:
    match item:
        case Either(filters):
            return "(" + (" OR ".join(_filters(filters, resolve, bound)) or "FALSE") + ")"
        case Missing(name):
            return f"({resolve(name).sql} IS NULL)"
        case Present(name):
            return f"({resolve(name).sql} IS NOT NULL)"
        case In(name, values):
            return _membership(resolve(name), values, bound)
        case NotIn(name, values):
            column = _text(resolve(name))
            return f"({column.sql} IS NOT NULL AND NOT {_membership(column, values, bound)})"
        case Range():
            return _range(resolve(item.field), item, bound)
        case Days(name, first, last):
            column = resolve(name)
            if column.type != "day":
                raise UsageError(f"'{column.name}' is not a day")
            return f"({column.sql} BETWEEN {bound.bind(first)} AND {bound.bind(last)})"
        case Times():
            return _times(resolve(item.field), item, bound)
        case Like(name, patterns):
            return f"({_likes(resolve(name), patterns, bound)})"
        case NotLike(name, patterns):
            column = resolve(name)
            likes = _likes(column, patterns, bound)
            return f"({column.sql} IS NULL OR NOT ({likes}))"


def _membership(column: Column, values: Sequence[Value], bound: Binding) -> str:
    # a value that the type cannot hold equals nothing; the others still count
    usable = [cast for value in values for cast in typed(column.name, column.type, value)]
    if not usable:
        return "FALSE"
    if len(usable) == 1:
        return f"({column.sql} = {bound.bind(usable[0])})"
    return f"({column.sql} IN ({', '.join(bound.bind(value) for value in usable)}))"


def _range(column: Column, item: Range, bound: Binding) -> str:
    if column.type not in ("integer", "number"):
        raise UsageError(f"'{column.name}' is not a number; for times use a window")
    bounds = [(">", item.gt), (">=", item.ge), ("<", item.lt), ("<=", item.le)]
    limits = [(sign, limit) for sign, limit in bounds if limit is not None]
    # no number is above or below NaN, but DuckDB sorts it above all of them
    if any(math.isnan(limit) for _, limit in limits):
        return "FALSE"
    parts = [f"{column.sql} {sign} {bound.bind(limit)}" for sign, limit in limits]
    if column.type == "number" and item.lt is None and item.le is None:
        # NaN lies above infinity; unlike isnan(), a bound is held against the statistics of many rows at once
        parts.append(f"{_nan_of(column)} <= 'Infinity'::DOUBLE")
    return _all_or_present(column, parts)


def _all_or_present(column: Column, parts: Sequence[str]) -> str:
    """Return the condition of a range; one without bounds needs a value."""
    return "(" + (" AND ".join(parts) or f"{column.sql} IS NOT NULL") + ")"


def _nan_of(column: Column) -> str:
    """Return the expression that is NaN if the column is; cheaper for a number over integers."""
    derived = None if column.sql == quote(column.name) else fields.field(column.name).derived
    match derived:
        case Quotient((number,), under) if under and all(_column(name).type == "integer" for name in under):
            return _column(number).sql
    return column.sql


def _times(column: Column, item: Times, bound: Binding) -> str:
    if column.type != "time":
        raise UsageError(f"'{column.name}' is not a time")
    limits = [(">=", item.start), ("<", item.end)]
    parts = [f"{column.sql} {sign} {bound.bind(naive(limit))}" for sign, limit in limits if limit is not None]
    return _all_or_present(column, parts)


def _likes(column: Column, patterns: Sequence[str], bound: Binding) -> str:
    # both sides are folded by DuckDB, so that one rule decides about letters
    text = f"lower({_text(column).sql})"
    parts: list[str] = []
    for pattern in patterns:
        stem = pattern.rstrip("*")
        # LIKE only where a wildcard is not the last character
        if "*" not in pattern:
            parts.append(f"{text} = lower({bound.bind(pattern)})")
        elif "*" not in stem:
            parts.append(f"starts_with({text}, lower({bound.bind(stem)}))")
        else:
            like = _escaped(pattern).replace("*", "%")
            parts.append(f"{text} LIKE lower({bound.bind(like)}) ESCAPE '{_ESCAPE}'")
    return " OR ".join(parts) or "FALSE"


def _text(column: Column) -> Column:
    if column.type not in ("keyword", "text"):
        raise UsageError(f"'{column.name}' is not text and matches no pattern")
    return column


def _escaped(pattern: str) -> str:
    # the escape sign first, or it would escape what was escaped before
    for special in (_ESCAPE, "%", "_"):
        pattern = pattern.replace(special, _ESCAPE + special)
    return pattern


def _keeps(rule: DropRule, bound: Binding) -> str:
    condition = _condition(rule.keep, _column, bound)
    present = f"{_column(rule.keep.field).sql} IS NOT NULL"
    missing = f"{_column(rule.keep.field).sql} IS NULL"
    # the only condition that holds for null: every other one needs the field
    if isinstance(rule.keep, NotLike):
        return condition if rule.missing == "pass" else f"({present} AND {condition})"
    return f"({missing} OR {condition})" if rule.missing == "pass" else condition


def _where(conditions: Sequence[str]) -> str:
    return "\nWHERE " + "\n  AND ".join(conditions) if conditions else ""


def _compiled(sql: str, bound: Binding) -> Compiled:
    return Compiled(sql, tuple(bound.values))
