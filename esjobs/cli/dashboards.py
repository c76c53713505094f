"""Commands about dashboards: the bundles for Kibana and OpenSearch Dashboards, and their checks."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import Context, emit, rows_options

if TYPE_CHECKING:
    from dashboards.servers import Outcome


@click.group()
def dashboards() -> None:
    """Pages for Kibana and OpenSearch Dashboards: written, checked, imported, removed."""


@example("esjobs dashboards render --target portable --out bundles")
@dashboards.command()
@click.option(
    "--target",
    "targets",
    type=click.Choice(["portable", "kibana", "html"]),
    multiple=True,
    help="For which product: portable: for both products; kibana: Kibana 8.12 or newer alone; html: as "
    "export-html. Default: both bundles.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("kibana_objects"),
    show_default=True,
    help="Where to write: a folder for the files TARGET.ndjson and the folder html; - writes one bundle to "
    "standard output.",
)
@click.pass_obj
def render(obj: Context, targets: tuple[str, ...], out: Path) -> None:
    """Write the bundles: data views, panels and dashboards over the indices of the prefix in the settings.

    For bundles nothing is asked of a store, html has the rows of the store in it. The jobs' data view is that
    of --jobs-index and --field-map.
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
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Where to write: a folder for the pages; those of before are replaced, nothing else is touched.",
)
@click.option(
    "--jobs",
    "most_jobs",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    metavar="N",
    help="So many jobs, each with a page of its own, those with the worst scores and issues; 0: none.",
)
@click.pass_obj
def export_html(obj: Context, out: Path, most_jobs: int) -> None:
    """Write the same pages as HTML, with their rows: for a browser alone, with no server and no network.

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
    """Say what a server would refuse or break of bundles; without FILE, of those of this version.

    Exit code 1 when there is something.
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
    """Which server, and where in it."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Only say what would be done."),
        click.option(
            "--prefix", metavar="WORD", help="Ids begin with it; default: the prefix of the indices."
        ),
        click.option("--space", metavar="ID", help="Space of Kibana; default: the default one."),
        click.option("--url", required=True, help="Address of the server, as people open it in a browser."),
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
    help="For which product; auto: that of the server.",
)
@rows_options
@click.pass_obj
def import_(
    obj: Context,
    url: str,
    space: str | None,
    prefix: str | None,
    dry_run: bool,
    target: str,
    form: str,
    out: str,
) -> None:
    """Bring the dashboards into Kibana or OpenSearch Dashboards, in place of those of before.

    Credentials are those of the address, or of the cluster. Exit code 1 when an object was not taken.
    """
    from esjobs.api.dashboard_servers import import_dashboards

    server, outcomes = import_dashboards(
        obj.settings(), url, target=target, space=space, prefix=prefix, dry_run=dry_run
    )
    _tell(server, outcomes, form, out, dry_run=dry_run)


@example("esjobs dashboards rules --url http://localhost:5601 --dry-run")
@dashboards.command()
@_server_options
@rows_options
@click.pass_obj
def rules(
    obj: Context, url: str, space: str | None, prefix: str | None, dry_run: bool, form: str, out: str
) -> None:
    """Make rules in Kibana: a newly confirmed deviation, no verdicts for two days, a failed night.

    Each shows its alerts in Kibana; whom it tells (mail, chat) you add there, and it stays when the command
    runs again. dashboards remove takes them out. Exit code 1 when a rule was not taken.
    """
    from esjobs.api.dashboard_servers import set_alerting_rules

    server, outcomes = set_alerting_rules(obj.settings(), url, space=space, prefix=prefix, dry_run=dry_run)
    _tell(server, outcomes, form, out, dry_run=dry_run)


@example("esjobs dashboards remove --url http://localhost:5601 --dry-run")
@dashboards.command()
@_server_options
@rows_options
@click.pass_obj
def remove(
    obj: Context, url: str, space: str | None, prefix: str | None, dry_run: bool, form: str, out: str
) -> None:
    """Take the dashboards, what they are made of and our rules out of a server; nothing else is touched."""
    from esjobs.api.dashboard_servers import remove_dashboards

    server, outcomes = remove_dashboards(obj.settings(), url, space=space, prefix=prefix, dry_run=dry_run)
    _tell(server, outcomes, form, out, dry_run=dry_run)


def _tell(server: str, outcomes: "list[Outcome]", form: str, out: str, *, dry_run: bool) -> None:
    from esjobs.api.dashboard_servers import outcome_rows, summary

    emit(outcome_rows(outcomes), form, out, prose=["reason"])
    click.echo(f"{server}: {summary(outcomes, dry_run=dry_run)}", err=True)
    if any(one.state == "failed" for one in outcomes):
        raise SystemExit(1)
