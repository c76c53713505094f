"""Command about incidents of the day."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, rows_options, say_notes, step, window_option

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport

_DAY = click.DateTime(formats=["%Y-%m-%d"])


@example("esjobs today", "esjobs today --night 2025-06-17", "esjobs today --update")
@click.group("today", invoke_without_command=True)
@click.option("--night", type=_DAY, metavar="DATE", help="Night; default: the last judged one.")
@click.option("--update", is_flag=True, help="Judge the night first, and those before it that were not.")
@click.option("--partial", is_flag=True, help="Judge the running day first.")
@rows_options
@click.pass_context
def today(
    ctx: click.Context, night: datetime | None, update: bool, partial: bool, form: str, out: str
) -> None:
    """List incidents: what is wrong, since when, at what cost, and why; most costly first.

    CPU efficiency and failures of each site are compared with what its past and other sites' jobs of the same
    tasks lead to expect. Listed is what is both surprising and costly.
    """
    if ctx.invoked_subcommand is not None:
        return
    from esjobs.render.columns import commands_of, incidents_for_people

    obj: Context = ctx.obj
    day = None if night is None else night.date()
    with obj.session(writes=update or partial) as session:
        if partial:
            session.flags.today.update_running_day()
        if update:
            session.flags.today.update(day)
        answer = session.flags.today.incidents(day)
    rows, title, notes = answer.rows, "", answer.notes
    if form == "table":
        notes = (*notes, *commands_of(rows))
        rows, title = incidents_for_people(rows)
    emit(rows, form, out, title=title, prose=["what", "cause"])
    say_notes(obj, notes)


@example("esjobs today ack SITE --until 2026-01-15 --who ann")
@today.command()
@click.argument("site")
@click.option("--until", required=True, type=_DAY, metavar="DATE", help="Silence until this date.")
@click.option("--who", required=True, metavar="NAME", help="Person who enters this.")
@click.option("--note", "text", default="", metavar="TEXT", help="Comment.")
@step(rows=False)
def ack(session: "Session", site: str, until: datetime, who: str, text: str) -> "RunReport":
    """Acknowledge the open incident of SITE: silence it until a date."""
    report: RunReport = session.flags.today.acknowledge(site, until=until.date(), by=who, note=text)
    return report


@example("esjobs incident EBONY-LCG2 --window 2025-06-17/2025-06-20")
@click.command()
@click.argument("site")
@window_option
@rows_options
@click.pass_obj
def incident(obj: Context, site: str, window: str | None, form: str, out: str) -> None:
    """Cost of an incident at SITE: lost core-hours in parts, jobs, waiting, a paragraph for a meeting.

    Without --window: the open or newest incident of esjobs today. Jobs are compared with the 14 days before.
    """
    from esjobs.today.incident import parts

    with obj.session() as session:
        answer = session.flags.today.incident(site, window=window)
    (row,) = answer
    if form == "table":
        emit(parts(row), form, out, title=row["sentence"])
    else:
        emit(answer.rows, form, out)
