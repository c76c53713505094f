"""Commands that fit a table in a file; no store is opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import emit, rows_options
from esjobs.store.files.destination import refuse_inputs


def _column(name: str, text: str, *, required: bool = False) -> Callable[[Any], Any]:
    return click.option(
        f"--{name}-column",
        name.replace("-", "_"),
        required=required,
        metavar="COL",
        help=f"Column of {text}.",
    )


@example(
    "esjobs fit-file demo/jobs.parquet --task-column task_id \\\n"
    "      --unit-column queue --cpu-column cpu_s --events-column events"
)
@click.command("fit-file")
@click.argument("file", type=click.Path(path_type=Path))
@_column("task", "the task", required=True)
@_column("unit", "the queue or CPU model", required=True)
@_column("value", "CPU time per event; or --cpu-column and --events-column")
@_column("cpu", "the sum of CPU time")
@_column("events", "the sum of events")
@_column("jobs", "the number of jobs")
@_column("group", "groups to fit separately")
@click.option(
    "--objective",
    type=click.Choice(["paper", "gamma"]),
    default="paper",
    show_default=True,
    help="Objective function.",
)
@click.option(
    "--weights",
    type=click.Choice(["none", "jobs", "floor"]),
    default="none",
    show_default=True,
    help="Weights of rows.",
)
@click.option(
    "--robust",
    type=click.Choice(["none", "reject"]),
    default="none",
    show_default=True,
    help="Treatment of outliers.",
)
@click.option(
    "--summary", type=click.Path(path_type=Path), help="JSON file for dropped rows and the state of the fit."
)
@rows_options
def fit_file(
    file: Path,
    summary: Path | None,
    objective: str,
    weights: str,
    robust: str,
    form: str,
    out: str,
    **columns: Any,
) -> None:
    """Fit speed factors from a table file, without a store.

    The table is CSV or Parquet.
    """
    from esjobs.speed import files

    refuse_inputs(out, [file])
    if summary is not None:
        refuse_inputs(summary, [file])
    options = {"objective": objective, "weights": weights, "robust": robust}
    rows, summaries = files.fit_file(file, files.Columns(**columns), options)
    if summary is not None:
        files.write_summary(summaries, summary, grouped=columns["group"] is not None)
    emit(rows, form, out)


@example(
    "esjobs export flags --out flags.csv",
    "esjobs line-file flags.csv --name-column name --k-column k \\\n"
    "      --k-err-column k_err --corepower-column corepower",
)
@click.command("line-file")
@click.argument("file", type=click.Path(path_type=Path))
@_column("name", "the names", required=True)
@_column("k", "the speed factor", required=True)
@_column("k-err", "the error of the speed factor", required=True)
@_column("corepower", "the declared value", required=True)
@_column("corepower-err", "the error of the declared value")
@rows_options
def line_file(file: Path, form: str, out: str, **columns: Any) -> None:
    """Fit the line through the origin from a table file with factors and declared values."""
    from esjobs.speed import files

    refuse_inputs(out, [file])
    emit(files.line_file(file, **columns), form, out)
