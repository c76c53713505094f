"""Commands about notifications."""

from datetime import datetime
from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, emit_reports, folder_option, rows_options
from esjobs.schema.notifications import NOTIFICATIONS, STATES

_DATE = click.DateTime(formats=["%Y-%m-%d"])
_night = click.option("--night", type=_DATE, help="Night: day that was aggregated; default: the newest.")


@click.group()
def notify() -> None:
    """Notify sites, coordinators and operators by mail, webhook or chat."""


@example("esjobs --config esjobs.toml notify test RECIPIENT")
@notify.command("test")
@click.argument("recipients", nargs=-1, metavar="[RECIPIENT]...")
@rows_options
@click.pass_obj
def try_out(obj: Context, recipients: tuple[str, ...], form: str, out: str) -> None:
    """Send a test message and check the settings.

    Default: all recipients. Exit code 1 if a message was not accepted.
    """
    with obj.session(writes=True, late=True) as session:
        rows = session.nights.notifications.test(recipients)
    emit(rows, form, out, prose=["error", "notes"])
    if "failed" in rows.column("outcome").to_pylist():
        raise SystemExit(1)


@example("esjobs notify preview --night 2025-06-30 --out messages")
@notify.command()
@_night
@folder_option()
@click.pass_obj
def preview(obj: Context, night: datetime | None, out: Path) -> None:
    """Write a night's notifications to files; send nothing."""
    with obj.session() as session:
        rows = session.nights.notifications.preview(night.date() if night else None, out)
    emit(rows, "table", "-", prose=["subject", "files"])


@example("esjobs notify send --night 2025-06-30")
@notify.command()
@_night
@click.option("--retry", is_flag=True, help="Also retry abandoned messages.")
@rows_options
@click.pass_obj
def send(obj: Context, night: datetime | None, retry: bool, form: str, out: str) -> None:
    """Send a night's pending notifications and retry the queue.

    The nightly service does this too; no message is sent twice. Exit code 1 if a message was not delivered
    (see: esjobs notify log).
    """
    with obj.session(writes=True) as session:
        report = session.nights.notifications.send(night.date() if night else None, retry=retry)
    emit_reports([report], form, out)
    if report.counts:
        raise SystemExit(1)


@example("esjobs notify log --state failed")
@notify.command()
@click.option(
    "--recipient", "recipients", multiple=True, metavar="NAME", help="Recipient to list; repeat for more."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"States to list: {', '.join(STATES)}; repeat for more.",
)
@click.option("--from", "first", type=_DATE, help="From: first night; default: the first recorded.")
@click.option("--to", "last", type=_DATE, help="To: last night; default: the newest.")
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
    """List notifications and answers, newest first."""
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
