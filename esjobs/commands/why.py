"""Commands about why a name deviates: reference tables, drift, reasons."""

from pathlib import Path

import click

from esjobs.commands.options import Context, emit_reports, rows_options, window_option

REFERENCE_FORMS = ("hepix-hs23", "hepix-hs06", "atlas-hs06", "atlas-factors")


@click.group(cls=click.Group)
def reference() -> None:
    """Scores of CPU models that others have measured and published."""


@reference.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--form", "form_in", type=click.Choice(REFERENCE_FORMS), required=True, help="What FILE is.")
@click.pass_obj
def import_references(obj: Context, file: Path, form_in: str) -> None:
    """Import a reference table, plain or gzip; - is standard input.

    hepix-hs23: HEPiX's CSV of HS23 scores, also of job probes. hepix-hs06: HEPiX's page of HS06 results.
    atlas-hs06: lines of CPU,HS06,cores. atlas-factors: fitted factors, a column per fit. Scores of one CPU
    model that differ are kept with their range; no mean is taken.
    """
    with obj.session(create=True, late=True) as session:
        report = session.import_references(file, form=form_in)
    emit_reports([report], "table", "-")


@reference.command("remove")
@click.argument("import_id", metavar="IMPORT")
@click.pass_obj
def remove_references(obj: Context, import_id: str) -> None:
    """Take an import back; esjobs show references names them."""
    with obj.session() as session:
        report = session.remove_references(import_id)
    emit_reports([report], "table", "-")


@click.command()
@window_option
@rows_options
@click.pass_obj
def drift(obj: Context, window: str | None, form: str, out: str) -> None:
    """Look for days from which on queues or CPU models ran faster or slower, and for what changed then.

    Of the window of a run; default: the latest. esjobs show drifts has what was seen.
    """
    with obj.session() as session:
        report = session.drift(window)
    emit_reports([report], form, out)


@click.command()
@window_option
@rows_options
@click.pass_obj
def reasons(obj: Context, window: str | None, form: str, out: str) -> None:
    """Take the deviations of queues apart: CPU mix, SMT, the declaration, and an unexplained rest.

    Of the window of a run; default: the latest. esjobs show reasons has the parts.
    """
    with obj.session() as session:
        report = session.reasons(window)
    emit_reports([report], form, out)
