"""Rankings by efficiency scores."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    rows_options,
    say_notes,
    score_option,
    top_option,
    window_option,
)
from esjobs.schema.scores import BY, WEIGHTS


@example("esjobs rank --by project --top 10", "esjobs rank --by user --weight core_h --top 10")
@click.command()
@click.option(
    "--by", required=True, type=click.Choice(BY), help="Group by: kind of name to rank; job: individual jobs."
)
@score_option("chosen")
@top_option(25)
@click.option(
    "--weight",
    default="node_h",
    show_default=True,
    type=click.Choice(WEIGHTS),
    help="Weight of a job in the mean.",
)
@click.option("--variant", metavar="NAME", help="Score definition (CPU family): hsw, skx, zen4, ...")
@click.option("--predicted", is_flag=True, help="Include predicted scores, and show their share.")
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
    """Rank users, projects, queues or applications by mean score, worst first.

    The best score is 0, the best cpu_efficiency 1. coverage: fraction of the hours with a score. spread:
    weighted standard deviation over jobs. score_low, score_high: 95 % interval, which allows for similar jobs
    of one user, queue and application. differs: more than 3 standard errors from the rest. Names with fewer
    than 5 jobs come last, without an interval.
    """
    with obj.session() as session:
        ranked = session.scores.rank(
            by, chosen, window=window, top=top or None, weight=weight, variant=variant, predicted=predicted
        )
    say_notes(obj, ranked.notes)
    emit(ranked.rows, form, out, title=f"{chosen} by {by}, weighted by {weight.replace('_', '-')}")
