"""Commands about parallel efficiency: reports of TALP, from the launch of a program to its job."""

from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_reports, rebuild_option, rows_options


@click.group()
def talp() -> None:
    """Parallel efficiency of jobs (POP metrics) by TALP: measure, gather, join with the jobs' records."""


@example("esjobs talp join")
@talp.command()
@rebuild_option
@rows_options
@click.pass_obj
def join(obj: Context, rebuild: bool, form: str, out: str) -> None:
    """Match TALP reports to job records; unmatched ones: esjobs show pop_orphans.

    ingest does it of itself after every load; by hand it is needed where records of jobs come by other ways.
    """
    with obj.session(writes=True) as session:
        report = session.pop.join(rebuild=rebuild)
    emit_reports([report], form, out)


@example("esjobs talp gather", "esjobs talp gather /scratch/talp --jobs-source slurm")
@talp.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER...]")
@click.option(
    "--jobs-source",
    "source",
    metavar="NAME",
    help="What the jobs of FOLDER have as source; else found by their id.",
)
@rows_options
@click.pass_obj
def gather(obj: Context, folders: tuple[str, ...], source: str | None, form: str, out: str) -> None:
    """Take finished reports from spools, those of the settings unless FOLDER... are named.

    A spool is a folder here, or HOST:/FOLDER, which is read by rsync. Files are removed there once the store
    has them. What is no report stays, is counted, and is logged once.
    """
    with obj.session(writes=True, create=True) as session:
        report = session.pop.gather(folders, source=source)
    emit_reports([report], form, out)


@example("esjobs talp run -- mpirun -np 4 ./app", "esjobs talp run --counters -- srun ./app")
@talp.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--counters", is_flag=True, help="Hardware counters, too: DLB must have been built with PAPI.")
@click.option("--openmp", is_flag=True, help="OpenMP, too, before DLB 3.7: the runtime must have OMPT.")
@click.option(
    "--details", "summary", metavar="LIST", help="More than regions: process, node, or process,node."
)
@click.option("--spool", metavar="FOLDER", help="Where reports go; else ESJOBS_TALP_SPOOL.")
@click.option("--library", metavar="FILE", help="libdlb_mpi.so; else looked for, from DLB_HOME on.")
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
    """Run LAUNCHER (mpirun, mpiexec, srun) under TALP: its arguments, signals and exit code are its own.

    Where TALP cannot be used the program runs without, and one line on standard error says why.
    """
    from esjobs.pop.wrapper import run_under_talp

    chosen = {"SPOOL": spool, "LIBRARY": library, "SUMMARY": summary}
    chosen |= {"COUNTERS": "yes" if counters else None, "OPENMP": "yes" if openmp else None}
    run_under_talp(command, {name: value for name, value in chosen.items() if value is not None})


@example("esjobs talp wrappers /opt/esjobs-talp/bin")
@talp.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def wrappers(folder: Path) -> None:
    """Write mpirun, mpiexec and srun into FOLDER, which a module file puts ahead of the real ones.

    They need nothing but a shell, and find the launcher of the loaded MPI behind themselves on PATH.
    """
    from esjobs.pop.wrapper import write_wrappers

    for path in write_wrappers(folder):
        click.echo(path)
