"""Commands that only read: stored results, questions to the jobs, reports."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    PICTURES,
    Context,
    emit,
    filter_options,
    rows_options,
    rows_or_picture_options,
    spreadsheet_option,
    top_option,
    where_option,
    window_option,
)
from esjobs.core.text import visible
from esjobs.core.words import METHODS
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import TABLES
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.pop import SCALING

if TYPE_CHECKING:
    import pyarrow as pa

    from esjobs.api.session import Session


@example("esjobs show flags --level queue --type all", "esjobs show factors --name ALDER-HEP --format csv")
@click.command()
@click.argument("what", type=click.Choice([table.name for table in TABLES]))
@filter_options()
@click.option(
    "--min-severity",
    type=click.Choice(SEVERITIES, case_sensitive=False),
    help="Issues of at least this severity.",
)
@click.option("--run", "run_id", metavar="RUN", help="Which run: its id; default: the latest.")
@click.option("--sort", metavar="COLUMN[,COLUMN]", help="Sort by: these columns; missing values come last.")
@click.option(
    "--desc/--asc",
    "descending",
    default=None,
    help="The largest first; or the smallest; without, numbers from the largest, names from A.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="So many rows, of the usual order without --sort; 0: every row.",
)
@click.option(
    "--columns", metavar="COLUMN[,COLUMN]", help="Columns to show: these, in this order (docs/tables.md)."
)
@click.option("--plot", is_flag=True, help="Draw it here: efficiencies against size, of scaling.")
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
    """Show stored results; those of the latest run: complete, unrestricted, of the newest window.

    Tables show the headline method unless --method names another; other formats have every row and column.
    """
    drawn = plot or form in PICTURES
    if drawn and what != SCALING.name:
        raise click.UsageError(f"there is no picture of {what}; of {SCALING.name} there is one")
    if plot and (form != "table" or out != "-"):
        raise click.UsageError("--plot draws in the terminal; a file is drawn with --format svg, png or html")
    if (plot or drawn) and columns is not None:
        raise click.UsageError("a picture has columns of its own; leave --columns out")
    if columns is not None and not columns.strip(", "):
        raise click.UsageError("--columns names no column; leave it out for every one")
    table = capabilities.table(what)
    for_terminal = form == "table" and not drawn
    has_bytes = columns is None and any(item.type == "bytes" for item in table.columns)
    with obj.session() as session:
        answer = session.tables.read(
            what,
            sort=sort,
            descending=descending,
            top=None if for_terminal else top,
            # a terminal needs more columns to word verdicts, and none of bytes
            columns=(table.shown if has_bytes else None) if for_terminal else columns,
            min_severity=min_severity,
            run=run_id,
            window=window,
            **{name: values or None for name, values in filters.items()},
        )
        costs = session.noise.sentences() if what == "scores" else ()
    rows, shown = answer.rows, answer.run
    only_restricted = "" if run_id or not (shown and shown.restriction) else "no unrestricted run has any"
    if plot:
        import shutil

        from esjobs.render.charts.scaling import text_picture

        for line in text_picture(rows, shutil.get_terminal_size().columns):
            click.echo(line)
    elif drawn:
        from esjobs.render.charts.scaling import write_picture

        write_picture(rows, form, out)
    elif form == "table":
        from esjobs.core.arguments import split
        from esjobs.render.columns import for_people

        headline = [] if filters["method"] or shown is None or shown.headline is None else [shown.headline]
        rows, title, prose = for_people(what, rows, headline, split(columns or ()))
        if top and rows.num_rows > top:
            title = ", ".join(filter(None, [title, f"{top:,} of {rows.num_rows:,} rows"]))
            rows = rows.slice(0, top)
        titles = ("" if shown is None else shown.title, only_restricted, title)
        emit(rows, form, out, title=", ".join(filter(None, titles)), prose=prose)
        if costs and not obj.quiet:
            from esjobs.cli.terminal import say

            for each in costs:
                say(f"note: cost of monitoring: {each}", err=True)
    else:
        emit(rows, form, out)


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
    "--since",
    metavar="WINDOW",
    help="Instead of the run before: the last one whose data ended with this window, or before one that "
    "is not over.",
)
@top_option(20)
@rows_options
@click.pass_obj
def compare(
    obj: Context,
    run_a: str | None,
    run_b: str | None,
    level: tuple[str, ...],
    type: tuple[str, ...],  # noqa: A002  the name of the option
    name: tuple[str, ...],
    site: tuple[str, ...],
    method: tuple[str, ...],
    since: str | None,
    top: int,
    form: str,
    out: str,
) -> None:
    """What changed between two runs, in sigma; of one run: until the latest.

    Without a run: between the latest and the one before it of a window as long. Changed verdicts come first,
    then the largest shifts; where no verdict changed and nothing moved by three errors, a line says so.
    Tables show the headline method unless --method names another; the other formats have every row.
    """
    with obj.session() as session:
        compared = session.speed.compare(
            run_a,
            run_b,
            level=level or None,
            type=type or None,
            name=name or None,
            site=site or None,
            method=method,
            since=since,
        )
    (first, second), rows = compared.details, compared.rows
    title = f"a: {first.title}; b: {second.title}"
    if form == "table":
        from esjobs.render.columns import compared_for_people

        headlines = [] if method else [run.headline for run in (first, second) if run.headline is not None]
        rows, alike, summary = compared_for_people(rows, headlines, all_rows=top == 0)
        title = "; ".join(filter(None, (title, summary, alike)))
        if not rows.num_rows and out == "-":
            click.echo(visible(title))
            return
        if top and rows.num_rows > top:
            title += f"; {top} of {rows.num_rows:,} rows, all with --top 0"
            rows = rows.slice(0, top)
    emit(rows, form, out, title=title)


def hint(obj: Context, lines: Iterable[str]) -> None:
    """On standard error: what was asked for and is not there."""
    from esjobs.cli.terminal import say

    if not obj.quiet:
        for line in lines:
            say(f"hint: {line}", err=True)


def _say_window(obj: Context, session: "Session", window: str | None) -> None:
    """Without a window everything stored was taken: say which span that is."""
    if window is None and not obj.quiet:
        click.echo(f"window: {session.runs.window()} (all that is stored)", err=True)


@example("esjobs fields")
@click.group("fields", invoke_without_command=True)
@rows_options
@click.pass_context
def list_fields(ctx: click.Context, form: str, out: str) -> None:
    """Every field and metric that queries take, with unit and meaning."""
    if ctx.invoked_subcommand is not None:
        return
    from esjobs.records.jobs.catalogue import fields_table

    emit(fields_table(), form, out, prose=["meaning"])


@example("esjobs fields check")
@list_fields.command("check")
@rows_options
@click.pass_obj
def check(obj: Context, form: str, out: str) -> None:
    """Hold the field map against the jobs' index; exit code 1 when it lacks what every job needs."""
    with obj.session() as session:
        checked = session.tables.fields().rows
    emit(checked, form, out, prose=["note", "effect"])
    if not obj.quiet:
        states = checked.column("check").to_pylist()
        click.echo(f"{states.count('ok')} of {len(states)} as they should be", err=True)
    if any(checked.column("needed").to_pylist()):
        raise SystemExit(1)


@example(
    "esjobs export jobs --where queue=ALDER-HEP --out alder.csv",
    "esjobs export flags --format parquet --out flags.parquet",
)
@click.command()
@click.argument("what", metavar="jobs|TABLE", type=click.Choice(["jobs", *(table.name for table in TABLES)]))
@click.option(
    "--out", "-o", default="-", show_default=True, metavar="FILE", help="Where to write: a file; - is stdout."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "jsonl", "parquet"]),
    help="How it is written; default: by the end of the file's name (.csv, .json, .jsonl, .parquet), csv on "
    "stdout; another name needs it. Read back by ingest: csv, jsonl, parquet; jsonl is for jobs alone.",
)
@where_option
@click.option(
    "--pseudonymise",
    "key",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Replace names of users, projects, accounts and machines by hashes under the key in this file, and "
    "leave free text out. Queues, sites and CPU names stay, unless one of those names stands in them.",
)
@click.option("--new-key", is_flag=True, help="Make the key file first; nobody but you may read it.")
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
    """Write stored jobs in canonical columns; esjobs ingest jobs reads them back unchanged.

    Or every row and column of a result table, of the latest run where runs make it, as show does.
    """
    if spreadsheet and form in ("table", "json"):
        raise click.UsageError("--spreadsheet changes cells of CSV only; give --format csv, too")
    if new_key and key is None:
        raise click.UsageError("--new-key makes the file that --pseudonymise names; give that, too")
    if what != "jobs" and (form == "jsonl" or (form is None and out.endswith(".jsonl"))):
        raise click.UsageError("only jobs are written as jsonl; give --format csv, json or parquet")
    if key is not None:
        from esjobs.records.export.pseudonyms import make_key
        from esjobs.store.files.destination import refuse_inputs

        if new_key:
            make_key(key)
        refuse_inputs(out, [key])
    with obj.session() as session:
        if what != "jobs" or form in ("table", "json") or (form is None and out.endswith(".json")):
            rows = _rows_out(session, what, where, window, key)
            chosen = form or ("csv" if out == "-" else Path(out).suffix.removeprefix("."))
            if chosen not in ("table", "csv", "json", "parquet"):
                raise click.UsageError(
                    f"cannot tell the format of '{out}'; give --format csv, json or parquet"
                )
            emit(rows, chosen, out, spreadsheet=spreadsheet)
        else:
            jobs = session.export.jobs(
                out,
                form=cast("Any", form or ("csv" if out == "-" else None)),
                where=where,
                window=window,
                spreadsheet=spreadsheet,
                key=key,
            )
            if not obj.quiet:
                target = "standard output" if out == "-" else visible(out)
                click.echo(f"{jobs:,} jobs written to {target}", err=True)
        if what == "jobs":
            _say_window(obj, session, window)


def _rows_out(
    session: "Session", what: str, where: tuple[str, ...], window: str | None, key: Path | None
) -> "pa.Table":
    """All rows at once, without names if there is a key."""
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


@example("esjobs report --out report.html")
@click.command()
@click.option("--out", "-o", required=True, metavar="FILE", help="Where to write: an HTML file; - is stdout.")
@click.option("--run", "run_id", metavar="RUN", help="Which run: its id; default: the latest complete one.")
@click.option(
    "--method",
    type=click.Choice(METHODS, case_sensitive=False),
    help="Whose results: a method of the fit; default: the headline of the run.",
)
@click.pass_obj
def report(obj: Context, out: str, run_id: str | None, method: str | None) -> None:
    """One HTML file that works offline: who deviates, by how much, and what it rests on."""
    with obj.session() as session:
        session.report(out, run=run_id, method=method)
    if out != "-" and not obj.quiet:
        click.echo(f"report written to {visible(out)}", err=True)
