"""Rows as a table of text for people: numbers, ids and names are never broken, only prose is, on words.

Rich's tables cut numbers where a terminal is narrow (0.37 became 0.3), and took 15 times as long.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import IO

from rich.cells import cell_len, set_cell_size

_GAP = "  "
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
# Columns of prose are not made narrower than this, unless they are
_NARROWEST_PROSE = 24
# Width of a line of prose if lines pass the edge anyway
_WIDEST_PROSE = 80

# No column but one of prose is made wider than this. The longest names of CPU models have about 60.
_WIDEST_NAME = 100


def write_text_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    stream: IO[str],
    *,
    numbers: Collection[str] = (),
    prose: Collection[str] = (),
    title: str = "",
) -> None:
    """Write columns side by side, ``numbers`` to the right.

    What is no terminal gets every row on one line, uncut; a name of more than 100 columns pushes the rest of
    its own row aside, not of all others. On a terminal that is too narrow, columns of ``prose`` are wrapped
    on words, then headings are broken at their underscores too; where that is not enough, lines run past the
    edge, and the terminal folds them. Only a name, or a word of prose, of more than 100 columns is cut there,
    and ends with an ellipsis.
    """
    right = [name in numbers for name in columns]
    wraps = [name in prose for name in columns]
    mark = end = ""
    terminal = stream.isatty()
    if terminal:
        mark, end = _BOLD, _PLAIN
        columns = [_cut(name) for name in columns]
        rows = [_shortened(row, wraps) for row in rows]
    headings, widths = _headings(columns, rows, wraps, terminal=terminal)
    if title:
        stream.write(title + "\n")
    stream.writelines(f"{mark}{line}{end}\n" for line in _lines(_at_the_foot(headings), widths, right))
    # the width of a column of names or numbers is never a reason to break them
    room = list(map(max, widths, (0 if wrapped else sys.maxsize for wrapped in wraps)))
    for row in rows:
        stream.writelines(f"{line}\n" for line in _lines([*map(_wrapped, row, room)], widths, right))
    if not rows and (columns or not title):
        stream.write("(no rows)\n")


def _shortened(row: Sequence[str], wraps: Sequence[bool]) -> list[str]:
    """Cells cut to the widest column; of prose each word."""
    return [_cut_words(text) if wrapped else _cut(text) for text, wrapped in zip(row, wraps, strict=True)]


def _headings(
    columns: Sequence[str], rows: Sequence[Sequence[str]], wraps: Sequence[bool], *, terminal: bool
) -> tuple[list[list[str]], list[int]]:
    """Return the lines of each heading, and the width of each column."""
    cells = [[row[position] for row in rows] for position in range(len(columns))]
    content = [_content_width(column, wrapped) for column, wrapped in zip(cells, wraps, strict=True)]
    headings = [[name] for name in columns]
    if not terminal:
        return headings, _widths(headings, content)
    least = {
        position: min(content[position], max(_NARROWEST_PROSE, _longest_word(cells[position])))
        for position in compress(range(len(wraps)), wraps)
    }
    return _fitted(headings, content, least)


def _at_the_foot(headings: Sequence[list[str]]) -> list[list[str]]:
    height = max(map(len, headings), default=0)
    return [[""] * (height - len(lines)) + lines for lines in headings]


def _content_width(texts: Sequence[str], wrapped: bool) -> int:
    most = sys.maxsize if wrapped else _WIDEST_NAME
    return max((min(cell_len(text), most) for text in texts), default=0)


def _fitted(
    headings: list[list[str]], content: Sequence[int], least: Mapping[int, int]
) -> tuple[list[list[str]], list[int]]:
    """Headings and widths on a terminal; ``least``: widths of the columns of prose when they are narrowed."""
    widths = _widths(headings, content)
    room = shutil.get_terminal_size().columns - len(_GAP) * (len(headings) - 1)
    if sum(_narrowed(widths, least, room)) > room:
        headings = [_broken(lines[0], width) for lines, width in zip(headings, content, strict=True)]
        widths = _widths(headings, content)
    fitting = _narrowed(widths, least, room)
    if sum(fitting) > room:
        fitting = [
            min(width, max(least[position], _WIDEST_PROSE)) if position in least else width
            for position, width in enumerate(widths)
        ]
    return headings, fitting


def _widths(headings: Sequence[Sequence[str]], content: Sequence[int]) -> list[int]:
    return [max(width, *map(cell_len, lines)) for lines, width in zip(headings, content, strict=True)]


def _narrowed(widths: Sequence[int], least: Mapping[int, int], room: int) -> list[int]:
    """Widths that take from the widest columns of prose what is missing, down to the ``least`` of each."""
    narrowed = list(widths)
    # one column of characters at a time, so that columns of prose end up equally wide
    while sum(narrowed) > room:
        wide = [position for position, width in least.items() if narrowed[position] > width]
        if not wide:
            break
        narrowed[max(wide, key=lambda position: narrowed[position])] -= 1
    return narrowed


def _cut(text: str) -> str:
    """Text that is wider than any column, up to an ellipsis.

    >>> _cut("a" * 1000) == "a" * 99 + "…", _cut("a" * 100) == "a" * 100
    (True, True)
    """
    if cell_len(text) <= _WIDEST_NAME:
        return text
    return set_cell_size(text, _WIDEST_NAME - 1).rstrip() + "…"


def _cut_words(text: str) -> str:
    return re.sub(r"\S+", lambda word: _cut(word[0]), text)


def _longest_word(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _broken(name: str, width: int) -> list[str]:
    """A heading in lines no wider than its column, broken at underscores only.

    >>> _broken("cpu_s_per_event", 8), _broken("k", 6)
    (['cpu_s_', 'per_', 'event'], ['k'])
    """
    parts = name.replace("_", "_ ").split()
    width = max([width, *map(len, parts)])
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _lines(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Cells of one or several lines each, side by side."""
    lines = []
    for number in range(max(map(len, cells), default=0)):
        texts = []
        for lines_of_cell, width, to_right in zip(cells, widths, right, strict=True):
            text = lines_of_cell[number] if number < len(lines_of_cell) else ""
            blank = " " * (width - cell_len(text))
            texts.append(blank + text if to_right else text + blank)
        lines.append(_GAP.join(texts).rstrip())
    return lines
