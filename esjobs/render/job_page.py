"""A job's page as HTML: what is known of a job laid out for the template."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dashboards.targets.html.job import (
    Around,
    Drawing,
    Finding,
    JobPage,
    Line,
    PlainTable,
    Span,
    Track,
    render_job,
)
from esjobs.core.text import visible
from esjobs.issues.earlier_runs import HEADINGS, cells
from esjobs.issues.one_job import JobStory, Row
from esjobs.issues.plots import Plot
from esjobs.issues.rules.hints import formatted
from esjobs.pop.text import launches
from esjobs.render.roofline import roofline_drawing
from esjobs.render.scale import path
from esjobs.render.text.job import (
    figure,
    form_of,
    found,
    issues_and_tags,
    not_judged,
    plot_title,
    record_lines,
    score_lines,
)

# Of a plot, in units of its box
_WIDTH, _BOTTOM, _TOP = 480, 96, 14
# Heights below the axis: of the times at its ends, of the row of a rule
_TICKS, _TRACK = 16, 20
_FIGURES = ("mean", "max", "min", "sd", "p05", "p95", "imbalance", "total", "n_units", "gap_frac")


def job_html(story: JobStory, around: Around | None = None, links: Sequence[tuple[str, str]] = ()) -> str:
    """The page of a job as HTML; without ``around`` it needs nothing else. ``links``: titles, addresses."""
    issues, tags = issues_and_tags(story)
    return render_job(
        JobPage(
            f"Job {visible(story.job_id)} of {visible(story.source)}",
            _summary(story, len(issues)),
            [_finding(row) for row in issues],
            [_finding(row) for row in tags],
            not_judged(story),
            [_drawing(story, plot) for plot in story.plots],
            list(_tables(story)),
            launches(story.pop)[0],
            links,
            None if story.roofline is None else roofline_drawing(story.roofline),
        ),
        around,
    )


def _summary(story: JobStory, n_issues: int) -> str:
    if not story.record:
        return "No record of this job is stored, only time series."
    record = story.record
    who = " of ".join(visible(str(record[name])) for name in ("user", "project") if name in record)
    ran = f"ran for {formatted(record['wall_s'], 'time')}" if "wall_s" in record else "ran"
    on = (
        f" on {formatted(record['cores'])} {'core' if record['cores'] == 1 else 'cores'}"
        if "cores" in record
        else ""
    )
    where = f" at {visible(str(record['queue']))}"
    count = "No issues found." if not n_issues else f"{n_issues} issue{'s' * (n_issues > 1)}."
    return f"{f'{who} ' if who else ''}{ran}{on}{where}. {count}"


def _finding(row: Row) -> Finding:
    return Finding(row["detector"], row["severity"], found(row), visible(row["hint"] or ""))


def _tables(story: JobStory) -> Iterator[PlainTable]:
    if story.runs:
        title = f"Earlier runs of {visible(str(story.record['job_name']))}"
        yield PlainTable(title, [cells(run) for run in story.runs], HEADINGS, numbers=False)
    if story.scores is not None:
        yield PlainTable("Scores", list(score_lines(story)), about="0 is best, 100 is worst.")
    if story.record:
        yield PlainTable("Record", list(record_lines(story)))
    if story.footprints:
        about = "Figures over all samples of all units; ? is unknown or has no meaning."
        rows = [
            [f"{visible(row['metric'])} ({row['scope']})", *(figure(row, name) for name in _FIGURES)]
            for row in story.footprints
        ]
        yield PlainTable("Footprint", rows, ("metric", *_FIGURES), about)
    if story.measures:
        headings = ("detector", "value", "numbers", "not judged")
        yield PlainTable(
            "Measured by detectors", list(map(_measure, story.measures)), headings, numbers=False
        )


def _measure(row: Row) -> list[str]:
    return [
        f"{row['detector']} ({row['variant']})",
        formatted(row["value"]),
        ", ".join(f"{name} {formatted(value)}" for name, value in row["numbers"] or ()),
        visible(row["reason"] or ""),
    ]


def _drawing(story: JobStory, plot: Plot) -> Drawing:
    top = plot.largest if plot.largest > 0 else 1.0
    tracks = _tracks(story, plot)
    units = [visible(unit) for unit, _ in plot.shown]
    lines = [Line("mean", "mean", _path(plot.mean, top))] + [
        Line(name, f"unit-{number % 4}", _path(values, top))
        for number, (name, (_, values)) in enumerate(zip(units, plot.shown, strict=True))
    ]
    title = plot_title(plot)
    name, _, words = title.partition(", ")
    return Drawing(
        name,
        words,
        title,
        _WIDTH,
        _BOTTOM + _TICKS + _TRACK * len(tracks),
        _BOTTOM,
        formatted(plot.largest, form_of(plot.metric)),
        f"{plot.start:%Y-%m-%d %H:%M}",
        f"{plot.end:%Y-%m-%d %H:%M}",
        list(_bands(plot, top)) if plot.n_units > 1 else [],
        lines,
        _together([span for track in tracks for span in track.spans]),
        tracks,
        units,
    )


def _tracks(story: JobStory, plot: Plot) -> list[Track]:
    """A row per rule and severity with the times in which it sees an issue, in the order of the issues."""
    spans: dict[tuple[str, str], list[Span]] = {}
    for row in story.seen_in(plot.metric):
        begin, until = plot.position(row["begin"]), plot.position(row["until"])
        # what is seen in one sample alone is still to be seen
        width = min(_WIDTH, max(1.5, _WIDTH * (until - begin)))
        span = Span(round(min(_WIDTH * begin, _WIDTH - width), 1), round(width, 1))
        spans.setdefault((row["detector"], row["severity"]), []).append(span)
    return [
        Track(f"{name} ({severity})", severity, _BOTTOM + _TICKS + _TRACK * number, _together(found))
        for number, ((name, severity), found) in enumerate(spans.items())
    ]


def _together(spans: Sequence[Span]) -> list[Span]:
    """The same times without those that lie on each other.

    >>> _together([Span(10, 5), Span(0, 4), Span(12, 8)])
    [Span(x=0, width=4), Span(x=10, width=10)]
    """
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.x):
        last = found[-1] if found else None
        if last is None or span.x > last.x + last.width:
            found.append(span)
        elif span.x + span.width > last.x + last.width:
            found[-1] = Span(last.x, round(span.x + span.width - last.x, 1))
    return found


def _points(values: npt.NDArray[np.float64], top: float) -> list[tuple[float, float] | None]:
    n = len(values)
    return [
        (round(_WIDTH * (place + 0.5) / n, 1), round(_BOTTOM - (_BOTTOM - _TOP) * min(1.0, value / top), 1))
        if np.isfinite(value)
        else None
        for place, value in enumerate(values)
    ]


def _path(values: npt.NDArray[np.float64], top: float) -> str:
    """A line that is broken where there are gaps; a value alone is a short dash."""
    parts: list[str] = []
    drawing = False
    for point in _points(values, top):
        if point is None:
            drawing = False
        elif drawing:
            parts.append(f"L{point[0]},{point[1]}")
        else:
            parts.append(f"M{point[0]},{point[1]}h0.5")
            drawing = True
    return "".join(parts)


def _bands(plot: Plot, top: float) -> Iterator[str]:
    """The area between the smallest and the largest unit, a piece for each time without a gap."""
    above: list[tuple[float, float]] = []
    below: list[tuple[float, float]] = []
    for low, high in [*zip(_points(plot.low, top), _points(plot.high, top), strict=True), (None, None)]:
        if low is not None and high is not None:
            above.append(high)
            below.append(low)
        elif above:
            yield path([f"{x},{y}" for x, y in (*above, *reversed(below))], closed=True)
            above, below = [], []
