"""The command for ad-hoc questions about jobs."""

from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    PICTURES,
    Context,
    emit,
    rows_or_picture_options,
    say_notes,
    where_option,
    window_option,
)


@example(
    "esjobs query --by queue --metric efficiency --sort efficiency --asc",
    "esjobs query --by site --metric lost_core_h --share --total",
    "esjobs query --by queue,cpu_model --metric core_h --share-of queue \\\n      "
    "--window 2025-06-16/2025-07-01 --compare previous --changed",
    "esjobs query --by queue --metric efficiency --compare previous \\\n      --window 2025-06-08/2025-06-15",
)
@click.command("query")
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD[,FIELD]",
    help="Group by: fields, week, month, hour (of the day, UTC); default: one row.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    default=("jobs",),
    show_default=True,
    metavar="METRIC[,METRIC]",
    help="Metrics (list: esjobs fields), or FUNCTION:FIELD, such as median:wall_s.",
)
@where_option
@click.option(
    "--bins",
    multiple=True,
    metavar="FIELD=N|EDGES",
    help="Group a numeric field into N bins or at edges (0,2GB,4GB).",
)
@click.option("--sort", metavar="NAME", help="Sort by: a metric or a column.")
@click.option("--desc/--asc", "descending", default=None, help="Sort order; default: largest numbers first.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the first N rows, the rest as one row named others; default and 0: all.",
)
@click.option(
    "--min-jobs", type=click.IntRange(0), default=0, metavar="N", help="Omit groups with fewer than N jobs."
)
@click.option("--total", is_flag=True, help="Add a row for all jobs.")
@click.option("--share", is_flag=True, help="Add each row's share of the total.")
@click.option("--errors", is_flag=True, help="Add standard errors.")
@click.option(
    "--compare",
    metavar="WINDOW|previous",
    help="Compare with a second window: difference, ratio, significance.",
)
@click.option(
    "--versus",
    multiple=True,
    metavar="CONDITION",
    help="Compare with the jobs that meet this instead, such as release=24.0.",
)
@click.option("--share-of", metavar="FIELD", help="Add each row's share of the total of its FIELD.")
@click.option(
    "--strata",
    multiple=True,
    metavar="FIELD[,FIELD]",
    help="Split a change into mix and rest by these kinds of work; default: task and queue.",
)
@click.option("--changed", is_flag=True, help="Only rows that changed beyond noise.")
@click.option("--plot", is_flag=True, help="Draw in the terminal: bars, a line over time, or a heat map.")
@click.option("--clean", is_flag=True, help="Apply the cleaning rules before aggregating.")
@window_option
@rows_or_picture_options
@click.pass_obj
def query(obj: Context, /, plot: bool, form: str, out: str, **question: Any) -> None:
    """Aggregate jobs by any field; one row per group.

    queue: the queue that a job names; site: the site that runs the queue.
    """
    from esjobs.api.suggestions import unmatched_conditions
    from esjobs.cli.terminal import say

    with obj.session() as session:
        answer = session.query(**question).details
        # a value that no job has gives an empty answer, never an error
        say_notes(obj, unmatched_conditions(session, question["where"], question["window"]), "hint")
    if form in PICTURES:
        from esjobs.render.charts.query import write_picture

        write_picture(answer, form, out)
    elif plot:
        import shutil

        from esjobs.render.charts.query import text_picture

        if form != "table" or out != "-":
            raise click.UsageError(
                "--plot draws in the terminal; for a picture file use --format svg, png or html"
            )
        for line in filter(None, [answer.title, *text_picture(answer, shutil.get_terminal_size().columns)]):
            click.echo(line)
    else:
        emit(answer.read if form == "table" else answer.table, form, out, title=answer.title)
    if not obj.quiet:
        for note in answer.notes:
            say(note, err=True)
