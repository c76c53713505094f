"""Commands that forecast changes, and the profile of a task."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_answer, rows_options, top_option
from esjobs.schema.what_if import NOT_SHOWN

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.records.answer import Answer

_jobs = click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Number of jobs; default: all.")
_type = click.option("--processing-type", metavar="TYPE", help="Processing type: all of its tasks.")
_DATE = click.DateTime(["%Y-%m-%d"])


@click.group("what-if")
def what_if() -> None:
    """Forecast changes: move jobs, use free cores, declare, drain, buy."""


def _answering(function: Callable[..., "Answer"]) -> Callable[..., None]:
    """Make a command of a function that takes a session and returns an answer: print it with its notes.

    Files and other formats have all rows unless ``--top`` says otherwise.
    """

    @rows_options
    @click.pass_obj
    @wraps(function)
    def command(obj: Context, /, form: str, out: str, top: int = 0, **choice: Any) -> None:
        with obj.session() as session:
            answer = function(session, **choice)
        chosen = click.get_current_context().get_parameter_source("top")
        if form != "table" and chosen is ParameterSource.DEFAULT:
            top = 0
        emit_answer(obj, answer, form, out, top=top, hidden=NOT_SHOWN, prose=["reason"])

    return command


@example(
    "esjobs what-if move --task 22957682 --from YEW-HEP --to BALSA-T2",
    "esjobs what-if move --processing-type evgen --from YEW-HEP --to BALSA-T2",
)
@what_if.command()
@click.option("--task", metavar="ID", help="Task to use.")
@_type
@click.option("--from", "origin", required=True, metavar="QUEUE", help="From: queue that has the jobs.")
@click.option("--to", "target", required=True, metavar="QUEUE", help="To: queue that would run them.")
@_jobs
@_answering
def move(session: "Session", **choice: Any) -> "Answer":
    """CPU time, wall time, memory and waiting of jobs of one queue at another one.

    cpu_s: CPU time of all jobs with a 90 % interval. wall_s: mean wall time of a job.
    """
    return session.what_if.move(**choice)


@example(
    "esjobs what-if place --cores 1000 --processing-type simul --memory 2000",
    "esjobs what-if place --task 22957682 --due 2025-07-10 --jobs 5000",
)
@what_if.command("place")
@click.option("--cores", type=click.IntRange(min=1), default=1000, show_default=True, help="Free cores.")
@_type
@click.option("--memory", "memory_mb", type=click.IntRange(min=1), metavar="MB", help="Memory per core.")
@click.option("--task", metavar="ID", help="Task to use: rank queues by the chance to finish it in time.")
@click.option("--due", type=_DATE, metavar="DATE", help="Last day for the task.")
@_jobs
@top_option(20)
@_answering
def place_command(
    session: "Session", task: str | None, due: datetime | None, jobs: int | None, **choice: Any
) -> "Answer":
    """Rank queues by the work of free cores, or by the chance to finish a task in time.

    work_h: HS23-hours or HS06-hours per wall hour by the measured score and the CPU efficiency. p_done:
    probability that cores, speed, efficiency and waiting suffice.
    """
    if task is not None and due is not None:
        return session.what_if.finish(task, due.date(), jobs=jobs)
    if task is not None or due is not None:
        raise click.UsageError("--task and --due belong together")
    return session.what_if.place_cores(**choice)


@example("esjobs what-if declare POPLAR-LCG2=12.5")
@what_if.command()
@click.argument("values", nargs=-1, required=True, metavar="QUEUE=X...")
@_answering
def declare(session: "Session", values: tuple[str, ...]) -> "Answer":
    """Credit, share and rank of queues that would declare X per core."""
    try:
        named = {text.rpartition("=")[0]: float(text.rpartition("=")[2]) for text in values}
    except ValueError as error:
        raise click.UsageError(f"{error}; expected QUEUE=X, such as POPLAR-LCG2=12.5") from error
    return session.what_if.declare(named)


@example("esjobs what-if drain POPLAR-LCG2", "esjobs what-if drain --top 5")
@what_if.command()
@click.argument("site", required=False)
@top_option(20)
@_answering
def drain(session: "Session", site: str | None) -> "Answer":
    """Work per day that SITE would not deliver while it is drained: mean of 28 days, by processing type.

    Without SITE: each site, least work first. wasted_share: of its core-hours, lost or idle.
    """
    return session.what_if.drain(site)


@example("esjobs what-if buy --prices prices.csv")
@what_if.command()
@click.option(
    "--prices",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Prices of machines: CSV with cpu_model, price [, cores] [, power_w].",
)
@top_option(20)
@_answering
def buy(session: "Session", prices: Path | None) -> "Answer":
    """CPU models by measured score per core: work per euro and per kilowatt-hour.

    Watts come from the file, else from an imported reference table: esjobs reference import hepix-hs23 FILE.
    """
    return session.what_if.buy(prices)


@example("esjobs task 22957682", "esjobs task 22957682 --progress")
@click.command("task")
@click.argument("task_id", metavar="ID")
@click.option("--progress", is_flag=True, help="Show jobs, failures and events by day instead.")
@top_option(20)
@_answering
def task_command(session: "Session", task_id: str, progress: bool) -> "Answer":
    """Profile one task: queues that ran it, CPU time against expected, failures, stragglers.

    cpu_ratio: CPU time over the forecast from all other queues, with a 90 % interval.
    """
    return session.what_if.progress(task_id) if progress else session.what_if.task(task_id)
