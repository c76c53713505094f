"""Commands that do something to the store: read files, aggregate, fit, judge, tidy."""

from pathlib import Path

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    emit_reports,
    form_and_file,
    rebuild_option,
    restriction_options,
    rows_options,
    window_option,
)
from esjobs.core.errors import InputError
from esjobs.core.words import LEVELS
from esjobs.store.files.destination import refuse_inputs


@example("esjobs ingest jobs demo/jobs.parquet")
@click.command()
@click.argument("form_in", metavar="FORMAT", required=False)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--set", "fill", multiple=True, metavar="FIELD=VALUE", help="Fill a field where it is missing.")
@click.option(
    "--dry-run", is_flag=True, help="Only say what would be done: read and check everything, store nothing."
)
@click.option("--undo", metavar="LOAD", help="Take a load back instead.")
@click.option("--allow-rejects", is_flag=True, help="End with 0 also where every row was refused.")
@rows_options
@click.pass_obj
def ingest(
    obj: Context,
    form_in: str | None,
    files: tuple[Path, ...],
    fill: tuple[str, ...],
    dry_run: bool,
    undo: str | None,
    allow_rejects: bool,
    form: str,
    out: str,
) -> None:
    """Read records of jobs, of monitoring or of declared values: FORMAT says whose they are.

    FORMAT jobs (esjobs' own columns) and panda are CSV, JSON lines or Parquet, plain or gzip; slurm, swf,
    clustercockpit, supremm, slurm-profile, prmon, perf-stat and apel are as their programs write them
    (docs/sources.md); corepower (CSV) and cric (JSON) are declared values, as esjobs corepower import reads
    them. A FILE may be a folder for some of them, or a pipe, and - is standard input.
    """
    if undo is None and (form_in is None or not files):
        raise click.UsageError("give a format and at least one file, or --undo LOAD")
    if undo is not None and form_in is not None:
        raise click.UsageError("--undo takes no files")
    refuse_inputs(out, files)
    with obj.session(writes=True, create=True, late=True) as session:
        if undo is not None:
            report = session.undo(undo)
        else:
            report = session.ingest(form_in or "", files, fill=fill, dry_run=dry_run)
    emit_reports([report], form, out)
    if report.fruitless and not allow_rejects:
        raise InputError(
            "every row was refused, nothing came in; the account says why and what to do (--set fills what "
            "all rows lack); --allow-rejects ends with 0"
        )


@click.group(cls=click.Group)
def corepower() -> None:
    """Declared benchmark scores per core."""


@example("esjobs corepower import csv demo/corepower.csv")
@corepower.command("import")
@click.argument("given", metavar="[csv|cric] FILE", nargs=-1, required=True)
@click.option("--format", "old_form", type=click.Choice(["csv", "cric"]), hidden=True)
@click.option("--benchmark", metavar="NAME", help="HS06 or HS23, where the file does not say.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="Queues (site) or CPU models (cpu_model), where the file does not say.",
)
@click.option("--valid-from", metavar="DATE", help="Start of validity; wins over CRIC's own date.")
@click.pass_obj
def import_corepower(
    obj: Context,
    given: tuple[str, ...],
    old_form: str | None,
    benchmark: str | None,
    level: str | None,
    valid_from: str | None,
) -> None:
    """Import declared values: a CSV table by queue or CPU model (csv), or CRIC's queue description (cric).

    Without a form it is csv. Plain or gzip; - is standard input.
    """
    form_in, file = form_and_file(given, ("csv", "cric"), old_form, "--format", default="csv")
    with obj.session(writes=True, create=True, late=True) as session:
        report = session.declared.import_values(
            file, form=form_in, benchmark=benchmark, level=level, valid_from=valid_from
        )
    emit_reports([report], "table", "-")


@example("esjobs show corepower --format csv", "esjobs corepower remove IMPORT")
@corepower.command("remove")
@click.argument("import_id", metavar="IMPORT")
@click.pass_obj
def remove_corepower(obj: Context, import_id: str) -> None:
    """Take an import back; esjobs show corepower names them."""
    with obj.session(writes=True) as session:
        report = session.declared.remove(import_id)
    emit_reports([report], "table", "-")


@example("esjobs aggregate --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@rebuild_option
@rows_options
@click.pass_obj
def aggregate(obj: Context, window: str | None, rebuild: bool, form: str, out: str) -> None:
    """Make the buckets of the window: jobs cleaned, grouped and summed, every job accounted for."""
    with obj.session(writes=True) as session:
        report = session.speed.aggregate(window, rebuild=rebuild)
    emit_reports([report], form, out)


@example("esjobs fit --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@restriction_options
@rows_options
@click.pass_obj
def fit(
    obj: Context, window: str | None, tasks: tuple[str, ...], where: tuple[str, ...], form: str, out: str
) -> None:
    """Fit speed factors of queues and CPU models from the buckets of the window."""
    with obj.session(writes=True) as session:
        report = session.speed.fit(window, tasks=tasks, where=where)
    emit_reports([report], form, out)


@example("esjobs correlate --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@rows_options
@click.pass_obj
def correlate(obj: Context, window: str | None, form: str, out: str) -> None:
    """Fit the line through the origin to the newest factors of the window."""
    with obj.session(writes=True) as session:
        report = session.speed.correlate(window)
    emit_reports([report], form, out)


@example("esjobs flag --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@rows_options
@click.pass_obj
def flag(obj: Context, window: str | None, form: str, out: str) -> None:
    """Judge the newest factors of the window: deviations, verdicts, their stability."""
    with obj.session(writes=True) as session:
        report = session.speed.flag(window)
    emit_reports([report], form, out)


@example("esjobs run --window 2025-06-01/2025-07-01", "esjobs run --where processing_type=simul")
@click.command()
@window_option
@restriction_options
@rebuild_option
@rows_options
@click.pass_obj
def run(
    obj: Context,
    window: str | None,
    tasks: tuple[str, ...],
    where: tuple[str, ...],
    rebuild: bool,
    form: str,
    out: str,
) -> None:
    """Aggregate, fit, correlate and flag; results become visible together at the end."""
    with obj.session(writes=True) as session:
        reports = session.run(window, tasks=tasks, where=where, rebuild=rebuild)
        conclusions = session.tables.fit_summaries(run=reports[-1].run).rows
    emit_reports(reports, form, out)
    if form == "table" and not obj.quiet:
        from esjobs.cli.terminal import print_conclusion

        print_conclusion(conclusions)


@example("esjobs prune --keep-daily 60 --dry-run")
@click.command()
@click.option("--keep", type=click.IntRange(min=1), help="So many runs stay: the latest and those made last.")
@click.option("--keep-newest", "newest", type=click.IntRange(min=0), help="So many of the newest runs stay.")
@click.option("--keep-daily", "daily", type=click.IntRange(min=0), help="One run of each of so many days.")
@click.option("--keep-weekly", "weekly", type=click.IntRange(min=0), help="One run of each of so many weeks.")
@click.option("--keep-monthly", "monthly", type=click.IntRange(min=0), help="One of each of so many months.")
@click.option(
    "--keep-bucket-months",
    "bucket_months",
    type=click.IntRange(min=1),
    help="Buckets of so many of the newest months stay, with their books.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done: what would go, and why.")
@rows_options
@click.pass_obj
def prune(obj: Context, /, keep: int | None, dry_run: bool, form: str, out: str, **rule: int | None) -> None:
    """Remove results of old runs, buckets of old months, and what old loads replaced.

    Jobs and what people entered stay.
    Without an option the settings decide ([retention]). --keep-newest, -daily, -weekly and -monthly count for
    every length of windows and every restriction on its own: what any of those given keeps stays, and always
    the latest run, also with 0. --keep counts all runs and goes with none of these. Buckets stay unless the
    settings or --keep-bucket-months say of how many months; made again they can be as long as the jobs are
    there. Versions of jobs that a load replaced stay for undo_days ([retention]); after that the load cannot
    be undone.
    """
    with obj.session(writes=True) as session:
        report = session.runs.prune(keep, **rule, dry_run=dry_run)
    emit_reports([report], form, out)
