"""Writes the reference pages and the bundles of dashboards from the code: ``python -m docs.generate``.

Tests compare both with what is committed.
"""

from pathlib import Path

import click

from dashboards.targets.saved_objects.digest import digest
from docs.jobs_page import jobs_page
from esjobs.cli import main as cli
from esjobs.core import fields
from esjobs.core.rules import CleaningRules
from esjobs.records.jobs.query import METRICS
from esjobs.records.jobs.questions.metrics import GENERIC
from esjobs.render import bundles
from esjobs.schema.catalogue import OF_CAPABILITY, TABLES

HERE = Path(__file__).parent
OBJECTS = HERE.parent / "kibana_objects"
_NOTE = "This page is generated from the code: `make docs`.\n"


def pages() -> dict[str, str]:
    """File name to content of every generated page."""
    return {
        "cli.md": _cli(),
        "fields.md": _fields(),
        "tables.md": _tables(),
        "jobs_in_kibana.md": jobs_page(_NOTE),
    }


def objects() -> dict[str, str]:
    """File name to content of every bundle of dashboards, and of its digest."""
    made = {target: bundles.bundle_of(target) for target in bundles.TARGETS}
    return {
        **{f"{target}.ndjson": text for target, text in made.items()},
        **{f"{target}.md": digest(target, text) for target, text in made.items()},
    }


def _cli() -> str:
    parts = ["# Command line\n", _NOTE]
    parts += _command(cli.main, ("esjobs",))
    return "\n".join(parts)


def _command(command: click.Command, path: tuple[str, ...]) -> list[str]:
    name = " ".join(path)
    context = click.Context(
        command, info_name=name, terminal_width=100, max_content_width=100, help_option_names=["-h", "--help"]
    )
    parts = [f"## {name}\n", "```text", command.get_help(context), "```\n"]
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            inner = command.get_command(context, child)
            assert inner is not None, child  # noqa: S101
            parts += _command(inner, (*path, child))
    return parts


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _fields() -> str:
    lines = ["# Fields and metrics\n", _NOTE, "## Fields of a job\n"]
    lines += [_row("field", "type", "unit", "group by", "meaning"), _row(*["---"] * 5)]
    for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS):
        meaning = field.meaning
        meaning += " (required)" if field.required else ""
        meaning += " (computed)" if field.derived is not None else ""
        lines.append(
            _row(f"`{field.name}`", field.type, field.unit, "yes" if field.groupable else "", meaning)
        )
    lines += [
        "\n## Metrics of `esjobs query`\n",
        _row("metric", "unit", "meaning", "weight of a job", "left out"),
    ]
    lines.append(_row(*["---"] * 5))
    lines += [
        _row(f"`{metric.name}`", metric.unit, metric.meaning, metric.weight, metric.leaves_out)
        for metric in METRICS
    ]
    lines.append("\nOf any number of the catalogue, as `FUNCTION:FIELD`:\n")
    lines += [_row("function", "meaning"), _row("---", "---")]
    lines += [_row(f"`{name}`", meaning) for name, meaning in GENERIC.items()]
    lines += [
        "\n## Cleaning rules\n",
        "A job counts under the first rule it fails, in this order.\n",
        _row("order", "reason", "a job is kept when", "missing value"),
        _row(*["---"] * 4),
    ]
    lines += [
        _row(str(number), rule.reason, f"`{rule.keep}`", "kept" if rule.missing == "pass" else "dropped")
        for number, rule in enumerate(CleaningRules().drops(), 1)
    ]
    return "\n".join(lines) + "\n"


def _tables() -> str:
    lines = ["# Result tables\n", _NOTE]
    for name, tables in OF_CAPABILITY.items():
        links = ", ".join(f"[{table.name}](#{table.name})" for table in tables)
        lines.append(f"- {name}: {links}")
    lines.append("")
    for table in TABLES:
        lines += [
            f"## {table.name}\n",
            f"{table.meaning[0].upper()}{table.meaning[1:]}. Replaced as a whole per `{table.partition}`"
            + ("; entered by people, never by a run.\n" if table.entered else ".\n"),
            _row("column", "type", "unit", "meaning"),
            _row(*["---"] * 4),
        ]
        lines += [_row(f"`{c.name}`", c.type, c.unit, c.meaning) for c in table.columns]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write every page beside this file, and every bundle into its folder."""
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
    OBJECTS.mkdir(exist_ok=True)
    for name, text in objects().items():
        (OBJECTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
