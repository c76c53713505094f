"""Help of commands: groups and examples."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from esjobs.cli.registry import Group

_Command = TypeVar("_Command", bound=click.Command)

DEMO = "esjobs demo; export ESJOBS_STORE=duckdb:demo/demo.duckdb"  # Commands to run once before the examples


def example(*lines: str) -> Callable[[_Command], _Command]:
    """Append examples to the help of a command; goes above ``@click.command``.

    They run after :data:`DEMO`, unless they name a cluster or a file of the user. A long one is continued
    after a backslash.
    """

    def decorated(command: _Command) -> _Command:
        command.epilog = "\b\n" + "\n".join(
            (f"Example{'s' if len(lines) > 1 else ''}:", *(f"  {line}" for line in lines))
        )
        return command

    return decorated


def examples_of(command: click.Command) -> list[str]:
    """Return the examples of a command, each in one line."""
    text = re.sub(r"\s*\\\n\s*", " ", command.epilog or "")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("esjobs")]


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
