"""Commands about delivered work, and imports of what it is compared with."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    format_of,
    rows_options,
    say_notes,
    step,
    top_option,
    where_option,
    window_option,
)
from esjobs.schema.delivered import BY, NOT_SHOWN

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


@example(
    "esjobs delivered --by site --top 5",
    "esjobs delivered --by country,month",
    "esjobs delivered --by user --where queue=POPLAR-LCG2",
    "esjobs delivered --by federation,month --vo atlas",
)
@click.command()
@click.option(
    "--by",
    default="site",
    show_default=True,
    metavar="FIELD[,FIELD]",
    help=f"Group by: {', '.join(BY)}.",
)
@click.option("--vo", metavar="NAME", help="VO of the jobs, whose pledges are shown by federation.")
@click.option("--one-scale", is_flag=True, help="Add HS06-hours and HS23-hours one to one, as WLCG does.")
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def delivered(
    obj: Context,
    by: str,
    vo: str | None,
    one_scale: bool,
    top: int,
    where: tuple[str, ...],
    window: str | None,
    form: str,
    out: str,
) -> None:
    """Delivered work in HS23-hours or HS06-hours, by the declared and the measured score.

    declared_h, measured_h: core-hours times the score per core. gain_h: declared less measured, the credit
    that a wrong declared value gives. pledge_h: pledge of a federation times hours (esjobs pledges import).
    """
    names = tuple(filter(None, (each.strip() for each in by.split(","))))
    with obj.session() as session:
        answer = session.delivered.work(names, window=window, where=where, vo=vo, one_scale=one_scale)
    rows = answer.rows.slice(0, top or None)
    if format_of(form, out) == "table":
        hidden = NOT_SHOWN if "federation" in names else (*NOT_SHOWN, "pledge_h", "of_pledge_percent")
        rows = rows.drop_columns([name for name in rows.column_names if name in hidden])
    emit(rows, form, out, title=answer.title)
    say_notes(obj, answer.notes)


@click.group(cls=click.Group)
def pledges() -> None:
    """Import or remove pledges and sites of federations."""


@example("esjobs pledges import cric-federations.json", "esjobs pledges import rebus.json --year 2020")
@pledges.command("import")
@click.argument("file", metavar="FILE")
@click.option("--benchmark", metavar="NAME", help="HS06 or HS23, if the file does not specify it.")
@click.option("--year", type=int, metavar="YEAR", help="Pledge year of REBUS: the year of its April.")
@step(rows=False, create=True, late=True)
def import_pledges(session: "Session", file: str, benchmark: str | None, year: int | None) -> "RunReport":
    """Import pledges and sites of federations from CRIC (JSON), REBUS (JSON) or a CSV table.

    Columns of tables: federation, year, quarter, vo, cpu, benchmark; or federation, site, vo, fraction,
    valid_from. FILE is plain or gzip; - is standard input.
    """
    return session.delivered.import_pledges(file, benchmark=benchmark, year=year)


@example("esjobs show pledges", "esjobs pledges remove IMPORT")
@pledges.command("remove")
@click.argument("import_id", metavar="IMPORT")
@step(rows=False)
def remove_pledges(session: "Session", import_id: str) -> "RunReport":
    """Remove one import (list them: esjobs show pledges)."""
    return session.delivered.remove_pledges(import_id)
