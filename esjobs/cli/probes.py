"""Command about benchmarks in job slots."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_answer, rows_options, top_option
from esjobs.schema.references import INTERVALS


@example("esjobs ingest probes probes.csv", "esjobs probes --queue POPLAR-LCG2")
@click.command()
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="Queue; repeat for several.")
@click.option("--run", metavar="RUN", help="Run id; default: the latest.")
@top_option(0)
@rows_options
@click.pass_obj
def probes(obj: Context, queues: tuple[str, ...], run: str | None, top: int, form: str, out: str) -> None:
    """Compare benchmarks in job slots with production and the declared values.

    Probes of the 90 days to the end of the run's window count (esjobs ingest probes). ratio: production over
    probes.
    """
    with obj.session() as session:
        answer = session.speed.probes(queues, run=run)
    emit_answer(obj, answer, form, out, top=top, hidden=INTERVALS)
