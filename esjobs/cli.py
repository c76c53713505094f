"""The command line: parse, build, call, print. No logic lives here.

Exit codes: 0 ok, 1 an error of ours in one line, 2 usage. Data goes to standard output, everything else to
standard error. Imports are lazy, so that ``--help`` answers at once.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from esjobs import __version__
from esjobs.core.errors import EsjobsError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from esjobs.core.report import RunReport
    from esjobs.session import Session

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SHOWN = (
    "factors",
    "fits",
    "lines",
    "flags",
    "components",
    "buckets",
    "rejects",
    "runs",
    "loads",
    "corepower",
)


_GLOBAL = ("--store", "--config", "--log-level", "--quiet")


class _Group(click.Group):
    """Turns our errors into one line and an exit code; leaves defects to their traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if error.option_name in _GLOBAL:
                hint = f"It stands before the command: esjobs {error.option_name} ..."
                raise click.UsageError(f"{error.message} {hint}", error.ctx) from None
            raise
        except UsageError as error:
            _fail(error, 2)
        except EsjobsError as error:
            _fail(error, 1)
        except KeyboardInterrupt:
            click.echo("esjobs: interrupted; results published before are untouched, run again", err=True)
            sys.exit(130)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


def _fail(error: EsjobsError, code: int) -> NoReturn:
    click.echo(f"esjobs: {' '.join(str(error).split())}", err=True)
    sys.exit(code)


class _Context:
    """What the global options say, until a command opens the store."""

    def __init__(self, store: str | None, config: Path | None, *, quiet: bool) -> None:
        self.store = store
        self.config = config
        self.quiet = quiet

    @contextmanager
    def session(self, *, create: bool = False) -> Iterator["Session"]:
        from esjobs.session import open as open_session
        from esjobs.terminal import progress_bar

        with (
            progress_bar(quiet=self.quiet) as progress,
            open_session(self.store, config=self.config, create=create, progress=progress) as session,
        ):
            yield session


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="esjobs")
@click.option("--store", metavar="URL", envvar="ESJOBS_STORE", help="duckdb:PATH or duckdb::memory:.")
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="Settings file (esjobs.toml)."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="What the log on standard error tells.",
)
@click.option("--quiet", is_flag=True, help="No progress and no hints on standard error.")
@click.pass_context
def main(ctx: click.Context, store: str | None, config: Path | None, log_level: str, quiet: bool) -> None:
    """Speed factors of sites and CPU models from job records; who deviates from the declared corepower."""
    logging.basicConfig(
        stream=sys.stderr, level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    ctx.obj = _Context(store, config, quiet=quiet)


def _rows(function: _Function) -> _Function:
    """Options of every command that prints rows."""
    function = click.option(
        "--out", "-o", default="-", show_default=True, metavar="FILE", help="File to write; - is stdout."
    )(function)
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "csv", "json", "parquet"]),
        default="table",
        show_default=True,
        help="How rows are written.",
    )(function)


_window = click.option(
    "--window", metavar="A/B", help="Half-open, UTC, ISO dates or times; default: all that is stored."
)


def _restrict(function: _Function) -> _Function:
    function = click.option(
        "--where", multiple=True, metavar="FIELD=VALUE", help="Only these buckets; repeat for more."
    )(function)
    return click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task; repeat.")(
        function
    )


def _emit(frame: "pd.DataFrame", form: str, out: str, title: str = "") -> None:
    from esjobs.output import write_frame

    write_frame(frame, form, out, title=title)


def _emit_reports(reports: "list[RunReport]", form: str, out: str) -> None:
    from esjobs.terminal import print_report, report_frame

    if form == "table" and out == "-":
        for report in reports:
            print_report(report)
    else:
        _emit(report_frame(reports), form, out)


@main.command()
@click.argument("form_in", metavar="FORMAT", required=False)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--set", "fill", multiple=True, metavar="FIELD=VALUE", help="Fill a field where it is missing.")
@click.option("--dry-run", is_flag=True, help="Read and check everything, store nothing.")
@click.option("--undo", metavar="LOAD", help="Take a load back instead.")
@_rows
@click.pass_obj
def ingest(
    obj: _Context,
    form_in: str | None,
    files: tuple[Path, ...],
    fill: tuple[str, ...],
    dry_run: bool,
    undo: str | None,
    form: str,
    out: str,
) -> None:
    """Read job records: FORMAT is panda or jobs, FILE... CSV, JSON lines or Parquet, plain or gzip."""
    if undo is None and (form_in is None or not files):
        raise click.UsageError("give a format and at least one file, or --undo LOAD")
    if undo is not None and form_in is not None:
        raise click.UsageError("--undo takes no files")
    with obj.session(create=True) as session:
        if undo is not None:
            report = session.undo(undo)
        else:
            report = session.ingest(form_in or "", files, fill=fill, dry_run=dry_run)
    _emit_reports([report], form, out)


@main.group(cls=click.Group)
def corepower() -> None:
    """Declared benchmark scores per core."""


@corepower.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form_in", type=click.Choice(["csv", "cric"]), default="csv", show_default=True)
@click.option("--benchmark", metavar="NAME", help="HS06 or HS23, where the file does not say.")
@click.option("--level", type=click.Choice(["site", "cpu_model"]), help="Where the file does not say.")
@click.option("--valid-from", metavar="DATE", help="Start of validity; wins over CRIC's own date.")
@click.pass_obj
def import_corepower(
    obj: _Context, file: Path, form_in: str, benchmark: str | None, level: str | None, valid_from: str | None
) -> None:
    """Import declared values: a CSV table by queue or CPU model, or CRIC's queue description."""
    with obj.session(create=True) as session:
        report = session.import_corepower(
            file, form=form_in, benchmark=benchmark, level=level, valid_from=valid_from
        )
    _emit_reports([report], "table", "-")


@corepower.command("remove")
@click.argument("import_id", metavar="IMPORT")
@click.pass_obj
def remove_corepower(obj: _Context, import_id: str) -> None:
    """Take an import back; esjobs show corepower names them."""
    with obj.session() as session:
        report = session.remove_corepower(import_id)
    _emit_reports([report], "table", "-")


@main.command()
@_window
@click.option("--rebuild", is_flag=True, help="Recompute days even when nothing changed.")
@_rows
@click.pass_obj
def aggregate(obj: _Context, window: str | None, rebuild: bool, form: str, out: str) -> None:
    """Make the buckets of the window: jobs cleaned, grouped and summed, every job accounted for."""
    with obj.session() as session:
        report = session.aggregate(window, rebuild=rebuild)
    _emit_reports([report], form, out)


@main.command()
@_window
@_restrict
@_rows
@click.pass_obj
def fit(
    obj: _Context, window: str | None, tasks: tuple[str, ...], where: tuple[str, ...], form: str, out: str
) -> None:
    """Fit speed factors of sites and CPU models from the buckets of the window."""
    with obj.session() as session:
        report = session.fit(window, tasks=tasks, where=where)
    _emit_reports([report], form, out)


@main.command()
@_window
@_rows
@click.pass_obj
def correlate(obj: _Context, window: str | None, form: str, out: str) -> None:
    """Fit the line through the origin to the newest factors of the window."""
    with obj.session() as session:
        report = session.correlate(window)
    _emit_reports([report], form, out)


@main.command()
@_window
@_rows
@click.pass_obj
def flag(obj: _Context, window: str | None, form: str, out: str) -> None:
    """Judge the newest factors of the window: deviations, verdicts, their stability."""
    with obj.session() as session:
        report = session.flag(window)
    _emit_reports([report], form, out)


@main.command()
@_window
@_restrict
@click.option("--rebuild", is_flag=True, help="Recompute buckets even when nothing changed.")
@_rows
@click.pass_obj
def run(
    obj: _Context,
    window: str | None,
    tasks: tuple[str, ...],
    where: tuple[str, ...],
    rebuild: bool,
    form: str,
    out: str,
) -> None:
    """Aggregate, fit, correlate and flag; results become visible together at the end."""
    with obj.session() as session:
        reports = session.run(window, tasks=tasks, where=where, rebuild=rebuild)
        if form == "table" and not obj.quiet:
            from esjobs.terminal import print_conclusion

            print_conclusion(session.conclusions(run=reports[-1].run))
    _emit_reports(reports, form, out)


@main.command()
@click.argument("what", type=click.Choice(_SHOWN))
@click.option("--level", multiple=True, type=click.Choice(["site", "cpu_model"]))
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Processing type, or all.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Site or CPU model.")
@click.option("--method", "methods", multiple=True, metavar="METHOD", help="paper or gamma.")
@click.option("--run", "run_id", metavar="RUN", help="Run id; default: the newest that has them.")
@_window
@_rows
@click.pass_obj
def show(
    obj: _Context,
    what: str,
    level: tuple[str, ...],
    types: tuple[str, ...],
    names: tuple[str, ...],
    methods: tuple[str, ...],
    run_id: str | None,
    window: str | None,
    form: str,
    out: str,
) -> None:
    """Show stored results; the newest run's unless --run names another."""
    with obj.session() as session:
        frame = session.show(
            what, level=level, type=types, name=names, method=methods, run=run_id, window=window
        )
    title = ""
    if form == "table":
        from esjobs.terminal import for_people

        frame, title = for_people(what, frame)
    _emit(frame, form, out, title)


@main.command()
@click.argument("run_a", metavar="RUN")
@click.argument("run_b", metavar="RUN")
@_rows
@click.pass_obj
def compare(obj: _Context, run_a: str, run_b: str, form: str, out: str) -> None:
    """What changed between two runs, in sigma."""
    with obj.session() as session:
        frame = session.compare(run_a, run_b)
    _emit(frame, form, out)


@main.command()
@click.option("--keep", type=click.IntRange(min=1), required=True, help="Runs to keep, newest first.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@_rows
@click.pass_obj
def prune(obj: _Context, keep: int, dry_run: bool, form: str, out: str) -> None:
    """Remove the results of old runs; jobs, buckets and what people entered stay."""
    with obj.session() as session:
        report = session.prune(keep, dry_run=dry_run)
    _emit_reports([report], form, out)


@main.command("query")
@click.option("--by", required=True, metavar="FIELD[,FIELD]", help="Fields to group by.")
@click.option(
    "--metric",
    "metrics",
    default="jobs",
    show_default=True,
    metavar="METRIC[,METRIC]",
    help="Numbers to give.",
)
@click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Same field: or; different fields: and.")
@click.option("--clean", is_flag=True, help="Apply the cleaning rules first.")
@_window
@_rows
@click.pass_obj
def query(
    obj: _Context,
    by: str,
    metrics: str,
    where: tuple[str, ...],
    clean: bool,
    window: str | None,
    form: str,
    out: str,
) -> None:
    """An ad-hoc question to the stored jobs: esjobs query --by site --metric jobs,efficiency."""
    with obj.session() as session:
        frame = session.query(by=_names(by), metrics=_names(metrics), where=where, window=window, clean=clean)
    _emit(frame, form, out)


def _say_window(obj: _Context, session: "Session", window: str | None) -> None:
    """Without a window everything stored was taken: say which span that is."""
    if window is None and not obj.quiet:
        click.echo(f"window: {session.stored_window()} (all that is stored)", err=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@main.command("fit-file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", required=True, metavar="COL", help="Column of the task (or unit of A).")
@click.option("--unit", required=True, metavar="COL", help="Column of the site or CPU model.")
@click.option("--value", metavar="COL", help="Column of CPU time per event; or give --cpu and --events.")
@click.option("--cpu", metavar="COL", help="Column of the sum of CPU time.")
@click.option("--events", metavar="COL", help="Column of the sum of events.")
@click.option("--jobs", metavar="COL", help="Column of the number of jobs.")
@click.option("--group", metavar="COL", help="Fit each value of this column on its own.")
@click.option("--objective", type=click.Choice(["paper", "gamma"]), default="paper", show_default=True)
@click.option("--weights", type=click.Choice(["none", "jobs", "floor"]), default="none", show_default=True)
@click.option("--robust", type=click.Choice(["none", "reject", "tukey"]), default="none", show_default=True)
@click.option("--minos", multiple=True, metavar="NAME", help="MINOS interval of this unit; repeat.")
@click.option(
    "--summary", type=click.Path(path_type=Path), help="JSON file: what was dropped, Minuit's flags."
)
@_rows
@click.pass_obj
def fit_file_command(
    obj: _Context,
    file: Path,
    task: str,
    unit: str,
    value: str | None,
    cpu: str | None,
    events: str | None,
    jobs: str | None,
    group: str | None,
    objective: str,
    weights: str,
    robust: str,
    minos: tuple[str, ...],
    summary: Path | None,
    form: str,
    out: str,
) -> None:
    """Fit speed factors straight from a CSV or Parquet table; no store is opened."""
    del obj
    from esjobs.frames import frame_of
    from esjobs.steps.files import Columns, fit_file, write_summary

    columns = Columns(task, unit, value, cpu, events, jobs, group)
    options = {"objective": objective, "weights": weights, "robust": robust, "minos": minos}
    rows, summaries = fit_file(file, columns, options)
    if summary is not None:
        write_summary(summaries, summary, grouped=group is not None)
    _emit(frame_of(rows), _by_name(form, out), out)


@main.command("line-file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", required=True, metavar="COL", help="Column of the names.")
@click.option("--k", required=True, metavar="COL", help="Column of the speed factor.")
@click.option("--k-err", required=True, metavar="COL", help="Column of its error.")
@click.option("--corepower", required=True, metavar="COL", help="Column of the declared value.")
@click.option("--corepower-err", metavar="COL", help="Column of its error.")
@_rows
@click.pass_obj
def line_file_command(
    obj: _Context,
    file: Path,
    name: str,
    k: str,
    k_err: str,
    corepower: str,
    corepower_err: str | None,
    form: str,
    out: str,
) -> None:
    """Compare factors in a CSV or Parquet table with declared values by a line through the origin."""
    del obj
    from esjobs.frames import frame_of
    from esjobs.steps.files import line_file

    rows = line_file(file, name=name, k=k, k_err=k_err, corepower=corepower, corepower_err=corepower_err)
    _emit(frame_of(rows), _by_name(form, out), out)


def _by_name(form: str, out: str) -> str:
    """A table asked for in a file is written in the format of the file's name."""
    endings = {".csv": "csv", ".json": "json", ".parquet": "parquet"}
    return endings.get(Path(out).suffix, form) if form == "table" else form


@main.command("fields")
@_rows
def list_fields(form: str, out: str) -> None:
    """Every field and metric that queries take, with unit and meaning."""
    from esjobs.session import fields_frame

    _emit(fields_frame(), form, out)


@main.command()
@click.argument("what", type=click.Choice(["jobs"]))
@click.option("--out", "-o", default="-", show_default=True, metavar="FILE", help="File; - is stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "jsonl", "parquet"]),
    help="Default: by the file's name, else csv. Read back by ingest: csv, jsonl, parquet.",
)
@click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Same field: or; different fields: and.")
@_window
@click.pass_obj
def export(
    obj: _Context, what: str, out: str, form: str | None, where: tuple[str, ...], window: str | None
) -> None:
    """Write stored jobs in canonical columns; esjobs ingest jobs reads them back unchanged."""
    del what
    with obj.session() as session:
        if form in ("table", "json") or (form is None and out.endswith(".json")):
            _emit(session.jobs(where=where, window=window), form or "json", out)
        else:
            chosen = form or ("csv" if out == "-" else None)
            session.export_jobs(out, form=cast("Any", chosen), where=where, window=window)
        _say_window(obj, session, window)


@main.command()
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="HTML file to write.")
@click.option("--run", "run_id", metavar="RUN", help="Run id; default: the newest complete one.")
@click.pass_obj
def report(obj: _Context, out: Path, run_id: str | None) -> None:
    """One HTML file that works offline: who deviates, by how much, and what it rests on."""
    with obj.session() as session:
        session.report(out, run=run_id)
    if not obj.quiet:
        click.echo(f"report written to {out}", err=True)


@main.command()
@click.option("--jobs", type=click.IntRange(min=1000), default=300_000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Folder."
)
@click.pass_obj
def demo(obj: _Context, jobs: int, seed: int, out: Path) -> None:
    """Make up a grid whose truth is known, run the whole chain on it, and say what was found."""
    from esjobs.demonstration import demonstrate
    from esjobs.terminal import progress_bar

    with progress_bar(quiet=obj.quiet) as progress:
        shown = demonstrate(out, jobs=jobs, seed=seed, store=obj.store, config=obj.config, progress=progress)
    _emit_reports(list(shown.reports), "table", "-")
    _emit(shown.verdicts, "table", "-")
    for line in shown.lines:
        click.echo(line)


@main.command()
@_rows
@click.pass_obj
def doctor(obj: _Context, form: str, out: str) -> None:
    """Versions, store, row counts, last run, and what is missing."""
    from esjobs.doctor import examine

    frame = examine(obj.store, obj.config)
    _emit(frame, form, out)
