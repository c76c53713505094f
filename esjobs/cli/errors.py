"""Commands about lost work and nodes."""

from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_answer, rows_options, top_option, where_option, window_option
from esjobs.schema.errors import BY, NODE_NOT_SHOWN, NOT_SHOWN

_site_option = click.option("--site", multiple=True, metavar="SITE", help="Site; repeat for several.")


@example(
    "esjobs errors --window 2025-06-16/2025-06-23",
    "esjobs errors --by error --site POPLAR-LCG2 --top 10",
    "esjobs errors --by error --new --window 2025-06-16/2025-06-23",
)
@click.command()
@click.option("--by", type=click.Choice(BY), default=BY[0], show_default=True, help="Group by.")
@_site_option
@click.option("--new", is_flag=True, help="Errors that the 28 days before the window lack.")
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def errors(obj: Context, /, by: str, top: int, form: str, out: str, **of: Any) -> None:
    """Core-hours of jobs that did not finish, by reason: share, jobs, tasks, sites, who acts.

    Each job counts under one error, its primary one.
    """
    with obj.session() as session:
        answer = session.errors.lost(by, **of)
    emit_answer(obj, answer, form, out, top=top, hidden=NOT_SHOWN)


@example(
    "esjobs nodes --window 2025-06-16/2025-06-23",
    "esjobs nodes --site POPLAR-LCG2 --all",
    "esjobs nodes --slow --site POPLAR-LCG2",
)
@click.command()
@_site_option
@click.option("--queue", multiple=True, metavar="QUEUE", help="Queue; repeat for several.")
@click.option("--all", "every", is_flag=True, help="All nodes, not only those that are found.")
@click.option("--slow", is_flag=True, help="Nodes on which jobs take longer, instead.")
@top_option(0)
@where_option
@window_option
@rows_options
@click.pass_obj
def nodes(obj: Context, /, top: int, form: str, out: str, **of: Any) -> None:
    """Nodes on which jobs fail more often than on others of the site with the same tasks.

    A black hole fails fast and takes many jobs; cost_core_h is what it lost. Slow nodes are compared with
    those of the same site, CPU model and tasks, or users and job names.
    """
    with obj.session() as session:
        answer = session.errors.nodes(**of)
    emit_answer(obj, answer, form, out, top=top, hidden=NODE_NOT_SHOWN)
