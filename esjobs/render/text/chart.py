"""Charts of text for a terminal: bars, lines in braille, heat maps of shades."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, set_cell_size

Floats = npt.NDArray[np.float64]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHADES = " ░▒▓█"
_MISSING = "·"
_LONGEST_NAME = 32
_LINE_ROWS = 10
_MARK_ROWS = 21
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Bits of the dots of a braille character, by row and column
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def bars(names: Sequence[str], values: Floats, texts: Sequence[str], width: int) -> list[str]:
    """A bar a name, from 0 on; negative ones are drawn by their size and have their sign in the text.

    >>> bars(["a", "b"], np.array([1.0, 2.0]), ["1", "2"], 12)
    ['a  ███▌    1', 'b  ███████ 2']
    """
    names = _names(names)
    # 3: two spaces before the bar and one behind
    room = max(1, width - max(map(cell_len, names), default=0) - max(map(len, texts), default=0) - 3)
    sizes = np.abs(values)
    largest = float(np.nanmax(sizes, initial=0.0))
    lines = []
    for name, size, text in zip(names, sizes, texts, strict=True):
        length = 0.0 if math.isnan(size) or largest == 0 else room * float(size) / largest
        full, eighth = int(length), round((length - int(length)) * 8)
        bar = "█" * full + (_EIGHTHS[eighth] if eighth else "")
        lines.append(f"{name}  {bar:<{room}} {text:>{max(map(len, texts))}}")
    return lines


def line(times: Sequence[str], values: Floats, low: str, high: str, width: int) -> list[str]:
    """Values over time, first to last; ``low``, ``high``: what the ends of the axis are called.

    Missing values leave a gap.
    """
    margin = max(len(low), len(high)) + 1
    columns = max(2, min(width - margin, 100))
    lowest, highest = _ends(values)
    height = 4 * _LINE_ROWS
    cells = np.zeros((_LINE_ROWS, columns), np.int64)
    places = np.linspace(0, 2 * columns - 1, len(values)) if len(values) > 1 else np.zeros(1)
    for at, value in _between(places, values):
        # a character of braille is four dots high and two wide
        dot = round((highest - value) / (highest - lowest or 1.0) * (height - 1))
        cells[dot // 4, at // 2] |= _DOTS[dot % 4][at % 2]
    rows = ["".join(chr(0x2800 + int(cell)) for cell in row) for row in cells]
    names = [high, *[""] * (_LINE_ROWS - 2), low]
    drawn = [f"{name:>{margin - 1}} {row}" for name, row in zip(names, rows, strict=True)]
    first, last = (times[0], times[-1]) if times else ("", "")
    gap = max(1, columns - len(first) - len(last))
    return [*drawn, " " * margin + first + " " * gap + last]


def _ends(values: Floats) -> tuple[float, float]:
    """Return the smallest and the largest number; 0 and 1 without any."""
    finite = values[~np.isnan(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)


def _between(places: Floats, values: Floats) -> Iterator[tuple[int, float]]:
    """Yield the points of a line through values, a point per column of dots; it ends at a gap."""
    for start in np.flatnonzero(~np.isnan(values)).tolist():
        end = min(start + 1, len(values) - 1)
        if math.isnan(values[end]):
            end = start
        for at in range(round(places[start]), round(places[end]) + 1):
            part = 0.0 if end == start else (at - places[start]) / (places[end] - places[start])
            yield at, values[start] + min(1.0, max(0.0, part)) * (values[end] - values[start])


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Floats,
    low: str,
    high: str,
    width: int,
    empty: str = "no jobs",
) -> list[str]:
    """A shade a cell, the darkest for the largest value (rows x columns); a dot where there is none.

    ``empty``: what the dot means.
    """
    names = _names(rows)
    margin = max(map(cell_len, names), default=0) + 2
    shown = max(1, min(len(columns), (width - margin) // 2))
    cell = max(2, min(10, (width - margin) // shown))
    lowest, highest = _ends(values)
    # equal values have no span to divide by
    span = highest - lowest or 1.0
    headings = _headings(columns[:shown], cell)
    lines = [" " * margin + headings]
    for name, row in zip(names, values, strict=True):
        lines.append(
            f"{name}  " + "".join(_shade(value, lowest, span) * (cell - 1) + " " for value in row[:shown])
        )
    lines.append(" " * margin + f"{_SHADES[1]} {low} to {_SHADES[-1]} {high}; {_MISSING} {empty}")
    if shown < len(columns):
        lines.append(" " * margin + f"{len(columns) - shown} more columns omitted")
    return lines


def marks(
    columns: Sequence[str],
    series: Sequence[tuple[str, Floats]],
    limits: Sequence[float],
    width: int,
    *,
    across: str,
) -> list[str]:
    """A letter a value, by column (``columns``) and series (name, values), with the values below.

    Columns stand side by side in their order, whatever is between them. ``limits``: values at which a dashed
    line is drawn. ``across``: what the columns are. Where several values meet stands ``*``; missing
    ones have no letter.

    >>> drawn = marks(["4", "8"], [("good", np.array([1.0, 0.5]))], (0.8,), 30, across="CPUs")
    >>> drawn[0], drawn[-2:]
    ('1.00      a', ['   CPUs     4     8', 'a  good  1.00  0.50'])
    """
    least, highest = _ends(np.concatenate([*(values for _, values in series), [0.5, 1.0]]))
    # the lower half is drawn only when something is there, so that what is usual stands apart
    lowest = min(0.5, math.floor(10 * least) / 10)
    step = max(3, min(12, (width - 6) // max(1, len(columns))))
    rows = [[" "] * (step * len(columns)) for _ in range(_MARK_ROWS)]

    def row_of(value: float) -> int:
        return round((highest - value) / (highest - lowest) * (_MARK_ROWS - 1))

    labels = {0: highest, _MARK_ROWS - 1: lowest} | {row_of(limit): limit for limit in limits}
    for limit in limits:
        rows[row_of(limit)] = list("- " * (step * len(columns) // 2))
    # more series than letters would be no picture
    for (_, values), symbol in zip(series, _LETTERS, strict=False):
        for place in np.flatnonzero(~np.isnan(values)).tolist():
            row, at = rows[row_of(float(values[place]))], place * step + step // 2
            row[at] = symbol if row[at] in " -" else "*"
    axis = {place: f"{value:.2f}" for place, value in labels.items()}
    drawn = [f"{axis.get(place, ''):4} {''.join(row)}".rstrip() for place, row in enumerate(rows)]
    names = "".join(name[:step].center(step) for name in columns)
    return [*drawn, " " * 5 + names.rstrip(), *_values_below(columns, series, across)]


def _values_below(columns: Sequence[str], series: Sequence[tuple[str, Floats]], across: str) -> list[str]:
    texts = [["" if math.isnan(value) else f"{value:.2f}" for value in values] for _, values in series]
    name_width = max(map(cell_len, (across, *(name for name, _ in series))))
    cell = max(map(len, chain(columns, *texts)), default=0)
    rows: list[tuple[str, str, Sequence[str]]] = [(" ", across, columns)]
    rows += [(symbol, name, row) for (name, _), symbol, row in zip(series, _LETTERS, texts, strict=False)]
    return [
        "".join([f"{symbol}  {set_cell_size(name, name_width)}", *(f"  {text:>{cell}}" for text in row)])
        for symbol, name, row in rows
    ]


def _shade(value: float, lowest: float, span: float) -> str:
    if math.isnan(value):
        return _MISSING
    # the largest value itself would be a step beyond the last
    return _SHADES[1 + min(3, int((value - lowest) / span * 4))]


def _headings(columns: Sequence[str], cell: int) -> str:
    """The names of columns above them: the end of each, by which neighbours differ."""
    # names wider than a cell stand above every second, third or later column
    every = max(1, math.ceil((max(map(len, columns), default=1) + 1) / cell))
    text = ""
    for place, name in enumerate(columns):
        if place % every == 0:
            text = text.ljust(place * cell) + name
    return text


def _names(names: Sequence[str]) -> list[str]:
    widest = min(_LONGEST_NAME, max(map(cell_len, names), default=0))
    return [set_cell_size(name, widest) for name in names]
