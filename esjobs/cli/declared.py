"""Declared scores of queues, and published scores of CPU models: import and removal."""

from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import form_and_file, step
from esjobs.core.words import LEVELS

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport

REFERENCE_FORMS = ("hepix-hs23", "hepix-hs06", "atlas-hs06", "atlas-factors")


@click.group(cls=click.Group)
def corepower() -> None:
    """Import or remove declared benchmark scores per core."""


@click.group(cls=click.Group)
def reference() -> None:
    """Import or remove published benchmark scores of CPU models."""


@example("esjobs corepower import csv demo/corepower.csv")
@corepower.command("import")
@click.argument("arguments", metavar="[csv|cric] FILE", nargs=-1, required=True)
@click.option("--benchmark", metavar="NAME", help="HS06 or HS23, if the file does not specify it.")
@click.option(
    "--level", type=click.Choice(LEVELS), help="queue, site or cpu_model, if the file does not specify it."
)
@click.option("--valid-from", metavar="DATE", help="Start of validity; replaces the date in CRIC.")
@step(rows=False, create=True, late=True)
def import_corepower(session: "Session", arguments: tuple[str, ...], **options: str | None) -> "RunReport":
    """Import declared scores from a CSV table or from CRIC.

    FILE is plain or gzip; - is standard input. Default format: csv.
    """
    form, file = form_and_file(arguments, ("csv", "cric"), default="csv")
    return session.declared.import_values(file, form=form, **options)


@example("esjobs reference import hepix-hs23 HS23scores.csv")
@reference.command("import")
@click.argument("arguments", metavar="FORM FILE", nargs=-1, required=True)
@step(rows=False, create=True, late=True)
def import_references(session: "Session", arguments: tuple[str, ...]) -> "RunReport":
    """Import a reference table (plain or gzip; - reads standard input).

    FORM: hepix-hs23 is HEPiX's CSV of HS23 scores, hepix-hs06 HEPiX's page of HS06 results, atlas-hs06 lines
    of CPU,HS06,cores, atlas-factors a table with one fit per column. Different scores of one CPU model are
    stored with their range, without a mean.
    """
    form, file = form_and_file(arguments, REFERENCE_FORMS)
    return session.declared.import_references(file, form=form)


def _add_remove(group: click.Group, remove: str, table: str) -> None:
    """Add the command that removes one import, which method ``remove`` of the facade does."""

    @step(rows=False)
    def function(session: "Session", import_id: str) -> "RunReport":
        report: RunReport = getattr(session.declared, remove)(import_id)
        return report

    command = click.argument("import_id", metavar="IMPORT")(function)
    examples = example(f"esjobs show {table}", f"esjobs {group.name} remove IMPORT")
    examples(group.command("remove", help=f"Remove one import (list them: esjobs show {table}).")(command))


_add_remove(corepower, "remove", "corepower")
_add_remove(reference, "remove_references", "references")
