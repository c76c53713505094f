"""Commands about executables and their symbol names."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import step

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


@click.group()
def symbols() -> None:
    """Symbol names of executables, used to recognise similar programs."""


@example("esjobs symbols scan /apps/gromacs/2024.1/bin --module gromacs/2024.1")
@symbols.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option("--module", metavar="NAME", help="Module that provides the programs (module load NAME).")
@step(create=True)
def scan(session: "Session", paths: tuple[str, ...], module: str | None) -> "RunReport":
    """Scan PATHs for ELF files and store their symbol names.

    Folders are searched; files are read, never run. A file without a fingerprint is counted with the reason.
    A second scan updates a file. Jobs are matched by the program that their record names.
    """
    return session.similar.scan(paths, module=module)
