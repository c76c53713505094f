"""Commands that fit a table in a file; no store is opened."""

from pathlib import Path

import click

from esjobs.cli.help import Renamed, example
from esjobs.cli.options import Context, emit, format_of, rows_options
from esjobs.store.files.destination import refuse_inputs


@example(
    "esjobs fit-file demo/jobs.parquet --task-column task_id --unit-column site --cpu-column cpu_s "
    "--events-column events"
)
@click.command("fit-file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--task-column",
    "task",
    cls=Renamed,
    old=["--task"],
    required=True,
    metavar="COL",
    help="Column of the task (or unit of A).",
)
@click.option(
    "--unit-column",
    "unit",
    cls=Renamed,
    old=["--unit"],
    required=True,
    metavar="COL",
    help="Column of the queue or CPU model.",
)
@click.option(
    "--value-column",
    "value",
    cls=Renamed,
    old=["--value"],
    metavar="COL",
    help="Column of CPU time per event; or --cpu-column and --events-column.",
)
@click.option(
    "--cpu-column", "cpu", cls=Renamed, old=["--cpu"], metavar="COL", help="Column of the sum of CPU time."
)
@click.option(
    "--events-column",
    "events",
    cls=Renamed,
    old=["--events"],
    metavar="COL",
    help="Column of the sum of events.",
)
@click.option(
    "--jobs-column", "jobs", cls=Renamed, old=["--jobs"], metavar="COL", help="Column of the number of jobs."
)
@click.option(
    "--group-column",
    "group",
    cls=Renamed,
    old=["--group"],
    metavar="COL",
    help="Fit each value of this column on its own.",
)
@click.option(
    "--objective",
    type=click.Choice(["paper", "gamma"]),
    default="paper",
    show_default=True,
    help="What is minimised.",
)
@click.option(
    "--weights",
    type=click.Choice(["none", "jobs", "floor"]),
    default="none",
    show_default=True,
    help="How rows weigh.",
)
@click.option(
    "--robust",
    type=click.Choice(["none", "reject"]),
    default="none",
    show_default=True,
    help="Whether outliers are rejected.",
)
@click.option(
    "--summary", type=click.Path(path_type=Path), help="JSON file: what was dropped, Minuit's flags."
)
@rows_options
@click.pass_obj
def fit_file(
    obj: Context,
    file: Path,
    task: str,
    unit: str,
    value: str | None,
    cpu: str | None,
    events: str | None,
    jobs: str | None,
    group: str | None,
    objective: str,
    weights: str,
    robust: str,
    summary: Path | None,
    form: str,
    out: str,
) -> None:
    """Fit speed factors straight from a CSV or Parquet table; no store is opened."""
    del obj
    from esjobs.speed import files

    refuse_inputs(out, [file])
    if summary is not None:
        refuse_inputs(summary, [file])
    columns = files.Columns(task, unit, value, cpu, events, jobs, group)
    options = {"objective": objective, "weights": weights, "robust": robust}
    rows, summaries = files.fit_file(file, columns, options)
    if summary is not None:
        files.write_summary(summaries, summary, grouped=group is not None)
    emit(rows, format_of(form, out), out)


@example(
    "esjobs export flags --out flags.csv",
    "esjobs line-file flags.csv --name-column name --k-column k --k-err-column k_err "
    "--corepower-column corepower",
)
@click.command("line-file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--name-column",
    "name",
    cls=Renamed,
    old=["--name"],
    required=True,
    metavar="COL",
    help="Column of the names.",
)
@click.option(
    "--k-column",
    "k",
    cls=Renamed,
    old=["--k"],
    required=True,
    metavar="COL",
    help="Column of the speed factor.",
)
@click.option(
    "--k-err-column",
    "k_err",
    cls=Renamed,
    old=["--k-err"],
    required=True,
    metavar="COL",
    help="Column of its error.",
)
@click.option(
    "--corepower-column",
    "corepower",
    cls=Renamed,
    old=["--corepower"],
    required=True,
    metavar="COL",
    help="Column of the declared value.",
)
@click.option(
    "--corepower-err-column",
    "corepower_err",
    cls=Renamed,
    old=["--corepower-err"],
    metavar="COL",
    help="Column of its error.",
)
@rows_options
@click.pass_obj
def line_file(
    obj: Context,
    file: Path,
    name: str,
    k: str,
    k_err: str,
    corepower: str,
    corepower_err: str | None,
    form: str,
    out: str,
) -> None:
    """Compare factors in a CSV or Parquet table with declared values by a line through the origin."""
    del obj
    from esjobs.speed import files

    refuse_inputs(out, [file])
    rows = files.line_file(
        file, name=name, k=k, k_err=k_err, corepower=corepower, corepower_err=corepower_err
    )
    emit(rows, format_of(form, out), out)
