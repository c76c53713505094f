"""Commands about open deviations: list, acknowledge, answer, history."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, rows_options, step
from esjobs.core.words import LEVELS
from esjobs.schema.flags import STATES

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport

_DAY = click.DateTime(formats=["%Y-%m-%d"])

_level_option = click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="queue, site or cpu_model; default: the queue of a name that its site has, too.",
)
_type_option = click.option(
    "--processing-type", "kind", metavar="TYPE", help="Processing type: that of the flag; default: all."
)


@example("esjobs flags", "esjobs flags --state new")
@click.group("flags", invoke_without_command=True)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="States to list; default: open and acknowledged; repeat for more.",
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(LEVELS),
    help="queue, site or cpu_model; default: queue and cpu_model; repeat for more.",
)
@rows_options
@click.pass_context
def flags(ctx: click.Context, states: tuple[str, ...], levels: tuple[str, ...], form: str, out: str) -> None:
    """List open deviations, longest-standing first.

    A flag opens when two disjoint sets of jobs confirm a deviation, and closes when later jobs are clearly
    within the limit. Candidates: --state new.
    """
    # click calls the group before its subcommand, too
    if ctx.invoked_subcommand is not None:
        return
    from esjobs.render.columns import open_flags_for_people

    obj: Context = ctx.obj
    with obj.session() as session:
        rows = session.flags.open(states or None, level=levels or None).rows
    title = ""
    if form == "table":
        rows, title = open_flags_for_people(rows)
    emit(rows, form, out, title=title)


@example('esjobs flags ack QUEUE --until 2026-01-15 --who ann --note "new benchmark"')
@flags.command()
@click.argument("name")
@click.option("--until", required=True, type=_DAY, metavar="DATE", help="Silence until this date.")
@click.option("--who", required=True, metavar="NAME", help="Person who enters this.")
@click.option("--note", "text", default="", metavar="TEXT", help="Comment.")
@_level_option
@_type_option
@step(rows=False)
def ack(
    session: "Session", name: str, until: datetime, who: str, text: str, level: str | None, kind: str | None
) -> "RunReport":
    """Acknowledge the open flags of NAME: silence them until a date, then reopen them."""
    return session.flags.acknowledge(
        name, until=until.date(), by=who, note=text, level=level, processing_type=kind
    )


@example('esjobs flags answer QUEUE --text "SMT is off since May"')
@flags.command()
@click.argument("name")
@click.option("--text", required=True, metavar="TEXT", help="Text of the answer.")
@click.option("--who", metavar="NAME", help="Person who enters this; default: the site of the queue.")
@_level_option
@_type_option
@step(rows=False)
def answer(
    session: "Session", name: str, text: str, who: str | None, level: str | None, kind: str | None
) -> "RunReport":
    """Record a site's answer about NAME; the state of its flags does not change."""
    return session.flags.answer(name, text=text, by=who, level=level, processing_type=kind)


@example("esjobs flags history ALDER-HEP")
@flags.command()
@click.argument("name")
@_level_option
@_type_option
@rows_options
@click.pass_obj
def history(obj: Context, name: str, level: str | None, kind: str | None, form: str, out: str) -> None:
    """List all events of the flags of NAME, oldest first."""
    with obj.session() as session:
        rows = session.flags.events(name, level=level, processing_type=kind).rows
    if form == "table":
        rows = rows.select(["night", "processing_type", "kind", "sentence", "evidence"])
    emit(rows, form, out, prose=["sentence", "evidence"])
