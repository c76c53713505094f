"""Commands that list jobs: by conditions, or by SQL."""

from contextlib import AbstractContextManager, nullcontext

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    STREAMED,
    Context,
    FiniteRange,
    format_option,
    out_option,
    require_csv,
    spreadsheet_option,
    where_option,
    window_option,
)

_SHOWN = "job_id,queue,processing_type,state,end_time,cores,events,wall_s,efficiency,cpu_model"
_ROWS_OF_TABLE = 50


@example(
    "esjobs jobs --where 'efficiency<10%' --top 10",
    "esjobs jobs --where state=failed --columns job_id,queue --sort wall_s --desc",
)
@click.command("jobs")
@where_option
@window_option
@click.option(
    "--columns",
    default=_SHOWN,
    show_default=True,
    metavar="FIELD[,FIELD]",
    help="Columns to show, in this order (list: esjobs fields).",
)
@click.option("--sort", metavar="FIELD", help="Sort by: a field, smallest first; missing values come last.")
@click.option("--desc", is_flag=True, help="Sort order: largest first.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the first N rows; 0: all. Without --sort: the latest jobs. Default: 50 in a table, else all.",
)
@format_option(*STREAMED)
@out_option
@spreadsheet_option
@click.pass_obj
def jobs(
    obj: Context,
    where: tuple[str, ...],
    window: str | None,
    columns: str,
    sort: str | None,
    desc: bool,
    top: int | None,
    form: str,
    out: str,
    spreadsheet: bool,
) -> None:
    """List the stored jobs that match the conditions.

    CSV and JSON without --sort and --top are streamed, for any number of jobs. To copy jobs to another store,
    use: esjobs export.
    """
    from esjobs.render.rows import write_batches

    names = [name.strip() for name in columns.split(",") if name.strip()]
    if not names:
        raise click.UsageError("the list of --columns is empty; list fields: esjobs fields")
    if desc and sort is None:
        raise click.UsageError("--desc requires a field to sort by; add --sort FIELD")
    require_csv(form, spreadsheet=spreadsheet)
    # --top 0 means all
    limit = _ROWS_OF_TABLE if top is None and form == "table" else top or None
    with obj.session() as session:
        title = ""
        if form == "table":
            # also says where the stored jobs lie when there are none
            counted = session.query((), ("jobs",), where=where, window=window).rows
            title = _title(counted.column("jobs")[0].as_py(), limit, sort, desc=desc)
        rows = session.jobs(
            where=where, window=window, columns=names, sort=sort, desc=desc, top=limit
        ).batches()
        write_batches(rows, form, out, title=title, spreadsheet=spreadsheet)


def _title(n_jobs: int, limit: int | None, sort: str | None, *, desc: bool) -> str:
    if limit is None or limit >= n_jobs:
        return f"{n_jobs:,} {'job' if n_jobs == 1 else 'jobs'}"
    order = f"by {sort}, {'largest' if desc else 'smallest'} first" if sort else "latest end first"
    return f"{limit:,} of {n_jobs:,} jobs, {order}; show all with --top 0"


@example(
    "esjobs sql 'select queue, count(*) from jobs group by all'",
    "esjobs sql 'select name, verdict from latest_flags order by deviation'",
)
@click.command("sql")
@click.argument("statement", metavar="'SELECT ...'")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0.1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time for the query and its output.",
)
@format_option(*STREAMED)
@out_option
@spreadsheet_option
@click.pass_obj
def sql(obj: Context, statement: str, timeout_s: float, form: str, out: str, spreadsheet: bool) -> None:
    """Run one read-only SELECT on the embedded store.

    Tables: jobs, the result tables (docs/tables.md), and latest_factors, latest_flags, ... with the rows of
    the latest run. Files cannot be read or written. On a cluster use: esjobs query, esjobs jobs.
    """
    from esjobs.render.rows import write_batches

    require_csv(form, spreadsheet=spreadsheet)
    with obj.session() as session, _bounds(obj, session.settings.memory_bytes, timeout_s):
        write_batches(
            session.sql(statement, timeout_s=timeout_s).batches(), form, out, spreadsheet=spreadsheet
        )


def _bounds(obj: Context, memory_bytes: float, timeout_s: float) -> AbstractContextManager[None]:
    """Bound the process of a statement that ignores interrupts; a shared process is not bounded."""
    if not obj.own_process:
        return nullcontext()
    from esjobs.cli.rlimits import bounded

    late = f"esjobs: SQL: not finished after {timeout_s:g} s; simplify the query, or raise --timeout"
    return bounded(timeout_s, memory_bytes, late)
