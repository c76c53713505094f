"""The page of a site, a queue or a CPU model as HTML: what is known of it laid out for the template."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from dashboards.targets.html.cells import short
from dashboards.targets.html.profile import (
    Columns,
    Course,
    Curve,
    Dot,
    Figure,
    Fold,
    Label,
    Part,
    Point,
    ProfilePage,
    Tick,
    Whiskers,
    render_profile,
)
from esjobs.core.errors import NoJobsError
from esjobs.core.numbers import count, exact_percent, many, number, signed_percent
from esjobs.core.text import visible
from esjobs.core.verdict_order import verdict_order
from esjobs.core.window import Window
from esjobs.core.words import HALF_WIDTH_90, status_shown
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun, of_headline
from esjobs.records.jobs.query import query_jobs
from esjobs.render.day_figures import day_figures
from esjobs.render.profile.named import Named
from esjobs.render.profile.profile import Profile, Row, profiles
from esjobs.render.profile.sections import DAY_BY_DAY, Section, heading, sections, source
from esjobs.render.rows import cell_text
from esjobs.render.scale import heights, path, round_values, short_number, spread, widened
from esjobs.schema.speed import FLAGS
from esjobs.store.base import JobStore

# Of the figure of deviations, and how high a row of it is; in units of its box
_WIDTH, _LEFT, _ROW = 640, 210, 22
# Deviations are drawn up to this; what lies beyond is drawn at the edge, and its text says how far
_WIDEST = 1.5
_COURSE_HEIGHT, _COURSE_LEFT = 230, 66
# Queues that are drawn over time, those of most jobs; the table has them all
_MOST_COURSES = 6


def profile_html(profile: Profile, now: datetime | None = None) -> str:
    """Return the page as self-contained HTML; ``now`` gives the age of its run."""
    return render_profile(profile_page(profile, now))


def profile_page(profile: Profile, now: datetime | None = None) -> ProfilePage:
    """Return the page as laid out for the template."""
    parts = [replace(_part(profile, each), title=_finding(profile, each)) for each in sections(profile)]
    return ProfilePage(visible(heading(profile)), visible(source(profile, now)), parts)


def _finding(profile: Profile, section: Section) -> str:
    """Return the title of a section with what was found."""
    found = ""
    if section.title == "Verdict" and profile.flags:
        worst = min(profile.flags, key=verdict_order)
        name = f"{visible(worst['name'])} " if len(profile.flags) > 1 else ""
        size = "" if worst["deviation"] is None else f", {signed_percent(worst['deviation'])}"
        found = f": {name}{status_shown(worst['verdict'], worst['confirmed'])}{size}"
    elif section.title == "By processing type" and profile.types:
        confirmed = sum(row["confirmed"] is True for row in profile.types)
        found = f": {count(confirmed)} of {count(len(profile.types))} confirmed" if confirmed else ""
    elif section.title == DAY_BY_DAY and profile.incidents:
        found = f": {many(len(profile.incidents), 'incident')}"
    return f"{section.title}{found}"


MOST_FOLDS = 25  # Sites that a report has one by one; a page of all would be slow to open


def folds(store: JobStore, run: StoredRun) -> list[Fold]:
    """Of a run, the sites with a queue that deviates or is undecided, the largest deviations first."""
    columns = ["name", "site", "verdict", "confirmed", "deviation"]
    rows = read_table(store, FLAGS, of_headline(run, "queue"), columns).to_pylist()
    sites: dict[str, list[Row]] = {}
    for row in rows:
        sites.setdefault(row["site"] or row["name"], []).append(row)
    open_sites = [site for site, queues in sites.items() if any(_open(row) for row in queues)]
    open_sites.sort(key=lambda site: (*min(map(verdict_order, sites[site])), site))
    meant = [
        Named("queue", site, tuple(sorted(row["name"] for row in sites[site])), site, of_site=True)
        for site in open_sites[:MOST_FOLDS]
    ]
    found = profiles(store, meant, run, run.window)
    return [_fold(profile, sites[profile.named.title]) for profile in found]


def _fold(profile: Profile, queues: Sequence[Row]) -> Fold:
    return Fold(
        visible(profile.named.title),
        visible(_in_short(queues)),
        [visible(name) for name in profile.named.names],
        [_part(profile, section) for section in sections(profile)],
    )


WEEKS = 26  # Weeks of history in trends
_LEAST_WEEKS = 3
_CURVES = (("core_h", "Core hours"), ("efficiency", "CPU efficiency"), ("failure_rate", "Jobs that failed"))


def trends(store: JobStore, run: StoredRun) -> Part | None:
    """Numbers of all jobs by week up to the end of a run's window, and confirmed queues over windows.

    None where jobs are of less than three weeks. Cost: one query to the jobs of half a year.
    """
    metrics = ["jobs", *(name for name, _ in _CURVES), "waiting_s"]
    window = Window(run.window.end - timedelta(weeks=WEEKS), run.window.end)
    try:
        table = query_jobs(store, ["week"], metrics, window=window)
    except NoJobsError:
        return None
    rows = [row for row in table.to_pylist() if row["week"] is not None]
    if len(rows) < _LEAST_WEEKS:
        return None
    figures: list[Figure] = [curve(title, points(rows, "week", name)) for name, title in _CURVES]
    for profile in profiles(store, _confirmed(store, run), run, run.window):
        figures += _courses(profile)
    headers = ["ISO week", "jobs", *(title for _, title in _CURVES), "mean waiting, s"]
    return Part("Over time", "", [], figures, columns_of(table.rename_columns(headers)))


def _confirmed(store: JobStore, run: StoredRun) -> list[Named]:
    rows = read_table(store, FLAGS, of_headline(run, "queue")).to_pylist()
    found = sorted((row for row in rows if row["confirmed"] is True), key=verdict_order)
    return [Named("queue", row["name"], (row["name"],), row["site"]) for row in found[:_MOST_COURSES]]


def points(rows: Iterable[Row], step: str, name: str) -> list[tuple[str, float]]:
    """Return the known values of a column, each with its day or week."""
    return [(str(row[step]), row[name]) for row in rows if row[name] is not None]


def curve(
    title: str, values: Sequence[tuple[str, float]], step: str = "ISO week", of: str = "all jobs"
) -> Curve:
    """Number over time, a value per ``step``; its axis begins at 0 unless it varies little."""
    numbers = [value for _, value in values] or [0.0]
    least, most = min(numbers), max(numbers)
    low, high = widened([least if least > 0.5 * most > 0 else 0.0, most], 0.1)
    bottom = _COURSE_HEIGHT - 44
    gap = (_WIDTH - _COURSE_LEFT - 110) / max(1, len(values) - 1)
    y = heights(low, high, bottom)
    dots = [
        Dot(round(_COURSE_LEFT + 30 + number * gap, 1), y(value), f"{moment}: {cell_text(value)}")
        for number, (moment, value) in enumerate(values)
    ]
    times = [Tick(dot.x, moment) for dot, (moment, _) in zip(dots, values, strict=True)]
    return Curve(
        title,
        f"{title} of {of}, by {step}.",
        _WIDTH,
        bottom + 24,
        _COURSE_LEFT,
        bottom,
        [Tick(y(value), short_number(value)) for value in round_values(low, high)],
        spread(times, 4) if times else [],
        path([f"{dot.x},{dot.y}" for dot in dots]),
        dots,
    )


def _open(row: Row) -> bool:
    return row["verdict"] in ("deviates", "undecided")


def _in_short(rows: Sequence[Row]) -> str:
    """Return the open deviations of a site's queues in one line."""
    texts = [
        f"{row['name']} {signed_percent(row['deviation'])} {status_shown(row['verdict'], row['confirmed'])}"
        for row in sorted(rows, key=verdict_order)
        if _open(row) and row["deviation"] is not None
    ]
    return ", ".join(texts)


def _part(profile: Profile, section: Section) -> Part:
    figures: list[Figure] = []
    if section.title == "Verdict":
        figures += [_whiskers(profile)] if _drawn(profile) else []
    if section.title == "Over time":
        figures += _courses(profile)
    if section.title == DAY_BY_DAY:
        figures += day_figures(profile.days, profile.incidents)
    return part_of(section, figures)


def part_of(section: Section, figures: Sequence[Figure] = ()) -> Part:
    """Return a section as laid out for the template."""
    return Part(
        section.title,
        visible(section.about),
        [visible(sentence) for sentence in section.sentences],
        figures,
        None if section.table is None else columns_of(section.table),
    )


def columns_of(table: pa.Table) -> Columns:
    """Return a table as the cells of a page."""
    numeric = frozenset(
        place
        for place, column in enumerate(table.schema)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    )
    rows = [[cell_text(value) for value in row.values()] for row in table.to_pylist()]
    return Columns([visible(name) for name in table.column_names], rows, numeric)


def _drawn(profile: Profile) -> list[Row]:
    """The rows with a deviation: all kinds of work of a name, then each kind."""
    rows: list[Row] = []
    for flag in profile.flags:
        of_name = [flag, *(row for row in profile.types if row["name"] == flag["name"])]
        rows += [row for row in of_name if row["deviation"] is not None]
    return rows


def _whiskers(profile: Profile) -> Whiskers:
    rows = _drawn(profile)
    ends = [abs(row["deviation"]) + HALF_WIDTH_90 * row["deviation_err"] for row in rows]
    reach = min(_WIDEST, max(0.3, 2 * profile.limit, *(1.05 * end for end in ends)))

    def x_of(value: float) -> float:
        share = (max(-reach, min(reach, value)) + reach) / (2 * reach)
        return float(round(_LEFT + share * (_WIDTH - _LEFT - 26), 1))

    labels: list[Label] = []
    points: list[Point] = []
    y = 4.0
    for row in rows:
        every = row["processing_type"] == "all"
        y += _ROW if not points or not every else 1.5 * _ROW
        name = visible(row["name"]) if every else f"   {visible(row['processing_type'])}"
        labels.append(Label(y + 4, short(name, 36), strong=every))
        half = HALF_WIDTH_90 * row["deviation_err"]
        points.append(
            Point(
                x_of(row["deviation"]),
                y,
                x_of(row["deviation"] - half),
                x_of(row["deviation"] + half),
                f"{name.strip()}: {signed_percent(row['deviation'], half)}",
                row["verdict"],
                row["origin"],
                row["confirmed"],
            )
        )
    bottom = round(y + _ROW)
    step = 0.1 if reach <= 0.4 else 0.2 if reach <= 0.9 else 0.5
    marks = np.arange(-np.floor(reach / step), np.floor(reach / step) + 1) * step
    return Whiskers(
        "Speed factor and declared value",
        f"Deviations with their 90 % intervals; the band is the limit of {exact_percent(profile.limit)}.",
        _WIDTH,
        bottom + 22,
        _LEFT,
        _WIDTH,
        bottom,
        (x_of(-profile.limit), x_of(profile.limit)),
        x_of(0.0),
        [Tick(x_of(float(value)), signed_percent(float(value))) for value in marks],
        labels,
        points,
    )


def _courses(profile: Profile) -> Iterator[Course]:
    jobs = {row["name"]: row["n_jobs"] for row in profile.flags}
    names = sorted({row["name"] for row in profile.history}, key=lambda name: (-jobs.get(name, 0), name))
    for name in names[:_MOST_COURSES]:
        rows = [row for row in profile.history if row["name"] == name and row["estimate"] is not None]
        if len(rows) > 1:
            yield _course(name, rows)


def _course(name: str, rows: Sequence[Row]) -> Course:
    ends = [row["window_end"] for row in rows]
    declared = [(row["window_end"], row["corepower"]) for row in rows if row["corepower"] is not None]
    values = [row[key] for row in rows for key in ("estimate_low", "estimate_high")]
    low, high = widened(values + [value for _, value in declared], 0.08)
    bottom = _COURSE_HEIGHT - 24
    span = (ends[-1] - ends[0]).total_seconds() or 1.0
    y = heights(low, high, bottom)

    def x(moment: datetime) -> float:
        share = (moment - ends[0]).total_seconds() / span
        return float(round(_COURSE_LEFT + 30 + share * (_WIDTH - _COURSE_LEFT - 110), 1))

    steps = "".join(f"H{x(moment)}V{y(value)}" for moment, value in declared[1:])
    unit = rows[-1]["benchmark"] or rows[-1]["estimate_benchmark"] or "benchmark"
    return Course(
        visible(name),
        f"Measured score, {visible(unit)} per core, with 90 % intervals, by the end of the window; dashed: "
        "declared.",
        _WIDTH,
        _COURSE_HEIGHT,
        _COURSE_LEFT,
        bottom,
        [Tick(y(value), f"{value:g}") for value in round_values(low, high)],
        [Tick(x(moment), f"{moment:%Y-%m-%d}") for moment in spread(ends, 4)],
        f"M{x(declared[0][0])},{y(declared[0][1])}h1{steps}" if declared else "",
        [_estimated(row, x(row["window_end"]), y) for row in rows],
    )


def _estimated(row: Row, x: float, y: Callable[[float], float]) -> Point:
    """A measured score in its place."""
    estimate, low, high = (row[name] for name in ("estimate", "estimate_low", "estimate_high"))
    said = f"{number(estimate)} ({number(low)} to {number(high)}), declared {cell_text(row['corepower'])}"
    label = f"to {row['window_end']:%Y-%m-%d}: {said}"
    return Point(x, y(estimate), y(low), y(high), label, row["verdict"], row["origin"], row["confirmed"])
