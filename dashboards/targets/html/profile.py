"""The page of one site, queue or CPU model as a single HTML file: no scripts, no network, texts escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import jinja2
from markupsafe import Markup

from dashboards.spec import LOOKS, look_of
from dashboards.targets.html.files import environment, read
from dashboards.targets.html.job import Around, nowhere
from dashboards.targets.html.theme import SHAPES, palette_css, series_css, steps_css

_LOOKS_OF_NIGHTS = (
    *(("step-0", "below −20 %"), ("step-1", "−20 to −10 %"), ("step-2", "within 10 %")),
    *(("step-3", "+10 to +20 %"), ("step-4", "above +20 %"), ("candidate", "not confirmed")),
    *(("acknowledged", "acknowledged"), ("none", "not compared")),
)
# Letters up to which a cell stands on one line
_SHORT = 32
# Letters of a column of text when it is as narrow as it gets, and of the longest word that is not broken
_LETTERS, _WORD = 34, 70
# Measured sizes of a letter and of the gap between columns, rounded down
_LETTER_PX, _GAP_PX = 7.0, 13.5
# Widths of tables are classes of so many pixels each: a policy without inline styles admits no others
_NEEDS_PX, _MOST_NEEDS = 40, 100


@dataclass(frozen=True)
class Point:
    """A value with its interval, placed in a figure; its verdict gives mark and colour."""

    x: float
    y: float
    low: float
    high: float
    label: str
    verdict: str
    origin: str | None
    confirmed: bool | None

    @property
    def look(self) -> str:
        """The key of the look of its verdict."""
        return look_of(self.verdict, self.origin, self.confirmed)

    @property
    def shape(self) -> str:
        """The outline of its mark."""
        return SHAPES[LOOKS[self.look].shape]

    @property
    def filled(self) -> bool:
        """True if the mark is filled."""
        return LOOKS[self.look].filled


@dataclass(frozen=True)
class Tick:
    """A line across a figure with its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Label:
    """Text beside the row of a figure; ``strong``: it begins a group."""

    y: float
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Whiskers:
    """Deviations below each other, each with its interval, in a box of ``width`` x ``height``.

    ``left``: where the plot begins; ``band``: the two ends of what is within the limit.
    """

    title: str
    about: str
    width: int
    height: int
    left: int
    right: int
    bottom: int
    band: tuple[float, float]
    zero: float
    ticks: Sequence[Tick]
    labels: Sequence[Label]
    points: Sequence[Point]


@dataclass(frozen=True)
class Course:
    """Values over time with intervals, and what is declared as a line."""

    title: str
    about: str
    width: int
    height: int
    left: int
    bottom: int
    ticks: Sequence[Tick]
    times: Sequence[Tick]
    declared: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Dot:
    """A value of a curve; ``hollow``: it rests on little."""

    x: float
    y: float
    label: str
    hollow: bool = False


@dataclass(frozen=True)
class Curve:
    """A number over time, in a box of ``width`` x ``height``; ``path``: the line through its dots."""

    title: str
    about: str
    width: int
    height: int
    left: int
    bottom: int
    ticks: Sequence[Tick]
    times: Sequence[Tick]
    path: str
    dots: Sequence[Dot]


@dataclass(frozen=True)
class DayByDay(Curve):
    """A number by day with the range that was expected.

    ``shades``: begin and width of incidents; ``area``, ``expected``: outline of the expected range and the
    line through its middle; ``marks``: days of other events with their words.
    """

    shades: Sequence[tuple[float, float]]
    area: str
    expected: str
    marks: Sequence[Tick]


@dataclass(frozen=True)
class Cell:
    """A square of a map with its classes. ``address``: where it leads; empty: nowhere."""

    look: str
    label: str
    address: str


@dataclass(frozen=True)
class NightsMap:
    """Rows of squares, one a night; each row has a name and the address of its page."""

    title: str
    about: str
    nights: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[Cell]]]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Classes of squares and their words, of those that occur."""
        seen = {look for _, _, cells in self.rows for cell in cells for look in cell.look.split()}
        return [(look, words) for look, words in _LOOKS_OF_NIGHTS if look in seen]


@dataclass(frozen=True)
class Columns:
    """A table: the first cell of a row names it; ``numeric``: positions of the columns of numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int]

    def kind(self, place: int, cell: str) -> str:
        """The class of a cell: a number, a few words on one line, or text that needs room."""
        return "n" if place in self.numeric else "short" if len(cell) <= _SHORT else "text"

    @property
    def width(self) -> int:
        """Pixels that the table needs at least: without scripts a page can only guess, from its letters."""
        cells = zip(self.headings, *self.rows, strict=True)
        letters = sum(max(map(_letters, column)) for column in cells)
        return round(letters * _LETTER_PX + len(self.headings) * _GAP_PX)

    @property
    def width_class(self) -> int:
        """The number of the class that has this width."""
        return min(round(self.width / _NEEDS_PX), _MOST_NEEDS)


Figure = Whiskers | Course | Curve


@dataclass(frozen=True)
class Part:
    """A section: sentences, figures, a table and a map of nights, each where there are any."""

    title: str
    about: str
    sentences: Sequence[str]
    figures: Sequence[Figure]
    table: Columns | None
    nights: NightsMap | None = None


@dataclass(frozen=True)
class Fold:
    """One site on a page of many, closed until asked for. ``names``: its queues, by which links find it."""

    title: str
    summary: str
    names: Sequence[str]
    parts: Sequence[Part]


@dataclass(frozen=True)
class FormField:
    """An input of a form; with ``options`` a choice. ``kind``: text, number, date, area or hidden."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    options: Sequence[str] = ()
    kind: str = "text"
    required: bool = False


@dataclass(frozen=True)
class Form:
    """A form that asks the server, or with ``post`` gives it something; ``button``: its label."""

    action: str
    fields: Sequence[FormField]
    button: str
    post: bool = False


@dataclass(frozen=True)
class ProfilePage:
    """Everything on the page, as texts. ``links``: titles and addresses of further pages about it.

    ``form`` stands above the parts, ``forms`` with their titles below them.
    """

    title: str
    source: str
    parts: Sequence[Part]
    links: Sequence[tuple[str, str]] = ()
    form: Form | None = None
    forms: Sequence[tuple[str, Form]] = ()


def _letters(cell: str) -> int:
    """The letters that a cell needs beside each other."""
    return max(min(len(cell), _LETTERS), min(max(map(len, cell.split()), default=0), _WORD))


@dataclass(frozen=True)
class Wall:
    """A page for a screen that nobody touches.

    ``ended``: end of the last night that is done; the script tells its age, and warns after ``OLD_H`` hours.
    ``alarm``: what makes the numbers doubtful, empty if nothing does.
    """

    sentence: str
    ended: datetime | None
    alarm: str
    tiles: Sequence[tuple[str, str]]
    parts: Sequence[Part]


def profile_style() -> str:
    """The style sheet of these pages."""
    files = "".join(map(read, ("report.css", "job.css", "profile.css", "wall.css")))
    return palette_css() + series_css() + steps_css() + files + widths_css()


def widths_css() -> str:
    """The widths that tables need, as classes."""
    numbers = range(1, _MOST_NEEDS + 1)
    return "".join(f".needs-{number}{{--needs:{number * _NEEDS_PX}px}}" for number in numbers)


OLD_H = 26  # Hours after which a wall warns that no night ended


def render_profile(page: ProfilePage, around: Around | None = None) -> str:
    """The page as HTML; the same page gives the same text, to the byte. ``around``: none, it stands alone."""
    style = Markup("" if around else profile_style())  # noqa: S704 - our own files
    lead = around.lead if around else nowhere
    return _template().render(page=page, style=style, around=around, lead=lead).lstrip()


def render_wall(wall: Wall, style: str, script: str) -> str:
    """The page of a wall as HTML; its script fetches it again. ``style``, ``script``: their addresses."""
    return (
        _template("wall.html.jinja")
        .render(wall=wall, old_h=OLD_H, style=style, script=script, lead=nowhere)
        .lstrip()
    )


def wall_script() -> str:
    """The script that keeps a wall up to date."""
    return read("wall.js")


@cache
def _template(name: str = "profile.html.jinja") -> jinja2.Template:
    files = ("led.jinja", "profile_part.jinja", name)
    return environment().from_string("".join(map(read, files)))
