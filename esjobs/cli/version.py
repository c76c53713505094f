"""Options of the version: ``esjobs --version`` and, for bug reports and inventories, ``--version --json``."""

import json
import platform
import re
from collections.abc import Callable
from typing import Any

import click

from esjobs.core.version import __version__

_JSON = "esjobs.version.json"


def version_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--version`` and the ``--json`` that goes with it."""
    # processed before --version, wherever it stands
    as_json = click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, hidden=True, callback=_remember
    )
    version = click.option(
        "--version",
        is_flag=True,
        expose_value=False,
        callback=_print,
        help="Show the version and exit; --version --json: Python and packages too.",
    )
    return version(as_json(function))


def _remember(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    ctx.meta[_JSON] = wanted


def _print(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if ctx.resilient_parsing:
        return
    if wanted:
        click.echo(_versions() if ctx.meta[_JSON] else f"esjobs, version {__version__}")
        ctx.exit()
    if ctx.meta[_JSON]:
        raise click.UsageError("--json goes with --version; for answers use: esjobs COMMAND --format json")


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, requires, version

    from esjobs.schema.speed import METHOD_VERSION

    packages: dict[str, str | None] = {}
    for each in requires("esjobs") or ():
        if "extra == 'test'" in each:
            continue
        name = re.split(r"[^\w.\-]", each, maxsplit=1)[0]
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    said = {
        "esjobs": __version__,
        "method_version": METHOD_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(sorted(packages.items())),
    }
    return json.dumps(said, indent=2)
