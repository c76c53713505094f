"""Commands that forecast changes."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, format_of, rows_options, say_notes
from esjobs.schema.what_if import MOVE_FILES

if TYPE_CHECKING:
    from collections.abc import Collection

    from esjobs.records.answer import Answer


@click.group("what-if")
def what_if() -> None:
    """Forecast changes: move jobs, use free cores, declare, drain, buy."""


def _print(obj: Context, answer: "Answer", form: str, out: str, hidden: "Collection[str]" = ()) -> None:
    rows = answer.rows
    if format_of(form, out) == "table":
        rows = rows.drop_columns([name for name in rows.column_names if name in hidden])
    emit(rows, form, out, title=answer.title, prose=["reason"])
    say_notes(obj, answer.notes)


@example(
    "esjobs what-if move --task 15350577 --from A --to B",
    "esjobs what-if move --processing-type evgen --from A --to B",
)
@what_if.command()
@click.option("--task", metavar="ID", help="Task to use.")
@click.option("--processing-type", metavar="TYPE", help="Processing type: all of its tasks.")
@click.option("--from", "origin", required=True, metavar="QUEUE", help="From: queue that has the jobs.")
@click.option("--to", "target", required=True, metavar="QUEUE", help="To: queue that would run them.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Number of jobs; default: all.")
@rows_options
@click.pass_obj
def move(
    obj: Context,
    task: str | None,
    processing_type: str | None,
    origin: str,
    target: str,
    jobs: int | None,
    form: str,
    out: str,
) -> None:
    """CPU time, wall time, memory and waiting of jobs of one queue at another one.

    cpu_s: CPU time of all jobs with a 90 % interval. wall_s: wall time of a mean job. Files have all columns.
    """
    with obj.session() as session:
        answer = session.what_if.move(origin, target, task=task, processing_type=processing_type, jobs=jobs)
    _print(obj, answer, form, out, MOVE_FILES)
