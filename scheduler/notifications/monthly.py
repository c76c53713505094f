"""The notice about a month's delivered work, for coordinators."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from esjobs.api.page import usage_page
from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.numbers import core_h, count, percent
from esjobs.core.text import spreadsheet_cell, visible
from esjobs.core.window import Window
from esjobs.delivered.work import delivered
from esjobs.store.base import JobStore
from scheduler.notifications.notices import Notice

_MOST_NAMED = 5


def monthly_notice(store: JobStore, night: date, day: int | None) -> Notice | None:
    """Return the notice of the month before on one day of a month; None on others, and without jobs.

    ``day``: of the month; by then late records have come. Cost: that of three questions for delivered work,
    and of a page of usage.
    """
    if night.day != day:
        return None
    month = f"{night.replace(day=1) - timedelta(days=1):%Y-%m}"
    window = Window.parse(month)
    try:
        totals = delivered(store, (), window).rows.to_pylist()
        by_federation = delivered(store, ("federation",), window).rows
        by_site = delivered(store, ("federation", "site"), window).rows
    except NoJobsError:
        return None
    # of the month alone: late records that change the sums are not a second message
    identity = content_id({"kind": "delivered", "month": month}, 20)
    sentences = [
        *(_of_benchmark(row) for row in totals),
        *_of_pledges(by_federation.to_pylist()),
        f"Page: esjobs report --usage --window {month} --out usage.html. "
        f"Rows: esjobs delivered --by federation,site --window {month} --format csv",
    ]
    sums = ", ".join(f"{count(_work(row))} {_unit(row)}" for row in totals)
    title, text = f"Delivered in {month}: {sums}", " ".join(sentences)
    # pledges are those of federations: rows without a site
    pledged = by_federation.filter(pc.is_valid(by_federation.column("pledge_h")))
    rows = pa.concat_tables([by_site, pledged], promote_options="default")
    page = usage_page(store, window, people=False).html
    return Notice(identity, "delivered", "info", title, text, night, rows=_csv(rows), page=page)


def _csv(rows: pa.Table) -> str:
    """Return rows as CSV whose texts no spreadsheet takes for formulas."""
    columns = [
        pa.array(map(spreadsheet_cell, map(visible, column.fill_null("").to_pylist())))
        if pa.types.is_string(column.type)
        else column
        for column in rows.columns
    ]
    written = pa.BufferOutputStream()
    options = csv.WriteOptions(quoting_style="needed", quoting_header="none")
    csv.write_csv(pa.table(columns, names=rows.column_names), written, options)
    return str(written.getvalue().to_pybytes(), "utf-8")


def _unit(row: Mapping[str, Any]) -> str:
    return f"{row['benchmark']}-hours" if row["benchmark"] else "core-hours without a score"


def _work(row: Mapping[str, Any]) -> float:
    """The declared work, else the measured one, else core-hours."""
    values = (row["declared_h"], row["measured_h"], row["core_h"])
    return float(next(value for value in values if value is not None))


def _of_benchmark(row: Mapping[str, Any]) -> str:
    text = core_h(row["core_h"])
    if row["useful_core_h"] is not None and row["core_h"]:
        text += f", {percent(row['useful_core_h'] / row['core_h'])} of them useful"
    if row["failed_core_h"] is not None:
        text += f", {core_h(row['failed_core_h'])} failed"
    if row["declared_h"] is not None:
        text += f", {count(row['declared_h'])} {_unit(row)} by declared scores"
    if row["measured_h"] is not None:
        text += f", {count(row['measured_h'])} ± {count(row['measured_h_err'])} by measured ones"
        if row["no_measured_core_h"]:
            text += f" (without {core_h(row['no_measured_core_h'])} of queues that have none)"
    if row["gain_h"] is not None:
        gain, error = (count(abs(row[name])) for name in ("gain_h", "gain_h_err"))
        way = "more" if row["gain_h"] > 0 else "less"
        text += f". Where both are known, declared scores give {gain} ± {error} {_unit(row)} {way}"
    return f"{text}."


def _of_pledges(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    shares: dict[str, float] = {}
    for row in rows:
        if row["of_pledge_percent"] is not None:
            # of the hours without declared outages, where downtimes were imported
            available = row["of_available_percent"]
            shares[visible(row["federation"])] = row["of_pledge_percent"] if available is None else available
    if not shares:
        return []
    lowest = sorted(shares, key=lambda name: shares[name])
    named = ", ".join(f"{name} {percent(shares[name] / 100)}" for name in lowest[:_MOST_NAMED])
    more = f" and {len(lowest) - _MOST_NAMED} more" if len(lowest) > _MOST_NAMED else ""
    return [f"Of the pledge in available hours: {named}{more}."]
