"""Delivered work as sites account for it: the stored sums of APEL in the rows of delivered work."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from esjobs.core.errors import NoResultError
from esjobs.core.numbers import core_h, exact_percent
from esjobs.core.window import Window
from esjobs.delivered.accounting import BENCHMARKS, HOUR_S, Row, messages, whole_months
from esjobs.delivered.work import (
    Groups,
    Question,
    Sums,
    pledges_beside,
    require_groupings,
    table_of,
    with_pledges,
)
from esjobs.publish.publication import read_table
from esjobs.records.answer import Answer
from esjobs.schema.accounting import ACCOUNTING
from esjobs.schema.delivered import ACCOUNTED_BY
from esjobs.store.base import JobStore


def accounted(
    store: JobStore,
    by: Sequence[str],
    window: Window | None,
    *,
    vo: str | None = None,
    one_scale: bool = False,
) -> Answer:
    """Return stored accounting in the columns of delivered work; no jobs are read.

    Months that the window touches count completely; None: all months. ``core_h``: wall-clock time x cores;
    ``declared_h``: the normalised one, a row per benchmark; HS23 where a sum has both. What needs jobs is
    null: useful, failed, measured and recorded work. ``vo``: messages and pledges of this VO.

    Cost: the accounting of the months in one read. Raises :class:`NoResultError` without any,
    :class:`UsageError` for an unknown grouping.
    """
    require_groupings("accounting", by, ACCOUNTED_BY)
    # sites account for months: a part of one is in no message
    span = _months(store, window)
    pledges, availability = pledges_beside(store, by, span, vo, span)
    question = Question(tuple(by), span, (), pledges, one_scale, span, availability)
    rows = messages(store, span, vo)
    groups: Groups = defaultdict(Sums)
    for row in rows:
        _add(groups, question, row)
    compared = tuple(with_pledges(groups, question)) if question.compares else ()
    title = f"accounted work by {', '.join(by) or 'all'}"
    return Answer(table_of(by, groups, {}), (f"months {span}", *_notes(rows), *compared), title=title)


def _months(store: JobStore, window: Window | None) -> Window:
    if window is not None:
        return whole_months(store, window)
    stored = read_table(store, ACCOUNTING, columns=["month"]).column("month")
    if not len(stored):
        raise NoResultError("no accounting stored; load it: esjobs ingest apel")
    first, last = (pc.min_max(stored)[end].as_py() for end in ("min", "max"))
    return Window.parse(f"{first:%Y-%m}/{last:%Y-%m}")


def _add(groups: Groups, question: Question, row: Row) -> None:
    values: dict[str, Any] = {**row, "month": f"{row['month']:%Y-%m}"}
    if "federation" in question.by:
        values["federation"] = question.pledges.federation(row["site"])
    benchmark = _benchmark(row)
    sums = groups[(*(values[name] for name in question.by), question.benchmark(benchmark))]
    sums.n_jobs += row["n_jobs"]
    sums.add("core_h", _hours(row["core_s"]))
    sums.add("cpu_core_h", _hours(row["cpu_s"]))
    if benchmark is None:
        sums.add("no_declared_core_h", _hours(row["core_s"]))
    # normalised time of a message is that of one processor
    elif row["processors"] is not None:
        sums.add("declared_h", row[BENCHMARKS[benchmark]] * row["processors"] / HOUR_S)


def _benchmark(row: Mapping[str, Any]) -> str | None:
    # where a sum has both labels, the newer one; added up they would count twice
    return next((name for name in ("HS23", "HS06") if row[BENCHMARKS[name]] is not None), None)


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / HOUR_S


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    total = sum(row["core_s"] or 0.0 for row in rows)
    default = sum(row["core_s"] or 0.0 for row in rows if row["declared"] is False)
    if default:
        share = exact_percent(default / total)
        yield f"{core_h(default / HOUR_S)} ({share}) are accounted with the default of 12 HS06 per core"
    without = sum(row["n_jobs"] for row in rows if row["core_s"] is None)
    if without:
        yield f"{without:,} jobs are in sums without cores; core_h and declared_h exclude them"
