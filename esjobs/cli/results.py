"""Commands that read results: tables, comparisons, exports, the report."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    PICTURES,
    STREAMED,
    Context,
    emit,
    filter_options,
    out_option,
    require_csv,
    rows_options,
    rows_or_picture_options,
    say_notes,
    say_written,
    spreadsheet_option,
    top_option,
    where_option,
    window_option,
)
from esjobs.core.errors import UsageError
from esjobs.core.text import visible
from esjobs.core.words import METHODS
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import TABLES
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.pop import SCALING

if TYPE_CHECKING:
    import pyarrow as pa

    from esjobs.api.session import Session
    from esjobs.records.answer import Answer


@example("esjobs show flags --level queue --type all", "esjobs show factors --name ALDER-HEP --format csv")
@click.command()
@click.argument("what", metavar="TABLE", type=click.Choice([table.name for table in TABLES]))
@filter_options()
@click.option(
    "--min-severity",
    type=click.Choice(SEVERITIES, case_sensitive=False),
    help="Issues of at least this severity.",
)
@click.option("--run", "run_id", metavar="RUN", help="Run id; default: the latest.")
@click.option("--sort", metavar="COLUMN[,COLUMN]", help="Sort by: columns; missing values come last.")
@click.option(
    "--desc/--asc",
    "descending",
    default=None,
    help="Sort order; default: numbers from the largest, names from A.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Show the first N rows; 0: all.",
)
@click.option("--columns", metavar="COLUMN[,COLUMN]", help="Columns to show, in this order (docs/tables.md).")
@click.option("--plot", is_flag=True, help="Draw in the terminal: efficiencies against size (scaling only).")
@window_option
@rows_or_picture_options
@click.pass_obj
def show(
    obj: Context,
    /,
    what: str,
    min_severity: str | None,
    run_id: str | None,
    sort: str | None,
    descending: bool | None,
    top: int,
    columns: str | None,
    plot: bool,
    window: str | None,
    form: str,
    out: str,
    **filters: tuple[str, ...],
) -> None:
    """Print a result table; default: the latest complete run.

    On a terminal only the default method of the fit is shown, unless --method names one; other formats have
    every row and column. Without TABLE, `esjobs show` lists the tables.
    """
    drawn = plot or form in PICTURES
    _refuse_pictures(what, form, out, columns, plot=plot, drawn=drawn)
    for_terminal = form == "table" and not drawn
    # a terminal says how many rows there are
    limit, read = (None, _read_for_terminal(what, columns)) if for_terminal else (top, columns)
    with obj.session() as session:
        answer = session.tables.read(
            what,
            sort=sort,
            descending=descending,
            top=limit,
            columns=read,
            min_severity=min_severity,
            run=run_id,
            window=window,
            **{name: values or None for name, values in filters.items()},
        )
        costs = session.noise.sentences() if what == "scores" else ()
    if drawn:
        _draw(answer.rows, form, out, plot=plot)
    elif for_terminal:
        notes = _restricted(answer, run_id)
        _print(what, answer, columns, top, out, any_method=bool(filters["method"]), notes=notes)
        say_notes(obj, [f"cost of monitoring: {each}" for each in costs])
    else:
        emit(answer.rows, form, out)


def _restricted(answer: "Answer", run_id: str | None) -> str:
    # the latest run is an unrestricted one wherever there is any
    is_restricted = run_id is None and answer.run and answer.run.restriction
    return "no unrestricted run has any" if is_restricted else ""


def _refuse_pictures(what: str, form: str, out: str, columns: str | None, *, plot: bool, drawn: bool) -> None:
    if drawn and what != SCALING.name:
        raise click.UsageError(f"no picture for {what}; --plot requires {SCALING.name}")
    if plot and (form != "table" or out != "-"):
        raise click.UsageError(
            "--plot draws in the terminal; for a picture file use --format svg, png or html"
        )
    if drawn and columns is not None:
        raise click.UsageError("a picture has its own columns; omit --columns")
    if columns is not None and not columns.strip(", "):
        raise click.UsageError("the list of --columns is empty; omit it to select all")


def _read_for_terminal(what: str, columns: str | None) -> tuple[str, ...] | None:
    # wording verdicts takes more columns than are shown; columns of bytes are not shown at all
    table = capabilities.table(what)
    has_bytes = columns is None and any(item.type == "bytes" for item in table.columns)
    return table.shown if has_bytes else None


def _draw(rows: "pa.Table", form: str, out: str, *, plot: bool) -> None:
    if not plot:
        from esjobs.render.charts.scaling import write_picture

        write_picture(rows, form, out)
        return
    import shutil

    from esjobs.render.charts.scaling import text_picture

    for line in text_picture(rows, shutil.get_terminal_size().columns):
        click.echo(line)


def _print(
    what: str, answer: "Answer", columns: str | None, top: int, out: str, *, any_method: bool, notes: str
) -> None:
    """Print a table for people; ``any_method``: not only the rows of the headline."""
    from esjobs.core.arguments import split
    from esjobs.render.columns import for_people

    run = answer.run
    headline = [] if any_method or run is None or run.headline is None else [run.headline]
    rows, title, prose = for_people(what, answer.rows, headline, split(columns or ()))
    if top and rows.num_rows > top:
        title = ", ".join(filter(None, [title, f"{top:,} of {rows.num_rows:,} rows"]))
        rows = rows.slice(0, top)
    titles = ("" if run is None else run.title, notes, title)
    emit(rows, "table", out, title=", ".join(filter(None, titles)), prose=prose)


@example(
    "esjobs run --window 2025-05-17/2025-06-16",
    "esjobs compare --top 10",
    "esjobs compare --since 2025-06-15 --level queue",
)
@click.command()
@click.argument("run_a", metavar="[RUN", required=False)
@click.argument("run_b", metavar="[RUN]]", required=False)
@filter_options("level", "type", "name", "site", "method")
@click.option(
    "--since", metavar="WINDOW", help="Compare with the last run whose data ended with this window."
)
@top_option(20)
@rows_options
@click.pass_obj
def compare(
    obj: Context,
    /,
    run_a: str | None,
    run_b: str | None,
    method: tuple[str, ...],
    since: str | None,
    top: int,
    form: str,
    out: str,
    **filters: tuple[str, ...],
) -> None:
    """Compare two runs: changed verdicts and factors, in standard errors.

    One RUN is compared with the latest run; without RUN the latest is compared with the previous run of an
    equally long window. Changed verdicts come first, then the largest shifts. Tables show the default method
    of the fit unless --method names one; other formats have every row.
    """
    with obj.session() as session:
        compared = session.speed.compare(
            run_a,
            run_b,
            method=method,
            since=since,
            **{name: values or None for name, values in filters.items()},
        )
    (first, second), rows = compared.details, compared.rows
    title = f"a: {first.title}; b: {second.title}"
    if form != "table":
        emit(rows, form, out, title=title)
        return
    from esjobs.render.columns import compared_for_people

    headlines = [] if method else list(filter(None, (first.headline, second.headline)))
    rows, shared, summary = compared_for_people(rows, headlines, all_rows=top == 0)
    shown = rows.slice(0, top or None)
    left_out = f"{top} of {rows.num_rows:,} rows, show all with --top 0" if len(shown) < len(rows) else ""
    title = "; ".join(filter(None, (title, summary, shared, left_out)))
    # a terminal needs no headings above nothing
    if len(shown) or out != "-":
        emit(shown, form, out, title=title)
    else:
        click.echo(visible(title))


@example("esjobs fields")
@click.group("fields", invoke_without_command=True)
@rows_options
@click.pass_context
def list_fields(ctx: click.Context, form: str, out: str) -> None:
    """List the fields and metrics of queries, with units."""
    if ctx.invoked_subcommand is not None:
        return
    from esjobs.records.jobs.catalogue import fields_table

    emit(fields_table(), form, out, prose=["meaning"])


@example("esjobs fields check")
@list_fields.command("check")
@rows_options
@click.pass_obj
def check(obj: Context, form: str, out: str) -> None:
    """Check the field map against the jobs index; exit code 1 if a required field is missing."""
    with obj.session() as session:
        checked = session.tables.fields().rows
    emit(checked, form, out, prose=["note", "effect"])
    if not obj.quiet:
        states = checked.column("check").to_pylist()
        click.echo(f"{states.count('ok')} of {len(states)} ok", err=True)
    if any(checked.column("needed").to_pylist()):
        raise SystemExit(1)


@example(
    "esjobs export jobs --where queue=ALDER-HEP --out alder.csv",
    "esjobs export flags --format parquet --out flags.parquet",
)
@click.command()
@click.argument("what", metavar="jobs|TABLE", type=click.Choice(["jobs", *(table.name for table in TABLES)]))
@out_option
@click.option(
    "--format",
    "form",
    type=click.Choice(STREAMED),
    help="Output format; default: from the file name, csv on standard output. jsonl is for jobs only.",
)
@where_option
@click.option(
    "--pseudonymise",
    "key",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Replace names of users, projects, accounts and hosts by hashes with the key in this file, and omit "
    "free text. Names of queues, sites and CPU models stay unless they contain one of those names.",
)
@click.option("--new-key", is_flag=True, help="Create the key file, readable by you only.")
@window_option
@spreadsheet_option
@click.pass_obj
def export(
    obj: Context,
    what: str,
    out: str,
    form: str | None,
    where: tuple[str, ...],
    key: Path | None,
    new_key: bool,
    window: str | None,
    spreadsheet: bool,
) -> None:
    """Export jobs in canonical columns (lossless: `esjobs ingest jobs` reads them back).

    Or every row and column of a result table, by default of the latest run.
    """
    if form in ("table", "json"):
        require_csv(form, spreadsheet=spreadsheet)
    named = form or ("csv" if out == "-" else None)
    chosen = named or Path(out).suffix.removeprefix(".")
    if what != "jobs":
        _require_rows_form(chosen, out)
    _take_key(key, new_key, out)
    with obj.session() as session:
        # one array, or a table, needs all rows at once; the other formats of jobs are written in batches
        if what != "jobs" or chosen == "json" or form == "table":
            emit(_rows_out(session, what, where, window, key), chosen, out, spreadsheet=spreadsheet)
        else:
            of = {"where": where, "window": window, "spreadsheet": spreadsheet, "key": key}
            _say(obj, _write_jobs(session, out, named, of))
        if what == "jobs":
            _say_window(obj, session, window)


def _say_window(obj: Context, session: "Session", window: str | None) -> None:
    if window is None and not obj.quiet:
        click.echo(f"window: {session.runs.window()} (all stored data)", err=True)


def _write_jobs(session: "Session", out: str, form: str | None, of: dict[str, Any]) -> str:
    jobs = session.export.jobs(out, form=cast("Any", form), **of)
    return f"{jobs:,} jobs written to {'standard output' if out == '-' else visible(out)}"


def _say(obj: Context, text: str) -> None:
    if not obj.quiet:
        click.echo(text, err=True)


def _require_rows_form(form: str, out: str) -> None:
    if form == "jsonl":
        raise click.UsageError("only jobs can be exported as jsonl; use --format csv, json or parquet")
    if form not in ("table", "csv", "json", "parquet"):
        raise click.UsageError(f"cannot derive the format from '{out}'; use --format csv, json or parquet")


def _take_key(key: Path | None, new_key: bool, out: str) -> None:
    """Make a new key; refuse to write over the one of pseudonyms."""
    if key is None:
        if new_key:
            raise click.UsageError("--new-key creates the file of --pseudonymise; add that option")
        return
    from esjobs.records.export.pseudonyms import make_key
    from esjobs.store.files.destination import refuse_inputs

    if new_key:
        make_key(key)
    refuse_inputs(out, [key])


def _rows_out(
    session: "Session", what: str, where: tuple[str, ...], window: str | None, key: Path | None
) -> "pa.Table":
    """Return all rows, pseudonymised if there is a key."""
    if what == "jobs":
        rows = session.jobs(where=where, window=window).rows
    else:
        rows = session.tables.read(what, window=window).rows
    if key is None:
        return rows
    from pyarrow import Table

    from esjobs.core.fields import JOB_FIELDS
    from esjobs.records.export.pseudonyms import Pseudonyms, read_key

    columns = JOB_FIELDS if what == "jobs" else capabilities.table(what).columns
    pseudonyms = Pseudonyms(read_key(key))
    pseudonyms.learn(rows.to_batches(), columns)
    return Table.from_batches(list(pseudonyms.batches(rows.to_batches(), columns)), rows.schema)


@example(
    "esjobs report --out report.html",
    "esjobs report --usage --window 2025-06-01/2025-07-01 --out usage.html",
)
@click.command()
@click.option(
    "--out",
    "-o",
    required=True,
    metavar="FILE",
    help="Output: HTML file, PDF (by Chromium) if named so, or - for standard output.",
)
@click.option("--run", "run_id", metavar="RUN", help="Run id; default: the latest complete one.")
@click.option(
    "--method",
    type=click.Choice(METHODS, case_sensitive=False),
    help="Whose results: a method of the fit; default: that of the run.",
)
@click.option(
    "--usage",
    is_flag=True,
    help="Hours, people, failures, waiting, scores, issues instead; also without any run.",
)
@window_option
@click.pass_obj
def report(
    obj: Context, out: str, run_id: str | None, method: str | None, usage: bool, window: str | None
) -> None:
    """Write a self-contained HTML report: who deviates, by how much, on what evidence."""
    if window is not None and not usage:
        raise UsageError("--window belongs to --usage; a report of speed factors has the window of its --run")
    with obj.session() as session:
        session.report(out, run=run_id, method=method, usage=(window or True) if usage else False)
    say_written(obj, "report", out)
