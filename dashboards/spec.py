"""The vocabulary of panels: what is shown, from which result table, in which role; never how it is drawn.

A panel is a plain fact: a frozen record that names a table of :mod:`esjobs.core.tables`, its columns and
the rows it wants. Every target (the HTML report, saved objects of a dashboard server, a chart in a
notebook) reads the same records, so that the same question has the same answer everywhere. The report's
panels, in order, are listed in :mod:`dashboards.panels`.
"""

from dataclasses import dataclass
from typing import Literal

from esjobs.core.words import Level, standing

Kind = Literal[
    "tiles",
    "sentence",
    "table",
    "scatter-line",
    "dots-with-errors",
    "siblings",
    "scatter",
    "task-curves",
    "matrix",
    "pulls",
    "extremes",
    "name-list",
    "types",
    "books",
    "markdown",
    "provenance",
]
"""``tiles``: numbers of one row. ``sentence``: texts of one row, a paragraph each. ``scatter-line``: two
measured quantities with the line of the ``lines`` table. ``dots-with-errors``: one row per name, sorted.
``siblings``: names of one group joined by a line, both axes relative to the group's mean. ``scatter``: two
measured quantities. ``task-curves``: two quantities on logarithmic axes, one chart per task, with the curve
of the task's fixed cost per job. ``matrix``: names x tasks, the value of ``x`` as colour and number, names
sorted by ``y``. ``pulls``: a histogram per row, with a normal of width 1 over it. ``extremes``: a table of
the rows of largest magnitude of ``x``, under a sentence about all of them. ``name-list``: how many names
qualify, as a sentence, and which. ``types``: other panels repeated for every processing type. ``books``: jobs
in = binned + dropped by reason. ``markdown``: text for people. ``provenance``: what the numbers were made
from."""

Show = Literal[
    "name",
    "text",
    "sentence",
    "shared",
    "count",
    "number",
    "declared",
    "estimate",
    "percent",
    "fraction",
    "shift",
    "size",
    "yesno",
    "verdict",
    "time",
    "level",
    "names",
    "json",
]
"""How a value reads: ``number`` three significant digits, ``declared`` every digit that was declared,
``estimate`` as many digits as its error supports, ``percent`` a signed relative deviation,
``fraction`` a share between 0 and 1 written as percent, ``shift`` and ``size`` a small relative number in
percent with one decimal, with and without its sign, ``names`` a long list of names, ``json`` a JSON list or
object written as words, ``sentence`` a text that needs the width of a table, ``shared`` a text that many rows
have alike and that is told once above them."""

Role = Literal["label", "x", "y", "category", "group", "detail"]
"""``label`` names the row, ``category`` chooses colour and shape, ``group`` joins rows, ``detail`` is a
table column or a line of the tooltip only."""

ONE_SIGMA = 1.0
"""Half-width of error bars in standard errors, unless a panel wants another."""


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


@dataclass(frozen=True)
class Where:
    """Keep rows whose column holds an accepted value; ``negate`` keeps the others.

    Without accepted values: keep rows in which the column is not null (``negate``: in which it is).
    ``above``: keep rows whose magnitude exceeds it, to tell a number from the rounding of zero.
    """

    column: str
    accepted: tuple[str | int | None, ...] = ()
    negate: bool = False
    above: float | None = None


@dataclass(frozen=True)
class Tile:
    """A number from a column of the panel's table. ``verdict`` gives it the colour and shape of that verdict.

    ``one``: the label where the number is 1, if it is another.

    ``parts``: columns that add up to it, with what each counts; those above 0 are the label where there are
    any.
    """

    label: str
    column: str
    verdict: str = ""
    note: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    one: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel.

    ``id``: fixed, also used for anchors and saved objects. ``section``: panels of one section follow each
    other under its heading. ``table``: a result table, or empty for plain text.
    ``level``: restrict to rows of that level, where the table has one.
    ``types``: ``main`` rows of all types together, ``every`` rows of every type.
    ``sort``: column, with ``-`` in front for descending and ``|c|`` for its magnitude.
    ``interval``: half-width of drawn error bars in standard errors. ``band``: draw the accepted deviation.
    ``empty``: the sentence that stands here when no row qualifies. ``folded``: closed until asked for.
    ``optional``: left out altogether when no row qualifies. ``given``: left out altogether when no row of its
    level meets these conditions, because then even its absence says nothing. ``most``: show at most so many:
    with most jobs tasks (``task-curves``), names and tasks (``matrix``); or so many rows (``table``,
    ``extremes``).
    ``repeat``: of kind ``types`` only, the ids of the panels to repeat. ``text``: of kind ``markdown`` only,
    terms with their explanation, in which ``{limit}`` stands for the accepted deviation. ``on_request``: on
    paper only for who asks for everything. ``headline_only``: left out of the report of another method,
    because it is kept for, or speaks of, the headline alone.
    """

    id: str
    title: str
    kind: Kind
    section: str
    table: str = ""
    description: str = ""
    fields: tuple[Entry, ...] = ()
    where: tuple[Where, ...] = ()
    tiles: tuple[Tile, ...] = ()
    level: Level | None = None
    types: Literal["main", "every"] = "main"
    sort: tuple[str, ...] = ()
    interval: float = ONE_SIGMA
    band: bool = False
    empty: str = ""
    folded: bool = False
    optional: bool = False
    given: tuple[Where, ...] = ()
    most: tuple[int, ...] = ()
    repeat: tuple[str, ...] = ()
    text: tuple[tuple[str, str], ...] = ()
    on_request: bool = False
    headline_only: bool = False

    def entry(self, role: Role) -> Entry:
        """The first field of a role; :class:`LookupError` when the panel has none."""
        for field in self.fields:
            if field.role == role:
                return field
        raise LookupError(f"panel '{self.id}' has no field of role '{role}'")


@dataclass(frozen=True)
class Look:
    """How a verdict is drawn: colour on light and dark ground, a Vega shape, whether it is filled."""

    label: str
    shape: str
    glyph: str
    light: str
    dark: str
    filled: bool = True


LOOKS: dict[str, Look] = {
    "confirmed": Look("deviates, confirmed", "diamond", "◆", "#bf3c06", "#f2894f"),
    "candidate": Look("candidate, not confirmed", "diamond", "◇", "#858b95", "#9aa2ad", filled=False),
    "ok": Look("ok", "circle", "●", "#1f6699", "#6cb2e4"),
    "undecided": Look("undecided", "triangle-up", "▲", "#858b93", "#9aa2ab"),
    "default": Look("undeclared, a default value", "circle", "○", "#4d545d", "#c4cad1", filled=False),
    "undeclared": Look("undeclared", "square", "□", "#4d545e", "#c4cad2", filled=False),
    "not comparable": Look("not comparable", "square", "□", "#77579b", "#b99bdc", filled=False),
    "other": Look("too few, mixed or implausible", "cross", "✚", "#77579c", "#b99bdd", filled=False),
}
"""Verdicts by colour and shape: either alone is enough (vermilion, blue and grey stay apart for every common
kind of colour blindness). Only a confirmed deviation has a colour of warning, a candidate is muted.
``default`` is the look of an undeclared name whose queue carries a default value; ``other`` is every verdict
without a look of its own. No two colours are equal, so that a style sheet can tell them apart."""

GROUPS: dict[str, Look] = {
    "largest": Look("largest component", "circle", "●", "#33556f", "#93b7d3"),
    "other": Look("other components, not comparable", "square", "□", "#33556e", "#93b7d2", filled=False),
}
"""How factors are drawn where no verdict is: by the component they belong to."""

STATES: dict[str, Look] = {
    "used": Look("used in the fit", "circle", "●", "#2a6f97", "#7cb7dd"),
    "rejected": Look("rejected, too far off", "diamond", "◇", "#bf3c07", "#f2894e", filled=False),
    "other": Look("not in the fit", "square", "□", "#858b94", "#9aa2ac", filled=False),
}
"""How buckets are drawn: by what the fit made of them."""

EVERY_LOOK: tuple[Look, ...] = (*LOOKS.values(), *GROUPS.values(), *STATES.values())
"""All looks, in the order of a legend."""


def look_of(verdict: object, origin: object = None, confirmed: object = None) -> str:
    """The key of :data:`LOOKS` for a verdict, the origin of its declaration, and whether it is confirmed.

    >>> look_of("ok", "own"), look_of("undeclared", "default"), look_of("too few", "own")
    ('ok', 'default', 'other')
    >>> look_of("deviates", "own", True), look_of("deviates", "own", None)
    ('confirmed', 'candidate')
    """
    if verdict == "undeclared" and origin == "default":
        return "default"
    word = standing(str(verdict), confirmed)
    return word if word in LOOKS else "other"
