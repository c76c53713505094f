"""The command that serves pages and rows over HTTP."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context


@example("esjobs web", "esjobs web --public --listen 0.0.0.0:8080 --host grid.example")
@click.command()
@click.option(
    "--listen", metavar="HOST:PORT", help="Address to listen on; default: web.listen, else 127.0.0.1:8080."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="Name by which readers reach it; repeat for more."
)
@click.option("--public", is_flag=True, help="Show no names of people; needed to listen beyond this machine.")
@click.pass_obj
def web(obj: Context, listen: str | None, hosts: tuple[str, ...], public: bool) -> None:
    """Serve pages and rows over HTTP.

    Runs until interrupted. Shows the store as of its last change; nights may write meanwhile. Rows for
    programs: /api/v1. The nightly service does the same with web.listen in the settings.
    """
    from esjobs.flags.answering.settings import WebSettings
    from esjobs.web.server import serve

    settings = obj.settings()
    chosen = settings.section(WebSettings)

    def ready(address: str) -> None:
        if not obj.quiet:
            click.echo(f"open {address}; stop with Ctrl-C", err=True)

    serve(
        settings,
        listen or chosen.listen or "127.0.0.1:8080",
        hosts or chosen.hosts,
        public=public or chosen.public,
        ready=ready,
    )
