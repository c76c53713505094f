"""Commands about the quality of provisioning: waiting, use, losses, indices."""

from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, emit_reports, rows_options, where_option, window_option
from esjobs.schema.provisioning_names import BY, CONTACTED
from esjobs.schema.scores import BEST_IS_HIGH, SCORE_CHOICES

if TYPE_CHECKING:
    from esjobs.provisioning.overall import Overall

_DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group("provision")
def provision() -> None:
    """How well resources are provided: waiting, losses, an index of five areas, what contacts achieved."""


def _question(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the questions about waiting, use and losses share."""
    function = where_option(window_option(rows_options(function)))
    return click.option(
        "--by",
        default="site",
        show_default=True,
        type=click.Choice(BY),
        help="Group by: sites, queues, projects, users, applications, or classes of size in cores.",
    )(function)


@example("esjobs provision waiting --by size")
@provision.command()
@_question
@click.pass_obj
def waiting(obj: Context, by: str, where: tuple[str, ...], window: str | None, form: str, out: str) -> None:
    """How long jobs wait from submission to start, the longest first, and whether that grows or shrinks.

    change_per_week: relative change of the daily median in a week, with its 95 % interval, which allows for
    days that are like the day before.
    """
    with obj.session() as session:
        answer = session.provisioning.waiting(by, window=window, where=where)
    emit(answer.rows, form, out, title=f"waiting by {by}: seconds from submission to start")


@example("esjobs provision used --by project")
@provision.command()
@_question
@click.pass_obj
def used(obj: Context, by: str, where: tuple[str, ...], window: str | None, form: str, out: str) -> None:
    """What jobs use of the time, memory and cores that they ask for, most core-hours first."""
    with obj.session() as session:
        answer = session.provisioning.used(by, window=window, where=where)
    emit(answer.rows, form, out, title=f"used of what was requested, by {by}")


@example("esjobs provision lost --by project")
@provision.command()
@_question
@click.pass_obj
def lost(obj: Context, by: str, where: tuple[str, ...], window: str | None, form: str, out: str) -> None:
    """Core-hours of failed jobs and why they failed, the largest losses first.

    lost_share: of the core-hours of the jobs of the name that finished or failed.
    """
    with obj.session() as session:
        answer = session.provisioning.lost(by, window=window, where=where)
    emit(answer.rows, form, out, title=f"core-hours lost in failed jobs, by {by}")


@example("esjobs provision questions")
@provision.command()
def questions() -> None:
    """Print a questionnaire to begin with: five areas, entered and measured inputs."""
    click.echo(files("esjobs.provisioning").joinpath("questions.toml").read_text(encoding="utf-8"), nl=False)


@example("esjobs provision index centre.toml")
@provision.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@rows_options
@click.pass_obj
def index(obj: Context, file: Path, form: str, out: str) -> None:
    """Make the index of a centre from a questionnaire (TOML) and the records.

    What is missing is named and counts nowhere: points are over what is known, points_low and points_high if
    all that is missing were at its worst or best. esjobs show quality_index has every input.
    """
    with obj.session(writes=True) as session:
        report = session.provisioning.index(file)
        rows = session.provisioning.indexed(report.run).rows
    _say_notes(obj, report.notes)
    emit(
        rows, form, out, title=f"index of {report.window}: {report.rows_out} of {report.rows_in} inputs known"
    )


@example("esjobs provision compare 'Demo grid 2025-05-01/2025-06-01' 'Demo grid 2025-06-01/2025-07-01'")
@provision.command()
@click.argument("first")
@click.argument("second")
@rows_options
@click.pass_obj
def compare(obj: Context, first: str, second: str, form: str, out: str) -> None:
    """Hold the indices of two centres or periods together, over the inputs that both know.

    FIRST and SECOND are a centre, 'CENTRE PERIOD', or an assessment of esjobs show quality_index.
    """
    with obj.session() as session:
        compared = session.provisioning.compare(first, second)
    _say_notes(obj, compared.notes)
    emit(compared.rows, form, out, title=compared.title)


@example("esjobs provision contact user analyst-a --on 2025-06-16 --who ann --note 'one core of eight'")
@provision.command()
@click.argument("kind", type=click.Choice(CONTACTED))
@click.argument("name")
@click.option("--on", "day", required=True, type=_DAY, metavar="DATE", help="The day of the contact.")
@click.option("--who", required=True, metavar="NAME", help="Who says so.")
@click.option("--note", "text", default="", metavar="TEXT", help="What is known or done about it.")
@click.option("--acknowledged", type=_DAY, metavar="DATE", help="The day on which they acknowledged it.")
@click.pass_obj
def contact(
    obj: Context,
    kind: str,
    name: str,
    day: datetime,
    who: str,
    text: str,
    acknowledged: datetime | None,
) -> None:
    """Keep that a user or a project was contacted about their jobs; given again it is replaced."""
    with obj.session(writes=True) as session:
        report = session.provisioning.contact(
            kind,
            name,
            on=day.date(),
            by=who,
            text=text,
            acknowledged=None if acknowledged is None else acknowledged.date(),
        )
    emit_reports([report], "table", "-")


@example("esjobs provision effects --days 14")
@provision.command()
@click.option(
    "--score",
    default="cpu_efficiency",
    show_default=True,
    type=click.Choice(SCORE_CHOICES),
    help="By which score.",
)
@click.option(
    "--days",
    type=click.IntRange(min=1, max=3660),
    default=28,
    show_default=True,
    metavar="N",
    help="So many days before each contact, and as many after it.",
)
@rows_options
@click.pass_obj
def effects(obj: Context, score: str, days: int, form: str, out: str) -> None:
    """What contacts changed: scores before and after, against others like them who were not contacted.

    Of three or more that can be compared, what they changed together is told on stderr.

    effect: change less that of others with the same score before, with its 95 % interval.
    """
    with obj.session() as session:
        answer = session.provisioning.effects(score, days=days)
    emit(answer.rows, form, out, title=f"{score}: {days} days before each contact, and {days} after it")
    _say_overall(obj, answer.details, high_is_good=score in BEST_IS_HIGH)


def _say_overall(obj: Context, together: "Overall | None", *, high_is_good: bool) -> None:
    if together is not None and not obj.quiet:
        from esjobs.cli.terminal import say

        beyond = f", spread between contacts {together.spread:.2g}" if together.spread > 0 else ""
        say(
            f"note: {together.n_contacts} contacts together: {together.verdict(high_is_good=high_is_good)}, "
            f"{together.effect:+.3g} ({together.low:+.2g} to {together.high:+.2g}, 95 %){beyond}",
            err=True,
        )


def _say_notes(obj: Context, notes: tuple[str, ...]) -> None:
    """What has to be said of rows, apart from them."""
    if not obj.quiet:
        from esjobs.cli.terminal import say

        for note in notes:
            say(f"note: {note}", err=True)
