"""Commands about notifications: try them, look at them, send them, see what was sent."""

from datetime import datetime
from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, emit_reports, rows_options
from esjobs.schema.notifications import NOTIFICATIONS, STATES

_DATE = click.DateTime(formats=["%Y-%m-%d"])
_night = click.option(
    "--night", type=_DATE, help="The night: the day that was aggregated; default: the newest."
)


@click.group()
def notify() -> None:
    """Messages to sites, coordinators and operators: mail, webhooks, chats ([notify] in the settings)."""


@example("esjobs --config esjobs.toml notify test RECIPIENT")
@notify.command("test")
@click.argument("recipients", nargs=-1, metavar="[RECIPIENT]...")
@rows_options
@click.pass_obj
def try_out(obj: Context, recipients: tuple[str, ...], form: str, out: str) -> None:
    """Send a test message to each RECIPIENT, or to all, and say what looks wrong in the settings.

    Exit code 1 when one was not accepted.
    """
    with obj.session(writes=True, late=True) as session:
        rows = session.nights.notifications.test(recipients)
    emit(rows, form, out, prose=["error", "notes"])
    if "failed" in rows.column("outcome").to_pylist():
        raise SystemExit(1)


@example("esjobs notify preview --night 2025-06-30 --out messages")
@notify.command()
@_night
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to write: a folder for the files.",
)
@click.pass_obj
def preview(obj: Context, night: datetime | None, out: Path) -> None:
    """Write the messages of a night as files: what each recipient gets. Nothing is sent."""
    with obj.session() as session:
        rows = session.nights.notifications.preview(night.date() if night else None, out)
    emit(rows, "table", "-", prose=["subject", "files"])


@example("esjobs notify send --night 2025-06-30")
@notify.command()
@_night
@click.option("--retry", is_flag=True, help="Also what was given up after it could not be delivered.")
@rows_options
@click.pass_obj
def send(obj: Context, night: datetime | None, retry: bool, form: str, out: str) -> None:
    """Tell of a night what was not told yet, and send what waits; the nightly service does it by itself.

    Nothing is sent twice. Exit code 1 when a message was not delivered; it waits, or is given up, see
    esjobs notify log.
    """
    with obj.session(writes=True) as session:
        report = session.nights.notifications.send(night.date() if night else None, retry=retry)
    emit_reports([report], form, out)
    if report.counts:
        raise SystemExit(1)


@example("esjobs notify log --state failed")
@notify.command()
@click.option(
    "--recipient", "recipients", multiple=True, metavar="NAME", help="Only to this one; repeat for more."
)
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only these states; repeat for more."
)
@click.option("--from", "first", type=_DATE, help="The first night; default: all that is remembered.")
@click.option("--to", "last", type=_DATE, help="The last night; default: the newest.")
@rows_options
@click.pass_obj
def log(
    obj: Context,
    recipients: tuple[str, ...],
    states: tuple[str, ...],
    first: datetime | None,
    last: datetime | None,
    form: str,
    out: str,
) -> None:
    """What was sent, when, to whom, what failed and why, and what sites answered; the newest first."""
    with obj.session() as session:
        rows = session.nights.notifications.log(
            recipients=recipients,
            states=states,
            first=first.date() if first else None,
            last=last.date() if last else None,
        )
    if form == "table":
        rows = rows.select([*NOTIFICATIONS.shown, "answers"])
    emit(rows, form, out, prose=["subject", "error", "answers"])
