"""What a store answers as Arrow tables: for the command line, for large answers, and to make frames of."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from typing import TYPE_CHECKING, Any, Unpack, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.api.arguments import (
    Filters,
    Names,
    QueryOptions,
    ShowOptions,
    Where,
    WindowLike,
    conditions,
    listed,
    split,
    window_of,
)
from esjobs.api.ordering import Ordering
from esjobs.core import fields
from esjobs.core.clock import Clock
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Days, Filter, In
from esjobs.core.row_filters import ROW_FILTERS
from esjobs.core.rules import CleaningRules
from esjobs.core.tables import Table
from esjobs.core.verdict_order import verdict_order
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import find_run, read_results
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.names import spelling
from esjobs.schema import catalogue as capabilities
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.jobs import LOADS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import FACTORS
from esjobs.store.base import JobStore, SpeakingSQL

if TYPE_CHECKING:
    from esjobs.records.jobs.query import Answer


class Answers:
    """The questions of a session by the same names, with Arrow tables for answers: no frame is made.

    ``s.arrow.query("site")`` is what ``s.query("site")`` makes a frame of.
    """

    def __init__(self, store: JobStore, rules: CleaningRules, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules

    def show(self, what: str, **options: Unpack[ShowOptions]) -> pa.Table:
        """The rows of a result table; as :meth:`Session.show`. Only the columns that are needed are read."""
        spelling.refuse_unknown_keywords(options, get_type_hints(ShowOptions))
        table = capabilities.table(what)
        given: Mapping[str, Any] = options
        order = Ordering.of(
            table, given.get("sort"), given.get("descending"), given.get("top"), given.get("columns")
        )
        chosen = {
            each.columns_in(table.column_names): _chosen(each.name, given.get(each.name))
            for each in ROW_FILTERS
        }
        within = window_of(options.get("window"), self._clock)
        read = order.read(name for columns, values in chosen.items() if values for name in columns)
        rows = spelling.chosen_rows(
            table, chosen, lambda values: self._rows(table, options.get("run"), within, values, read)
        )
        return order.applied(_at_least(table, rows, options.get("min_severity")))

    def verdicts(self, **filters: Unpack[Filters]) -> pa.Table:
        """The headline; as :meth:`Session.verdicts`."""
        run = self.run_shown("flags", run=filters.get("run"), window=filters.get("window"))
        chosen: Filters = {"level": "site", "type": ALL_TYPES}
        if run is not None and run.headline is not None:
            chosen["method"] = run.headline
        chosen.update(filters)
        flags = self.show("flags", **chosen)
        rows = flags.select(["confirmed", "deviation", "name"]).to_pylist()
        return flags.take(sorted(range(len(rows)), key=lambda number: verdict_order(rows[number])))

    def open_flags(self, states: Names | None = None) -> pa.Table:
        """What stands open, a row a name; as :meth:`Session.open_flags`."""
        from esjobs.flags.overview import open_flags
        from esjobs.schema.flags import STANDING_OPEN, STATES

        chosen = STANDING_OPEN if states is None else listed(states)
        return open_flags(self._store, spelling.as_stored("there is no state", chosen, STATES))

    def flag_history(
        self, name: str, *, level: Names | None = None, processing_type: Names | None = None
    ) -> pa.Table:
        """What happened to the flags of a name; as :meth:`Session.flag_history`."""
        from esjobs.flags.overview import flag_history

        levels, kinds = _chosen("level", level), _chosen("processing_type", processing_type)
        return flag_history(self._store, name, levels, kinds)

    def query(
        self,
        by: Names = (),
        metrics: Names = ("jobs",),
        *,
        where: Where = (),
        window: WindowLike = None,
        clean: bool = False,
        **more: Unpack[QueryOptions],
    ) -> pa.Table:
        """Groups of the stored jobs with their metrics; as :meth:`Session.query`."""
        return self.ask(by, metrics, where=where, window=window, clean=clean, **more).table

    def ask(
        self,
        by: Names = (),
        metrics: Names = ("jobs",),
        *,
        where: Where = (),
        window: WindowLike = None,
        clean: bool = False,
        **more: Unpack[QueryOptions],
    ) -> "Answer":
        """The same, with what was asked and what a reader must know to understand it."""
        from esjobs.records.jobs.query import Question, ask

        spelling.refuse_unknown_keywords(more, QueryOptions.__annotations__)
        compare = more.get("compare")
        question = Question(
            by=split(by),
            metrics=split(metrics),
            where=conditions(where),
            window=window_of(window, self._clock),
            clean=self._rules if clean else None,
            bins=tuple(listed(more.get("bins", ()))),
            sort=more.get("sort"),
            descending=more.get("descending"),
            top=more.get("top"),
            min_jobs=more.get("min_jobs", 0),
            total=more.get("total", False),
            share=more.get("share", False),
            errors=more.get("errors", False),
            compare="previous" if compare == "previous" else window_of(compare, self._clock),
        )
        return ask(self._store, question)

    def jobs(
        self,
        *,
        where: Where = (),
        window: WindowLike = None,
        columns: Names = (),
        sort: str | None = None,
        desc: bool = False,
        top: int | None = None,
    ) -> pa.RecordBatchReader:
        """Stored jobs as a stream, sorted where that is asked for; as :meth:`Session.jobs`."""
        from esjobs.records.jobs.streams import listed_jobs

        names = listed(columns) or tuple(item.name for item in fields.JOB_FIELDS)
        order = "" if sort is None else f"-{sort}" if desc else sort
        if top and sort is None:
            order = "-end_time"
        return listed_jobs(
            self._store, conditions(where), window_of(window, self._clock), names, order, top or None
        )

    def sql(self, text: str, *, timeout_s: float = 300.0) -> pa.RecordBatchReader:
        """The rows of one SELECT as a stream; as :meth:`Session.sql`."""
        if not isinstance(self._store, SpeakingSQL):
            raise UsageError(
                "SQL is for the embedded store; ask a cluster by esjobs query, jobs and show, or in its own "
                "language on the indices: docs/elasticsearch.md"
            )
        return self._store.sql(text, timeout_s)

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
    ) -> pa.Table:
        """What changed between two runs; as :meth:`Session.compare`."""
        from esjobs.speed.compare import compare_runs

        changes = compare_runs(
            self._store, run_a, run_b, since=window_of(since, self._clock), methods=listed(method)
        )
        given = {"level": level, "type": type, "name": name, "site": site}
        chosen = {
            each.columns_in(FACTORS.column_names): _chosen(each.name, given.get(each.name))
            for each in ROW_FILTERS
        }
        # chosen afterwards: the common scale of two runs is that of all their names
        return spelling.chosen_rows(FACTORS, chosen, lambda values: _with_values(changes, values))

    def batches(
        self,
        what: str = "jobs",
        *,
        where: Where = (),
        window: WindowLike = None,
        run: str | None = None,
        columns: Names = (),
    ) -> pa.RecordBatchReader:
        """Stored jobs, or the rows of a table, as a stream; as :meth:`Session.batches`."""
        from esjobs.records.jobs.streams import streamed_jobs, streamed_rows

        chosen, names = window_of(window, self._clock), listed(columns)
        if what == "jobs":
            if run is not None:
                raise UsageError("jobs belong to no run; leave the run out")
            return streamed_jobs(self._store, conditions(where), chosen, names)
        table = capabilities.table(what)
        if conditions(where):
            raise UsageError(f"where chooses jobs, not rows of {what}; filter the batches, or see show")
        return streamed_rows(self._store, table, self._chosen_rows(table, run, chosen), names)

    def check_fields(self) -> pa.Table:
        """Every stored field as the jobs' index has it; as :meth:`Session.check_fields`."""
        from esjobs.records.jobs.field_check import check_fields

        return pa.Table.from_pylist([asdict(checked) for checked in check_fields(self._store)])

    def run_shown(self, what: str, *, run: str | None = None, window: WindowLike = None) -> StoredRun | None:
        """The run whose rows :meth:`show` gives; None for tables that belong to no run.

        Raises :class:`NoResultError` when no run has the results.
        """
        table = capabilities.table(what)
        kind = capabilities.kind_of(table)
        within = window_of(window, self._clock)
        return None if kind is None else self._find(kind, table, run, within)

    def _rows(
        self,
        table: Table,
        run: str | None,
        window: Window | None,
        chosen: spelling.Chosen,
        columns: Sequence[str] = (),
    ) -> pa.Table:
        """The rows of a result table that have the chosen values, in the order in which they are shown."""
        from esjobs.records.declared.values import declared_table
        from esjobs.records.jobs import conditions as conditions_on

        where = list(conditions_on.row_filters(table, chosen))
        kind = capabilities.kind_of(table)
        if kind is not None:
            return read_results(self._store, table, self._find(kind, table, run, window), where, columns)
        if run is not None and "run" not in table.column_names:
            raise UsageError(f"{table.name} belong to no run; leave the run out")
        if table.name == "corepower":
            return _with_values(declared_table(self._store, window), chosen)
        if window is not None:
            where.extend(_within(table, window))
        rows = read_table(self._store, table, where, columns)
        if table == LOADS:
            from esjobs.records.jobs.entered import entered_loads

            entered = entered_loads(self._store, capabilities.TABLES)
            rows = pa.concat_tables([rows, entered.select(rows.column_names)])
        if run is not None:
            rows = rows.filter(pc.starts_with(rows.column("run"), run))
            if not rows.num_rows:
                raise NoResultError(f"no run '{run}'; list them with: esjobs show runs")
        return rows.sort_by(
            [
                (name.removeprefix("-"), "descending" if name[0] == "-" else "ascending")
                for name in table.shown_order
            ]
        )

    def _chosen_rows(self, table: Table, run: str | None, window: Window | None) -> list[Filter]:
        """What chooses the rows of a run, or of a window, in the store."""
        kind = capabilities.kind_of(table)
        if kind is not None:
            return [In("run", (self._find(kind, table, run, window).run,))]
        where = [] if window is None else _within(table, window)
        if run is None:
            return where
        if "run" not in table.column_names:
            raise UsageError(f"{table.name} belong to no run; leave the run out")
        return [*where, In("run", (run,))]

    def _find(self, kind: Kind, table: Table, run: str | None, window: Window | None) -> StoredRun:
        return find_run(self._store, kind, (table.made_by,), run, window)


def _at_least(table: Table, rows: pa.Table, severity: str | None) -> pa.Table:
    """The rows of at least a severity."""
    if severity is None:
        return rows
    if "severity" not in table.column_names:
        raise UsageError(f"{table.name} have no severity; leave min_severity out")
    if severity not in SEVERITIES:
        raise UsageError(f"there is no severity '{severity}'; there are {', '.join(SEVERITIES)}")
    return _with_values(rows, {("severity",): SEVERITIES[SEVERITIES.index(severity) :]})


def _with_values(rows: pa.Table, chosen: spelling.Chosen) -> pa.Table:
    for columns, values in chosen.items():
        if values:
            accepted = pa.array(values, pa.string())
            has_one = [pc.is_in(rows.column(column), accepted) for column in columns]
            rows = rows.filter(reduce(pc.or_, has_one))
    return rows


def _within(table: Table, window: Window) -> list[Filter]:
    if table.column(table.partition).type == "day":
        return [Days.of_window(window, table.partition)]
    if "day" in table.column_names:
        return [Days.of_window(window, "day")]
    if "window_start" in table.column_names:
        return [In("window_start", (window.start.isoformat(),)), In("window_end", (window.end.isoformat(),))]
    raise UsageError(f"{table.name} belong to no window; leave the window out")


def _chosen(keyword: str, values: Names | None) -> tuple[str, ...]:
    """The values of a filter; None, as a wrapper passes it on, is the same as leaving the filter out."""
    chosen = () if values is None else listed(values)
    if values is not None and not chosen:
        # left out, it would show every row to someone who asked for none
        raise UsageError(f"no {keyword} is given to choose rows by; leave {keyword} out for every row")
    return chosen
