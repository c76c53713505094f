"""One file of any container to parsed pieces: the common part of every format that has a layout."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.reading.columnar import open_parquet, read_parquet
from esjobs.records.ingest.reading.delimited import Way, read_csv, read_header
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.json_lines import read_json_lines
from esjobs.records.ingest.reading.layout import Binding, Layout
from esjobs.records.ingest.reading.lines import BLOCK, LineFeed
from esjobs.records.ingest.reading.opening import ACCEPTED, OfText, Opened, opened
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block, Context, rows_of


@dataclass(frozen=True)
class LayoutSource(OfText):
    """A format that its layout describes: CSV, JSON lines or Parquet, column names in any case.

    ``with_events``: see :class:`~esjobs.records.ingest.base.Source`. ``from_name``: fields that the name of a
    file gives.
    """

    layout: Layout
    default_source: str
    with_events: bool | None = True
    from_name: Callable[[str], Mapping[str, object]] = lambda _: {}

    @property
    def name(self) -> str:
        """The format's name on the command line."""
        return self.layout.format

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the pieces of a file; see :func:`parse_file`."""
        context = Context(file.name, self.default_source, fill, self.from_name(file.name))
        return parse_file(file, self.layout, context)


def parse_file(
    file: Input, layout: Layout, context: Context, way: Way = "typed", block: int = BLOCK
) -> Iterator[Parsed]:
    """Yield the pieces of a file; the first has the notes, a file without rows gives one empty piece.

    The last piece counts the rejects that are not listed individually.
    """
    refusals = Refusals(file.name)
    filled = (*context.from_name, *context.fill)
    rows = 0
    noted = False
    with opened(file) as source:
        binding, pieces = _pieces(source, file, layout, filled, refusals, way, block)
        for piece, of_piece in pieces:
            notes = () if noted else of_piece.notes(file.name)
            parsed = rows_of(piece, of_piece, context, refusals, notes)
            if parsed.rows_in:
                noted = True
                rows += parsed.rows_in
                yield parsed
    notes = () if noted or binding is None else binding.notes(file.name)
    last = refusals.last_piece(notes)
    if not rows and not last.rows_in:
        # one empty piece, so that the load has its notes
        yield Parsed.of((), notes=(*notes, f"{file.name}: no rows"))
    elif last.rows_in:
        yield last


def _pieces(
    source: Opened,
    file: Input,
    layout: Layout,
    filled: tuple[str, ...],
    refusals: Refusals,
    way: Way,
    block: int,
) -> tuple[Binding | None, Iterable[tuple[Block, Binding]]]:
    """Return the binding of the header, if there is one, and the blocks of the file with theirs."""
    if source.container == "jsonl":
        # names may change from line to line
        feed = LineFeed(source.stream, file, block)
        return None, read_json_lines(feed, layout, refusals, way)
    if source.container == "parquet":
        parquet, binding = open_parquet(file, layout, filled)
        return binding, zip(read_parquet(parquet, binding, refusals), repeat(binding))
    feed = LineFeed(source.stream, file, block)
    first = next(iter(feed), None)
    if first is None or not first.data.strip():
        raise InputError(f"{file.name} holds nothing but blank lines; {ACCEPTED}")
    header = read_header(feed, first, layout, filled)
    return header.binding, zip(read_csv(feed, header, refusals, way), repeat(header.binding))
