"""The page of one job as a single HTML file: no scripts, no network; texts are escaped by the template."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from dashboards.targets.html.files import environment, read
from dashboards.targets.html.theme import palette_css, series_css

Label = tuple[float, float, str, str]  # Position, text and anchor (middle or end) of a text in a drawing


@dataclass(frozen=True)
class Finding:
    """An issue or a tag, in words."""

    name: str
    severity: str
    found: str
    hint: str


@dataclass(frozen=True)
class Span:
    """A part of the time of a plot."""

    x: float
    width: float


@dataclass(frozen=True)
class Track:
    """The line below a plot of one rule: when it sees an issue there. ``top``: of its row."""

    label: str
    severity: str
    top: int
    spans: Sequence[Span]


@dataclass(frozen=True)
class Line:
    """A line of a plot as the path of an SVG; ``style``: its class."""

    name: str
    style: str
    path: str


@dataclass(frozen=True)
class RooflineDrawing:
    """A roofline in words, and drawn with ``n_ages`` colours; ``nodes``: names with their marks, if few."""

    headline: str
    notes: str
    lines: Sequence[Line] = ()
    labels: Sequence[Label] = ()
    n_ages: int = 0
    nodes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """A plot, laid out in a box of ``width`` x ``height`` with its axis at ``bottom``.

    ``shades``: times in which any issue is seen, none of them twice: shades that lie on each other would be
    darker than any of them means. ``tracks``: below the axis, a row per rule.
    """

    name: str
    words: str
    label: str
    width: int
    height: int
    bottom: int
    top: str
    start: str
    end: str
    band: Sequence[str]
    lines: Sequence[Line]
    shades: Sequence[Span]
    tracks: Sequence[Track]
    units: Sequence[str]


@dataclass(frozen=True)
class PlainTable:
    """A table: the first cell of a row names it; ``numbers``: whether the others are numbers."""

    title: str
    rows: Sequence[Sequence[str]]
    headings: Sequence[str] = ()
    about: str = ""
    numbers: bool = True


@dataclass(frozen=True)
class JobPage:
    """Everything on the page, as texts. ``launches``: those of ``esjobs.pop.text``, trees of efficiencies."""

    title: str
    summary: str
    issues: Sequence[Finding]
    tags: Sequence[Finding]
    not_judged: str
    plots: Sequence[Drawing]
    tables: Sequence[PlainTable]
    launches: Sequence[Any] = ()
    links: Sequence[tuple[str, str]] = ()
    roofline: RooflineDrawing | None = None


def nowhere(_heading: str, _cell: str) -> str:
    """The address of a cell's page where pages stand alone: none."""
    return ""


@dataclass(frozen=True)
class Around:
    """Context of a page among others.

    ``style``: the address of the style sheet that they share. ``mark``: by which our files are known.
    ``ways``: titles and addresses of pages to go back to. ``lead``: address of the page of a cell, by the
    heading of its column; empty without one.
    """

    style: str
    mark: str
    ways: Sequence[tuple[str, str]]
    lead: Callable[[str, str], str] = nowhere


def job_style() -> str:
    """The style sheet of pages of jobs."""
    return palette_css() + series_css() + read("report.css") + read("job.css")


def render_job(page: JobPage, around: Around | None = None) -> str:
    """The page as HTML; the same page gives the same text, to the byte. ``around``: none, it stands alone."""
    style = Markup("" if around else job_style())  # noqa: S704 - our own files
    mark = Markup(around.mark if around else "")  # noqa: S704 - our own text
    lead = around.lead if around else nowhere
    return _template().render(page=page, style=style, around=around, mark=mark, lead=lead).lstrip()


@cache
def _template() -> jinja2.Template:
    return environment().from_string(read("led.jinja") + read("job.html.jinja"))
