"""Commands about jobs that behave alike: the nearest, and scores predicted from them."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, emit_reports, rows_options, top_option, window_option
from esjobs.core.text import visible


class _JobUnlessNamed(click.Group):
    """A group whose first argument is a job unless it names a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["job", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_JobUnlessNamed, subcommand_metavar="JOBID | COMMAND [ARGS]...")
def similar() -> None:
    """The jobs most like JOBID, by time series or programs, and scores predicted from such jobs."""


@example("esjobs similar JOBID --top 10", "esjobs similar JOBID --static", "esjobs similar job JOBID")
@similar.command("job")
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
def job(
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
        found = session.similar.jobs(job_id, source=source, window=window, top=top or None, metrics=metrics)
    if not obj.quiet:
        from esjobs.cli.terminal import say

        say(
            f"note: {found.details.n_compared:,} jobs compared in {', '.join(found.details.metrics)}",
            err=True,
        )
        for reason, count in found.details.left_out.items():
            say(f"note: {count:,} not compared, {reason}", err=True)
    emit(found.rows, form, out, title=f"jobs most like {visible(job_id)}")


def _by_programs(
    obj: Context, job_id: str, source: str | None, top: int, window: str | None, form: str, out: str
) -> None:
    with obj.session() as session:
        found = session.similar.programs(job_id, source=source, window=window, top=top or None)
    if not obj.quiet:
        from esjobs.cli.terminal import say

        say(f"note: {found.details.n_compared:,} jobs compared by the symbols of their programs", err=True)
        for reason, count in found.details.left_out.items():
            say(f"note: {count:,} not compared by symbols: {reason}", err=True)
    emit(
        found.rows,
        form,
        out,
        title=f"jobs of programs most like {visible(found.details.program)} of {visible(job_id)}",
    )


@example("esjobs similar predict --window 2025-06-01/2025-07-01")
@similar.command()
@window_option
@rows_options
@click.pass_obj
def predict(obj: Context, window: str | None, form: str, out: str) -> None:
    """Predict score_cpu and score_mem of jobs without counters from measured jobs that behaved alike.

    esjobs show predicted_scores has them, with their errors; no measured score is changed, and rankings leave
    them out unless asked. Jobs without similar ones get none, and are counted.
    """
    with obj.session(writes=True) as session:
        report = session.similar.predict(window)
    emit_reports([report], form, out)


@example("esjobs similar evaluate")
@similar.command()
@click.option("--most", default=2000, show_default=True, type=click.IntRange(min=0), help="Jobs; 0: all.")
@rows_options
@click.pass_obj
def evaluate(obj: Context, most: int, form: str, out: str) -> None:
    """How good predictions are: measured jobs predicted from others, in nine ways.

    left_out: with a job its run, or all of its user. mae, mse, over_10_frac: of those predicted. cover_68 and
    cover_95: the part whose measured score is within the error.
    """
    with obj.session() as session:
        rows = session.similar.evaluate(most or None).rows
    emit(rows, form, out, title="measured jobs predicted from others")
