"""What commands share: the context, options of commands that print rows, and printing itself."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from esjobs.core.clock import Clock, system_clock
from esjobs.core.row_filters import ROW_FILTERS
from esjobs.core.text import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from esjobs.api.session import Session
    from esjobs.core.report import RunReport
    from esjobs.settings import Settings

_Function = TypeVar("_Function", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number between limits. What is no number (``nan``) is below none of them, and infinity is no time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a complaint about the option."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class Context:
    """What the global options say, until a command opens the store.

    ``own_process``: the command is all that this process does, so that it may be set up for it.
    """

    def __init__(
        self,
        store: str | None,
        config: Path | None,
        *,
        jobs_index: str | None = None,
        field_map: str | None = None,
        wait_s: float | None = None,
        yes: bool = False,
        quiet: bool,
        own_process: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        self.store = store
        self.config = config
        self.jobs_index = jobs_index
        self.field_map = field_map
        self.wait_s = wait_s
        self.yes = yes
        self.quiet = quiet
        self.own_process = own_process
        self.clock = clock

    @contextmanager
    def session(
        self, *, writes: bool = False, create: bool = False, late: bool = False
    ) -> Iterator["Session"]:
        """A session with a progress bar; ``create``, ``late``: as :func:`esjobs.open` takes them.

        A command that only reads says nothing: it shares a file with others who read, and changes nothing.
        """
        from esjobs.cli.terminal import progress_bar
        from esjobs.entry import open as open_session

        with (
            progress_bar(quiet=self.quiet) as progress,
            open_session(
                settings=self.settings(), create=create, late=late, read_only=not writes, progress=progress
            ) as session,
        ):
            yield session

    def settings(self) -> "Settings":
        """The file, the environment and the options, in the order in which they win."""
        from esjobs.entry import load

        return load(
            self.config,
            self.store,
            jobs_index=self.jobs_index,
            field_map=self.field_map,
            read_all=self.yes,
            wait_s=self.wait_s,
        )


PICTURES = ("svg", "png", "html")
"""Formats of pictures."""

_SPREADSHEET = "esjobs.spreadsheet"

spreadsheet_option = click.option(
    "--spreadsheet",
    is_flag=True,
    help="CSV for a spreadsheet: text that it would take for a formula gets an apostrophe before it.",
)


def rows_options(function: _Function) -> _Function:
    """Options of every command that prints rows."""
    return _rows_options(function, ())


def rows_or_picture_options(function: _Function) -> _Function:
    """Options of a command that prints rows or draws them."""
    return _rows_options(function, PICTURES)


def _rows_options(function: _Function, also: tuple[str, ...]) -> _Function:
    @wraps(function)
    def checked(*arguments: Any, spreadsheet: bool, **given: Any) -> Any:
        if spreadsheet and given["form"] != "csv":
            raise click.UsageError("--spreadsheet changes cells of CSV only; give --format csv, too")
        context = click.get_current_context()
        context.meta[_SPREADSHEET] = spreadsheet
        if context.obj.own_process and format_of(given["form"], given["out"]) != "parquet":
            from esjobs.core.frames import spare_pandas

            spare_pandas()
        return function(*arguments, **given)

    checked = spreadsheet_option(checked)
    checked = click.option(
        "--out",
        "-o",
        default="-",
        show_default=True,
        metavar="FILE",
        help="Where to write: a file; - is stdout.",
    )(checked)
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "csv", "json", "parquet", *also]),
        default="table",
        show_default=True,
        help="How it is written." + (f" {', '.join(also)}: drawn." if also else ""),
    )(checked)  # type: ignore[return-value]


def _meant(ctx: click.Context, _option: click.Parameter, window: str | None) -> str | None:
    """A period in words as the window that it is, which is said: nobody has to guess what it meant."""
    if window is None:
        return window
    from esjobs.core.periods import is_period
    from esjobs.core.window import Window

    if "/" in window and not any(is_period(side) for side in window.split("/")):
        return window

    context: Context = ctx.obj
    meant = Window.parse(window, context.clock())
    if not context.quiet:
        click.echo(f"window: {meant} UTC ({visible(window)})", err=True)
    return str(meant)


def filter_options(*names: str) -> Callable[[_Function], _Function]:
    """The filters of result tables by these names; without names all of them."""

    def decorated(function: _Function) -> _Function:
        for each in reversed(ROW_FILTERS):
            if each.name in names or not names:
                choices = click.Choice(each.choices, case_sensitive=False) if each.choices else None
                metavar = None if each.choices else each.name.upper()
                function = click.option(
                    f"--{each.name}", multiple=True, type=choices, metavar=metavar, help=each.help
                )(function)
        return function

    return decorated


rebuild_option = click.option(
    "--rebuild", is_flag=True, help="Do again what is up to date: every day of the window."
)


def top_option(default: int) -> Callable[[_Function], _Function]:
    """So many rows."""
    return click.option(
        "--top",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help="So many rows, the most telling first; 0: every row.",
    )


window_option = click.option(
    "--window",
    metavar="A/B|PERIOD",
    callback=_meant,
    help="Half-open, UTC, ISO dates or times; or 2025-W26, 2025-06, 2025, a day, yesterday, 7d, last-week, "
    "this-month; default: all that is stored.",
)


where_option = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Conditions: FIELD=VALUE, queue=A,B, 'efficiency<10%', 'site~CERN*', != <= > >= !~, "
    "'user is missing'; same field: or, bounds of one: and; different fields: and.",
)


def restriction_options(function: _Function) -> _Function:
    function = click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Conditions: only these buckets: queue=A,B, 'queue~CERN*', ...",
    )(function)
    return click.option(
        "--task", "tasks", multiple=True, metavar="ID", help="Only this task; repeat for more."
    )(function)


def form_and_file(
    given: Sequence[str], forms: Sequence[str], old_form: str | None, old: str, *, default: str | None = None
) -> tuple[str, Path]:
    """The form and the file of an import, from its arguments ``[FORM] FILE``.

    ``old_form``: what stands behind ``old``, the option that said it before. ``default``: the form where none
    is given.
    """
    form, files = old_form or default, list(given)
    if old_form is not None:
        click.echo(
            f"note: the form is an argument now, {old_form} FILE instead of {old} {old_form}", err=True
        )
    elif len(given) > 1:
        form, *files = given
    known = ", ".join(forms)
    if len(files) != 1 or form is None:
        raise click.UsageError(f"give the form and one file; forms are {known}")
    if form not in forms:
        raise click.UsageError(f"there is no form '{form}'; there are {known}")
    return form, Path(files[0])


def emit(
    rows: "pa.Table",
    form: str,
    out: str,
    *,
    title: str = "",
    prose: Collection[str] = (),
    spreadsheet: bool = False,
) -> None:
    from esjobs.render.rows import write_rows

    spreadsheet = spreadsheet or click.get_current_context().meta.get(_SPREADSHEET, False)
    write_rows(rows, form, out, title=title, prose=prose, spreadsheet=spreadsheet)


def emit_reports(reports: "list[RunReport]", form: str, out: str) -> None:
    from esjobs.cli.terminal import print_report, report_rows

    if form == "table" and out == "-":
        for report in reports:
            print_report(report)
    else:
        emit(report_rows(reports), form, out)


def format_of(form: str, out: str) -> str:
    """A table asked for in a file is written in the format of the file's name."""
    endings = {".csv": "csv", ".json": "json", ".parquet": "parquet"}
    return endings.get(Path(out).suffix, form) if form == "table" else form
