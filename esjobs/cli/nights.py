"""Commands of the nightly service."""

from datetime import date, datetime
from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, dry_run_option, emit, rows_options, say_notes
from esjobs.core.numbers import many

_DATE = click.DateTime(formats=["%Y-%m-%d"])
_first = click.option("--from", "first", type=_DATE, help="From: first night; default: the first recorded.")
_last = click.option("--to", "last", type=_DATE, help="To: last night; default: the last complete day.")


def _day(time: datetime | None) -> date | None:
    return None if time is None else time.date()


@example("esjobs serve --once")
@click.command()
@click.option("--once", is_flag=True, help="Run what is due, then exit (cron, systemd timer).")
@rows_options
@click.pass_obj
def serve(obj: Context, once: bool, form: str, out: str) -> None:
    """Run the nightly service: aggregate, fit, judge, notify; overdue nights first.

    A night is a complete UTC day. The service runs at the times of nights.cron in nights.time_zone, and
    serves metrics and health. With --once: exit code 1 if a night failed, or if a source of nights.ingest had
    no file for the last day.
    """
    from esjobs.cli.nightly import require_files, serve_nights, serve_once

    if once:
        rows = serve_once(obj.settings())
        _show(rows, form, out)
        # last: what the nights found counts, even if a source had no file
        require_files(obj.settings(), rows)
    elif (form, out) != ("table", "-"):
        raise click.UsageError("--format and --out require --once: the service prints no rows")
    else:
        serve_nights(obj.settings())


@example("esjobs nights", "esjobs nights --from 2025-06-01 --to 2025-06-30")
@click.group("nights", invoke_without_command=True)
@_first
@_last
@rows_options
@click.pass_context
def nights(ctx: click.Context, first: datetime | None, last: datetime | None, form: str, out: str) -> None:
    """List nightly runs: state, reason, jobs, duration."""
    if ctx.invoked_subcommand is not None:
        return
    obj: Context = ctx.obj
    with obj.session() as session:
        rows = session.nights.show(_day(first), _day(last))
        paused = session.nights.health().paused
    if form == "table":
        rows = rows.select(["night", "state", "reason", "jobs", "seconds"])
    emit(rows, form, out, prose=["reason"])
    say_notes(obj, [f"triggers run no nights: paused {paused}; esjobs nights resume"] if paused else [])


@example("esjobs nights plan", "esjobs nights plan --format json")
@nights.command()
@rows_options
@click.pass_obj
def plan(obj: Context, form: str, out: str) -> None:
    """Show what the next nights read, write and cost.

    Nights of the next trigger, and further ones until older days have buckets. Rates are learned from the
    last nights of this installation; before its first night they are those of another machine.
    """
    with obj.session() as session:
        rows = session.nights.plan()
    if form == "table":
        from scheduler.plan import sentences

        click.echo("\n".join(sentences(rows)))
    else:
        emit(rows, form, out)


_who = click.option("--who", metavar="NAME", help="Person who enters this; default: the account.")
_note = click.option("--note", default="", metavar="TEXT", help="Comment: the reason.")


@example('esjobs nights pause --who ann --note "cluster is being upgraded"')
@nights.command()
@_who
@_note
@click.pass_obj
def pause(obj: Context, who: str | None, note: str) -> None:
    """Stop the triggers from running nights, until resumed.

    catch-up and rerun still work. The order is kept: esjobs show night_orders.
    """
    with obj.session(writes=True) as session:
        session.nights.pause(by=who, note=note)
        paused = session.nights.health().paused
    click.echo(f"nights are paused {paused}; resume with: esjobs nights resume", err=True)


@example("esjobs nights resume --who ann")
@nights.command()
@_who
@_note
@click.pass_obj
def resume(obj: Context, who: str | None, note: str) -> None:
    """End a pause: the next trigger makes up for missing nights."""
    with obj.session(writes=True) as session:
        session.nights.resume(by=who, note=note)
    click.echo("nights are resumed with the next trigger", err=True)


@example("esjobs nights forget --dry-run", 'esjobs nights forget --after 2026-11-23 --note "wrong clock"')
@nights.command()
@click.option("--after", type=_DATE, metavar="DATE", help="Last night to keep; default: today.")
@_who
@_note
@dry_run_option
@click.pass_obj
def forget(obj: Context, after: datetime | None, who: str | None, note: str, dry_run: bool) -> None:
    """Remove the records of nights after a date, for example of a clock that was ahead.

    Removes their accounts, messages, flag states and flag events; never jobs, buckets or runs. Nights that
    are over need a reason (--note). The order is kept: esjobs show night_orders.
    """
    with obj.session(writes=not dry_run) as session:
        removed = session.nights.forget(_day(after), by=who, note=note, dry_run=dry_run)
    did = "would be removed" if dry_run else "removed"
    click.echo(
        ", ".join(f"{name}: {many(count, 'night')} {did}" for name, count in removed.items()), err=True
    )


@example("esjobs catch-up --from 2025-06-29 --to 2025-06-30")
@click.command("catch-up")
@_first
@_last
@click.option("--limit", type=click.IntRange(min=1), help="Run at most N nights.")
@rows_options
@click.pass_obj
def catch_up(
    obj: Context, first: datetime | None, last: datetime | None, limit: int | None, form: str, out: str
) -> None:
    """Run missing and failed nights, oldest first.

    Exit code 1 if one failed.
    """
    with obj.session(writes=True) as session:
        rows = session.nights.catch_up(_day(first), _day(last), limit)
    _show(rows, form, out)


@example("esjobs rerun 2025-06-30")
@click.command()
@click.argument("night", type=_DATE)
@rows_options
@click.pass_obj
def rerun(obj: Context, night: datetime, form: str, out: str) -> None:
    """Rerun all steps of one night.

    NIGHT: date of the day that is aggregated.
    """
    with obj.session(writes=True) as session:
        row = session.nights.rerun(night.date())
    _show([row], form, out)


def _show(rows: list[dict[str, Any]], form: str, out: str) -> None:
    from esjobs.publish.publication import rows_table
    from esjobs.schema.nights import NIGHTS
    from scheduler.night import succeeded

    shown = rows_table(NIGHTS, rows)
    if form == "table":
        shown = shown.select(["night", "state", "reason", "jobs", "seconds", "attempt", "steps_done"])
    emit(shown, form, out, prose=["reason"])
    if not succeeded(rows):
        raise SystemExit(1)
