"""Names that the shell completes: those of queues, sites and CPU models in the results."""

import contextlib
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

MOST = 200  # Names offered at once


def names_of(*levels: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes names of levels (queue, site, cpu_model) in the latest results.

    Nothing is offered where there are no results, or where the store cannot be read: a shell that waits for
    the next letter is no place for errors.
    """

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        with contextlib.suppress(Exception):
            return [CompletionItem(name) for name in _names(ctx.find_root(), levels, begun)]
        return []

    return complete


def _names(root: click.Context, levels: tuple[str, ...], begun: str) -> list[str]:
    from esjobs.entry import load
    from esjobs.entry import open as open_session

    settings = load(root.params.get("config"), root.params.get("store"), wait_s=0)
    with open_session(settings=settings, create=False, read_only=True) as session:
        rows = session.tables.flags(level=list(levels), columns=["name"]).rows
    found = sorted({name for name in rows.column("name").to_pylist() if name})
    return [name for name in found if name.lower().startswith(begun.lower())][:MOST]
