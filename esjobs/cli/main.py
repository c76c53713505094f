"""The command line: parse, build, call, print. No logic lives here or in ``esjobs.cli``.

Exit codes: 0 ok, 1 an error of ours in one line, 2 usage, 130 interrupted, 141 the reader of standard output
went away. Data goes to standard output, everything else to standard error. Imports are lazy, so that
``--help`` answers at once.
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
from esjobs.cli.options import Context, FiniteRange
from esjobs.cli.registry import COMMANDS, GROUPS
from esjobs.cli.start import OUT_OF_MEMORY, end, lacks_memory
from esjobs.core.errors import EsjobsError, UsageError
from esjobs.core.text import visible
from esjobs.core.version import __version__
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
)

PROGRAM = object()
"""What :func:`esjobs.cli.start.program` tells the command line: no one else uses this process."""

BROKEN_PIPE = 128 + 13
"""What a shell reports of a program that the signal SIGPIPE ended."""


class _Group(click.Group):
    """Turns our errors into one line and an exit code; leaves defects to their traceback."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _shown():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _shown():
                result = super().invoke(ctx)
            _flush()
            return result
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
            _interrupted()
        except BrokenPipeError:
            _reader_gone()
        except Exception as error:
            if lacks_memory(error):
                _out_of_memory()
            # what Python makes of Ctrl-C while it builds a class of a module that is being imported
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _interrupted()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        write_groups(formatter, GROUPS)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = entry.load.load()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin so, from the registry: none is imported for it; and global options."""
        names = [each for each in COMMANDS.values() if each.name.startswith(incomplete)]
        items = [CompletionItem(each.name, help=each.help) for each in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


@contextlib.contextmanager
def _shown() -> Iterator[None]:
    """Usage errors quote what was typed, or pasted: a terminal is to show it, not to obey it."""
    try:
        yield
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]
        raise


def _interrupted() -> NoReturn:
    click.echo("esjobs: interrupted; results published before are untouched, run again", err=True)
    sys.exit(130)


def _out_of_memory() -> NoReturn:
    click.echo(OUT_OF_MEMORY, err=True)
    sys.exit(1)


def _flush() -> None:
    """Write out what is still buffered, while errors can be told."""
    try:
        sys.stdout.flush()
    except OSError as error:
        from esjobs.store.files.destination import unwritable

        raise unwritable("-", error) from error


def _reader_gone() -> NoReturn:
    """Whoever read our output has seen enough (``| head``): end as other programs do, without a word."""
    # What is still buffered would make the interpreter complain when it flushes at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(BROKEN_PIPE)


def _fail(error: EsjobsError, code: int) -> NoReturn:
    click.echo(f"esjobs: {error}", err=True)
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Context) and context.obj.own_process:
        # the frames behind the error hold parts of DuckDB, whose binding complains of them at a usual exit
        end(code)
    sys.exit(code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="esjobs")
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
    help="What the log on standard error tells.",
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the log is written: lines for people, or a JSON object a line.",
)
@click.option(
    "--jobs-index",
    metavar="NAME",
    help="Index, alias or pattern of a cluster in which the jobs are; default: what ingest put there.",
)
@click.option(
    "--field-map",
    metavar="NAME",
    help="Names of its fields: atlas-panda, cms-htcondor, rubin-panda, esjobs, or FILE.toml.",
)
@click.option(
    "--wait",
    "wait_s",
    type=FiniteRange(min=0, max=86_400),
    metavar="SECONDS",
    help="How long to wait for others who have the file of an embedded store; default: 10, or the settings.",
)
@click.option(
    "--yes", is_flag=True, help="Read as many documents of the jobs index one by one as a question takes."
)
@click.option("--quiet", is_flag=True, help="No progress and no hints on standard error.")
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
    """Speed factors of queues and CPU models from job records; who deviates from the declared corepower."""
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
    share_with(lambda: ctx.obj.settings().share)


def program() -> None:
    """The command ``esjobs`` of environments that were installed before the start had a module of its own."""
    from esjobs.cli import start

    start.program()
