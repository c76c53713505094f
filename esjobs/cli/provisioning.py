"""Commands about the service quality of a centre."""

from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    rows_options,
    say_notes,
    score_option,
    step,
    where_option,
    window_option,
)
from esjobs.schema.provisioning_names import BY, CONTACTED
from esjobs.schema.scores import BEST_IS_HIGH

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport
    from esjobs.provisioning.overall import Overall

_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group("provision")
def provision() -> None:
    """Service quality of a centre: waiting, lost hours, quality index, effect of user contacts."""


def _question(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of waiting, use and losses."""
    function = where_option(window_option(rows_options(function)))
    return click.option(
        "--by",
        default="site",
        show_default=True,
        type=click.Choice(BY),
        help="Group by: sites, queues, projects, users, applications, or size classes in cores.",
    )(function)


@example("esjobs provision waiting --by size")
@provision.command()
@_question
@click.pass_obj
def waiting(obj: Context, /, by: str, form: str, out: str, **choice: Any) -> None:
    """Waiting times from submission to start, longest first, with their trend.

    change_per_week: relative change of the daily median per week, with a 95 % interval that allows for
    correlated days.
    """
    with obj.session() as session:
        rows = session.provisioning.waiting(by, **choice).rows
    emit(rows, form, out, title=f"waiting by {by}: seconds from submission to start")


@example("esjobs provision used --by project")
@provision.command()
@_question
@click.pass_obj
def used(obj: Context, /, by: str, form: str, out: str, **choice: Any) -> None:
    """Used against requested time, memory and cores, largest consumers first."""
    with obj.session() as session:
        rows = session.provisioning.used(by, **choice).rows
    emit(rows, form, out, title=f"used of what was requested, by {by}")


@example("esjobs provision lost --by project")
@provision.command()
@_question
@click.pass_obj
def lost(obj: Context, /, by: str, form: str, out: str, **choice: Any) -> None:
    """Core-hours lost in failed jobs, by cause, largest first.

    lost_share: fraction of the core-hours of finished and failed jobs.
    """
    with obj.session() as session:
        rows = session.provisioning.lost(by, **choice).rows
    emit(rows, form, out, title=f"core-hours lost in failed jobs, by {by}")


@example("esjobs provision questions")
@provision.command()
def questions() -> None:
    """Print a template questionnaire for the quality index."""
    click.echo(files("esjobs.provisioning").joinpath("questions.toml").read_text(encoding="utf-8"), nl=False)


@example("esjobs provision index centre.toml")
@provision.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@rows_options
@click.pass_obj
def index(obj: Context, file: Path, form: str, out: str) -> None:
    """Compute the quality index of a centre from a questionnaire (TOML) and job records.

    Missing inputs are listed and do not count; points_low and points_high assume their worst and best values.
    All inputs: esjobs show quality_index.
    """
    with obj.session(writes=True) as session:
        report = session.provisioning.index(file)
        rows = session.provisioning.indexed(report.run).rows
    say_notes(obj, report.notes)
    emit(
        rows,
        form,
        out,
        title=f"index of {report.window}: {report.rows_out} of {report.rows_in} inputs have a value",
    )


@example(
    "esjobs provision compare 'Demo grid 2025-05-01/2025-06-01' \\\n      'Demo grid 2025-06-01/2025-07-01'"
)
@provision.command()
@click.argument("first")
@click.argument("second")
@rows_options
@click.pass_obj
def compare(obj: Context, first: str, second: str, form: str, out: str) -> None:
    """Compare two quality indices on the inputs both have.

    FIRST and SECOND: a centre, 'CENTRE PERIOD', or an assessment (list: esjobs show quality_index).
    """
    with obj.session() as session:
        compared = session.provisioning.compare(first, second)
    say_notes(obj, compared.notes)
    emit(compared.rows, form, out, title=compared.title)


@example("esjobs provision contact user analyst-a --on 2025-06-16 --who ann")
@provision.command()
@click.argument("kind", type=click.Choice(CONTACTED))
@click.argument("name")
@click.option("--on", "day", required=True, type=_DAY, metavar="DATE", help="Day of the contact.")
@click.option("--who", required=True, metavar="NAME", help="Person who enters this.")
@click.option("--note", "text", default="", metavar="TEXT", help="Comment.")
@click.option("--acknowledged", type=_DAY, metavar="DATE", help="Day of their acknowledgement.")
@step(rows=False)
def contact(
    session: "Session",
    kind: str,
    name: str,
    day: datetime,
    who: str,
    text: str,
    acknowledged: datetime | None,
) -> "RunReport":
    """Record that a user or project was contacted; a second entry replaces the first."""
    seen = None if acknowledged is None else acknowledged.date()
    return session.provisioning.contact(kind, name, on=day.date(), by=who, text=text, acknowledged=seen)


@example("esjobs provision effects --days 14")
@provision.command()
@score_option("score")
@click.option(
    "--days",
    type=click.IntRange(min=1, max=3660),
    default=28,
    show_default=True,
    metavar="N",
    help="Days before and after each contact.",
)
@rows_options
@click.pass_obj
def effects(obj: Context, score: str, days: int, form: str, out: str) -> None:
    """Effect of contacts: scores before and after, against a control group.

    effect: change minus that of others with the same score before, with a 95 % interval. The common effect of
    three or more contacts is printed on standard error.
    """
    with obj.session() as session:
        answer = session.provisioning.effects(score, days=days)
    emit(answer.rows, form, out, title=f"{score}: {days} days before and after each contact")
    if answer.details is not None:
        say_notes(obj, [_overall(answer.details, high_is_good=score in BEST_IS_HIGH)])


def _overall(together: "Overall", *, high_is_good: bool) -> str:
    """Sentence about the common effect of all contacts."""
    beyond = f", standard deviation between contacts {together.spread:.2g}" if together.spread > 0 else ""
    return (
        f"{together.n_contacts} contacts together: {together.verdict(high_is_good=high_is_good)}, "
        f"{together.effect:+.3g} ({together.low:+.2g} to {together.high:+.2g}, 95 %){beyond}"
    )
