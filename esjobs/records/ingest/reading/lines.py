"""Cuts a stream of bytes into blocks of whole lines, and a block into records when quoting makes it hard."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import EXCERPT, MAX_LINE, RowError
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.opening import opened, reading
from esjobs.records.ingest.refusals import Refusals

BLOCK = 4 << 20
"""Bytes read at a time: large enough for columnar parsing, small enough to stay in the cache of a laptop."""

LINES = 1 << 17
"""Lines of a block at most: every field costs some bytes a row, however short the lines are."""

PIECE = 1 << 18
"""Bytes of the smaller blocks in which an offending block is tried again."""

_QUOTE, _NEWLINE, _RETURN = 0x22, 0x0A, 0x0D


@dataclass(frozen=True)
class Lines:
    """Complete lines; ``first``: number of the first one. ``final``: no further line belongs to them.

    ``overlong``: the start of one line beyond ``MAX_LINE``; its rest was skipped. ``pushed``: number of bytes
    pushed back before; a split keeps them with more, for a record that needs more lines.
    """

    data: bytes
    first: int
    final: bool
    overlong: bool = False
    pushed: int = 0


class LineFeed:
    """Blocks of complete lines of ``stream``; holds one block and a partial line.

    :meth:`push_back` returns the end of a block whose record goes on in the next one, :meth:`split` asks for
    the same lines in smaller blocks. ``line``: number of the first line of the next block.
    """

    def __init__(self, stream: BinaryIO, file: Input, block: int = BLOCK) -> None:
        self.file = file
        self.line = 1
        self._stream = stream
        self._block = block
        self._ended = False
        self._pushed = b""
        self._pieces: list[bytes] = []
        self._partial = b""

    def __iter__(self) -> Iterator[Lines]:
        while True:
            if self._pieces:
                pushed, self._pushed = self._pushed, b""
                data = pushed + self._pieces.pop(0)
                lines = Lines(data, self.line, self._ended and not self._pieces, pushed=len(pushed))
                self.line += data.count(b"\n")
                yield lines
            elif self._ended:
                return
            else:
                new = self._read()
                self._ended = not new
                data, self._partial = self._partial + new, b""
                cut = len(data) if self._ended else data.rfind(b"\n") + 1
                # no line end in all of it: the line is too long, whatever follows
                if not cut and len(data) > MAX_LINE:
                    if self._pushed:
                        self._partial = data
                        yield self._rest()
                    else:
                        yield self._skip(data)
                    continue
                self._partial = data[cut:]
                if cut or (self._ended and self._pushed):
                    self._pieces = _of_few_lines(data[:cut])

    def push_back(self, data: bytes) -> None:
        """Return the unread end of the block that was yielded last; it starts the next one."""
        self._pushed = data
        self.line -= data.count(b"\n")
        if data and self._ended and not self._pieces:
            self._pieces = [b""]

    def split(self, lines: Lines) -> bool:
        """Take the block that was yielded last back and yield it in pieces; False when it is one piece."""
        pieces, at, least = [], 0, lines.pushed + PIECE
        while at < len(lines.data):
            end = lines.data.find(b"\n", min(at + least, len(lines.data))) + 1 or len(lines.data)
            least = PIECE
            pieces.append(lines.data[at:end])
            at = end
        if len(pieces) < 2:
            return False
        self._pieces = pieces + self._pieces
        self.line = lines.first
        return True

    def _rest(self) -> Lines:
        # the line that follows is too long to belong to what was pushed back
        lines, self._pushed = Lines(self._pushed, self.line, final=True), b""
        self.line += lines.data.count(b"\n")
        return lines

    def _skip(self, data: bytes) -> Lines:
        # enough for an excerpt, whatever the characters
        overlong = Lines(data[: 8 * EXCERPT], self.line, final=False, overlong=True)
        while data:
            end = data.find(b"\n") + 1
            if end:
                self._partial = data[end:]
                self.line += 1
                break
            data = self._read()
        return overlong

    def _read(self) -> bytes:
        with reading(self.file, f", after line {max(self.line - 1, 0)}"):
            return self._stream.read(self._block)


def complete_lines(file: Input, refusals: Refusals, what: str) -> Iterator[Lines]:
    """Yield the lines of a text file, ``what`` for messages; overlong ones go to ``refusals``."""
    with opened(file) as source:
        if source.container != "csv":
            raise InputError(f"{file.name} is {source.container}, not {what}")
        for lines in LineFeed(source.stream, file, BLOCK):
            if lines.overlong:
                refusals.refuse(too_long(), lines.first, excerpt(lines.data))
            else:
                yield lines


def _of_few_lines(data: bytes) -> list[bytes]:
    if data.count(b"\n") <= LINES:
        return [data]
    newlines = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE)
    bounds = [0, *(newlines[LINES - 1 :: LINES] + 1).tolist()]
    if bounds[-1] < len(data):
        bounds.append(len(data))
    return [data[start:end] for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Index:
    """Positions of the lines of a block, without line ends and blank lines; ``numbers``: of the lines."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    quotes_balanced: bool

    @property
    def longest(self) -> int:
        """Bytes of the longest line."""
        return int((self.ends - self.starts).max()) if len(self.starts) else 0


def index_lines(lines: Lines) -> Index:
    """Find the lines of a block; a few passes of memory bandwidth."""
    view = np.frombuffer(lines.data, dtype=np.uint8)
    newlines = np.flatnonzero(view == _NEWLINE)
    ends = newlines if not len(view) or view[-1] == _NEWLINE else np.append(newlines, len(view))
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    numbers = np.arange(lines.first, lines.first + len(ends), dtype=np.int64)
    lengths = ends - starts
    blank = (lengths == 0) | ((lengths == 1) & (view[np.minimum(starts, len(view) - 1)] == _RETURN))
    balanced = True
    if b'"' in lines.data:
        quotes = np.searchsorted(np.flatnonzero(view == _QUOTE), ends)
        balanced = not bool((quotes % 2).any())
    if blank.any():
        starts, ends, numbers = starts[~blank], ends[~blank], numbers[~blank]
    return Index(starts, ends, numbers, balanced)


def excerpt(raw: bytes) -> str:
    """The start of a raw row as printable text."""
    # a character has at most four bytes in UTF-8
    text = raw[: 4 * EXCERPT].decode("utf-8", "replace").rstrip("\r\n")
    return text[:EXCERPT]


def too_long() -> RowError:
    """Return the error of a line beyond ``MAX_LINE``."""
    return RowError("line too long", "", f"the row has more than {MAX_LINE} bytes; accepted: shorter rows")


def decoded(raw: bytes) -> str:
    """Return a line as text; :class:`RowError` for one that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        detail = f"byte {raw[error.start]:#04x} at position {error.start + 1}; accepted: UTF-8"
        raise RowError("not UTF-8", "", detail) from None


_FIELD_END = re.compile(rb"[,\n]")


@dataclass(frozen=True)
class Record:
    """One CSV record that ends before ``end``; ``cells`` are raw bytes, quotes resolved.

    ``open_quote``: a quoted cell does not end inside the block, or within ``MAX_LINE``.
    """

    cells: list[bytes]
    end: int
    open_quote: bool = False


def record_at(data: bytes, start: int) -> Record:
    """Split the record that starts at ``start``.

    A quote opens a quoted cell only at its start; inside, two quotes stand for one and line ends are data;
    text after the closing quote belongs to the cell.
    """
    cells: list[bytes] = []
    at, size = start, len(data)
    while True:
        value = b""
        if data[at : at + 1] == b'"':
            close = _closing_quote(data, at + 1, start + MAX_LINE)
            if close < 0:
                return Record(cells, min(size, start + MAX_LINE), open_quote=True)
            value = data[at + 1 : close].replace(b'""', b'"')
            at = close + 1
        match = _FIELD_END.search(data, at)
        end = match.start() if match else size
        cells.append(value + data[at:end])
        if end == size or data[end] == _NEWLINE:
            cells[-1] = cells[-1].rstrip(b"\r")
            return Record(cells, end)
        at = end + 1


def _closing_quote(data: bytes, at: int, limit: int) -> int:
    while True:
        at = data.find(b'"', at, limit)
        if at < 0 or data[at + 1 : at + 2] != b'"':
            return at
        at += 2
