"""The command that serves pages and rows over HTTP."""

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context


@example("esjobs web", "esjobs web --public --listen 0.0.0.0:8080 --host grid.example")
@click.command()
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Address to listen on."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="Name by which readers reach it; repeat for more."
)
@click.option("--public", is_flag=True, help="Show no names of people; needed to listen beyond this machine.")
@click.pass_obj
def web(obj: Context, listen: str, hosts: tuple[str, ...], public: bool) -> None:
    """Serve pages and rows over HTTP, read-only.

    Runs until interrupted. Shows the store as of its last change; nights may write meanwhile. Rows for
    programs: /api/v1.
    """
    from esjobs.web.server import serve

    def ready(address: str) -> None:
        if not obj.quiet:
            click.echo(f"open {address}; stop with Ctrl-C", err=True)

    serve(obj.settings(), listen, hosts, public=public, ready=ready)
