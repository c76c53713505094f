"""Terminal output: progress, reports of steps, sentences."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import pyarrow as pa

from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, noun
from esjobs.records.jobs.aggregate import Progress


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Progress | None]:
    """A bar on standard error while it is a terminal; None otherwise."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    # a name of a file is no markup
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    def tell(what: str, done: int, total: int) -> None:
        bar.start()
        bar.update(task, description=visible(what), completed=done, total=total or None)

    try:
        yield tell
    finally:
        bar.stop()


def print_report(report: RunReport) -> None:
    """One step's account in a few lines on standard output."""
    click.echo(visible(report.headline))
    for reason, count in report.dropped.items():
        click.echo(visible(f"    dropped  {count:>12,}  {reason}"))
    for name, count in report.counts.items():
        if name in ("stored", "updated"):
            continue
        click.echo(visible(f"             {count:>12,}  {name}{_EXPLAINED.get(name, '')}"))
    for note in report.notes:
        say(f"    note: {note}")


# Explanations of ambiguous counts
_EXPLAINED = {"state unknown": ": kept, because their records have no final state"}


def print_conclusion(conclusions: pa.Table, run: str | None = None) -> None:
    """The sentence of each level for all types together, headline method, on standard error.

    ``run``: its id, where another run is shown by default.
    """
    sentences: dict[str, str] = {}
    for row in conclusions.select(["level", "processing_type", "sentence"]).to_pylist():
        if row["processing_type"] == ALL_TYPES:
            sentences.setdefault(row["level"], row["sentence"])
    for level, sentence in sentences.items():
        say(f"by {noun(level, 1)}: {sentence}", err=True)
    which = f" --run {run}" if run else ""
    click.echo(f"details: esjobs show flags{which}, esjobs report{which} --out report.html", err=True)


def say(text: str, *, err: bool = False) -> None:
    """A sentence on a line of its own; on a terminal wrapped on words, so that names stay whole.

    What a terminal would obey is written out.
    """
    text = visible(text)
    if (sys.stderr if err else sys.stdout).isatty():
        start = " " * (len(text) - len(text.lstrip()))
        text = textwrap.fill(
            text,
            shutil.get_terminal_size().columns,
            subsequent_indent=f"{start}    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    click.echo(text, err=err)


def report_rows(reports: Sequence[RunReport]) -> pa.Table:
    """Reports as rows, for the formats that scripts read."""
    rows: list[dict[str, Any]] = [
        {
            "step": report.step,
            "run": report.run,
            "window": report.window,
            "rows_are": report.rows_are,
            "rows_become": report.rows_become,
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "dropped": json.dumps(report.dropped),
            "counts": json.dumps(report.counts),
            "notes": json.dumps(report.notes),
            "seconds": report.seconds,
        }
        for report in reports
    ]
    return pa.Table.from_pylist(rows)
