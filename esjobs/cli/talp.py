"""Commands about parallel efficiency, from the launch under TALP to the job record."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import rebuild_option, step

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


@click.group()
def talp() -> None:
    """Parallel efficiency (POP metrics) from TALP: run, collect, join with job records."""


@example("esjobs talp join")
@talp.command()
@rebuild_option
@step()
def join(session: "Session", rebuild: bool) -> "RunReport":
    """Match TALP reports to job records; unmatched ones: esjobs show pop_orphans.

    Every ingest does this; a join by hand is only needed for jobs that other programs wrote.
    """
    return session.pop.join(rebuild=rebuild)


@example("esjobs talp gather", "esjobs talp gather /scratch/talp --jobs-source slurm")
@talp.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER...]")
@click.option(
    "--jobs-source",
    "source",
    metavar="NAME",
    help="Source of the jobs in FOLDER; default: any job with the id.",
)
@step(create=True)
def gather(session: "Session", folders: tuple[str, ...], source: str | None) -> "RunReport":
    """Collect finished TALP reports from spool folders (default: those configured).

    A spool is a local folder or HOST:/FOLDER, which rsync reads. Stored reports are removed from it. Other
    files stay, and are counted and logged once.
    """
    return session.pop.gather(folders, source=source)


@example("esjobs talp run -- mpirun -np 4 ./app", "esjobs talp run --counters -- srun ./app")
@talp.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--counters", is_flag=True, help="Add hardware counters (DLB built with PAPI).")
@click.option("--openmp", is_flag=True, help="Add OpenMP before DLB 3.7 (runtime with OMPT).")
@click.option(
    "--details", "summary", metavar="LIST", help="Detail beyond regions: process, node, or process,node."
)
@click.option("--spool", metavar="FOLDER", help="Folder for reports; default: ESJOBS_TALP_SPOOL.")
@click.option("--library", metavar="FILE", help="Path of libdlb_mpi.so; default: search, DLB_HOME first.")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- LAUNCHER [ARGUMENT...]"
)
def run(
    counters: bool,
    openmp: bool,
    summary: str | None,
    spool: str | None,
    library: str | None,
    command: tuple[str, ...],
) -> None:
    """Run LAUNCHER under TALP; arguments, signals and exit code pass through.

    LAUNCHER: mpirun, mpiexec or srun. If TALP is unusable the program runs without it, with one line of why.
    """
    from esjobs.pop.wrapper import run_under_talp

    chosen = {"SPOOL": spool, "LIBRARY": library, "SUMMARY": summary}
    chosen |= {"COUNTERS": "yes" if counters else None, "OPENMP": "yes" if openmp else None}
    run_under_talp(command, {name: value for name, value in chosen.items() if value is not None})


@example("esjobs talp wrappers /opt/esjobs-talp/bin")
@talp.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def wrappers(folder: Path) -> None:
    """Write wrapper scripts for mpirun, mpiexec and srun, to put first in PATH.

    They need only a shell, and call the next launcher of that name in PATH.
    """
    from esjobs.pop.wrapper import write_wrappers

    for path in write_wrappers(folder):
        click.echo(path)
