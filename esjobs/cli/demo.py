"""The whole chain on a made-up grid, and how much of its truth was found."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.api.session import Session
from esjobs.core.errors import InputError
from esjobs.core.numbers import many
from esjobs.core.query import Count, In, Query
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, status_shown
from esjobs.entry import open as open_session
from esjobs.publish.publication import read_table
from esjobs.records.demo.course import Course
from esjobs.records.demo.errors import FAILING, OF_INCIDENT, site_of_failing_node
from esjobs.records.demo.grid import SLOW_JOBS, Grid
from esjobs.records.export.jobs import write_jobs
from esjobs.records.jobs.aggregate import Progress
from esjobs.schema.today import INCIDENT_NIGHTS, TODAY_DAYS
from esjobs.speed.settings import FitSettings
from esjobs.store.files.destination import writing, writing_text
from esjobs.store.files.sharing import make_folder

NIGHTS = 29  # Nights before the last one that the command runs; those without a week of jobs are left out
_BY_TYPE = 4  # last of these nights that are fitted by processing type, too
_NIGHT_DAYS = 7


@dataclass(frozen=True)
class Demonstration:
    """Result of the demo: reports of the steps, flags of the queues (all columns), closing lines."""

    reports: tuple[RunReport, ...]
    verdicts: pa.Table
    lines: tuple[str, ...]


def demonstrate(
    folder: Path,
    *,
    jobs: int,
    seed: int,
    store: str | None = None,
    config: Path | None = None,
    progress: Progress | None = None,
    nights: int = 0,
) -> Demonstration:
    """Generate ``jobs`` jobs into ``folder``, run everything on them, write the report there.

    The folder receives ``jobs.parquet``, ``corepower.csv``, ``demo.duckdb`` (unless ``store`` names another
    one) and ``report.html``; a demo run there before is overwritten. Deterministic by seed, except for times.
    ``nights``: earlier nights with a history of flags.
    """
    quiet = Grid.of_size(jobs, seed=seed)
    days = quiet.days(jobs)
    grid = replace(quiet, monitored=True, course=Course(seed, days[0], days[-1], jobs))
    database, job_file, declared_file = (
        folder / name for name in ("demo.duckdb", "jobs.parquet", "corepower.csv")
    )
    if store is None:
        _make(folder)
        _remove(database)
    window = Window.of_days(days[0], days[-1])
    # A store that cannot be opened is said before jobs are made up for it.
    with open_session(store or f"duckdb:{database}", config=config, progress=progress) as session:
        _make(folder)
        _tell(progress, "generating jobs")
        with writing(job_file) as stream:
            write_jobs((batch for day in days for batch in grid.jobs(day)), stream, "parquet")
        _write_declarations(grid, declared_file)
        ingested = session.ingest("jobs", job_file)
        session.declared.import_values(declared_file)
        reports = session.run(window)
        detected = session.issues.detect(window)
        scored = session.scores.compute(window)
        explained = session.flags.decompose(window)
        _run_nights(session, window, nights)
        watched = session.flags.update(days[-1])
        judged_nights = session.flags.today.update(days[-1])
        report = session.report().save(folder / "report.html")
        of_errors = tuple(_of_errors(session, grid))
        opened = read_table(session.store, INCIDENT_NIGHTS, [In("change", ("opened",))]).to_pylist()
        by_night = Query(("day", "site"), (Count("n"),), over=TODAY_DAYS)
        n_judged = session.store.aggregate(by_night).table.num_rows
        headline = session.settings.section(FitSettings).methods[0]
        flags, conclusions = (
            session.tables.read(what, level="queue", type=ALL_TYPES, method=headline).rows
            for what in ("flags", "fit_summaries")
        )
    judged = flags.select(["name", "verdict", "confirmed", "deviation"]).to_pylist()
    score = grid.score(
        {row["name"]: status_shown(row["verdict"], row["confirmed"] is True) for row in judged}
    )
    lines = (
        conclusions.column("sentence")[0].as_py(),
        f"report: {report}",
        *_of_incidents(grid, opened, n_judged),
        *of_errors,
        f"ground truth: {score.sentence}",
    )
    order = sorted(range(len(judged)), key=lambda number: _rank(judged[number]))
    return Demonstration(
        (ingested, *reports, detected, scored, explained, watched, judged_nights), flags.take(order), lines
    )


def _run_nights(session: Session, window: Window, nights: int) -> None:
    """Fit and watch the nights before the last one, each from the buckets of a week by the default method."""
    ends = [window.last_day - timedelta(days=back) for back in range(nights, 0, -1)]
    weeks = [Window.of_days(end - timedelta(days=_NIGHT_DAYS - 1), end) for end in ends]
    weeks = [week for week in weeks if week.start >= window.start]
    fit = session.settings.section(FitSettings)
    for number, week in enumerate(weeks, 1):
        by_type = number > len(weeks) - _BY_TYPE
        quick = fit.model_copy(update={"methods": fit.methods[:1], "by_type": by_type})
        Session(session.store, session.settings.model_copy(update={"fit": quick})).run(week)
    if weeks:
        # later nights follow
        session.flags.update(weeks[0].last_day)


def _of_incidents(grid: Grid, opened: Sequence[Mapping[str, Any]], n_judged: int) -> Iterator[str]:
    """Yield lines on the planted incidents: the nights on which they were found, and the number of others.

    ``n_judged``: nights of all sites; one or two in a thousand are false (docs/method.md#today).
    """
    planted, slow = grid.truth().incident, grid.slow_task
    others = len(opened)
    if planted is not None:
        nights = _nights(opened, planted, lambda row: row["site"] == planted.site)
        others -= len(nights)
        yield f"incident at {planted.site} from {planted.first}: {_found(nights, planted.last)}"
    if slow is not None:
        name = f"task {slow.task_id} "
        nights = _nights(opened, slow, lambda row: name in (row["cause"] or ""))
        others -= len(nights)
        yield f"slow task {slow.task_id} everywhere from {slow.first}: {_found(nights, slow.last)}"
    elif planted is not None:
        yield f"no slow task: none has {SLOW_JOBS} jobs a day; with more --jobs there is one"
    yield f"{many(others, 'other incident')} found in {many(n_judged, 'site-night')}"


def _nights(
    opened: Sequence[Mapping[str, Any]], planted: Any, is_it: Callable[[Mapping[str, Any]], bool]
) -> list[date]:
    return [row["night"] for row in opened if is_it(row) and planted.on(row["night"])]


def _found(nights: Sequence[date], last: date) -> str:
    return f"found on {min(nights)}: esjobs today --night {last}" if nights else "not found"


def _of_errors(session: Session, grid: Grid) -> Iterator[str]:
    """Yield lines on the planted error and the planted node: whether the commands about them list them."""
    truth = grid.truth()
    if truth.incident is None:
        return
    site, window = truth.incident.site, Window.of_days(truth.incident.first, truth.incident.last)
    new = session.errors.lost("error", site=site, window=window, new=True).rows
    found = OF_INCIDENT in new["error"].to_pylist() if new.num_rows else False
    command = f"esjobs errors --by error --new --site {site} --window {window}"
    yield f"new error {OF_INCIDENT} at {site}: {'found' if found else 'not found'}: {command}"
    ill = site_of_failing_node(truth.queues, truth.incident)
    found = any(
        row["site"] == ill and row["name"] == FAILING for row in session.errors.nodes().rows.to_pylist()
    )
    yield f"failing node {FAILING} at {ill}: {'found' if found else 'not found'}: esjobs nodes --site {ill}"


def _rank(flag: Mapping[str, Any]) -> tuple[int, bool, float]:
    """By verdict, then by deviation; those without one last."""
    verdicts = ("deviates", "undecided", "ok")
    rank = verdicts.index(flag["verdict"]) if flag["verdict"] in verdicts else len(verdicts)
    return rank, flag["deviation"] is None, flag["deviation"] or 0.0


def _tell(progress: Progress | None, what: str) -> None:
    if progress:
        progress(what, 0, 0)


def _make(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        raise InputError(
            f"cannot create folder {folder} for the demo: {error.strerror}; use a different one with --out"
        ) from error


def _remove(database: Path) -> None:
    """The store of a demo run before, with its log."""
    try:
        for leftover in (database, database.with_suffix(".duckdb.wal")):
            leftover.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot replace the demo's store {database}: {error.strerror}; use a different folder with --out"
        ) from error


def _write_declarations(grid: Grid, path: Path) -> None:
    columns = ("level", "name", "corepower", "benchmark", "valid_from", "site", "parent_corepower", "source")
    with writing_text(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for row in grid.declarations():
            values = [getattr(row, column) for column in columns]
            writer.writerow(["" if value is None else value for value in values])
