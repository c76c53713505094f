"""Values of the previous run beside those of the present one."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from esjobs.core.columns import RUN_BEFORE
from esjobs.core.query import In
from esjobs.core.tables import Table, name_before
from esjobs.publish.finding import runs_before
from esjobs.publish.latest import latest_first
from esjobs.publish.publication import read_table
from esjobs.publish.question import Question
from esjobs.publish.stored import StoredRun, entries_of, runs_of
from esjobs.store.base import JobStore


def predecessor(
    store: JobStore, question: Question, entries: Iterable[Mapping[str, Any]]
) -> StoredRun | None:
    """Return the previous run: complete, of equal window length, with data that end earlier.

    ``entries``: rows of ``runs`` published with it. The choice is final: later publications of older windows
    do not change it.
    """
    new = list(entries)
    # entries of this publication replace those of an earlier answer to the same question
    replaced = {row["run_step"] for row in new}
    stored = entries_of(store, question.kind)
    runs = runs_of([*(row for row in stored if row["run_step"] not in replaced), *new], question.kind)
    mine = next((run for run in runs if run.run == new[-1]["run"]), None)
    if mine is None:
        return None
    comparable = (
        run for run in runs_before(runs, mine) if run.complete and run.window.days == mine.window.days
    )
    return next(iter(latest_first(comparable)), None)


def with_before(store: JobStore, table: Table, rows: pa.Table, run: StoredRun | None) -> pa.Table:
    """Return rows with the values of a previous run in their ``_before`` columns; null if absent there."""
    if run is None:
        return rows
    # one read for all rows, which are matched by key here: stores have no joins
    read = read_table(store, table, [In("run", (run.run,))], [*table.key, *table.before]).to_pylist()
    by_key = {tuple(row[name] for name in table.key): row for row in read}
    keys = zip(*(rows.column(name).to_pylist() for name in table.key), strict=True)
    earlier = [by_key.get(key, {}) for key in keys]
    columns: dict[str, list[Any]] = {RUN_BEFORE.name: [run.run] * rows.num_rows}
    columns |= {name_before(name): [row.get(name) for row in earlier] for name in table.before}
    for name, values in columns.items():
        position = rows.schema.get_field_index(name)
        field = rows.schema.field(position)
        rows = rows.set_column(position, field, pa.array(values, field.type))
    return rows
