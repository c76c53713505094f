"""A question to the stored jobs and its answer."""

from dataclasses import dataclass

import pyarrow as pa

from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.questions.dimensions import Dimension
from esjobs.records.jobs.questions.metrics import QueryMetric


@dataclass(frozen=True)
class Question:
    """A question to the stored jobs, in the words of ``esjobs query``.

    ``by``: fields, ``week``, ``month``, ``hour``; none: one row. ``bins``: ``FIELD=EDGES``. ``sort``: a
    column or a metric; ``descending`` None: numbers from the largest, names from A. ``top``: number of
    groups, the rest as one row. ``min_jobs``: smaller groups are no rows. A ratio that groups are sorted by
    has its 95 % interval beside it, and which groups differ from the rest. ``compare``: a second window;
    ``previous``: the one right before. ``versus``: conditions of the jobs to compare with, in place of those
    on the same fields. ``share_of``: shares of the total of each value of a field of ``by``. ``strata``:
    fields that tell kinds of work apart, for the parts of a change. ``changed``: only rows that changed
    beyond noise.
    """

    by: tuple[str, ...]
    metrics: tuple[str, ...] = ("jobs",)
    where: tuple[str, ...] = ()
    window: Window | None = None
    clean: CleaningRules | None = None
    bins: tuple[str, ...] = ()
    sort: str | None = None
    descending: bool | None = None
    top: int | None = None
    min_jobs: int = 0
    total: bool = False
    share: bool = False
    errors: bool = False
    compare: Window | str | None = None
    versus: tuple[str, ...] = ()
    share_of: str | None = None
    strata: tuple[str, ...] = ()
    changed: bool = False

    @property
    def compares(self) -> bool:
        """True if two sets of jobs are compared."""
        return self.compare is not None or bool(self.versus)

    @property
    def has_all_groups(self) -> bool:
        """True if every group has a row."""
        return self.top is None and not self.min_jobs


@dataclass(frozen=True)
class Answer:
    """Groups of jobs with their numbers.

    ``table``: dimensions, numbers, and ``row`` (``group``, ``others`` or ``total``) where there may be
    others. ``notes``: one sentence each.
    """

    table: pa.Table
    question: Question
    by: tuple[Dimension, ...]
    metrics: tuple[QueryMetric, ...]
    notes: tuple[str, ...] = ()
    before: Window | None = None

    @property
    def title(self) -> str:
        """The jobs that were compared; empty without comparison."""
        if self.question.versus:
            return f"before: {', '.join(map(str, filter(None, (*self.question.versus, self.before))))}"
        return f"{self.question.window}; before: {self.before}" if self.before else ""

    @property
    def read(self) -> pa.Table:
        """The table as people read it: bins in a unit of their size; all else as in ``table``."""
        table = self.table
        for dimension in self.by:
            row = table.column_names.index(dimension.name)
            kind = table.schema.field(row)
            texts = pa.array(dimension.read(table.column(row).to_pylist()), kind.type)
            table = table.set_column(row, kind, texts)
        return table
