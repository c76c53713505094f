"""Help of commands: groups, examples, and renamed options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from esjobs.cli.registry import Group

_Command = TypeVar("_Command", bound=click.Command)

DEMO = "esjobs demo; export ESJOBS_STORE=duckdb:demo/demo.duckdb"
"""Commands to run once before the examples."""


def example(*lines: str) -> Callable[[_Command], _Command]:
    """Append examples to the help of a command; goes above ``@click.command``.

    They run after :data:`DEMO`, unless they name a cluster or a file of the user.
    """

    def decorated(command: _Command) -> _Command:
        command.epilog = "\b\n" + "\n".join(
            (f"Example{'s' if len(lines) > 1 else ''}:", *(f"  {line}" for line in lines))
        )
        return command

    return decorated


def examples_of(command: click.Command) -> list[str]:
    """Return the examples of a command."""
    return [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("esjobs")]


def write_groups(
    formatter: click.HelpFormatter, groups: Sequence[Group], common: Sequence[tuple[str, str]]
) -> None:
    """Write the commands by group, with one example each, and the options that many commands share."""
    width = max(len(each.name) for group in groups for each in group.commands)
    for group in groups:
        with formatter.section(group.name):
            formatter.write_dl([(each.name.ljust(width), each.help) for each in group.commands])
            _write_line(formatter, f"Example: {group.example}")
    with formatter.section("Common options of commands"):
        formatter.write_dl(common)
    with formatter.section("Examples run on the demo"):
        _write_line(formatter, DEMO)


def _write_line(formatter: click.HelpFormatter, line: str) -> None:
    # A line to be copied is not wrapped.
    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Renamed(click.Option):
    """Option that also accepts its ``old`` names, with a note; help shows the present name."""

    def __init__(self, *names: Any, old: Sequence[str], **options: Any) -> None:
        super().__init__(*names, **options)
        self.old = tuple(old)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        for name in self.old:
            parser.add_option(obj=self, opts=[name], dest=_dest(self, name), action=action, nargs=self.nargs)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        values = dict(opts)
        for name in self.old:
            if (value := values.pop(_dest(self, name), None)) is None:
                continue
            before = values.get(self.name or "")
            if before is not None and not self.multiple:
                raise click.UsageError(f"{name} is the old name of {self.opts[0]}; give one of them", ctx)
            values[self.name or ""] = [*(before or []), *value] if self.multiple else value
            if not ctx.resilient_parsing:
                click.echo(f"note: {name} is called {self.opts[0]} now", err=True)
        return super().handle_parse_result(ctx, values, args)


def _dest(option: click.Option, name: str) -> str:
    """Name under which the parser stores the value of an old option."""
    return f"{option.name} as {name}"
