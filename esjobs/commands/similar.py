"""The command about jobs that behave alike."""

import click

from esjobs.commands.help import example
from esjobs.commands.options import Context, emit, rows_options, top_option, window_option
from esjobs.core.text import visible


@example("esjobs similar JOBID --top 10", "esjobs similar JOBID --static")
@click.command()
@click.argument("job_id", metavar="JOBID")
@click.option("--source", metavar="NAME", help="Where several sources have a job of this name.")
@click.option(
    "--static/--dynamic",
    "static",
    help="By the symbols of their executables, or by their time series (default).",
)
@click.option(
    "--series",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Compare in this metric only; repeat for more; default: all that the job has.",
)
@top_option(10)
@window_option
@rows_options
@click.pass_obj
def similar(
    obj: Context,
    job_id: str,
    source: str | None,
    static: bool,
    metrics: tuple[str, ...],
    top: int,
    window: str | None,
    form: str,
    out: str,
) -> None:
    """The jobs most like JOBID, the nearest first: by their time series, or by their programs.

    0: alike in every sample; 1: apart by the spread of the jobs compared. differs_in: the metric that makes
    most of the distance, differs_frac its part. Jobs of half to twice the duration are compared.

    --static: 1: the same symbols; 0: none in common. shared: names that make most of it. Executables are made
    known by esjobs symbols scan. Where symbols are missing, jobs of the same program or module by name.
    """
    if static:
        if metrics:
            raise click.UsageError("--series is about time series; leave it out, or --static")
        _by_programs(obj, job_id, source, top, window, form, out)
        return
    with obj.session() as session:
        found = session.similar_jobs(job_id, source=source, window=window, top=top or None, metrics=metrics)
    if not obj.quiet:
        from esjobs.terminal import say

        say(f"note: {found.n_compared:,} jobs compared in {', '.join(found.metrics)}", err=True)
        for reason, count in found.left_out.items():
            say(f"note: {count:,} not compared, {reason}", err=True)
    emit(found.rows, form, out, title=f"jobs most like {visible(job_id)}")


def _by_programs(
    obj: Context, job_id: str, source: str | None, top: int, window: str | None, form: str, out: str
) -> None:
    with obj.session() as session:
        found = session.similar_programs(job_id, source=source, window=window, top=top or None)
    if not obj.quiet:
        from esjobs.terminal import say

        say(f"note: {found.n_compared:,} jobs compared by the symbols of their programs", err=True)
        for reason, count in found.left_out.items():
            say(f"note: {count:,} not compared by symbols: {reason}", err=True)
    emit(
        found.rows,
        form,
        out,
        title=f"jobs of programs most like {visible(found.program)} of {visible(job_id)}",
    )
