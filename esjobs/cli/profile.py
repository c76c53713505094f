"""Commands that profile one site, queue or CPU model."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, format_option, out_option
from esjobs.core.text import visible
from esjobs.core.words import Level


def _page(obj: Context, level: Level, name: str, form: str, out: str) -> None:
    import shutil

    from esjobs.render.text.profile import write_json, write_page
    from esjobs.store.files.destination import writing_text

    if form == "table" and out.endswith((".html", ".json")):
        form = out.rpartition(".")[2]
    with obj.session() as session:
        page = session.profile(level, name)
    if form == "html":
        page.save(out)
        if out != "-" and not obj.quiet:
            click.echo(f"page written to {visible(out)}", err=True)
        return
    with writing_text(out) as stream:
        if form == "json":
            write_json(page.content, stream)
        else:
            write_page(page.content, stream, min(110, shutil.get_terminal_size().columns), obj.clock())


@example("esjobs site ALDER-HEP", "esjobs site ALDER-HEP --out alder.html")
@click.command()
@click.argument("name", metavar="NAME")
@format_option("table", "json", "html")
@out_option
@click.pass_obj
def site(obj: Context, name: str, form: str, out: str) -> None:
    """Profile one site or queue: verdicts, causes, CPU models, efficiency, tasks, history.

    Case does not matter. A site includes all its queues. As of the latest run.
    """
    _page(obj, "queue", name, form, out)


@example("esjobs show factors --level cpu_model", "esjobs cpu CPU")
@click.command()
@click.argument("name", metavar="NAME")
@format_option("table", "json", "html")
@out_option
@click.pass_obj
def cpu(obj: Context, name: str, form: str, out: str) -> None:
    """Profile one CPU model: speed factor, reference score, queues that run it, history."""
    _page(obj, "cpu_model", name, form, out)
