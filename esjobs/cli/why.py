"""Commands about why a name deviates: reference tables, drift, reasons."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit_reports, form_and_file, rows_options, window_option

REFERENCE_FORMS = ("hepix-hs23", "hepix-hs06", "atlas-hs06", "atlas-factors")


@click.group(cls=click.Group)
def reference() -> None:
    """Scores of CPU models that others have measured and published."""


@example("esjobs reference import hepix-hs23 HS23scores.csv")
@reference.command("import")
@click.argument("given", metavar="FORM FILE", nargs=-1, required=True)
@click.option("--form", "old_form", type=click.Choice(REFERENCE_FORMS), hidden=True)
@click.pass_obj
def import_references(obj: Context, given: tuple[str, ...], old_form: str | None) -> None:
    """Import a reference table, plain or gzip; - is standard input.

    FORM says what FILE is. hepix-hs23: HEPiX's CSV of HS23 scores, also of job probes. hepix-hs06: HEPiX's
    page of HS06 results. atlas-hs06: lines of CPU,HS06,cores. atlas-factors: fitted factors, a fit a column.
    Scores of one CPU model that differ are kept with their range; no mean is taken.
    """
    form_in, file = form_and_file(given, REFERENCE_FORMS, old_form, "--form")
    with obj.session(writes=True, create=True, late=True) as session:
        report = session.declared.import_references(file, form=form_in)
    emit_reports([report], "table", "-")


@example("esjobs show references", "esjobs reference remove IMPORT")
@reference.command("remove")
@click.argument("import_id", metavar="IMPORT")
@click.pass_obj
def remove_references(obj: Context, import_id: str) -> None:
    """Take an import back; esjobs show references names them."""
    with obj.session(writes=True) as session:
        report = session.declared.remove_references(import_id)
    emit_reports([report], "table", "-")


@example("esjobs drift")
@click.command()
@window_option
@rows_options
@click.pass_obj
def drift(obj: Context, window: str | None, form: str, out: str) -> None:
    """Look for days from which on queues or CPU models ran faster or slower, and for what changed then.

    Of the window of a run; default: the latest. esjobs show drifts has what was seen.
    """
    with obj.session(writes=True) as session:
        report = session.flags.drift(window)
    emit_reports([report], form, out)


@example("esjobs decompose")
@click.command()
@window_option
@rows_options
@click.pass_obj
def decompose(obj: Context, window: str | None, form: str, out: str) -> None:
    """Take the deviations of queues apart: CPU mix, SMT, the declaration, and an unexplained rest.

    Of the window of a run; default: the latest. esjobs show decomposition has the parts.
    """
    with obj.session(writes=True) as session:
        report = session.flags.decompose(window)
    emit_reports([report], form, out)
