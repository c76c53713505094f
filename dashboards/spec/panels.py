"""Panels, and what they are made of besides fields and views; see :mod:`dashboards.spec`."""

from dataclasses import dataclass
from typing import Literal

from dashboards.spec.fields import Entry, Role
from dashboards.spec.views import NOTHING, Join, View, Where

Kind = Literal[
    "tiles",  # numbers of one row
    "sentence",  # texts of one row, a paragraph each
    "table",
    "scatter-line",  # two measured quantities with the line of the table ``lines``
    "dots-with-errors",  # one row per name, sorted
    "siblings",  # names of one group joined by a line, both axes relative to the mean of the group
    "scatter",  # two measured quantities
    "task-curves",  # two quantities on logarithmic axes, a chart per task with the curve of its start-up
    "matrix",  # names x tasks, the value of ``x`` as colour and number, names sorted by ``y``
    "pulls",  # a histogram per row, with a normal of width 1 over it
    "extremes",  # a table of the rows of largest magnitude of ``x``, under a sentence about all of them
    "name-list",  # how many names qualify, as a sentence, and which
    "profiles",
    "trends",
    "types",  # other panels repeated for every processing type
    "books",  # jobs in = binned + dropped by reason
    "markdown",  # text for people
    "provenance",  # what the numbers were made from
    # those of dashboards alone
    "rows",  # the rows as they are, in columns
    "bars",  # a sum (``x``) per name, the largest first
    "shares",  # one sum over another (``x`` ``per`` another) per name
    "waste",  # what of the latter is left, in hours
    # a weighted mean (``x`` a sum of products, ``per`` the sum of weights) per name, of the names of most
    # weight; the first other field is the sum of all weights, of which it tells how much is known
    "weighted",
    "distribution",  # a sum (``x``) over the numbers of a column (``label``), each the lower end of 10 %
    "tenths",  # the same of two columns (``x``, ``y``), the sum (the other field) as area
    "trend",  # a quantity with its error over time, a line per name
    "sizes",  # an efficiency (``y``) over the number of CPUs (``x``), a line per name
    "statement",  # texts of one row, in large letters
    "light",  # green, yellow or red: may the numbers be used?
    "as-of",  # the same in one line with window and run, which no filter of a page reaches
    "amounts",  # a sum of seconds in hours (over another sum, where ``x`` has a ``per``) per name
    "ends",  # the same of jobs that did not finish, by how they ended
    "rates",  # a rate (``x``) per name with its interval, and who differs from the rest
    "busy",  # cores kept busy against cores given
    "coverage",  # of how many jobs each field is known
    "beside",  # a quantity day by day, of what is chosen and of all
    "days",
    "nights",  # a number (``y``) per name and night (``x``), in steps of colour
    "ranked",  # names with the largest magnitudes of ``x``, with their sign
    "caption",  # how many rows another panel has, as a sentence; of none, why
    "against-scores",  # factors of CPU models against the range of published scores of each
    "worst",  # jobs as they come, a bar of ``x`` each
    "of-jobs",  # a score (``y``) of each job over its hours (``x``)
]

ONE_SIGMA = 1.0  # Half-width of error bars in standard errors, unless a panel wants another


@dataclass(frozen=True)
class Tile:
    """A number from a column of the panel's table. ``verdict`` gives it the colour and shape of that verdict.

    ``where``: without a column, the number of rows that meet these conditions.

    ``one``: the label where the number is 1, if it is another.

    ``parts``: columns that add up to it, with what each counts; those above 0 are the label where there are
    any.
    """

    label: str
    column: str = ""
    verdict: str = ""
    note: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    one: str = ""
    where: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One panel.

    ``id``: fixed, also used for anchors and saved objects. ``section``: panels of one section follow each
    other under its heading. ``view``: the rows it is about; none for plain text. ``joins``: by name, what its
    chart looks up in other views.
    ``interval``: half-width of drawn error bars in standard errors. ``band``: draw the accepted deviation.
    ``empty``: the sentence that stands here when no row qualifies. ``folded``: closed until asked for.
    ``optional``: omitted when no row qualifies. ``requires``: omitted when no row of its level meets these
    conditions, because then even its absence says nothing. ``most``: show at most so many:
    with most jobs tasks (``task-curves``), names and tasks (``matrix``); or so many rows (``table``,
    ``extremes``), or names of each type (``types``).
    ``repeat``: of kind ``types`` only, the ids of the panels to repeat. ``text``: of kind ``markdown`` only,
    terms with their explanation, in which ``{limit}`` stands for the accepted deviation. ``on_request``: on
    paper only for who asks for everything. ``headline_only``: left out of the report of another method,
    because it is kept for, or speaks of, the headline alone. ``half``: in a report half as wide as the page,
    beside the next of these. ``besides``: the id of a panel of the report; the names of that are left out.
    ``stands_in``: the id of another, without rows of which this one is not folded. ``hint``: what a reader
    may do with it in a dashboard server, which is no part of its title elsewhere. ``few``: columns of its
    table in a dashboard server; none: the first five.
    """

    id: str
    title: str
    kind: Kind
    section: str
    view: View = NOTHING
    description: str = ""
    fields: tuple[Entry, ...] = ()
    joins: tuple[Join, ...] = ()
    tiles: tuple[Tile, ...] = ()
    interval: float = ONE_SIGMA
    band: bool = False
    empty: str = ""
    folded: bool = False
    optional: bool = False
    requires: tuple[Where, ...] = ()
    most: tuple[int, ...] = ()
    repeat: tuple[str, ...] = ()
    text: tuple[tuple[str, str], ...] = ()
    on_request: bool = False
    headline_only: bool = False
    half: bool = False
    besides: str = ""
    stands_in: str = ""
    hint: str = ""
    few: tuple[str, ...] = ()

    def entry(self, role: Role) -> Entry:
        """The first field of a role; :class:`LookupError` when the panel has none."""
        for field in self.fields:
            if field.role == role:
                return field
        raise LookupError(f"panel '{self.id}' has no field of role '{role}'")
