"""Command line: parse, build, call, print; no logic.

Exit codes: 0 ok, 1 error, 2 usage, 130 interrupted, 141 reader of standard output gone. Data goes to standard
output, everything else to standard error. Imports are lazy for a fast ``--help``.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from esjobs.cli.help import write_groups
from esjobs.cli.log_lines import JsonLines, LogLines
from esjobs.cli.options import COMMON, Context, FiniteRange
from esjobs.cli.registry import COMMANDS, GROUPS
from esjobs.cli.start import OUT_OF_MEMORY, end, lacks_memory
from esjobs.cli.version import version_options
from esjobs.core.errors import EsjobsError, UsageError
from esjobs.core.text import visible
from esjobs.store.files.sharing import share_with

_GLOBAL = (
    "--store",
    "--config",
    "--log-level",
    "--log",
    "--jobs-index",
    "--field-map",
    "--wait",
    "--yes",
    "--quiet",
    "--version",
)

PROGRAM = object()  # Object by which ``esjobs.cli.start.program`` marks a process of its own

BROKEN_PIPE = 128 + 13  # Exit code of a program that SIGPIPE ended


class _Group(click.Group):
    """Group that prints errors of esjobs in one line; other exceptions keep their traceback."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _shown():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors become one line and an exit code: 2 for wrong usage, else 1."""
        try:
            with _shown():
                result = super().invoke(ctx)
            # the interpreter would do so at exit, where an error has no sentence and no exit code of ours
            _flush()
            return result
        except click.NoSuchOption as error:
            # click looks for options of the group before the name of the command only
            if error.option_name in _GLOBAL:
                hint = f"Write it before the command: esjobs {error.option_name} ..."
                raise click.UsageError(f"{error.message} {hint}", error.ctx) from None
            raise
        except UsageError as error:
            _fail(error, 2)
        except EsjobsError as error:
            _fail(error, 1)
        except KeyboardInterrupt:
            _interrupted()
        except BrokenPipeError:
            _reader_gone()
        except Exception as error:
            if lacks_memory(error):
                click.echo(OUT_OF_MEMORY, err=True)
                sys.exit(1)
            # Python wraps Ctrl-C in another error while it builds a class during an import.
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _interrupted()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        write_groups(formatter, GROUPS, COMMON)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command when it is named, so that others cost nothing."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = entry.load.load()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the registry, without imports, and global options."""
        names = [each for each in COMMANDS.values() if each.name.startswith(incomplete)]
        items = [CompletionItem(each.name, help=each.help) for each in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


@contextlib.contextmanager
def _shown() -> Iterator[None]:
    # Usage errors quote what was typed or pasted, which may hold control characters.
    try:
        yield
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]
        raise


def _interrupted() -> NoReturn:
    click.echo("esjobs: interrupted; published results are intact, run again", err=True)
    sys.exit(130)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        from esjobs.store.files.destination import unwritable

        raise unwritable("-", error) from error


def _reader_gone() -> NoReturn:
    # Buffered output would raise again when the interpreter flushes it at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(BROKEN_PIPE)


def _fail(error: EsjobsError, code: int) -> NoReturn:
    click.echo(f"esjobs: {error}", err=True)
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Context) and context.obj.own_process:
        # Frames of the error hold DuckDB objects, whose destructors fail at a normal exit.
        end(code)
    sys.exit(code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@version_options
@click.option(
    "--store",
    metavar="URL",
    envvar="ESJOBS_STORE",
    help="duckdb:PATH, duckdb::memory: or http(s)://HOST:9200.",
)
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="Settings file (esjobs.toml)."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Least severe messages in the log on standard error.",
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log: text, or one JSON object per line.",
)
@click.option(
    "--jobs-index",
    metavar="NAME",
    help="Index, alias or pattern that holds the jobs (default: esjobs' own index).",
)
@click.option(
    "--field-map",
    metavar="NAME",
    help="Field map of that index: atlas-panda, cms-htcondor, rubin-panda, esjobs, or FILE.toml.",
)
@click.option(
    "--wait",
    "wait_s",
    type=FiniteRange(min=0, max=86_400),
    metavar="SECONDS",
    help="Seconds to wait while another process holds the store; default: 10, or the settings.",
)
@click.option(
    "--yes", is_flag=True, help="Allow reading any number of individual documents from the jobs index."
)
@click.option("--quiet", is_flag=True, help="Print no progress and no hints on standard error.")
@click.pass_context
def main(
    ctx: click.Context,
    store: str | None,
    config: Path | None,
    log_level: str,
    log_form: str,
    jobs_index: str | None,
    field_map: str | None,
    wait_s: float | None,
    yes: bool,
    quiet: bool,
) -> None:
    """Measure the real speed of sites and CPU models from job records.

    Report deviations from declared scores.
    """
    handler = logging.StreamHandler(sys.stderr)
    text = LogLines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if log_form == "json" else text)
    logging.basicConfig(level=log_level.upper(), handlers=[handler])
    ctx.obj = Context(
        store,
        config,
        jobs_index=jobs_index,
        field_map=field_map,
        wait_s=wait_s,
        yes=yes,
        quiet=quiet,
        own_process=ctx.obj is PROGRAM,
    )
    # read late: wrong settings must not hinder the help of a command, or ``doctor``
    share_with(lambda: ctx.obj.settings().share)
