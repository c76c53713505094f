"""Pages of a dashboard server: which panels stand where, and what a reader may filter by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dashboards.spec.panels import Panel
from dashboards.spec.tables import table
from dashboards.spec.views import Where

COLUMNS = 48  # Columns of the grid in which panels stand; a row is some 20 pixels high


@dataclass(frozen=True)
class Placed:
    """A panel and its place: ``x``, ``y`` of its upper left corner, ``w``, ``h`` its size, in the grid."""

    panel: Panel
    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True)
class Choice:
    """A column of a table by whose values a reader may filter a page; every panel of the page has it.

    ``chosen``: the value that is chosen when the page is opened; none: all are shown. ``single``: one at
    a time.
    """

    table: str
    column: str
    title: str
    chosen: str = ""
    single: bool = False


@dataclass(frozen=True)
class Page:
    """One dashboard.

    ``id``: fixed, a part of its address. ``question``: what a reader learns here, in one sentence.
    ``choices``: its filters. ``leads_to``: the page that opens, filtered, when a name is clicked.
    ``hint``: what a reader of a dashboard server has to know besides. ``above``: there a line above all
    panels, which no filter reaches. ``beyond``: ids of panels that HTML pages alone show. ``served``: places
    of panels that dashboard servers alone show, below the others.
    """

    id: str
    title: str
    question: str
    places: tuple[Placed, ...]
    choices: tuple[Choice, ...] = ()
    leads_to: str = ""
    hint: str = ""
    above: Panel | None = None
    beyond: tuple[str, ...] = ()
    served: tuple[Placed, ...] = ()

    @property
    def board(self) -> tuple[Placed, ...]:
        """Places on a dashboard server: without ``beyond``, with ``served`` below.

        What is left of a row stands beside what is left of the row before, or takes the whole width.
        """
        places = stacked(*map(_shared, self._rows()))
        end = max(each.y + each.h for each in places)
        return (*places, *(replace(each, y=each.y + end) for each in self.served))

    def _rows(self) -> list[list[Placed]]:
        """Rows without ``beyond``; of two with one panel left each, the second joins the first."""
        rows: list[list[Placed]] = []
        open_row = False
        for _, row in groupby(self.places, key=lambda each: each.y):
            every = list(row)
            kept = [each for each in every if each.panel.id not in self.beyond]
            if not kept:
                continue
            halved = len(kept) == 1 < len(every)
            if halved and open_row:
                rows[-1] += kept
            else:
                rows.append(kept)
            open_row = halved and not open_row
        return rows

    def narrows(self, column: str) -> bool:
        """True if a filter by a column leaves no panel of the board empty for want of that column."""
        tables = {placed.panel.view.table for placed in self.board} - {""}
        chosen = {choice.column for choice in self.choices}
        return column in chosen or all(column in table(name).column_names for name in tables)

    @property
    def preset(self) -> tuple[Where, ...]:
        """Conditions of a page when it is opened."""
        return tuple(Where(choice.column, (choice.chosen,)) for choice in self.choices if choice.chosen)


def _shared(row: Sequence[Placed]) -> tuple[int, tuple[tuple[Panel, int], ...]]:
    """The height of a row, and its panels: with their widths if they fill it, else with equal ones."""
    full = sum(each.w for each in row) == COLUMNS
    widths = [each.w if full else COLUMNS // len(row) for each in row]
    return max(each.h for each in row), tuple(
        (each.panel, width) for each, width in zip(row, widths, strict=True)
    )


def hinted(panel: Panel) -> Panel:
    """A panel as a dashboard server shows it.

    What may be done with it there is a part of its title, of words the last of them.
    """
    if not panel.hint:
        return panel
    if panel.kind == "markdown":
        return replace(panel, text=(*panel.text, ("Ask yourself", panel.hint)))
    return replace(panel, title=f"{panel.title}; {panel.hint}")


def stacked(*rows: tuple[int, tuple[tuple[Panel, int], ...]]) -> tuple[Placed, ...]:
    """Places row by row, from the top: the height of a row, and its panels with their widths, from the left.

    >>> from dashboards.spec import Panel
    >>> a, b = (Panel(name, name, "markdown", "") for name in "ab")
    >>> [(each.x, each.y, each.w) for each in stacked((4, ((a, 48),)), (9, ((a, 20), (b, 28))))]
    [(0, 0, 48), (0, 4, 20), (20, 4, 28)]
    """
    places: list[Placed] = []
    y = 0
    for height, panels in rows:
        x = 0
        for panel, width in panels:
            places.append(Placed(panel, x, y, width, height))
            x += width
        y += height
    return tuple(places)
