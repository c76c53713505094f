"""Commands about the demo, the installation, and personal data."""

from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, dry_run_option, emit, emit_reports, folder_option, rows_options


@example("esjobs demo --jobs 50000 --out demo")
@click.command()
@click.option(
    "--jobs",
    type=click.IntRange(min=1000),
    default=300_000,
    show_default=True,
    help="Number of jobs, approximately.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Random seed of the grid."
)
@folder_option("demo")
@click.pass_obj
def demo(obj: Context, jobs: int, seed: int, out: Path) -> None:
    """Generate a synthetic grid with planted faults, run everything on it, report which were found."""
    from esjobs.cli.demo import NIGHTS, demonstrate
    from esjobs.cli.terminal import progress_bar, say
    from esjobs.render.columns import for_people

    with progress_bar(quiet=obj.quiet) as progress:
        shown = demonstrate(
            out, jobs=jobs, seed=seed, store=obj.store, config=obj.config, progress=progress, nights=NIGHTS
        )
    emit_reports(list(shown.reports), "table", "-")
    verdicts, title, _ = for_people("flags", shown.verdicts)
    emit(verdicts, "table", "-", title=title)
    for line in shown.lines:
        say(line)


@example("esjobs setup --dry-run", "esjobs --store https://search.example.org:9200 setup --print terraform")
@click.command()
@dry_run_option
@click.option("--repair", is_flag=True, help="Restore changed aliases from the record.")
@click.option(
    "--start-empty",
    multiple=True,
    metavar="TABLE",
    help="Table with lost rows to start without (with --repair); repeat for more.",
)
@click.option("--dashboards", metavar="URL", help="Also import the dashboards into this server.")
@click.option(
    "--print",
    "printed",
    type=click.Choice(["role", "template", "terraform"]),
    help="Print this for another tool to apply, as JSON; change nothing.",
)
@click.pass_obj
def setup(
    obj: Context,
    dry_run: bool,
    repair: bool,
    start_empty: tuple[str, ...],
    dashboards: str | None,
    printed: str | None,
) -> None:
    """Create missing indices and aliases on a cluster, and print the role esjobs needs."""
    if start_empty and not repair:
        raise click.UsageError("--start-empty requires --repair")
    if printed is not None:
        if any((dry_run, repair, dashboards)):
            raise click.UsageError("--print changes nothing: omit --dry-run, --repair and --dashboards")
        from esjobs.cli.provisioned import text_of

        with obj.session(writes=True, create=True) as session:
            click.echo(text_of(session.store.set_up(dry_run=True), printed))
        return
    with obj.session(writes=True, create=True) as session:
        prepared = session.store.set_up(dry_run=dry_run, repair=repair, start_empty=start_empty)
    for line in prepared.done or ("nothing is missing",):
        click.echo(line, err=True)
    if prepared.role:
        click.echo(prepared.role)
    if dashboards is not None:
        _import_dashboards(obj, dashboards, dry_run=dry_run)


def _import_dashboards(obj: Context, url: str, *, dry_run: bool) -> None:
    from esjobs.api.dashboard_servers import import_dashboards, summary

    server, outcomes = import_dashboards(obj.settings(), url, dry_run=dry_run)
    failed = [one for one in outcomes if one.state == "failed"]
    for one in failed:
        click.echo(f"{one.object}: {one.reason}", err=True)
    click.echo(f"{server}: {summary(outcomes, dry_run=dry_run)}", err=True)
    if failed:
        raise SystemExit(1)


@example("esjobs forget-user analyst-a --dry-run")
@click.command("forget-user")
@click.argument("name")
@click.option(
    "--pseudonymise",
    is_flag=True,
    help="Replace names of users, by a random pseudonym that keeps their jobs together.",
)
@click.option(
    "--keep-texts", is_flag=True, help="Change user names only, not texts that contain the name as a word."
)
@dry_run_option
@rows_options
@click.pass_obj
def forget_user(
    obj: Context, name: str, pseudonymise: bool, keep_texts: bool, dry_run: bool, form: str, out: str
) -> None:
    """Remove a person's name from the store: jobs, results, notes, messages.

    Jobs stay, without a user, because speed factors use them. Run it while no nightly run is active.
    """
    from esjobs.cli.terminal import say
    from esjobs.flags.answering.journal import Journal
    from esjobs.flags.answering.settings import WebSettings
    from esjobs.records.jobs import person_removal
    from esjobs.schema.catalogue import TABLES

    how = {"pseudonymise": pseudonymise, "keep_texts": keep_texts, "dry_run": dry_run}
    with obj.session(writes=True) as session:
        journal = session.settings.section(WebSettings).journal_of(session.settings.location)
        rewrite = None if journal is None else Journal(journal).rewrite
        done = person_removal.forget_user(session.store, TABLES, name, rewrite=rewrite, **how)
    emit(done.account, form, out, title="would change" if dry_run else "")
    if not done.account.num_rows:
        say(f"nothing stored names '{name}'; list users: esjobs query --by user", err=True)
    if done.others:
        say(f"not changed, because other users have these names: {', '.join(done.others)}", err=True)
    if done.erased:
        say(done.erased, err=True)
    for line in done.remains:
        say(f"may still contain the name: {line}", err=True)


@example("esjobs doctor")
@click.command()
@rows_options
@click.pass_obj
def doctor(obj: Context, form: str, out: str) -> None:
    """Check the installation, store and last run; exit code 1 if a check fails."""
    from esjobs.cli.doctor import examine
    from esjobs.records.jobs.field_check import FAILED

    checks = examine(obj.settings, obj.config)
    emit(checks, form, out, prose=["value", "what_to_do"])
    if FAILED in checks.column("state").to_pylist():
        raise SystemExit(1)
