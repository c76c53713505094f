"""The command that serves pages and rows over HTTP."""

import json
from datetime import timedelta

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context

_TOKEN_DAYS = 365


@example(
    "esjobs web",
    "esjobs web --public --listen 0.0.0.0:8080 --host grid.example",
    "esjobs web --new-token grafana",
)
@click.command()
@click.option(
    "--listen", metavar="HOST:PORT", help="Address to listen on; default: web.listen, else 127.0.0.1:8080."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="Name by which readers reach it; repeat for more."
)
@click.option("--public", is_flag=True, help="Show no names of people; needed to listen beyond this machine.")
@click.option("--new-token", metavar="NAME", help="Print a token for a program and its settings.")
@click.pass_obj
def web(
    obj: Context, listen: str | None, hosts: tuple[str, ...], public: bool, new_token: str | None
) -> None:
    """Serve pages and rows over HTTP.

    Runs until interrupted. Shows the store as of its last change; nights may write meanwhile. Rows for
    programs: /api/v1. The nightly service does the same with web.listen in the settings.
    """
    from esjobs.flags.answering.settings import WebSettings
    from esjobs.web.server import serve

    if new_token is not None:
        click.echo(_token(new_token))
        return

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


def _token(name: str) -> str:
    from esjobs.core.clock import system_clock
    from esjobs.web.access import digest_of, new_token

    token = new_token()
    until = system_clock().date() + timedelta(days=_TOKEN_DAYS)
    quoted = json.dumps(name, ensure_ascii=False)
    lines = ("[[web.tokens]]", f"name = {quoted}", f'sha256 = "{digest_of(token)}"', f"until = {until}")
    return "\n".join([token, "", *lines])
