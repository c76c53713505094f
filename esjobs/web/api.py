"""Rows for programs: JSON, CSV, Arrow."""

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.version import __version__
from esjobs.core.window import format_time
from esjobs.records.answer import Answer
from esjobs.render.freshness import freshness_of
from esjobs.render.rows import csv_text, plain
from esjobs.schema import catalogue
from esjobs.web.answers import Reply
from esjobs.web.jobs import job_rows
from esjobs.web.request import GoneError, Handler, Request

# Types of formats
MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8; header=present",
    "arrow": "application/vnd.apache.arrow.stream",
}
USUAL_ROWS, MOST_ROWS = 100, 1000
MOST_MIN_JOBS = 1_000_000
_METRICS = ("jobs", "core_h", "efficiency", "failure_rate")


def rows_of_table(name: str) -> Handler:
    """Return a handler of the rows of a result table, as ``esjobs show`` has them."""
    filters = ("level", "type", "name", "site", "method")

    def handler(request: Request) -> Reply:
        chosen: dict[str, Any] = {each: request.many(each) for each in filters if request.many(each)}
        return _of_answer(request, request.session.tables.read(name, **chosen), _units(name))

    return handler


def rows_of_groups(field: str) -> Handler:
    """Return a handler of groups of jobs by a field, as ``esjobs query --by`` has them."""

    def handler(request: Request) -> Reply:
        return _of_answer(
            request,
            request.session.query(field, _METRICS, where=request.conditions, window=request.one("window")),
        )

    return handler


def grouped(request: Request) -> Answer:
    """Return the groups of a question, with the parameters of ``esjobs query``."""
    order = request.one("order")
    if order not in (None, "ascending", "descending"):
        raise UsageError(f"order must be ascending or descending; got '{order:.40}'")
    return request.session.query(
        request.many("by"),
        request.many("metric") or ("jobs",),
        where=request.conditions,
        window=request.one("window"),
        sort=request.one("sort"),
        descending=None if order is None else order == "descending",
        top=request.number("top", MOST_ROWS, MOST_ROWS) if request.one("top") else None,
        min_jobs=request.number("min_jobs", 1, MOST_MIN_JOBS) if request.one("min_jobs") else 0,
        total=request.flag("total"),
        share=request.flag("share"),
        errors=request.flag("errors"),
        compare=request.one("compare"),
    )


def query(request: Request) -> Reply:
    """Groups of jobs by any field."""
    return _of_answer(request, grouped(request))


def delivered(request: Request) -> Reply:
    """Delivered work, as ``esjobs delivered`` has it."""
    by = request.many("by") or ("site",)
    answer = request.session.delivered.work(
        by, window=request.one("window"), where=request.conditions, vo=request.one("vo")
    )
    return _of_answer(request, answer)


def jobs(request: Request) -> Reply:
    """Jobs, those that ended last first."""
    page = job_rows(request, request.number("limit", USUAL_ROWS, MOST_ROWS))
    return _written(request, page.rows, page.next, {})


def health(request: Request) -> Reply:
    """State of what is shown: run, age, whether it may be used."""
    run = request.shown.run
    facts: dict[str, Any] = {"status": "ok", "esjobs": __version__, "run": None}
    if run is not None:
        age = freshness_of(request.session.store, run, request.now)
        facts |= {
            "run": run.run,
            "window": str(run.window),
            "newest_day": age.newest,
            "usable": age.light,
            "synthetic": age.made_up,
        }
    return Reply(_json(facts), MEDIA["json"])


def _of_answer(request: Request, answer: Answer, units: dict[str, str] | None = None) -> Reply:
    """Rows of an answer from an offset on; its cursor is bound to the state shown."""
    size, offset = request.number("limit", USUAL_ROWS, MOST_ROWS), 0
    position = request.cursor()
    if position is not None:
        if position[0] != request.shown.version:
            raise GoneError("these rows are no longer shown; begin again without the cursor")
        offset = position[1] if isinstance(position[1], int) and position[1] >= 0 else 0
    rows = answer.rows
    following = (
        request.next_address(request.shown.version, offset + size) if rows.num_rows > offset + size else ""
    )
    meta: dict[str, Any] = {"total": rows.num_rows, "notes": list(answer.notes)}
    if units:
        meta["units"] = units
    return _written(request, rows.slice(offset, size), following, meta)


def _units(name: str) -> dict[str, str]:
    return {column.name: column.unit for column in catalogue.table(name).columns if column.unit}


def _written(request: Request, rows: pa.Table, following: str, meta: dict[str, Any]) -> Reply:
    match request.form:
        case "csv":
            stream = io.StringIO()
            csv_text(rows, stream, spreadsheet=True)
            body = stream.getvalue().encode()
        case "arrow":
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
            body = sink.getvalue()
        case _:
            body = _json(_document(request, rows, following, meta))
    return Reply(body, MEDIA[request.form], next=following)


def _document(request: Request, rows: pa.Table, following: str, meta: dict[str, Any]) -> dict[str, Any]:
    run = request.shown.run
    about: dict[str, Any] = {
        "run": run.run if run else None,
        "window": [format_time(run.window.start), format_time(run.window.end)] if run else None,
        "rows": rows.num_rows,
        **meta,
    }
    records: Sequence[dict[str, Any]] = rows.to_pylist(maps_as_pydicts="strict")
    return {"meta": about, "rows": [plain(record) for record in records], "next": following or None}


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode()
