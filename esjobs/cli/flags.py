"""Commands about flags with memory: what stands open, what people say to it, how it came about."""

from datetime import datetime

import click

from esjobs.cli.help import Renamed, example
from esjobs.cli.options import Context, emit, emit_reports, rows_options
from esjobs.core.words import LEVELS
from esjobs.schema.flags import STATES

_DAY = click.DateTime(formats=["%Y-%m-%d"])

_level_option = click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="Queues (site) or CPU models (cpu_model), where a name is flagged as both.",
)
_type_option = click.option(
    "--processing-type",
    "kind",
    metavar="TYPE",
    help="Only the flag of this kind of work; default: every one.",
)


@example("esjobs watch")
@click.command()
@click.option(
    "--night",
    type=_DAY,
    metavar="DATE",
    help="The night: the last day of its windows; default: that of the latest run.",
)
@rows_options
@click.pass_obj
def watch(obj: Context, night: datetime | None, form: str, out: str) -> None:
    """Bring the memory of flags up to a night: what opens, closes, and is said about it.

    Verdicts must be there (esjobs run). A night that is watched again gives the same rows; those after it
    follow.
    """
    with obj.session(writes=True) as session:
        report = session.flags.update(None if night is None else night.date())
    emit_reports([report], form, out)


@example("esjobs flags --state new")
@click.group("flags", invoke_without_command=True)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only these states; default: open and acknowledged; repeat for more.",
)
@rows_options
@click.pass_context
def flags(ctx: click.Context, states: tuple[str, ...], form: str, out: str) -> None:
    """What stands open, one line a name; the longest first.

    A flag opens when a deviation is confirmed on jobs apart, and closes when later jobs are within the limit
    by a margin. Candidates: --state new. Files have every column.
    """
    if ctx.invoked_subcommand is not None:
        return
    from esjobs.render.columns import open_flags_for_people

    obj: Context = ctx.obj
    with obj.session() as session:
        rows = session.flags.open(states or None).rows
    if form == "table":
        rows, title = open_flags_for_people(rows)
        emit(rows, form, out, title=title)
    else:
        emit(rows, form, out)


@example('esjobs flags ack QUEUE --until 2026-01-15 --who ann --note "benchmarks again this week"')
@flags.command()
@click.argument("name")
@click.option("--until", required=True, type=_DAY, metavar="DATE", help="Silent before this night.")
@click.option("--who", cls=Renamed, old=["--by"], required=True, metavar="NAME", help="Who says so.")
@click.option("--note", "text", default="", metavar="TEXT", help="What is known or done about it.")
@_level_option
@_type_option
@click.pass_obj
def ack(
    obj: Context, name: str, until: datetime, who: str, text: str, level: str | None, kind: str | None
) -> None:
    """Acknowledge the open flags of NAME: nothing is sent until a day; then they are open again."""
    with obj.session(writes=True) as session:
        report = session.flags.acknowledge(
            name, until=until.date(), by=who, note=text, level=level, processing_type=kind
        )
    emit_reports([report], "table", "-")


@example('esjobs flags answer QUEUE --text "SMT is off since May"')
@flags.command()
@click.argument("name")
@click.option("--text", required=True, metavar="TEXT", help="What was answered.")
@click.option(
    "--who",
    cls=Renamed,
    old=["--by"],
    metavar="NAME",
    help="Who says so; default: the site of the queue.",
)
@_level_option
@_type_option
@click.pass_obj
def answer(obj: Context, name: str, text: str, who: str | None, level: str | None, kind: str | None) -> None:
    """Keep what a site answered about the flags of NAME; it changes no state."""
    with obj.session(writes=True) as session:
        report = session.flags.answer(name, text=text, by=who, level=level, processing_type=kind)
    emit_reports([report], "table", "-")


@example("esjobs flags history ALDER-HEP")
@flags.command()
@click.argument("name")
@_level_option
@_type_option
@rows_options
@click.pass_obj
def history(obj: Context, name: str, level: str | None, kind: str | None, form: str, out: str) -> None:
    """Everything that happened to the flags of NAME, oldest first."""
    with obj.session() as session:
        rows = session.flags.events(name, level=level, processing_type=kind).rows
    if form == "table":
        rows = rows.select(["night", "processing_type", "kind", "sentence", "evidence"])
    emit(rows, form, out, prose=["sentence", "evidence"])
