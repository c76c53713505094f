"""Commands about parallel efficiency: reports of TALP, from the launch of a program to its job."""

import click

from esjobs.commands.help import example
from esjobs.commands.options import Context, emit_reports, rebuild_option, rows_options


@click.group()
def talp() -> None:
    """Parallel efficiency of jobs (POP metrics) by TALP: measure, gather, join with the jobs' records."""


@example("esjobs talp join")
@talp.command()
@rebuild_option
@rows_options
@click.pass_obj
def join(obj: Context, rebuild: bool, form: str, out: str) -> None:
    """Join reports with the records of their jobs: esjobs show pop, and esjobs show orphans for the others.

    ingest does it of itself after every load; by hand it is needed where records of jobs come by other ways.
    """
    with obj.session(writes=True) as session:
        report = session.join_talp(rebuild=rebuild)
    emit_reports([report], form, out)
