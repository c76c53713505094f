"""Commands about the dashboards for Kibana and OpenSearch Dashboards."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, dry_run_option, emit, folder_option, rows_options

if TYPE_CHECKING:
    from dashboards.servers import Outcome


@click.group()
def dashboards() -> None:
    """Render, check, import or remove the dashboards (Kibana, OpenSearch Dashboards)."""


@example("esjobs dashboards render --target portable --out bundles")
@dashboards.command()
@click.option(
    "--target",
    "targets",
    type=click.Choice(["portable", "kibana", "html"]),
    multiple=True,
    help="Product: portable is for both, kibana for Kibana 8.12 or newer, html for browsers alone. "
    "Default: both bundles.",
)
@folder_option("kibana_objects", "; - writes one bundle to standard output")
@click.pass_obj
def render(obj: Context, targets: tuple[str, ...], out: Path) -> None:
    """Write the bundles for the configured prefix.

    A bundle has data views, panels and dashboards and needs no store; html pages contain the rows of the
    store. --jobs-index and --field-map define the data view of the jobs.
    """
    from esjobs.render.bundles import TARGETS, write_bundles

    bundles = [target for target in targets if target != "html"]
    if bundles or not targets:
        for name, count in write_bundles(out, bundles or TARGETS, obj.settings()):
            if not obj.quiet:
                click.echo(f"{count} objects written to {name}", err=True)
    if "html" in targets:
        _write_pages(obj, out if str(out) == "-" else out / "html")


@example("esjobs dashboards export-html --out pages")
@dashboards.command("export-html")
@folder_option(also="; earlier pages in it are replaced")
@click.option(
    "--jobs",
    "most_jobs",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    metavar="N",
    help="Number of jobs, each with its own page; worst scores and issues first; 0: none.",
)
@click.pass_obj
def export_html(obj: Context, out: Path, most_jobs: int) -> None:
    """Write the dashboards as offline HTML pages.

    Open index.html in the folder, from disk or from any web server.
    """
    _write_pages(obj, out, most_jobs)


def _write_pages(obj: Context, out: Path, most_jobs: int = 300) -> None:
    from esjobs.core.text import visible

    with obj.session() as session:
        first = session.export.html(out, job_pages=most_jobs)
    if not obj.quiet:
        click.echo(f"pages written; open {visible(str(first))}", err=True)


@example("esjobs dashboards check")
@dashboards.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
def check(files: tuple[Path, ...]) -> None:
    """Check bundles for anything a server rejects or breaks.

    Default: the bundles of this version. Exit code 1 for complaints.
    """
    from esjobs.render.bundles import check_bundles

    wrong = 0
    for name, complaints in check_bundles(files):
        for complaint in complaints:
            click.echo(f"{name}: {complaint}")
        wrong += len(complaints)
        click.echo(f"{name}: {len(complaints) or 'no'} complaints", err=True)
    if wrong:
        raise SystemExit(1)


def _server_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a dashboards server."""
    for option in (
        dry_run_option,
        click.option("--prefix", metavar="WORD", help="Prefix of object ids; default: that of the indices."),
        click.option("--space", metavar="ID", help="Kibana space; default: the default space."),
        click.option("--url", required=True, help="Address of the server in a browser."),
    ):
        function = option(function)
    return function


@example("esjobs dashboards import --url http://localhost:5601")
@dashboards.command("import")
@_server_options
@click.option(
    "--target",
    type=click.Choice(["auto", "portable", "kibana"]),
    default="auto",
    show_default=True,
    help="Product; auto: detect it.",
)
@rows_options
@click.pass_obj
def import_(obj: Context, /, dry_run: bool, form: str, out: str, **server: Any) -> None:
    """Import the dashboards, replacing those of the same names.

    Credentials: from the address, else those of the cluster. Exit code 1 if an object was rejected.
    """
    from esjobs.api.dashboard_servers import import_dashboards

    found = import_dashboards(obj.settings(), **server, dry_run=dry_run)
    _show(*found, form, out, dry_run=dry_run)


@example("esjobs dashboards rules --url http://localhost:5601 --dry-run")
@dashboards.command()
@_server_options
@rows_options
@click.pass_obj
def rules(obj: Context, /, dry_run: bool, form: str, out: str, **server: Any) -> None:
    """Create Kibana alert rules (new deviation, no verdicts, failed night).

    Add actions (mail, chat) in Kibana; a second run of the command keeps them. To remove the rules: esjobs
    dashboards remove. Exit code 1 if a rule was rejected.
    """
    from esjobs.api.dashboard_servers import set_alerting_rules

    found = set_alerting_rules(obj.settings(), **server, dry_run=dry_run)
    _show(*found, form, out, dry_run=dry_run)


@example("esjobs dashboards remove --url http://localhost:5601 --dry-run")
@dashboards.command()
@_server_options
@rows_options
@click.pass_obj
def remove(obj: Context, /, dry_run: bool, form: str, out: str, **server: Any) -> None:
    """Remove our dashboards and alert rules, nothing else."""
    from esjobs.api.dashboard_servers import remove_dashboards

    found = remove_dashboards(obj.settings(), **server, dry_run=dry_run)
    _show(*found, form, out, dry_run=dry_run)


def _show(server: str, outcomes: "list[Outcome]", form: str, out: str, *, dry_run: bool) -> None:
    from esjobs.api.dashboard_servers import outcome_rows, summary

    emit(outcome_rows(outcomes), form, out, prose=["reason"])
    click.echo(f"{server}: {summary(outcomes, dry_run=dry_run)}", err=True)
    if any(one.state == "failed" for one in outcomes):
        raise SystemExit(1)
