"""Commands that tell everything of one site, queue or CPU model."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context
from esjobs.core.text import visible
from esjobs.core.words import Level


def _page(obj: Context, level: Level, name: str, form: str, out: str) -> None:
    import shutil

    from esjobs.render.profile.profile import profile
    from esjobs.render.text.profile import write_json, write_page
    from esjobs.store.files.destination import writing_text

    if form == "table" and out.endswith((".html", ".json")):
        form = out.rpartition(".")[2]
    with obj.session() as session:
        found = profile(session.store, level, name)
    if form == "html":
        from esjobs.render.profile_page import write_profile_page

        write_profile_page(found, out, obj.clock())
        if out != "-" and not obj.quiet:
            click.echo(f"page written to {visible(out)}", err=True)
        return
    with writing_text(out) as stream:
        if form == "json":
            write_json(found, stream)
        else:
            write_page(found, stream, min(110, shutil.get_terminal_size().columns), obj.clock())


_form = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "html"]),
    default="table",
    show_default=True,
    help="How it is written: text for a terminal, every row and column, or a page that needs nothing else.",
)
_out = click.option(
    "--out", "-o", default="-", show_default=True, metavar="FILE", help="Where to write: a file; - is stdout."
)


@example("esjobs site ALDER-HEP", "esjobs site ALDER-HEP --out alder.html")
@click.command()
@click.argument("name", metavar="NAME")
@_form
@_out
@click.pass_obj
def site(obj: Context, name: str, form: str, out: str) -> None:
    """Everything about one site or queue: verdict, why, CPU models, efficiency, tasks, history.

    NAME: as it stands, whatever its case; a site has all its queues. As of the latest run.
    """
    _page(obj, "queue", name, form, out)


@example("esjobs show factors --level cpu_model", "esjobs cpu CPU")
@click.command()
@click.argument("name", metavar="NAME")
@_form
@_out
@click.pass_obj
def cpu(obj: Context, name: str, form: str, out: str) -> None:
    """Everything about one CPU model: factor, score, where it runs and how fast there, tasks, history."""
    _page(obj, "cpu_model", name, form, out)
