"""Page of the command line: a sentence, the options and the examples of each command."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import click

from esjobs.cli import main as cli
from esjobs.cli.help import DEMO, examples_of
from esjobs.cli.registry import GROUPS

_COMMON_FROM = 3
"""Commands that share an option from which on it is described once."""
_HEAD = """# Command line

{note}
`esjobs COMMAND -h` prints the complete help. Options of `esjobs` itself stand before the command. An
option in parentheses is one of the [common options](#common-options). {demo}
`eval "$(_ESJOBS_COMPLETE=bash_source esjobs)"` completes commands, options and names of sites; `zsh_source`,
`fish_source`.
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
    parts += ["\n## Common options\n", *_lines(sorted(common.items()))]
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
    return [(name, text) for name, text in filter(None, records)]


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
    shared = [name for name, text in _options(context) if common.get(name) == text]
    own = [(name, text) for name, text in _options(context) if common.get(name) != text]
    usage = [f"`{each}`" for each in command.collect_usage_pieces(context) if each != "[OPTIONS]"]
    if shared:
        usage.append("(" + ", ".join(name.split(",")[-1].split()[0] for name in shared) + ")")
    lines = [f"\n## {context.command_path}\n", _sentence(command), ""]
    if usage:
        lines += [" ".join((f"`{context.command_path}`", *usage)), ""]
    lines += _lines(own)
    if examples := examples_of(command):
        lines += ["", "```sh", *examples, "```"]
    return lines


def _sentence(command: click.Command) -> str:
    """Return the first paragraph of the help, on one line."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def _lines(options: list[tuple[str, str]]) -> list[str]:
    return [f"- `{name}`: {' '.join(text.split())}" for name, text in options]
