"""Command about delivered work."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    format_of,
    rows_options,
    say_notes,
    top_option,
    where_option,
    window_option,
)
from esjobs.schema.delivered import BY, NOT_SHOWN


@example(
    "esjobs delivered --by site --top 5",
    "esjobs delivered --by country,month",
    "esjobs delivered --by user --where queue=POPLAR-LCG2",
)
@click.command()
@click.option(
    "--by",
    default="site",
    show_default=True,
    metavar="FIELD[,FIELD]",
    help=f"Group by: {', '.join(BY)}.",
)
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def delivered(
    obj: Context, by: str, top: int, where: tuple[str, ...], window: str | None, form: str, out: str
) -> None:
    """Delivered work in HS23-hours or HS06-hours, by the declared and the measured score.

    declared_h, measured_h: core-hours times the score per core. gain_h: declared less measured, the credit
    that a wrong declared value gives.
    """
    names = tuple(filter(None, (each.strip() for each in by.split(","))))
    with obj.session() as session:
        answer = session.delivered.work(names, window=window, where=where)
    rows = answer.rows.slice(0, top or None)
    if format_of(form, out) == "table":
        rows = rows.drop_columns([name for name in rows.column_names if name in NOT_SHOWN])
    emit(rows, form, out, title=answer.title)
    say_notes(obj, answer.notes)
