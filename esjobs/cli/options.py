"""Shared parts of commands: the context, common options, and output."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from esjobs.core.clock import Clock, system_clock
from esjobs.core.row_filters import ROW_FILTERS
from esjobs.core.text import visible
from esjobs.schema.scores import SCORE_CHOICES

if TYPE_CHECKING:
    import pyarrow as pa

    from esjobs.api.session import Session
    from esjobs.core.report import RunReport
    from esjobs.records.answer import Answer
    from esjobs.settings import Settings

_Function = TypeVar("_Function", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A finite number between limits: ``nan`` would pass every comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse NaN and infinities, which are inside no range but pass every comparison of click."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Context:
    """Global options. ``own_process``: the process runs this command only and may be limited for it."""

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
        # pandas frames are made; None: not said, then by commands that write, whose sources may be of others
        self.frames: bool | None = None

    @contextmanager
    def session(
        self, *, writes: bool = False, create: bool = False, late: bool = False
    ) -> Iterator["Session"]:
        """Yield a session with a progress bar, read-only unless ``writes``; else as :func:`esjobs.open`."""
        if self.own_process and not (writes if self.frames is None else self.frames):
            from esjobs.core.frames import spare_pandas

            # Arrow would import it for its first values, which takes half of a short command
            spare_pandas()
        from esjobs.cli.terminal import progress_bar
        from esjobs.entry import open as open_session

        with (
            progress_bar(quiet=self.quiet) as progress,
            open_session(
                settings=self.settings(),
                create=create,
                late=late,
                read_only=not writes,
                progress=progress,
                clock=self.clock,
            ) as session,
        ):
            yield session

    def settings(self) -> "Settings":
        """Return the settings; options win over the environment, and the environment over the file."""
        from esjobs.entry import load

        return load(
            self.config,
            self.store,
            jobs_index=self.jobs_index,
            field_map=self.field_map,
            read_all=self.yes,
            wait_s=self.wait_s,
        )


PICTURES = ("svg", "png", "html")  # Formats of pictures

STREAMED = ("table", "csv", "json", "jsonl", "parquet")  # Formats of rows that are written in batches

_SPREADSHEET = "esjobs.spreadsheet"

# Options that many commands share, explained once, by ``esjobs --help``
COMMON = (
    ("--window A/B|PERIOD", "Time window in UTC, END not included: START/END in ISO dates or times; or 2025, "
     "2025-06, 2025-W26, a day, yesterday, 7d, last-week, this-month. Default: all data."),
    ("--format FORMAT", "table is rounded, for people; csv, json and parquet have every digit and column."),
    ("-o, --out FILE", "- is standard output. A file named .csv, .json or .parquet chooses the format."),
    ("--spreadsheet", "An apostrophe goes before CSV cells that a spreadsheet would read as a formula."),
)  # fmt: skip

spreadsheet_option = click.option("--spreadsheet", is_flag=True, help="Escape formulas in CSV cells.")
out_option = click.option(
    "--out", "-o", default="-", metavar="FILE", help="Output: file (default: standard output)."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
source_option = click.option(
    "--source", metavar="NAME", help="Source of the job; needed if several sources have this id."
)


def folder_option(default: str | None = None, also: str = "") -> Callable[[_Function], _Function]:
    """Option ``--out`` of commands that write a folder; required unless there is a ``default``."""
    # a default of None would be one, and nothing required
    usual: dict[str, Any] = (
        {"required": True} if default is None else {"default": default, "show_default": True}
    )
    return click.option(
        "--out",
        "-o",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help=f"Output: folder{also}.",
        **usual,
    )


def score_option(argument: str) -> Callable[[_Function], _Function]:
    """Option ``--score``: one of the scores of jobs."""
    return click.option(
        "--score",
        argument,
        default="cpu_efficiency",
        show_default=True,
        type=click.Choice(SCORE_CHOICES),
        metavar="SCORE",
        help=f"Score: {', '.join(SCORE_CHOICES)}.",
    )


def format_option(*forms: str, rows: str = "") -> Callable[[_Function], _Function]:
    """Option ``--format`` with these formats: default is that of the name of a file, else the first.

    A file named as another format is refused. ``rows``: command that writes rows, where this one cannot.
    """
    option = click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Output format.",
    )

    def decorated(function: _Function) -> _Function:
        @wraps(function)
        def chosen(*arguments: Any, **options: Any) -> Any:
            source = click.get_current_context().get_parameter_source("form")
            # a format that somebody named wins over the name of the file
            if source is ParameterSource.DEFAULT and "out" in options:
                ending = Path(options["out"]).suffix.lower().removeprefix(".")
                if ending in forms:
                    options["form"] = ending
                elif ending in (*STREAMED, *PICTURES):
                    use = f"use {rows}" if rows and ending in STREAMED else f"it writes {', '.join(forms)}"
                    raise click.UsageError(f"this command does not write {ending}; {use}")
            return function(*arguments, **options)

        return option(chosen)  # type: ignore[return-value]

    return decorated


def require_csv(form: str, *, spreadsheet: bool) -> None:
    if spreadsheet and form != "csv":
        raise click.UsageError("--spreadsheet requires CSV; add --format csv")


def rows_options(function: _Function) -> _Function:
    """Options of every command that prints rows."""
    return _rows_options(function, ())


def rows_or_picture_options(function: _Function) -> _Function:
    """Options of a command that prints rows or draws them."""
    return _rows_options(function, PICTURES)


def _rows_options(function: _Function, also: tuple[str, ...]) -> _Function:
    @wraps(function)
    def checked(*arguments: Any, spreadsheet: bool, **options: Any) -> Any:
        context = click.get_current_context()
        require_csv(options["form"], spreadsheet=spreadsheet)
        # ``emit`` reads it there, so that no command passes it on
        context.meta[_SPREADSHEET] = spreadsheet
        context.obj.frames = options["form"] == "parquet"
        return function(*arguments, **options)

    forms = ("table", "csv", "json", "parquet", *also)
    return format_option(*forms)(out_option(spreadsheet_option(checked)))  # type: ignore[return-value]


def step(
    *, rows: bool = True, create: bool = False, late: bool = False
) -> Callable[[Callable[..., "RunReport"]], Callable[..., None]]:
    """Make a command of a function that takes a writable session and returns the report of a step.

    ``rows``: the report can be written to a file; ``create``, ``late``: see :func:`esjobs.open`.
    """

    def decorated(function: Callable[..., "RunReport"]) -> Callable[..., None]:
        @wraps(function)
        def command(form: str = "table", out: str = "-", **options: Any) -> None:
            obj: Context = click.get_current_context().obj
            with obj.session(writes=True, create=create, late=late) as session:
                report = function(session, **options)
            emit_reports([report], form, out)

        return rows_options(command) if rows else command

    return decorated


def say_notes(obj: "Context", notes: Iterable[str], kind: str = "note") -> None:
    """Print notes on standard error, unless the user wants quiet."""
    from esjobs.cli.terminal import say

    if not obj.quiet:
        for note in notes:
            say(f"{kind}: {note}", err=True)


def say_written(obj: Context, what: str, out: str) -> None:
    """Print on standard error where a file was written, unless the user wants quiet."""
    if out != "-" and not obj.quiet:
        click.echo(f"{what} written to {visible(out)}", err=True)


def _parsed_window(ctx: click.Context, _option: click.Parameter, window: str | None) -> str | None:
    """Return the window of a period in words, and print it so that the user can check it."""
    if window is None:
        return window
    from esjobs.core.periods import is_period
    from esjobs.core.window import Window

    # dates are what was typed: nothing to check
    if "/" in window and not any(is_period(side) for side in window.split("/")):
        return window

    context: Context = ctx.obj
    parsed = Window.parse(window, context.clock())
    if not context.quiet:
        click.echo(f"window: {parsed} UTC ({visible(window)})", err=True)
    return str(parsed)


def filter_options(*names: str) -> Callable[[_Function], _Function]:
    """Add the filters of result tables with these names; without names all of them."""

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


rebuild_option = click.option("--rebuild", is_flag=True, help="Recompute days that are up to date.")


def top_option(default: int) -> Callable[[_Function], _Function]:
    """Option ``--top``: limit of printed rows."""
    return click.option(
        "--top",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help="Show the first N rows; 0: all.",
    )


window_option = click.option(
    "--window", metavar="A/B|PERIOD", callback=_parsed_window, help="Time window in UTC."
)


where_option = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Conditions: FIELD=VALUE, queue=A,B, 'efficiency<10%', 'site~CERN*', != <= > >= !~, 'user is "
    "missing'. Values of one field are alternatives; bounds and different fields must all hold.",
)


def restriction_options(function: _Function) -> _Function:
    """Add the options that restrict a fit to tasks and conditions."""
    function = click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Conditions: use only these buckets: queue=A,B, 'queue~CERN*', ...",
    )(function)
    return click.option("--task", "tasks", multiple=True, metavar="ID", help="Task to use; repeat for more.")(
        function
    )


def form_and_file(
    arguments: Sequence[str], forms: Sequence[str], *, default: str | None = None
) -> tuple[str, Path]:
    """Return form and file of an import, from its arguments ``[FORM] FILE``."""
    form, files = (arguments[0], arguments[1:]) if len(arguments) > 1 else (default, arguments)
    names = ", ".join(forms)
    if len(files) != 1 or form is None:
        raise click.UsageError(f"specify a form and one file; forms are {names}")
    if form not in forms:
        raise click.UsageError(f"unknown form '{form}'; use one of: {names}")
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
    """Write rows in a format to a file or the terminal (``-``)."""
    from esjobs.render.rows import write_rows

    spreadsheet = spreadsheet or click.get_current_context().meta.get(_SPREADSHEET, False)
    write_rows(rows, form, out, title=title, prose=prose, spreadsheet=spreadsheet)


def emit_answer(
    obj: Context,
    answer: "Answer",
    form: str,
    out: str,
    *,
    top: int = 0,
    hidden: Collection[str] = (),
    prose: Collection[str] = (),
) -> None:
    """Print the first ``top`` rows of an answer (0: all) and its notes; terminals omit ``hidden`` columns."""
    rows = answer.rows.slice(0, top or None)
    if form == "table":
        rows = rows.drop_columns([name for name in rows.column_names if name in hidden])
    emit(rows, form, out, title=answer.title, prose=prose)
    say_notes(obj, answer.notes)


def emit_reports(reports: "list[RunReport]", form: str, out: str) -> None:
    """Print reports of steps as text on a terminal, else as rows."""
    from esjobs.cli.terminal import print_report, report_rows

    if form == "table" and out == "-":
        for report in reports:
            print_report(report)
    else:
        emit(report_rows(reports), form, out)
