"""Steps of the pipeline, from records to verdicts."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esjobs.cli.help import example
from esjobs.cli.options import (
    Context,
    dry_run_option,
    emit_reports,
    rebuild_option,
    restriction_options,
    rows_options,
    step,
    window_option,
)
from esjobs.core.errors import InputError, NoResultError
from esjobs.store.files.destination import refuse_inputs

if TYPE_CHECKING:
    from esjobs.api.session import Session
    from esjobs.core.report import RunReport


@example(
    "esjobs ingest jobs demo/jobs.parquet",
    "esjobs ingest jobs demo/jobs.parquet --dry-run",
    "esjobs show loads",
)
@click.command()
@click.argument("form_in", metavar="FORMAT", required=False)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--set", "fill", multiple=True, metavar="FIELD=VALUE", help="Value for records without this field."
)
@click.option(
    "--map",
    "mapping",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Columns and metrics of series; or dcgm, jobstats, likwid.",
)
@dry_run_option
@click.option("--undo", metavar="LOAD", help="Undo this load instead (list: esjobs show loads).")
@click.option("--allow-rejects", is_flag=True, help="Exit with 0 even if every row was rejected.")
@rows_options
@click.pass_obj
def ingest(
    obj: Context,
    form_in: str | None,
    files: tuple[Path, ...],
    fill: tuple[str, ...],
    mapping: Path | None,
    dry_run: bool,
    undo: str | None,
    allow_rejects: bool,
    form: str,
    out: str,
) -> None:
    """Load job records, monitoring data or declared values in FORMAT.

    FORMAT: jobs (esjobs' own columns) and panda are CSV, JSON lines or Parquet, plain or gzip; slurm, swf,
    clustercockpit, supremm, slurm-profile, prmon, perf-stat and apel are files of these programs
    (docs/sources.md); series are samples of any monitoring system, a row each (CSV or Parquet); corepower
    (CSV) and cric (JSON) are declared values; pledges, downtimes, power and emissions (docs/coordinator.md)
    are what delivered work is compared with. FILE: a file, a pipe, for some formats a folder, or - for
    standard input.
    """
    if undo is None and (form_in is None or not files):
        raise click.UsageError("specify a format and at least one file, or --undo LOAD")
    if undo is not None and form_in is not None:
        raise click.UsageError("--undo accepts no files")
    refuse_inputs(out, files)
    with obj.session(writes=True, create=True, late=True) as session:
        if undo is not None:
            report = session.undo(undo)
        else:
            report = session.ingest(form_in or "", files, fill=fill, dry_run=dry_run, mapping=mapping)
    emit_reports([report], form, out)
    if report.fruitless and not allow_rejects:
        raise InputError(
            "every row was rejected and nothing was stored; the load summary shows the reasons. Use --set "
            "for fields that all rows lack, or --allow-rejects to exit with 0"
        )


@example("esjobs aggregate --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@rebuild_option
@step()
def aggregate(session: "Session", window: str | None, rebuild: bool) -> "RunReport":
    """Aggregate jobs into daily buckets; each job is binned or dropped with a reason."""
    return session.speed.aggregate(window, rebuild=rebuild)


@example("esjobs fit --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@restriction_options
@step()
def fit(session: "Session", window: str | None, **restriction: tuple[str, ...]) -> "RunReport":
    """Fit speed factors of queues, sites and CPU models."""
    return session.speed.fit(window, **restriction)


@example("esjobs correlate --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@step()
def correlate(session: "Session", window: str | None) -> "RunReport":
    """Fit the line of speed factor against declared score."""
    return session.speed.correlate(window)


@example("esjobs flag --window 2025-06-01/2025-07-01")
@click.command()
@window_option
@step()
def flag(session: "Session", window: str | None) -> "RunReport":
    """Compute deviations, verdicts and their stability."""
    return session.speed.flag(window)


@example("esjobs watch")
@click.command()
@click.option(
    "--night",
    type=click.DateTime(formats=["%Y-%m-%d"]),
    metavar="DATE",
    help="Night: last day of its windows; default: that of the latest run.",
)
@step()
def watch(session: "Session", night: datetime | None) -> "RunReport":
    """Update flag states for one night: open, close, withdraw.

    The verdicts of the night must exist (esjobs run). An update of an earlier night repeats those after it.
    """
    return session.flags.update(None if night is None else night.date())


@example("esjobs drift")
@click.command()
@window_option
@step()
def drift(session: "Session", window: str | None) -> "RunReport":
    """Find dates on which a queue, site or CPU model became faster or slower, and likely causes.

    Uses the window of a run; default: the latest. Results: esjobs show drifts.
    """
    return session.flags.drift(window)


@example("esjobs decompose", "esjobs show decomposition")
@click.command()
@window_option
@step()
def decompose(session: "Session", window: str | None) -> "RunReport":
    """Decompose deviations: CPU mix, SMT, declared value, unexplained rest.

    Uses the window of a run; default: the latest. Results: esjobs show decomposition.
    """
    return session.flags.decompose(window)


@example("esjobs detect --window 2025-06-01/2025-07-01", "esjobs show issues --min-severity major --top 10")
@click.command()
@window_option
@rebuild_option
@click.option("--running", is_flag=True, help="Look at running jobs instead, without a mail.")
@step()
def detect(session: "Session", window: str | None, rebuild: bool, running: bool) -> "RunReport":
    """Find issues in jobs, from time series, footprints and records.

    Only days whose jobs, series or rules changed are computed. Results: esjobs show issues.
    """
    if running:
        return session.issues.look_at_running()[0]
    return session.issues.detect(window, rebuild=rebuild)


@example("esjobs score --window 2025-06-01/2025-07-01", "esjobs show scores --top 10")
@click.command()
@window_option
@rebuild_option
@step()
def score(session: "Session", window: str | None, rebuild: bool) -> "RunReport":
    """Score how efficiently jobs used their allocation (0 best, 100 worst).

    A score that cannot be computed is empty, with a reason. Only days whose jobs, issues or settings changed
    are computed. Results: esjobs show scores.
    """
    return session.scores.compute(window, rebuild=rebuild)


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
    """Run the whole pipeline for a window and publish its results together."""
    with obj.session(writes=True) as session:
        reports = session.run(window, tasks=tasks, where=where, rebuild=rebuild)
        conclusions = session.tables.fit_summaries(run=reports[-1].run).rows
        made = reports[-1].run
        try:
            shown = session.tables.fit_summaries().run
            other = made if shown is None or shown.run != made else None
        except NoResultError:
            # no run of all jobs is there yet
            other = made
    emit_reports(reports, form, out)
    if form == "table" and not obj.quiet:
        from esjobs.cli.terminal import print_conclusion

        print_conclusion(conclusions, other)


@example("esjobs prune --keep-daily 60 --dry-run")
@click.command()
@click.option("--keep", type=click.IntRange(min=1), help="Keep the latest and N most recent runs.")
@click.option("--keep-newest", "newest", type=click.IntRange(min=0), help="Keep the N newest runs.")
@click.option("--keep-daily", "daily", type=click.IntRange(min=0), help="Keep one run per day for N days.")
@click.option(
    "--keep-weekly", "weekly", type=click.IntRange(min=0), help="Keep one run per week for N weeks."
)
@click.option(
    "--keep-monthly", "monthly", type=click.IntRange(min=0), help="Keep one run per month for N months."
)
@click.option(
    "--keep-bucket-months",
    "bucket_months",
    type=click.IntRange(min=1),
    help="Keep buckets and their job counts for N months.",
)
@dry_run_option
@step()
def prune(session: "Session", /, keep: int | None, dry_run: bool, **rule: int | None) -> "RunReport":
    """Delete old results and buckets; keep jobs and entered data.

    Without options the settings decide ([retention]). --keep-newest, -daily, -weekly and -monthly count
    separately for each window length and restriction; a run stays if any of them keeps it, and the latest run
    always stays. --keep counts all runs and excludes the others. Job versions replaced by a load are deleted
    after undo_days ([retention]); the load cannot be undone after that.
    """
    return session.runs.prune(keep, **rule, dry_run=dry_run)
