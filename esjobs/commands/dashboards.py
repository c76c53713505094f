"""Commands about dashboards: the bundles for Kibana and OpenSearch Dashboards, and their checks."""

from pathlib import Path

import click

from esjobs.commands.options import Context


@click.group()
def dashboards() -> None:
    """Pages for Kibana and OpenSearch Dashboards, as files to import."""


@dashboards.command()
@click.option(
    "--target",
    "targets",
    type=click.Choice(["portable", "kibana"]),
    multiple=True,
    help="portable: for both products; kibana: Kibana 8.12 or newer alone. Default: both.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("kibana_objects"),
    show_default=True,
    help="Folder for the files TARGET.ndjson; - writes one target to standard output.",
)
@click.pass_obj
def render(obj: Context, targets: tuple[str, ...], out: Path) -> None:
    """Write the bundles: data views, panels and dashboards over the indices of the prefix in the settings.

    Nothing is asked of a store. The jobs' data view is that of --jobs-index and --field-map.
    """
    from esjobs.bundles import TARGETS, write_bundles

    for name, count in write_bundles(out, targets or TARGETS, obj.settings()):
        if not obj.quiet:
            click.echo(f"{count} objects written to {name}", err=True)


@dashboards.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
def check(files: tuple[Path, ...]) -> None:
    """Say what a server would refuse or break of bundles; without FILE, of those of this version.

    Exit code 1 when there is something.
    """
    from esjobs.bundles import check_bundles

    wrong = 0
    for name, complaints in check_bundles(files):
        for complaint in complaints:
            click.echo(f"{name}: {complaint}")
        wrong += len(complaints)
        click.echo(f"{name}: {len(complaints) or 'no'} complaints", err=True)
    if wrong:
        raise SystemExit(1)
