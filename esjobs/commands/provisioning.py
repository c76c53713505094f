"""Commands about the quality of provisioning: waiting, use, losses."""

from collections.abc import Callable
from typing import Any

import click

from esjobs.commands.help import example
from esjobs.commands.options import Context, emit, rows_options, where_option, window_option
from esjobs.provisioning.names import BY


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
        help="Group by: WLCG sites, queues, projects, users, applications, or classes of size in cores.",
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
        rows = session.provisioning.waiting(by, window=window, where=where)
    emit(rows, form, out, title=f"waiting by {by}: seconds from submission to start")


@example("esjobs provision used --by project")
@provision.command()
@_question
@click.pass_obj
def used(obj: Context, by: str, where: tuple[str, ...], window: str | None, form: str, out: str) -> None:
    """What jobs use of the time, memory and cores that they ask for, most core-hours first."""
    with obj.session() as session:
        rows = session.provisioning.used(by, window=window, where=where)
    emit(rows, form, out, title=f"used of what was requested, by {by}")


@example("esjobs provision lost --by project")
@provision.command()
@_question
@click.pass_obj
def lost(obj: Context, by: str, where: tuple[str, ...], window: str | None, form: str, out: str) -> None:
    """Core-hours of failed jobs and why they failed, the largest losses first.

    lost_share: of the core-hours of the jobs of the name that finished or failed.
    """
    with obj.session() as session:
        rows = session.provisioning.lost(by, window=window, where=where)
    emit(rows, form, out, title=f"core-hours lost in failed jobs, by {by}")
