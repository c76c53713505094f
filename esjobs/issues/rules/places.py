"""Line numbers of TOML keys: Python's reader returns values without lines."""

import re
from collections.abc import Sequence

_TABLE = re.compile(r"\s*\[+\s*([^\[\]#]+?)\s*\]+\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


class Places:
    """Lines of tables and keys of a file, from 1."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        quote = ""
        for number, line in enumerate(text.splitlines(), 1):
            # inside of a text of several lines nothing is a key
            if not quote:
                if (named := _TABLE.match(line)) is not None:
                    table = _parts(named[1])
                    self._lines.setdefault(table, number)
                elif (named := _KEY.match(line)) is not None:
                    self._lines.setdefault((*table, *_parts(named[1])), number)
            quote = _open_quote(line, quote)

    def line(self, path: Sequence[str]) -> int:
        """Return the line of a key, or of the innermost enclosing table; 1 if unknown.

        >>> Places('a = 1\\n[b]\\nc.d = 2').line(["b", "c", "d"]), Places("[b]").line(["b", "c"])
        (3, 1)
        """
        for end in range(len(path), 0, -1):
            if (number := self._lines.get(tuple(path[:end]))) is not None:
                return number
            # a table that only its inner ones write: [rules.mine]
            inside = [line for key, line in self._lines.items() if key[:end] == tuple(path[:end])]
            if inside:
                return min(inside)
        return 1


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(name))


def _open_quote(line: str, quote: str) -> str:
    """Return the quotation marks of a multi-line text that are open after a line."""
    position = 0
    while True:
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return quote
            position, quote = end + 3, ""
        else:
            starts = [(line.find(mark, position), mark) for mark in ('"""', "'''")]
            start, quote = min((each for each in starts if each[0] >= 0), default=(0, ""))
            if not quote:
                return ""
            position = start + 3
