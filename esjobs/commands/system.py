"""Commands to look around: the demo, and what an installation lacks."""

from pathlib import Path

import click

from esjobs.commands.help import example
from esjobs.commands.options import Context, emit, emit_reports, rows_options


@example("esjobs demo --jobs 50000 --out demo")
@click.command()
@click.option(
    "--jobs", type=click.IntRange(min=1000), default=300_000, show_default=True, help="So many jobs, about."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another seed, another grid."
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Where to write: a folder.",
)
@click.pass_obj
def demo(obj: Context, jobs: int, seed: int, out: Path) -> None:
    """Make up a grid whose truth is known, run the whole chain on it, and say what was found."""
    from esjobs.demonstration import demonstrate
    from esjobs.shown_tables import for_people
    from esjobs.terminal import progress_bar, say

    with progress_bar(quiet=obj.quiet) as progress:
        shown = demonstrate(out, jobs=jobs, seed=seed, store=obj.store, config=obj.config, progress=progress)
    emit_reports(list(shown.reports), "table", "-")
    verdicts, title, _ = for_people("flags", shown.verdicts)
    emit(verdicts, "table", "-", title=title)
    for line in shown.lines:
        say(line)


@example("esjobs setup --dry-run")
@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--dashboards", metavar="URL", help="Bring the dashboards into the server at this address, too."
)
@click.pass_obj
def setup(obj: Context, dry_run: bool, dashboards: str | None) -> None:
    """Make the indices and aliases that a cluster lacks; print the role that esjobs needs."""
    with obj.session(writes=True, create=True) as session:
        prepared = session.store.set_up(dry_run=dry_run)
    for line in prepared.done or ("nothing is missing",):
        click.echo(line, err=True)
    if prepared.role:
        click.echo(prepared.role)
    if dashboards is not None:
        from esjobs.dashboard_servers import import_dashboards, summary

        server, outcomes = import_dashboards(obj.settings(), dashboards, dry_run=dry_run)
        failed = [one for one in outcomes if one.state == "failed"]
        for one in failed:
            click.echo(f"{one.object}: {one.reason}", err=True)
        click.echo(f"{server}: {summary(outcomes, dry_run=dry_run)}", err=True)
        if failed:
            raise SystemExit(1)


@example("esjobs doctor")
@click.command()
@rows_options
@click.pass_obj
def doctor(obj: Context, form: str, out: str) -> None:
    """Versions, store, row counts, last run, and what is missing; exit code 1 when a check failed."""
    from esjobs.doctor import examine
    from esjobs.jobs.field_check import FAILED

    checks = examine(obj.settings, str(obj.config) if obj.config else "defaults and environment")
    emit(checks, form, out, prose=["value", "what_to_do"])
    if FAILED in checks.column("state").to_pylist():
        raise SystemExit(1)
