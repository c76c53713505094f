"""Commands about similar jobs, and scores predicted from them."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    rows_options,
    say_notes,
    source_option,
    step,
    top_option,
    window_option,
)
from esjobs.core.text import visible

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


class _JobUnlessNamed(click.Group):
    """A group whose first argument is a job unless it names a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["job", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_JobUnlessNamed, subcommand_metavar="JOBID | COMMAND [ARGS]...")
def similar() -> None:
    """Find jobs similar to one job, and predict scores from similar jobs."""


@example("esjobs similar JOBID --top 10", "esjobs similar JOBID --static", "esjobs similar job JOBID")
@similar.command("job")
@click.argument("job_id", metavar="JOBID")
@source_option
@click.option(
    "--static/--dynamic", "static", help="Compare symbols of executables, or time series (default)."
)
@click.option(
    "--series",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to compare; repeat for more; default: all metrics of the job.",
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
    """List the jobs most similar to JOBID, by time series or by program, nearest first.

    Jobs of half to twice the duration are compared. Distance 0: equal in every sample; 1: the standard
    deviation of the compared jobs. differs_in: metric with the largest part of the distance, differs_frac.

    --static: 1 means equal symbols, 0 none in common; shared: the names that contribute most. Scan
    executables first: esjobs symbols scan. Without symbols, jobs with the same program or
    module name are compared.
    """
    if static and metrics:
        raise click.UsageError("--series selects time series; omit it, or omit --static")
    with obj.session() as session:
        if static:
            found = session.similar.programs(job_id, source=source, window=window, top=top or None)
            basis, excluded = "by the symbols of their programs", "not compared by symbols:"
            title = f"jobs of programs most similar to {visible(found.details.program)} of {visible(job_id)}"
        else:
            found = session.similar.jobs(
                job_id, source=source, window=window, top=top or None, metrics=metrics
            )
            basis, excluded = f"in {', '.join(found.details.metrics)}", "not compared,"
            title = f"jobs most similar to {visible(job_id)}"
    notes = [f"{found.details.n_compared:,} jobs compared {basis}"]
    notes += [f"{count:,} {excluded} {reason}" for reason, count in found.details.left_out.items()]
    say_notes(obj, notes)
    emit(found.rows, form, out, title=title)


@example("esjobs similar predict --window 2025-06-01/2025-07-01")
@similar.command()
@window_option
@step()
def predict(session: "Session", window: str | None) -> "RunReport":
    """Predict score_cpu and score_mem for jobs without counters, from similar measured jobs.

    Results, with errors: esjobs show predicted_scores. Measured scores do not change; rankings use predicted
    ones only with --predicted. Jobs without similar jobs are counted.
    """
    return session.similar.predict(window)


@example("esjobs similar evaluate")
@similar.command()
@click.option(
    "--most", default=2000, show_default=True, type=click.IntRange(min=0), help="Number of jobs; 0: all."
)
@rows_options
@click.pass_obj
def evaluate(obj: Context, most: int, form: str, out: str) -> None:
    """Cross-validate the predicted scores on measured jobs (nine schemes).

    left_out: jobs excluded together with a job (its run, or all of its user). mae, mse, over_10_frac: errors
    of the predictions. cover_68, cover_95: fraction of jobs whose measured score is within the error.
    """
    with obj.session() as session:
        rows = session.similar.evaluate(most or None).rows
    emit(rows, form, out, title="measured jobs predicted from other jobs")
