"""Commands about single jobs as rows: the list of those that meet conditions, and SQL over the store."""

from contextlib import AbstractContextManager, nullcontext

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, FiniteRange, spreadsheet_option, where_option, window_option

_SHOWN = "job_id,queue,processing_type,state,end_time,cores,events,wall_s,efficiency,cpu_model"
_ROWS_OF_TABLE = 50
_FORMATS = click.Choice(["table", "csv", "json", "jsonl", "parquet"])


@example(
    "esjobs jobs --where 'efficiency<10%' --top 10",
    "esjobs jobs --where state=failed --columns job_id,queue,wall_s --sort wall_s --desc --top 5",
)
@click.command("jobs")
@where_option
@window_option
@click.option(
    "--columns",
    default=_SHOWN,
    show_default=True,
    metavar="FIELD[,FIELD]",
    help="Columns to show: fields of a job.",
)
@click.option(
    "--sort", metavar="FIELD", help="Sort by: a field, the smallest first; jobs without a value come last."
)
@click.option("--desc", is_flag=True, help="The largest first.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    help="So many rows; without --sort the jobs that ended last. Default: 50 of a table, else all; 0: all.",
)
@click.option(
    "--format", "form", type=_FORMATS, default="table", show_default=True, help="How it is written."
)
@click.option(
    "--out", "-o", default="-", show_default=True, metavar="FILE", help="Where to write: a file; - is stdout."
)
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
    """The stored jobs themselves, those that meet conditions.

    Any field of the catalogue (esjobs fields). CSV and JSON without --sort and --top are written as the jobs
    come, however many there are. To move jobs to another store, use export.
    """
    from esjobs.render.rows import write_batches

    names = [name.strip() for name in columns.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--columns names no field; see: esjobs fields")
    if desc and sort is None:
        raise click.UsageError("--desc says how to sort; name the field, too: --sort FIELD")
    _require_csv(form, spreadsheet=spreadsheet)
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
        return f"{n_jobs:,} jobs"
    order = f"by {sort}, the {'largest' if desc else 'smallest'} first" if sort else "those that ended last"
    return f"{limit:,} of {n_jobs:,} jobs, {order}; all with --top 0"


@example(
    "esjobs sql 'select site, count(*) as n from jobs group by all order by n desc limit 10'",
    "esjobs sql 'select name, verdict, deviation from latest_flags order by abs(deviation) desc limit 5'",
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
    help="Longest time that the question may take, reading and writing its answer included.",
)
@click.option(
    "--format", "form", type=_FORMATS, default="table", show_default=True, help="How it is written."
)
@click.option(
    "--out", "-o", default="-", show_default=True, metavar="FILE", help="Where to write: a file; - is stdout."
)
@spreadsheet_option
@click.pass_obj
def sql(obj: Context, statement: str, timeout_s: float, form: str, out: str, spreadsheet: bool) -> None:
    """One SELECT over the embedded store, read-only.

    There are jobs, the result tables as docs/tables.md has them, and latest_factors, latest_flags, ... with
    the rows of the latest run. Nothing can be changed, no file read or written. On a cluster: query and jobs.
    """
    from esjobs.render.rows import write_batches

    _require_csv(form, spreadsheet=spreadsheet)
    with obj.session() as session, _bounds(obj, session.settings.memory_bytes, timeout_s):
        write_batches(
            session.sql(statement, timeout_s=timeout_s).batches(), form, out, spreadsheet=spreadsheet
        )


def _bounds(obj: Context, memory_bytes: float, timeout_s: float) -> AbstractContextManager[None]:
    """What ends a statement that heeds no interrupt; in a process of others, nothing does."""
    if not obj.own_process:
        return nullcontext()
    from esjobs.cli.rlimits import bounded

    late = f"esjobs: SQL: not done after {timeout_s:g} s; ask for less, or give more --timeout"
    return bounded(timeout_s, memory_bytes, late)


def _require_csv(form: str, *, spreadsheet: bool) -> None:
    if spreadsheet and form != "csv":
        raise click.UsageError("--spreadsheet changes cells of CSV only; give --format csv, too")
