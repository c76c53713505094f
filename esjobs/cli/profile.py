"""Commands that profile one site, queue, CPU model, user or project."""

from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import click

from esjobs.cli.complete import names_of
from esjobs.cli.help import example
from esjobs.cli.options import Context, format_option, out_option, say_written, window_option
from esjobs.core.words import Level

if TYPE_CHECKING:
    from esjobs.api.page import Page

_FORMS = ("table", "json", "html")


def _page(obj: Context, level: Level, name: str, form: str, out: str) -> None:
    from esjobs.render.text.profile import write_json, write_page

    with obj.session() as session:
        page = session.cpu(name) if level == "cpu_model" else session.queue(name)
    _write(obj, page, form, out, write_json, partial(write_page, now=obj.clock()))


def _person(obj: Context, kind: str, name: str, window: str | None, form: str, out: str) -> None:
    from esjobs.render.text.profile import write_person, write_person_json

    with obj.session() as session:
        ask = session.user if kind == "user" else session.project
        page = ask(name, window=window)
    _write(obj, page, form, out, write_person_json, write_person)


def _write(
    obj: Context,
    page: "Page[Any]",
    form: str,
    out: str,
    write_json: Callable[[Any, IO[str]], None],
    text: Callable[[Any, IO[str], int], None],
) -> None:
    import shutil

    from esjobs.store.files.destination import writing_text

    if form == "html":
        page.save(out)
        say_written(obj, "page", out)
        return
    with writing_text(out) as stream:
        if form == "json":
            write_json(page.content, stream)
        else:
            text(page.content, stream, min(110, shutil.get_terminal_size().columns))


@example("esjobs site ALDER-HEP", "esjobs site ALDER-HEP --out alder.html")
@click.command()
@click.argument("name", metavar="NAME", shell_complete=names_of("queue", "site"))
@format_option(*_FORMS, rows="esjobs show flags --site NAME, or esjobs query")
@out_option
@click.pass_obj
def site(obj: Context, name: str, form: str, out: str) -> None:
    """Profile one site or queue: verdicts, causes, CPU models, efficiency, tasks, history.

    Case does not matter. A site includes all its queues. As of the latest run.
    """
    _page(obj, "queue", name, form, out)


@example("esjobs show factors --level cpu_model", "esjobs cpu CPU")
@click.command()
@click.argument("name", metavar="NAME", shell_complete=names_of("cpu_model"))
@format_option(*_FORMS, rows="esjobs show factors --level cpu_model --name NAME")
@out_option
@click.pass_obj
def cpu(obj: Context, name: str, form: str, out: str) -> None:
    """Profile one CPU model: speed factor, reference score, queues that run it, history."""
    _page(obj, "cpu_model", name, form, out)


@example("esjobs user analyst-a", "esjobs user analyst-a --window 2025-06-01/2025-07-01")
@click.command()
@click.argument("name", metavar="NAME")
@window_option
@format_option(*_FORMS, rows="esjobs show issues --user NAME, or esjobs jobs --where user=NAME")
@out_option
@click.pass_obj
def user(obj: Context, name: str, window: str | None, form: str, out: str) -> None:
    """Profile one user: hours, scores, ranking, issues with hints, jobs to look at."""
    _person(obj, "user", name, window, form, out)


@example("esjobs project physics")
@click.command()
@click.argument("name", metavar="NAME")
@window_option
@format_option(*_FORMS, rows="esjobs show issues --project NAME, or esjobs jobs --where project=NAME")
@out_option
@click.pass_obj
def project(obj: Context, name: str, window: str | None, form: str, out: str) -> None:
    """Profile one project: hours, scores, ranking, issues with hints, jobs to look at."""
    _person(obj, "project", name, window, form, out)
