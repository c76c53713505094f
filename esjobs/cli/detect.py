"""Commands about the rules that judge jobs, and the page of one job."""

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit,
    emit_answer,
    rows_options,
    say_written,
    source_option,
    window_option,
)
from esjobs.core.errors import NoResultError
from esjobs.core.text import visible

if TYPE_CHECKING:
    from esjobs.issues.one_job import JobStory


@click.group()
def rules() -> None:
    """Show, validate and replay the rules that judge jobs."""


_files = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, dir_okay=False)
)


@example("esjobs rules check rules.toml")
@rules.command()
@_files
@click.pass_obj
def check(obj: Context, files: tuple[Path, ...]) -> None:
    """Validate rule files and list what they change; exit code 1 for an invalid one."""
    from esjobs.issues.rules.listing import change_lines, changes
    from esjobs.issues.rules.reading import read_rules
    from esjobs.issues.settings import DetectSettings

    usual = obj.settings().section(DetectSettings).rules
    before, after = read_rules(usual), read_rules((*usual, *files))
    click.echo(f"{len(after.rules)} rules")
    for what, names in changes(before, after).items():
        if names:
            click.echo(f"{what}: {', '.join(names)}")
    lines = list(change_lines(before, after))
    for line in lines:
        click.echo(f"  {line}")
    for path in dict.fromkeys(files):
        if not after.own[str(path)]:
            click.echo(f"{visible(str(path))} is empty: no rule and no condition")
    if not lines and not any(changes(before, after).values()):
        click.echo("no changes")


@example("esjobs rules show", "esjobs rules show low-load")
@rules.command("show")
@click.argument("name", required=False)
@rows_options
@click.pass_obj
def show_rules(obj: Context, name: str | None, form: str, out: str) -> None:
    """Show the active rules, or one in full."""
    from esjobs.issues.rules.listing import rules_table
    from esjobs.issues.rules.reading import read_rules
    from esjobs.issues.settings import DetectSettings

    rows = rules_table(read_rules(obj.settings().section(DetectSettings).rules), name)
    if form == "table" and name is None:
        rows = rows.select(["name", "kind", "area", "meaning", "limits", "severity"])
    emit(rows, form, out, prose=["meaning", "when", "limits", "hint", "severity"])


@example("esjobs rules replay rules.toml", "esjobs rules replay rules.toml --labels labels.csv")
@rules.command("replay")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--labels",
    metavar="CSV",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Jobs that people judged: columns job_id and rule, optional source; no rule: a good job.",
)
@window_option
@rows_options
@click.pass_obj
def replay_rules(
    obj: Context, files: tuple[Path, ...], labels: Path | None, window: str | None, form: str, out: str
) -> None:
    """Replay rule files: jobs newly flagged and no longer flagged, or precision and recall on labelled jobs.

    Each FILE extends the rules of the settings. Both are applied to stored measurements; nothing is written.
    """
    if not files and labels is None:
        raise click.UsageError("specify a rule file, or --labels")
    with obj.session() as session:
        answer = session.issues.replay(files, window, labels=labels)
    emit_answer(obj, answer, form, out, prose=["missed", "false", "examples"])


@example("esjobs job JOBID --out job.html", "esjobs job JOBID JOBID2", "esjobs job JOBID --mine")
@click.command()
@click.argument("job_ids", metavar="JOBID...", nargs=-1, required=True)
@source_option
@click.option("--mine", is_flag=True, help="Only jobs of the user who asks, by login name.")
@click.option("--out", "-o", metavar="FILE", help="Output: HTML file (default: text on the terminal).")
@click.pass_obj
def job(obj: Context, job_ids: tuple[str, ...], source: str | None, mine: bool, out: str | None) -> None:
    """Report on one job: record, scores, tags, issues with evidence, time series.

    Several jobs stand side by side: records, scores, means of metrics, issues.
    """
    if len(job_ids) > 1 and out is not None:
        raise click.UsageError("--out takes one job")
    with obj.session() as session:
        # a job that is named twice would stand beside itself
        pages = [session.job(each, source=source) for each in dict.fromkeys(job_ids)]
    stories = [page.content for page in pages]
    if mine:
        _require_own(stories)
    if len(job_ids) > 1:
        from esjobs.render.text.jobs_beside import beside

        emit(beside(stories), "table", "-")
    elif out is None:
        _print(stories[0])
    else:
        pages[0].save(out)
        say_written(obj, "page", out)


def _print(story: "JobStory") -> None:
    import os
    import shutil
    import sys

    from esjobs.render.text.job import page_lines

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in page_lines(story, shutil.get_terminal_size().columns, colour=colour):
        click.echo(line)


def _require_own(stories: Sequence["JobStory"]) -> None:
    # the environment decides first: a convenience for people, no protection
    user = getpass.getuser()
    for story in stories:
        if story.record.get("user") != user:
            raise NoResultError(
                f"job {story.record['job_id']} is not a job of user {user}; without --mine it is shown"
            )
