"""Commands about executables: the names of their symbols."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_reports, rows_options


@click.group()
def symbols() -> None:
    """Executables by the names of their symbols, by which programs of jobs are told to be alike."""


@example("esjobs symbols scan /apps/gromacs/2024.1/bin --module gromacs/2024.1")
@symbols.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option("--module", metavar="NAME", help="Module that provides them, as in: module load NAME.")
@rows_options
@click.pass_obj
def scan(obj: Context, paths: tuple[str, ...], module: str | None, form: str, out: str) -> None:
    """Keep the names of the symbols of programs (ELF) at PATH..., folders searched: esjobs show executables.

    Files are read, never run; devices and pipes are not opened. What has no fingerprint is counted with the
    reason. Scanned again, a file is updated. Jobs find their program by what their record names.
    """
    with obj.session(writes=True, create=True) as session:
        report = session.similar.scan(paths, module=module)
    emit_reports([report], form, out)
