"""Commands about delivered work and its energy."""

from collections.abc import Collection, Sequence
from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit_answer,
    rows_options,
    say_notes,
    top_option,
    where_option,
    window_option,
)
from esjobs.core.arguments import split
from esjobs.schema.delivered import BY, ENERGY_BY, KINDS_OF_FACTORS, NOT_SHOWN, OF_PLEDGES
from esjobs.store.files.destination import writing_text


@example(
    "esjobs delivered --by site --top 5",
    "esjobs delivered --by country,month",
    "esjobs delivered --by user --where queue=POPLAR-LCG2",
    "esjobs delivered --by federation,month --vo atlas",
    "esjobs delivered --against accounting",
    "esjobs delivered --from accounting --by site,vo",
)
@click.command()
@click.option(
    "--by", default="site", show_default=True, metavar="FIELD[,FIELD]", help=f"Group by: {', '.join(BY)}."
)
@click.option("--vo", metavar="NAME", help="VO whose pledges or accounting to use.")
@click.option(
    "--against",
    type=click.Choice(["accounting"]),
    help="Compare by month and site, with causes of differences.",
)
@click.option(
    "--from",
    "origin",
    type=click.Choice(["jobs", "accounting"]),
    default="jobs",
    show_default=True,
    help="From: stored jobs, or the sums of sites (esjobs ingest apel).",
)
@click.option("--apel", is_flag=True, help="Write APEL summaries of months, for sites to compare.")
@click.option("--auditor", is_flag=True, help="Columns of AUDITOR's report by user, for sites to compare.")
@click.option("--one-scale", is_flag=True, help="Add HS06-hours and HS23-hours one to one.")
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def delivered(
    obj: Context,
    /,
    by: str,
    against: str | None,
    origin: str,
    apel: bool,
    auditor: bool,
    one_scale: bool,
    top: int,
    form: str,
    out: str,
    **of: Any,
) -> None:
    """Delivered work in HS23-hours or HS06-hours, by the declared and the measured score.

    declared_h, measured_h: core-hours times the score per core. gain_h: declared less measured over the
    core-hours that have both, the credit that a wrong declared value gives. pledge_h: pledge of a federation
    times hours (esjobs ingest pledges); available_share: of the window, without declared outages of the sites
    (esjobs ingest downtimes).
    """
    names = split(by)
    if auditor:
        _require_plain(names, against, origin, apel=apel, one_scale=one_scale, vo=of.pop("vo"))
        with obj.session() as session:
            emit_answer(obj, session.delivered.auditor(**of), form, out, top=top)
        return
    of_months = apel or against is not None
    _require_fitting(names, of_months=of_months, accounted=origin == "accounting", **of)
    if of_months and one_scale:
        raise click.UsageError("--one-scale does not go with --against and --apel")
    if apel:
        _write_apel(obj, form, out, top, of)
        return
    with obj.session() as session:
        if against is not None:
            answer = session.delivered.against_accounting(**of)
        elif origin == "accounting":
            # sums of sites have no jobs to select; conditions were refused above
            of.pop("where")
            answer = session.delivered.accounted(names, one_scale=one_scale, **of)
        else:
            answer = session.delivered.work(names, one_scale=one_scale, **of)
    # pledges are of federations: by anything else these columns are empty
    hidden = NOT_SHOWN if "federation" in names else (*NOT_SHOWN, *OF_PLEDGES)
    emit_answer(obj, answer, form, out, top=top, hidden=hidden)


def _require_plain(
    names: Collection[str], against: str | None, origin: str, *, apel: bool, one_scale: bool, vo: str | None
) -> None:
    if tuple(names) != ("site",) or against or origin != "jobs" or apel or one_scale or vo:
        raise click.UsageError("--auditor takes --where, --window, --top, --format and --out only")


def _require_fitting(
    names: Collection[str],
    *,
    of_months: bool,
    accounted: bool,
    where: Sequence[str],
    vo: str | None,
    **_: Any,
) -> None:
    if of_months and tuple(names) != ("site",):
        raise click.UsageError(_BY_MONTH)
    if accounted and (of_months or where):
        raise click.UsageError("--from accounting has no jobs: omit --against, --apel and --where")
    if vo and not (of_months or accounted) and "federation" not in names:
        raise click.UsageError("--vo goes with --by federation, --against and --from accounting, and --apel")


_BY_MONTH = "--against and --apel compare sites by month: omit --by. --apel is text: omit --format and --top"


def _write_apel(obj: Context, form: str, out: str, top: int, of: dict[str, Any]) -> None:
    if top or form != "table":
        raise click.UsageError(_BY_MONTH)
    with obj.session() as session:
        text, notes = session.delivered.apel(**of)
    with writing_text(out) as stream:
        stream.write(text)
    say_notes(obj, notes)


@example("esjobs energy --by site,month")
@click.command()
@click.option(
    "--by",
    default="site",
    show_default=True,
    metavar="FIELD[,FIELD]",
    help=f"Group by: {', '.join(ENERGY_BY)}.",
)
@click.option(
    "--factors", type=click.Choice(KINDS_OF_FACTORS), default="life_cycle", help="Kind of emission factors."
)
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def energy(obj: Context, /, by: str, top: int, form: str, out: str, **of: Any) -> None:
    """Energy and carbon of jobs, measured or by the watts of their CPU models.

    Measured: energy_j of jobs, else their power series. Watts: esjobs ingest power, else esjobs reference
    import hepix-hs23, else 4.9 W. Emission factors: esjobs ingest emissions.
    """
    with obj.session() as session:
        answer = session.delivered.energy(split(by), **of)
    emit_answer(obj, answer, form, out, top=top)
