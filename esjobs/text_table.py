"""Rows as a table of text for people: numbers, ids and names stay whole, only prose is wrapped, on words."""

import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import IO

from rich.cells import cell_len

_GAP = "  "
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_NARROWEST_PROSE = 24
"""Columns of prose are not made narrower than this, unless they are."""
_WIDEST_PROSE = 80
"""What a line of prose may take where lines run past the edge anyway."""


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

    What is no terminal gets every row on one line. On a terminal that is too narrow, columns of ``prose``
    are wrapped on words, then headings are broken at their underscores too; where that is not enough, lines
    run past the edge, and the terminal folds them: nothing is cut.
    """
    cells = [[row[place] for row in rows] for place in range(len(columns))]
    content = [max(map(cell_len, column), default=0) for column in cells]
    headings = [[name] for name in columns]
    widths = _widths(headings, content)
    if stream.isatty():
        room = shutil.get_terminal_size().columns - len(_GAP) * (len(columns) - 1)
        least = {
            place: min(content[place], max(_NARROWEST_PROSE, _longest_word(cells[place])))
            for place, name in enumerate(columns)
            if name in prose
        }
        broken = [_broken(name, width) for name, width in zip(columns, content, strict=True)]
        if sum(_narrowed(widths, least, room)) > room:
            headings, widths = broken, _widths(broken, content)
        fitting = _narrowed(widths, least, room)
        if sum(fitting) > room:
            fitting = [
                min(width, max(least[place], _WIDEST_PROSE)) if place in least else width
                for place, width in enumerate(widths)
            ]
        widths = fitting
    if title:
        stream.write(title + "\n")
    right = [name in numbers for name in columns]
    height = max(map(len, headings), default=0)
    for line in _lines([[""] * (height - len(lines)) + lines for lines in headings], widths, right):
        stream.write((f"{_BOLD}{line}{_PLAIN}" if stream.isatty() else line) + "\n")
    for row in rows:
        broken = [_wrapped(text, width) for text, width in zip(row, widths, strict=True)]
        for line in _lines(broken, widths, right):
            stream.write(line + "\n")
    if not rows:
        stream.write("(no rows)\n")


def _widths(headings: Sequence[Sequence[str]], content: Sequence[int]) -> list[int]:
    return [max(width, *map(cell_len, lines)) for lines, width in zip(headings, content, strict=True)]


def _narrowed(widths: Sequence[int], least: Mapping[int, int], room: int) -> list[int]:
    """Widths that take from the widest columns of prose what is missing, down to the ``least`` of each."""
    narrowed = list(widths)
    while sum(narrowed) > room:
        wide = [place for place, width in least.items() if narrowed[place] > width]
        if not wide:
            break
        narrowed[max(wide, key=lambda place: narrowed[place])] -= 1
    return narrowed


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
