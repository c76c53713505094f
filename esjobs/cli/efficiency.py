"""Commands about how well jobs use what they are given: scores and rankings."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    emit_reports,
    rebuild_option,
    rows_options,
    top_option,
    window_option,
)
from esjobs.schema.scores import BY, SCORE_CHOICES, WEIGHTS


@example("esjobs score --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@rebuild_option
@rows_options
@click.pass_obj
def score(obj: Context, window: str | None, rebuild: bool, form: str, out: str) -> None:
    """Score jobs: what counters, issues and accounting say of how well they used what they were given.

    0 is best, 100 worst; nothing, with a reason, where it cannot be told. esjobs show scores has a row per
    job. Days are scored again when their jobs, what was detected of them, or the settings changed.
    """
    with obj.session(writes=True) as session:
        report = session.scores.compute(window, rebuild=rebuild)
    emit_reports([report], form, out)


@example("esjobs rank --by project --top 10")
@click.command()
@click.option(
    "--by", required=True, type=click.Choice(BY), help="Group by: who is ranked; job: the jobs one by one."
)
@click.option(
    "--score",
    "chosen",
    default="cpu_efficiency",
    show_default=True,
    type=click.Choice(SCORE_CHOICES),
    help="By which score.",
)
@top_option(25)
@click.option(
    "--weight",
    default="node_h",
    show_default=True,
    type=click.Choice(WEIGHTS),
    help="By what jobs weigh in the mean of a name.",
)
@click.option("--variant", metavar="NAME", help="Only scores of this definition: hsw, skx, zen4, ...")
@click.option(
    "--predicted", is_flag=True, help="With scores that esjobs similar predict made, and their share."
)
@window_option
@rows_options
@click.pass_obj
def rank(
    obj: Context,
    by: str,
    chosen: str,
    top: int,
    weight: str,
    variant: str | None,
    predicted: bool,
    window: str | None,
    form: str,
    out: str,
) -> None:
    """Who uses what they are given worst: means of a score, weighted by the hours of the jobs.

    coverage: the part of the hours of a name in which the score is known. node_h and n_jobs are of all
    of its jobs. spread: weighted standard deviation over jobs. Scores are 0 at best, cpu_efficiency is 1.
    score_low, score_high: its 95 % interval, jobs of one user, queue and application being alike; differs:
    more than 3 standard errors from the rest. The surely worst come first; of fewer than 5 jobs nothing is
    said, and they come last.
    """
    with obj.session() as session:
        ranked = session.scores.rank(
            by, chosen, window=window, top=top or None, weight=weight, variant=variant, predicted=predicted
        )
    if not obj.quiet:
        from esjobs.cli.terminal import say

        for note in ranked.notes:
            say(f"note: {note}", err=True)
    emit(ranked.rows, form, out, title=f"{chosen} by {by}, weighted by {weight.replace('_', '-')}")
