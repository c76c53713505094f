"""One column of a table in a panel: what it is called, how it reads, which part it plays."""

from dataclasses import dataclass
from typing import Literal

# Formats of values
Show = Literal[
    "name",
    "text",
    "sentence",  # a text as wide as a table
    "shared",  # a text that many rows have in common, written once above them
    "count",
    "number",  # three significant digits
    "declared",  # every digit that was declared
    "estimate",  # as many digits as its error supports
    "percent",  # a signed relative deviation
    "fraction",  # a share between 0 and 1 in per cent
    "sure",  # the probability of a statement
    "shift",  # a small relative number in per cent with one decimal and its sign
    "size",  # the same without sign
    "yesno",
    "verdict",
    "time",
    "level",
    "names",  # a long list of names
    "json",  # a JSON list or object in words
]

Role = Literal[
    "label",  # names the row
    "x",
    "y",
    "category",  # chooses colour and shape
    "group",  # joins rows
    "detail",  # a table column or a line of the tooltip only
]


@dataclass(frozen=True)
class Entry:
    """One column of a table in a panel.

    ``error``: the column with the standard error of this one, drawn as a bar or written behind ``±``.
    ``unit``: the column that names the unit of this one, where it differs from row to row.
    ``note``: what a reader should know about the column, shown on hover.
    ``always``: stands in a table even when no row has a value, where columns are otherwise left out.
    ``table``: the other table of names that holds the column, its row being the one of the same level, name,
    processing type and method. ``per``: the column of the panel's table by which this one is divided.
    ``fixed``: column, value and text: where the column holds that value, the text follows the number, because
    the number is what it is by construction.
    """

    column: str
    title: str
    show: Show = "text"
    role: Role = "detail"
    error: str | None = None
    note: str = ""
    unit: str | None = None
    always: bool = False
    table: str = ""
    per: str = ""
    fixed: tuple[str, str, str] | None = None
