"""How commands tell of themselves: groups, examples, and options that were once spelled otherwise."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from esjobs.cli.registry import Group

_Command = TypeVar("_Command", bound=click.Command)

DEMO = "esjobs demo; export ESJOBS_STORE=duckdb:demo/demo.duckdb"
"""What has to be done once so that the examples can be run."""


def example(*lines: str) -> Callable[[_Command], _Command]:
    """Show command lines at the end of a command's help; stands above ``@click.command``.

    They can be run as they are after :data:`DEMO`, unless a cluster or a file of one's own is named in them.
    """

    def told(command: _Command) -> _Command:
        command.epilog = "\b\n" + "\n".join((f"Example{'s' if len(lines) > 1 else ''}:", *_indented(lines)))
        return command

    return told


def examples_of(command: click.Command) -> list[str]:
    """The command lines that a command shows."""
    return [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("esjobs")]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def write_groups(
    formatter: click.HelpFormatter,
    groups: Sequence[Group],
) -> None:
    """The commands of a program by what they are for, with one example a group."""
    width = max(len(each.name) for group in groups for each in group.commands)
    for group in groups:
        with formatter.section(group.name):
            formatter.write_dl([(each.name.ljust(width), each.help) for each in group.commands])
            _write_line(formatter, f"Example: {group.example}")
    with formatter.section("Examples run on the demo, after this"):
        _write_line(formatter, DEMO)


def _write_line(formatter: click.HelpFormatter, line: str) -> None:
    """A line to be copied: as long as it is."""
    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Renamed(click.Option):
    """An option that also answers to the names of before, with a note; its help shows the name of now.

    ``old``: the names of before.
    """

    def __init__(self, *names: Any, old: Sequence[str], **options: Any) -> None:
        super().__init__(*names, **options)
        self.old = tuple(old)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        for name in self.old:
            parser.add_option(obj=self, opts=[name], dest=_apart(self, name), action=action, nargs=self.nargs)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        given = dict(opts)
        for name in self.old:
            if (value := given.pop(_apart(self, name), None)) is None:
                continue
            before = given.get(self.name or "")
            if before is not None and not self.multiple:
                raise click.UsageError(f"{name} is the old name of {self.opts[0]}; give one of them", ctx)
            given[self.name or ""] = [*(before or []), *value] if self.multiple else value
            if not ctx.resilient_parsing:
                click.echo(f"note: {name} is called {self.opts[0]} now", err=True)
        return super().handle_parse_result(ctx, given, args)


def _apart(option: click.Option, name: str) -> str:
    """Where the parser puts what stands behind an old name."""
    return f"{option.name} as {name}"
