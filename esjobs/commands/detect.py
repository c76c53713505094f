"""Commands about issues of jobs: finding them, the rules they are found by, and one job with everything."""

import click

from esjobs.commands.options import Context, emit_reports, rows_options, window_option


@click.command()
@window_option
@click.option("--rebuild", is_flag=True, help="Make days again even when nothing changed.")
@rows_options
@click.pass_obj
def detect(obj: Context, window: str | None, rebuild: bool, form: str, out: str) -> None:
    """Look for tags and issues of jobs: from their time series, footprints and records.

    Days are made that lack them, or whose jobs, series or rules changed. What is found: esjobs show issues.
    """
    with obj.session() as session:
        report = session.detect(window, rebuild=rebuild)
    emit_reports([report], form, out)
