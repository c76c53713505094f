"""Cuts a stream of bytes into blocks of whole lines, and a block into records when quoting makes it hard."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from esjobs.records.ingest.base import EXCERPT, MAX_LINE
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.opening import reading

BLOCK = 4 << 20
"""Bytes read at a time: large enough for columnar parsing, small enough to stay in the cache of a laptop."""

LINES = 1 << 17
"""Lines of a block at most: every field costs some bytes a row, however short the lines are."""

PIECE = 1 << 18
"""Bytes of the smaller blocks in which an offending block is tried again."""

_QUOTE, _NEWLINE, _RETURN = 0x22, 0x0A, 0x0D


@dataclass(frozen=True)
class Lines:
    """Whole lines. ``first``: number of the first one. ``final``: no line that follows belongs to them.

    ``overlong``: the block is the start of one line that exceeds ``MAX_LINE``; its rest was skipped.
    ``pushed``: how many of its first bytes were pushed back before; a split keeps them and more together, so
    that a record that needs more lines gets them.
    """

    data: bytes
    first: int
    final: bool
    overlong: bool = False
    pushed: int = 0


class LineFeed:
    """Streams blocks of whole lines from ``stream``; holds a block and a partial line at most.

    A reader may hand the end of a block back with :meth:`push_back` when a record goes on in the next one,
    and ask with :meth:`split` for the same lines in smaller blocks, to narrow down what offends.
    ``line``: number of the first line of the next block.
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
        """What was pushed back, when the line that follows is too long to belong to it."""
        lines, self._pushed = Lines(self._pushed, self.line, final=True), b""
        self.line += lines.data.count(b"\n")
        return lines

    def _skip(self, data: bytes) -> Lines:
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


def _of_few_lines(data: bytes) -> list[bytes]:
    """A block in pieces of at most ``LINES`` lines."""
    if data.count(b"\n") <= LINES:
        return [data]
    newlines = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE)
    cuts = [0, *(newlines[LINES - 1 :: LINES] + 1).tolist()]
    if cuts[-1] < len(data):
        cuts.append(len(data))
    return [data[start:end] for start, end in pairwise(cuts)]


@dataclass(frozen=True)
class Index:
    """Where the lines of a block lie: line i is ``data[starts[i]:ends[i]]``, without its line end.

    Blank lines (nothing, or a lone carriage return) are left out; ``numbers`` are the lines' numbers.
    """

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
    text = raw[: 4 * EXCERPT].decode("utf-8", "replace").rstrip("\r\n")
    return text[:EXCERPT]


_FIELD_END = re.compile(rb"[,\n]")


@dataclass(frozen=True)
class Record:
    """One CSV record of a block: its bytes end before ``end``; ``cells`` as raw bytes, quotes resolved.

    ``open_quote``: a quoted cell does not end inside the block (or not within ``MAX_LINE``).
    """

    cells: list[bytes]
    end: int
    open_quote: bool = False


def record_at(data: bytes, start: int) -> Record:
    """Split the record that starts at ``start``.

    A quote opens a quoted cell only at the start of the cell; inside it two quotes stand for one and line
    ends are data; text after the closing quote belongs to the cell. Elsewhere quotes are plain characters.
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
