"""Commands of the nightly service: run it, see its nights, make up for some, run one again."""

from datetime import date, datetime
from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, rows_options

_DATE = click.DateTime(formats=["%Y-%m-%d"])
_first = click.option("--from", "first", type=_DATE, help="The first night; default: the first remembered.")
_last = click.option("--to", "last", type=_DATE, help="The last night; default: the last day that is over.")


def _day(given: datetime | None) -> date | None:
    return None if given is None else given.date()


@example("esjobs serve --once")
@click.command()
@click.option("--once", is_flag=True, help="Do what is due now and end: for cron and systemd timers.")
@rows_options
@click.pass_obj
def serve(obj: Context, once: bool, form: str, out: str) -> None:
    """Run the nights: aggregate the last day, fit the windows, judge, tell; late and missing ones first.

    A night is the last day of UTC that is over. Without --once it stays and runs one at the times of
    nights.cron in nights.time_zone, and answers for its metrics and its health. With --once, exit code 1 when
    a night failed, or a source of nights.ingest had no file for the last day.
    """
    from esjobs.cli.nightly import Trigger, require_files, serve_nights

    if once:
        rows = Trigger(obj.settings()).tend()[0]
        _tell(rows, form, out)
        require_files(obj.settings(), rows)
    elif (form, out) != ("table", "-"):
        raise click.UsageError("--format and --out are of --once: the service prints no rows")
    else:
        serve_nights(obj.settings())


@example("esjobs nights --from 2025-06-01 --to 2025-06-30")
@click.group("nights", invoke_without_command=True)
@_first
@_last
@rows_options
@click.pass_context
def nights(ctx: click.Context, first: datetime | None, last: datetime | None, form: str, out: str) -> None:
    """Show the nights: done, failed or missing, why, how many jobs, how long."""
    if ctx.invoked_subcommand is not None:
        return
    obj: Context = ctx.obj
    with obj.session() as session:
        rows = session.nights.show(_day(first), _day(last))
    if form == "table":
        rows = rows.select(["night", "state", "reason", "jobs", "seconds"])
    emit(rows, form, out, prose=["reason"])


@example("esjobs nights forget --after 2026-11-23")
@nights.command()
@click.option("--after", type=_DATE, metavar="DATE", help="The last night that stays; default: today.")
@click.pass_obj
def forget(obj: Context, after: datetime | None) -> None:
    """Remove what is kept of the nights after a date: of a clock that was ahead, say.

    Removed are their accounts, messages, states and events of flags; never jobs, buckets or runs.
    """
    with obj.session(writes=True) as session:
        removed = session.nights.forget(_day(after))
    click.echo(", ".join(f"{name}: {count} nights removed" for name, count in removed.items()), err=True)


@example("esjobs catch-up --from 2025-06-29 --to 2025-06-30")
@click.command("catch-up")
@_first
@_last
@click.option("--limit", type=click.IntRange(min=1), help="So many nights at most.")
@rows_options
@click.pass_obj
def catch_up(
    obj: Context,
    first: datetime | None,
    last: datetime | None,
    limit: int | None,
    form: str,
    out: str,
) -> None:
    """Run the nights that are missing or failed, oldest first. Exit code 1 when one failed."""
    with obj.session(writes=True) as session:
        rows = session.nights.catch_up(_day(first), _day(last), limit)
    _tell(rows, form, out)


@example("esjobs rerun 2025-06-30")
@click.command()
@click.argument("night", type=_DATE)
@rows_options
@click.pass_obj
def rerun(obj: Context, night: datetime, form: str, out: str) -> None:
    """Run a night again, every step of it. NIGHT: a date, the day that is aggregated."""
    with obj.session(writes=True) as session:
        row = session.nights.rerun(night.date())
    _tell([row], form, out)


def _tell(rows: list[dict[str, Any]], form: str, out: str) -> None:
    from esjobs.publish.publication import rows_table
    from esjobs.schema.nights import NIGHTS
    from scheduler.night import succeeded

    shown = rows_table(NIGHTS, rows)
    if form == "table":
        shown = shown.select(["night", "state", "reason", "jobs", "seconds", "attempt", "steps_done"])
    emit(shown, form, out, prose=["reason"])
    if not succeeded(rows):
        raise SystemExit(1)
