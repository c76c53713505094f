"""Parts of a page as plain records: tables, figures, tiles, paragraphs."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboards.spec import LOOKS, Entry, Look, Panel, look_of
from dashboards.targets.html.cells import numeric, read, value_of
from dashboards.targets.html.marks import Drawing
from dashboards.targets.html.profile import Fold
from dashboards.targets.html.profile import Part as LaidOut
from dashboards.view.books import Books
from dashboards.view.rows import Row
from esjobs.core.numbers import count
from esjobs.core.text import visible

_LONG = {"name": 48, "sentence": 600}
_FILTER_FROM = 10
# Keys that differ between similar charts
_OWN = ("height", "description", "datasets")


@dataclass(frozen=True)
class Heading:
    """The head of a table column; ``style`` is one of a fixed set of CSS classes."""

    text: str
    style: str
    note: str


@dataclass(frozen=True)
class Cell:
    """A text, the number it sorts by (``None``: by its text), and how it looks.

    ``look``: the key of a verdict's look, or empty. ``long``: too long to be shown in full at once.
    """

    text: str
    order: str | None = None
    look: str = ""
    long: bool = False


@dataclass(frozen=True)
class TableRow:
    """The cells of one row, and the sentence that stands below them."""

    cells: tuple[Cell, ...]
    words: Cell | None = None


@dataclass(frozen=True)
class TablePart:
    """A table that can be sorted and, when it is long, filtered; ``shared``: what stands once above it."""

    headings: tuple[Heading, ...]
    rows: tuple["TableRow", ...]
    caption: str
    folded: bool = False
    shared: tuple[str, ...] = ()
    kind: str = "table"

    @property
    def filterable(self) -> bool:
        """True if a filter is useful."""
        return len(self.rows) >= _FILTER_FROM


@dataclass(frozen=True)
class ProfilesPart:
    """Sites with everything that is known of them, each closed until asked for."""

    folds: tuple[Fold, ...]
    kind: str = "profiles"


@dataclass(frozen=True)
class TrendsPart:
    """Figures that are laid out already, and a table."""

    part: LaidOut
    kind: str = "trends"


@dataclass(frozen=True)
class Title:
    """Title of one of several charts."""

    name: str
    words: str


@dataclass(frozen=True)
class FigurePart:
    """One or several charts side by side, by their numbers in the page's list of charts.

    ``titles``: one above each chart, or none. ``width``: in pixels, where the charts
    scroll sideways rather than shrink and do not grow to fill the page; 0: as wide as there is room.
    ``looks``: the legend; none when there is nothing to tell apart.
    """

    charts: tuple[int, ...]
    marks: int
    label: str
    caption: str = ""
    looks: tuple[Look, ...] = ()
    titles: tuple["Title", ...] = ()
    width: int = 0
    kind: str = "figure"

    @property
    def columns(self) -> int:
        """Number of charts side by side on paper."""
        return min(len(self.charts), 3 if self.titles else 2)


@dataclass(frozen=True)
class TextPart:
    """Paragraphs; ``loud`` ones are the page's conclusion."""

    paragraphs: tuple[str, ...]
    loud: bool = False
    kind: str = "text"


@dataclass(frozen=True)
class TermsPart:
    """Terms with their explanation; ``foreign`` where the texts come from data and may be of any length."""

    terms: tuple[tuple[str, str], ...]
    foreign: bool = False
    kind: str = "terms"


@dataclass(frozen=True)
class TileCount:
    """One count, None when it is not known; ``look`` is the key of a verdict's look, or empty."""

    label: str
    n: int | None
    look: str
    note: str


@dataclass(frozen=True)
class TilesPart:
    """Counts; those with a look add up to a bar."""

    tiles: tuple[TileCount, ...]
    kind: str = "tiles"


@dataclass(frozen=True)
class FitAccount:
    """Number of binned jobs in a fit."""

    level: str
    used: int
    left: int
    missing: int


@dataclass(frozen=True)
class BooksPart:
    """The books with what the fits took of them."""

    books: Books
    fits: tuple[FitAccount, ...]
    kind: str = "books"


@dataclass(frozen=True)
class TypePart:
    """One processing type: its name, a line of counts, and the panels made for it.

    ``note``: what they leave out, empty where they are complete.
    """

    name: str
    summary: str
    blocks: tuple["Block", ...]
    note: str = ""
    kind: str = "type"


Part = (
    TablePart
    | FigurePart
    | TextPart
    | TermsPart
    | TilesPart
    | BooksPart
    | TypePart
    | ProfilesPart
    | TrendsPart
)


@dataclass(frozen=True)
class Block:
    """A panel made concrete: its parts, or the sentence that stands in for them. ``n`` counts its rows."""

    anchor: str
    panel: Panel
    parts: tuple[Part, ...]
    n: int | None = None


@dataclass(frozen=True)
class Section:
    """Blocks under one heading."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]

    @property
    def on_request(self) -> bool:
        """True if the part is printed on request only."""
        return all(block.panel.on_request for block in self.blocks)


@dataclass
class Charts:
    """The charts of a page, numbered in the order in which they are added."""

    specs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, drawing: Drawing, like: int | None = None) -> int:
        """Keep a drawing and return its number; its rows are packed by column names.

        ``like``: the number of a chart that differs in rows and height only, whose specification is taken.
        """
        spec = dict(drawing.spec if like is None else self.specs[like])
        spec |= {key: drawing.spec[key] for key in _OWN[:2]}
        spec["datasets"] = {name: _packed(rows) for name, rows in drawing.datasets.items()}
        self.specs.append(spec)
        return len(self.specs) - 1

    def packed(self) -> list[dict[str, Any]]:
        """The charts for a page: what one has in common with an earlier one is there once, under ``like``."""
        first: dict[str, int] = {}
        packed = []
        for number, spec in enumerate(self.specs):
            own = {key: spec[key] for key in _OWN}
            # specifications are equal if their texts are: keys stand in the order in which they were made
            key = json.dumps({name: value for name, value in spec.items() if name not in own})
            like = first.setdefault(key, number)
            packed.append(spec if like == number else {"like": like, **own})
        return packed


def _packed(rows: list[Row]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(key for row in rows for key in row))
    return {"names": names, "rows": [[_short(row.get(name)) for name in names] for row in rows]}


def _short(value: Any) -> Any:
    # six digits place a mark to less than a pixel, and keep the page short
    return float(f"{value:.6g}") if isinstance(value, float) else value


def table_part(panel: Panel, rows: list[Row], *, folded: bool = False) -> TablePart:
    """The rows as a table. Columns without a value in any row are left out, unless they always stand."""
    first, *others = panel.fields
    by_show: dict[str, list[Entry]] = {"sentence": [], "shared": [], "": []}
    for entry in (first, *(each for each in others if stands(each, rows))):
        by_show[entry.show if entry.show in by_show else ""].append(entry)
    columns, sentences = by_show[""], by_show["sentence"]
    headings = tuple(Heading(entry.title, style_of(entry), entry.note) for entry in columns)
    body = tuple(
        TableRow(tuple(_cell(row, entry) for entry in columns), _words(row, sentences)) for row in rows
    )
    return TablePart(headings, body, panel.title, folded, shared=_shared(by_show["shared"], rows))


def stands(entry: Entry, rows: Sequence[Row]) -> bool:
    """True if a table has a column for a field: one that always stands, or of which a row has a value."""
    return entry.always or any(value_of(row, entry) is not None for row in rows)


def _words(row: Row, sentences: Sequence[Entry]) -> Cell | None:
    """Return the sentences below a row, all but the first with titles."""
    texts = [(entry.title, _cell(row, entry)) for entry in sentences if row.get(entry.column) is not None]
    if not texts:
        return None
    (_, first), *more = texts
    said = [first.text, *(f"{title}: {cell.text.removesuffix('.')}." for title, cell in more)]
    return Cell(" ".join(said), long=any(cell.long for _, cell in texts))


def _shared(entries: Iterable[Entry], rows: Sequence[Row]) -> tuple[str, ...]:
    """Each text of the shared columns once, with how many of the rows it is for."""
    texts = []
    for entry in entries:
        counts = Counter(row[entry.column] for row in rows if row[entry.column] is not None)
        for text, n in counts.items():
            who = "each" if n == len(rows) else f"{count(n)} of {count(len(rows))}"
            texts.append(f"{entry.title} {who}: {visible(str(text))}")
    return tuple(texts)


def style_of(entry: Entry) -> str:
    """Return the class of the cells of a column: number, name, long text, or none."""
    if numeric(entry):
        return "n"
    if entry.show == "name":
        return "m"
    if entry.show in {"names", "json"} or entry.column in {"link", "reason"}:
        return "w"
    return "v" if entry.column == "unstable_under" else ""


def _cell(row: Row, entry: Entry) -> Cell:
    value, text = value_of(row, entry), read(row, entry)
    long = len(text) > _LONG.get(entry.show, 160)
    if numeric(entry):
        return Cell(text, "" if value is None else f"{value:.7g}")
    if entry.show == "verdict":
        return Cell(text, look=look_of(value, row.get("origin"), row.get("confirmed")))
    return Cell(text, long=long)


def tiles_part(panel: Panel, counts: list[int | None]) -> TilesPart:
    """The tiles of a panel with their counts."""
    return TilesPart(
        tuple(
            TileCount(tile.label, n, tile.verdict if tile.verdict in LOOKS else "", tile.note)
            for tile, n in zip(panel.tiles, counts, strict=True)
        )
    )
