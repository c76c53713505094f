"""Page of the command line: a sentence, the options and the examples of each command."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import click

from esjobs.cli import main as cli
from esjobs.cli.help import DEMO, examples_of
from esjobs.cli.registry import GROUPS

_COMMON_FROM = 2
"""Commands that share an option from which on it is described once."""
_ROWS = ("--format", "--out", "--spreadsheet")
"""Options of commands that print rows."""
_ROWS_TEXT = "Rows stand for `--format`, `--out` and `--spreadsheet`.\n"
_MOST_EXAMPLES = 2
_RANGE = re.compile(r"(; |(?<=\[))[\d.<=]*x[<>=]+[\d.]+\]")
_HEAD = """# Command line

{note}
`esjobs COMMAND -h` prints the complete help. Options of `esjobs` itself stand before the command. Behind a
command stand its arguments and, in parentheses, its [common options](#common-options). {demo}
`eval "$(_ESJOBS_COMPLETE=bash_source esjobs)"` (`zsh_source`, `fish_source`) completes commands, options and
names of sites.
"""
_DEMO = f"The examples run on the demo, after `{DEMO}`."


def cli_page(note: str) -> str:
    """Return the page; an option that several commands share stands once."""
    root = click.Context(cli.main, info_name="esjobs", terminal_width=100, max_content_width=100)
    commands = [each for each in _commands(cli.main, root) if each.command is not cli.main]
    common = _common(commands)
    parts = [_HEAD.format(note=note, demo=_DEMO)]
    for group in GROUPS:
        names = ", ".join(f"[{each.name}](#esjobs-{each.name})" for each in group.commands)
        parts.append(f"- {group.name}: {names}")
    parts += ["\n## Global options\n", *_lines(_options(root))]
    parts += ["\n## Common options\n", _ROWS_TEXT, *_lines(sorted(common.items()))]
    for context in commands:
        parts += _section(context, common)
    return "\n".join(parts) + "\n"


def _commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command, and of each below it."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _commands(inner, click.Context(inner, info_name=name, parent=context))


def _options(context: click.Context) -> list[tuple[str, str]]:
    """Return how options are written and what they do; ``--help`` is said once for the page."""
    records = [
        option.get_help_record(context)
        for option in context.command.get_params(context)
        if isinstance(option, click.Option) and "--help" not in option.opts
    ]
    return [(name, _RANGE.sub("]", text).removesuffix(" []")) for name, text in filter(None, records)]


def _common(commands: list[click.Context]) -> dict[str, str]:
    """Return the options that at least ``_COMMON_FROM`` commands describe in the same words."""
    described: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for context in commands:
        for name, text in _options(context):
            described[name.partition(" ")[0]][name, text] += 1
    most = [counted.most_common(1)[0] for counted in described.values()]
    return {name: text for (name, text), count in most if count >= _COMMON_FROM}


def _section(context: click.Context, common: dict[str, str]) -> list[str]:
    command = context.command
    shared, own = [], []
    for name, text in _options(context):
        if common.get(name) == text:
            shared.append(name.split(",")[-1].split()[0])
        elif text in common.values() and name.split()[0] in (each.split()[0] for each in common):
            shared.append(name)
        else:
            own.append((name, text))
    if set(_ROWS) <= set(shared):
        shared = [*(name for name in shared if name not in _ROWS), "rows"]
    usage = [f"`{each}`" for each in command.collect_usage_pieces(context) if each != "[OPTIONS]"]
    if shared:
        usage.append(f"({', '.join(shared)})")
    lines = [f"\n## {context.command_path}\n", _sentence(command), ""]
    if usage and not isinstance(command, click.Group):
        lines += [" ".join(usage), ""]
    if examples := [each for each in examples_of(command) if each != context.command_path][:_MOST_EXAMPLES]:
        lines += [*(f"    {example}" for example in examples), ""]
    lines += _lines(own)
    return lines if own else lines[:-1]


def _sentence(command: click.Command) -> str:
    """Return the first paragraph of the help, on one line."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def _lines(options: list[tuple[str, str]]) -> list[str]:
    return [f"- `{name}`: {' '.join(text.split())}" for name, text in options]
