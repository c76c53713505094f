"""Selection of the scores behind a ranking, and sums over them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from esjobs.core.query import Count, Days, Filter, In, Metric, Present, Query, Range, Sum, SumProduct
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.schema.scores import SCORE_COLUMNS, SCORES
from esjobs.scores.findings import SCORED_AREAS
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Selection:
    """One score of a window, weighted by hours; ``variant``: only scores of this definition."""

    store: JobStore
    score: str
    weight: str
    window: Window | None = None
    variant: str | None = None

    @property
    def column(self) -> str:
        """Column of the score."""
        return SCORE_COLUMNS[self.score]

    @property
    def definition(self) -> str:
        """Column that names the definition of the score; empty if there is only one."""
        if self.column in SCORED_AREAS:
            return "issues_variant"
        return "variant" if self.column in ("score_cpu", "score_mem", "score_sum") else ""

    @property
    def where(self) -> tuple[Filter, ...]:
        """Filter by the definition."""
        return () if self.variant is None else (In(self.definition, (self.variant,)),)

    @property
    def days(self) -> tuple[Filter, ...]:
        """Filter by the days that the window touches."""
        return () if self.window is None else (Days.of_window(self.window),)

    def sums(
        self, keys: Sequence[str], value: str, where: Sequence[Filter], table: Table, *, squares: bool = True
    ) -> pa.Table:
        """Return by keys the count of weighted scores and the sums behind their mean and its spread."""
        # a shared row is many jobs; predictions have a row each
        jobs = Sum("n_jobs", "n_scored") if "n_jobs" in table.column_names else Count("n_scored")
        metrics: list[Metric] = [
            jobs,
            Sum(self.weight, "weights"),
            SumProduct(value, self.weight, "weighted"),
        ]
        if squares:
            metrics.append(SumProduct(f"{value}_sq", self.weight, "squares"))
        # a score without hours counts for no mean
        filters = (*self.where, *where, Present(self.weight))
        query = Query(tuple(keys), tuple(metrics), self.window, filters, over=table)
        return self.store.aggregate(query).table

    def hours(self, where: Sequence[Filter], table: Table = SCORES) -> float:
        """Return the hours of the jobs that match."""
        query = Query((), (Sum(self.weight, "hours"),), self.window, tuple(where), over=table)
        return float(self._rows(query)[0]["hours"] or 0.0)

    def shares(self, key: str, where: Sequence[Filter], null: str | None = None) -> dict[str, float]:
        """Return the share of hours by value of a column, largest first; rows without one count as ``null``,
        or not at all.
        """
        filters = (*where, *(() if null else (Present(key),)), Range(self.weight, gt=0))
        query = Query((key,), (Sum(self.weight, "hours"),), self.window, filters, over=SCORES)
        parts: dict[str, float] = defaultdict(float)
        for row in self._rows(query):
            parts[null if row[key] is None and null else str(row[key])] += row["hours"]
        # exact, so that shares do not depend on the order of the rows
        total = math.fsum(parts.values())
        ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
        return {name: part / total for name, part in ordered}

    def _rows(self, query: Query) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.store.aggregate(query).table.to_pylist()
        return rows
