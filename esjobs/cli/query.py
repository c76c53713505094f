"""The command for ad-hoc questions to the stored jobs."""

from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import PICTURES, Context, emit, rows_or_picture_options, where_option, window_option
from esjobs.cli.results import hint


@example(
    "esjobs query --by queue --metric efficiency --sort efficiency --asc --min-jobs 100 --top 10",
    "esjobs query --by site --metric lost_core_h,lost_share --share --top 10 --total",
    "esjobs query --by queue --metric efficiency --window 2025-06-08/2025-06-15 --compare previous",
)
@click.command("query")
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD[,FIELD]",
    help="Group by: fields, week, month, hour (of the day, UTC); without, one row.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    default=("jobs",),
    show_default=True,
    metavar="METRIC[,METRIC]",
    help="Numbers to give (see: esjobs fields), or FUNCTION:FIELD, such as median:wall_s.",
)
@where_option
@click.option(
    "--bins", multiple=True, metavar="FIELD=N|EDGES", help="Group by a number: 10 bins, or edges 0,2GB,4GB."
)
@click.option("--sort", metavar="NAME", help="Sort by: a metric, or a column of the answer.")
@click.option(
    "--desc/--asc",
    "descending",
    default=None,
    help="The largest first; or the smallest; without, the largest numbers come first.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help="So many rows, the largest unless an order is asked for, and the rest as one row others.",
)
@click.option("--min-jobs", type=click.IntRange(0), default=0, metavar="N", help="Groups of N jobs or more.")
@click.option("--total", is_flag=True, help="One more row: all jobs together.")
@click.option("--share", is_flag=True, help="Beside numbers that add up, their part of the total.")
@click.option("--errors", is_flag=True, help="Beside the numbers that have one, their standard error.")
@click.option(
    "--compare",
    metavar="WINDOW|previous",
    help="Hold against another window: difference, ratio, and whether the change is larger than its noise.",
)
@click.option(
    "--plot", is_flag=True, help="Draw it here: bars, over time a line, of two dimensions a heat map."
)
@click.option("--clean", is_flag=True, help="Apply the cleaning rules first.")
@window_option
@rows_or_picture_options
@click.pass_obj
def query(obj: Context, /, plot: bool, form: str, out: str, **asked: Any) -> None:
    """An ad-hoc question to the stored jobs, one row per group.

    The field site, also called queue, is the queue that jobs name; site is the site behind it.
    """
    from esjobs.api.suggestions import unmatched_conditions
    from esjobs.cli.terminal import say

    with obj.session() as session:
        answer = session.query(**asked).details
        hint(obj, unmatched_conditions(session, asked["where"], asked["window"]))
    if form in PICTURES:
        from esjobs.render.charts.query import write_picture

        write_picture(answer, form, out)
    elif plot:
        import shutil

        from esjobs.render.charts.query import text_picture

        if form != "table" or out != "-":
            raise click.UsageError(
                "--plot draws in the terminal; a file is drawn with --format svg, png or html"
            )
        for line in filter(None, [answer.title, *text_picture(answer, shutil.get_terminal_size().columns)]):
            click.echo(line)
    else:
        emit(answer.read if form == "table" else answer.table, form, out, title=answer.title)
    if not obj.quiet:
        for note in answer.notes:
            say(note, err=True)
