"""Rankings by efficiency scores."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    filter_options,
    rows_options,
    say_notes,
    score_option,
    top_option,
    window_option,
)
from esjobs.core.arguments import split
from esjobs.issues.worklist import BY as ISSUES_BY
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.scores import BY, USUAL_WEIGHTS, WEIGHTS


@example("esjobs rank --by project --top 10", "esjobs rank --by user --weight core_h --top 10")
@click.command()
@click.option(
    "--by", required=True, type=click.Choice(BY), help="Group by: kind of name to rank; job: individual jobs."
)
@score_option("chosen")
@top_option(25)
@click.option(
    "--weight",
    type=click.Choice(WEIGHTS),
    help="Weight of a job in the mean. [default: gpu_h for gpu_efficiency, else node_h]",
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
    weight: str | None,
    variant: str | None,
    predicted: bool,
    window: str | None,
    form: str,
    out: str,
) -> None:
    """Rank users, projects, queues or applications by mean score, worst first.

    The best score is 0, the best cpu_efficiency or gpu_efficiency 1. coverage: fraction of the hours with a
    score. spread: weighted standard deviation over jobs. score_low, score_high: 95 % interval, which allows
    for similar jobs of one user, queue and application. differs: more than 3 standard errors from the rest.
    Names with fewer than 5 jobs come last, without an interval.
    """
    weight = weight or USUAL_WEIGHTS[chosen]
    with obj.session() as session:
        ranked = session.scores.rank(
            by, chosen, window=window, top=top or None, weight=weight, variant=variant, predicted=predicted
        )
    say_notes(obj, ranked.notes)
    emit(ranked.rows, form, out, title=f"{chosen} by {by}, weighted by {weight.replace('_', '-')}")


@example(
    "esjobs issues --top 10",
    "esjobs issues --by user,detector",
    "esjobs issues --by job --user alice --min-severity major",
)
@click.command()
@click.option(
    "--by",
    default="user",
    show_default=True,
    metavar="FIELD[,FIELD]",
    help=f"Group by: {', '.join(ISSUES_BY)}.",
)
@filter_options("user", "project", "queue", "application", "detector")
@click.option(
    "--min-severity",
    default="minor",
    show_default=True,
    type=click.Choice(SEVERITIES),
    help="Issues of at least this severity.",
)
@click.option("--sort", metavar="COLUMN", help="Sort by: column, largest first. [default: lost_node_h]")
@top_option(25)
@window_option
@rows_options
@click.pass_obj
def issues(
    obj: Context,
    /,
    by: str,
    min_severity: str,
    sort: str | None,
    top: int,
    window: str | None,
    form: str,
    out: str,
    **filters: tuple[str, ...],
) -> None:
    """Rank users, projects, rules or jobs by the node-hours that issues cost.

    n_jobs counts jobs. lost_node_h: node-hours x idle share of cores or GPUs, the largest of a job's issues;
    risks, as a memory leak of a job that ended well, lose 0. Equal losses: node-hours x weight of the worst
    severity. Hours of several rules (--by detector) overlap.
    """
    where = {name: values for name, values in filters.items() if values}
    with obj.session() as session:
        answer = session.issues.work_list(split(by), window=window, where=where, least=min_severity)
    rows = answer.rows
    if sort is not None:
        if sort not in rows.column_names:
            raise click.UsageError(f"no column '{sort}'; columns: {', '.join(rows.column_names)}")
        rows = rows.sort_by([(sort, "descending")])
    emit(rows.slice(0, top or None), form, out, title=f"issues by {by}, lost node-hours first")
    say_notes(obj, answer.notes)
