"""Commands about delivered work, and imports of what it is compared with."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.declared import add_remove
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
from esjobs.schema.delivered import BY, IMPORTED, KINDS_OF_FACTORS, NOT_SHOWN
from esjobs.store.files.destination import writing_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


@example(
    "esjobs delivered --by site --top 5",
    "esjobs delivered --by country,month",
    "esjobs delivered --by user --where queue=POPLAR-LCG2",
    "esjobs delivered --by federation,month --vo atlas",
    "esjobs delivered --against accounting --window 2026-10",
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
@click.option(
    "--against",
    type=click.Choice(["accounting"]),
    help="Compare months and sites with accounting (esjobs ingest apel); gives reasons of differences.",
)
@click.option("--apel", is_flag=True, help="Write sums of months as APEL summaries, for sites to compare.")
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
    against: str | None,
    apel: bool,
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
    names = _split(by)
    if apel:
        with obj.session() as session, writing_text(out) as stream:
            stream.write(session.delivered.apel(window=window, where=where, vo=vo))
        return
    with obj.session() as session:
        if against is not None:
            answer = session.delivered.against_accounting(window=window, where=where, vo=vo)
        else:
            answer = session.delivered.work(names, window=window, where=where, vo=vo, one_scale=one_scale)
    rows = answer.rows.slice(0, top or None)
    if format_of(form, out) == "table":
        hidden = NOT_SHOWN if "federation" in names else (*NOT_SHOWN, "pledge_h", "of_pledge_percent")
        rows = rows.drop_columns([name for name in rows.column_names if name in hidden])
    emit(rows, form, out, title=answer.title)
    say_notes(obj, answer.notes)


@example("esjobs energy --by site,month", "esjobs energy --by cpu_model --factors direct")
@click.command()
@click.option(
    "--by", default="site", show_default=True, metavar="FIELD[,FIELD]", help="Group by, also cpu_model."
)
@click.option(
    "--factors", type=click.Choice(KINDS_OF_FACTORS), default="life_cycle", help="Kind of emission factors."
)
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def energy(
    obj: Context,
    by: str,
    factors: str,
    top: int,
    where: tuple[str, ...],
    window: str | None,
    form: str,
    out: str,
) -> None:
    """Energy and carbon of jobs, by the watts per core of their CPU models.

    Watts come from esjobs power import, else esjobs reference import hepix-hs23, else 4.9 W are assumed;
    emission factors from esjobs emissions import.
    """
    with obj.session() as session:
        answer = session.delivered.energy(_split(by), window=window, where=where, factors=factors)
    emit(answer.rows.slice(0, top or None), form, out, title=answer.title)
    say_notes(obj, answer.notes)


def _split(names: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in names.split(","))))


@click.group(cls=click.Group)
def pledges() -> None:
    """Import or remove pledges and sites of federations."""


@click.group(cls=click.Group)
def power() -> None:
    """Import or remove watts per core and PUE of sites."""


@click.group(cls=click.Group)
def emissions() -> None:
    """Import or remove emission factors of electricity."""


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


@example("esjobs power import power.csv")
@power.command("import")
@click.argument("file", metavar="FILE")
@step(rows=False, create=True, late=True)
def import_power(session: "Session", file: str) -> "RunReport":
    """Import a CSV table: site, cpu_model, smt, watts_per_core, pue, valid_from; empty names mean all."""
    return session.delivered.import_power(file)


@example("esjobs emissions import carbon-intensity-electricity.csv")
@emissions.command("import")
@click.argument("file", metavar="FILE")
@step(rows=False, create=True, late=True)
def import_emissions(session: "Session", file: str) -> "RunReport":
    """Import emission factors: CSV of Our World in Data or Electricity Maps, or a table.

    Columns of tables: country_code, year, month, g_per_kwh, kind (life_cycle or direct).
    """
    return session.delivered.import_emissions(file)


def _remover(form: str) -> "Callable[[Session, str], RunReport]":
    return lambda session, load: session.delivered.remove(form, load)


for _group in (pledges, power, emissions):
    add_remove(_group, IMPORTED[str(_group.name)][0].name, _remover(str(_group.name)))
