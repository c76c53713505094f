"""Numbers of groups: counted by the cluster in bins and by value, or read.

The counterpart of `refinement`. A group is a row number of the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, ne
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from esjobs.store.elastic.asking import composite, partitions
from esjobs.store.elastic.asking.clauses import EVERY, Clause, all_of
from esjobs.store.elastic.asking.composite import Binned, Grouping
from esjobs.store.elastic.asking.narrowing import Keys, narrowed
from esjobs.store.elastic.asking.numbers import Form
from esjobs.store.elastic.asking.partitions import Part
from esjobs.store.elastic.asking.refinement import Counts, Floats, InconsistentError, Mask
from esjobs.store.elastic.transport.scan import PointInTime

Listed = tuple[Counts, Floats, Counts]
"""Group, value, how many jobs of the group have it."""

Locate = Callable[[pa.Table], Sequence[int]]
"""The groups of rows of keys."""


Ends = tuple[float | None, float | None]
"""The lower edge of a bin and the upper one; None: it has none."""


class Numbers(Protocol):
    """Number of jobs in groups."""

    def tells(self, edge: float) -> bool:
        """True if a bin can start there."""

    def sample(self, ranks: Sequence[float], holds: Mask | None, edges: Floats) -> list[float]:
        """Return approximate values at some ranks, of jobs in the open bins."""

    def counts(self, edges: Floats, n_groups: int, within: tuple[Floats, Mask] | None) -> Counts:
        """Return the jobs of each group in each bin.

        ``within``: previous edges and open bins; elsewhere counts are arbitrary.
        """

    def listed(self, edges: Floats, holds: Mask | None, n_jobs: int) -> Iterator[Listed]:
        """Yield the values in the open bins, possibly with others."""


@dataclass
class IndexNumbers:
    """Number in one form, of the jobs of a clause on a snapshot.

    ``requested``: grouping without sums. ``few``: sample of jobs for guessing edges; affects time only.
    """

    at: PointInTime
    requested: Grouping
    clause: Clause
    form: Form
    locate: Locate
    few: Clause
    rows: list[tuple[int, Keys]] = field(default_factory=list)
    """Groups and their keys in the index, as far as they were counted."""

    @property
    def jobs(self) -> Clause:
        """Clause of the jobs that have the number."""
        return all_of([self.clause, self.form.clause])

    def tells(self, edge: float) -> bool:
        return self.form.edge(edge) is not None

    def sample(self, ranks: Sequence[float], holds: Mask | None, edges: Floats) -> list[float]:
        """Return percentiles of a sample, or of the jobs in the open bins."""
        percents = [100 * rank for rank in ranks]
        body = {
            "size": 0,
            "query": all_of([self.jobs, self.few]) if holds is None else self._of(edges, holds),
            "aggs": {"at": {"percentiles": {"field": self.form.path, "percents": percents, "keyed": False}}},
            "track_total_hits": False,
        }
        found = self.at.search(body)["aggregations"]["at"]["values"]
        # of no jobs a percentile is null, or NaN as text
        raw = [one["value"] for one in found if isinstance(one["value"], int | float)]
        return list(map(float, self.form.values(np.array(raw, np.float64))))

    def counts(self, edges: Floats, n_groups: int, within: tuple[Floats, Mask] | None) -> Counts:
        """Count the jobs of each group in each bin; see :class:`Numbers`."""
        counts = np.zeros((n_groups, len(edges) + 1), np.int64)
        clause, numbers = self.jobs, np.arange(len(edges) + 1)
        if within is not None:
            # only bins that a quantile lies in are counted again
            clause, numbers = self._of(*within), _bins_inside(*within, edges)
        raw = self._raw(edges)
        binned = Binned(self.form.path, [_ends(raw, number) for number in numbers.tolist()])
        requested = replace(self.requested, binned={"bins": binned})
        counted = attrgetter("doc_count")
        first = within is None
        for buckets, groups in self._pages(requested, clause):
            inside = np.array([list(map(counted, bucket.bins.buckets)) for bucket in buckets], np.int64)
            if first and any(map(ne, inside.sum(axis=1).tolist(), map(counted, buckets))):
                raise InconsistentError("the bins of a group do not contain all its jobs")
            # adds up: several groups of the index may be one group of the answer
            np.add.at(counts, (groups[:, None], numbers[None, :]), inside)
            if first:
                self._remember(requested, buckets, groups)
        return counts

    def _remember(self, requested: Grouping, buckets: Sequence[Any], groups: Counts) -> None:
        """Keep the keys of groups: later clauses name the groups that matter."""
        keys = [*requested.requested_columns, *(["day"] if requested.days else [])]
        self.rows += [
            (group, {name: getattr(bucket.key, name) for name in keys} if keys else {})
            for group, bucket in zip(groups.tolist(), buckets, strict=True)
        ]

    def listed(self, edges: Floats, holds: Mask | None, n_jobs: int) -> Iterator[Listed]:
        """Yield the values in the open bins, a page at a time."""
        requested = replace(self.requested, value=self.form.path)
        clause = self._of(edges, holds)
        parts: Iterator[Part] = iter([Part(clause, EVERY)])
        # up to a few pages, cutting costs more than collecting the documents again
        if n_jobs > 3 * partitions.PAGE:
            parts = partitions.ranges(self.at, requested, clause, n_jobs)
        for part in parts:
            for buckets, groups in self._pages(requested, part.clause):
                values = np.array([bucket.key.value for bucket in buckets], np.float64)
                numbers = np.array([bucket.doc_count for bucket in buckets], np.int64)
                yield groups, self.form.values(values), numbers

    def _pages(self, requested: Grouping, clause: Clause) -> Iterator[tuple[Sequence[Any], Counts]]:
        for buckets in composite.pages_of(self.at, requested, clause, composite.decoder_of(requested)):
            if buckets:
                groups = self.locate(composite.columns_of(requested, buckets))
                yield buckets, np.array(groups, np.int64)

    def _raw(self, edges: Floats) -> list[float]:
        return [edge for edge in map(self.form.edge, edges.tolist()) if edge is not None]

    def _of(self, edges: Floats, holds: Mask | None) -> Clause:
        """Return the jobs of the groups in their open bins, possibly with others."""
        if holds is None:
            return self.jobs
        raw = self._raw(edges)
        groups = np.array([group for group, _ in self.rows], np.int64)
        wanted = [
            (self._between(_ends(raw, number)), np.flatnonzero(holds[groups, number]).tolist())
            for number in np.flatnonzero(holds.any(axis=0)).tolist()
        ]
        # a bin may be open for groups of another part only
        said = [(clause, numbers) for clause, numbers in wanted if numbers]
        return all_of([self.jobs, narrowed(self.requested, [keys for _, keys in self.rows], said)])

    def _between(self, ends: Ends) -> Clause:
        limits = {name: end for name, end in zip(("gte", "lt"), ends, strict=True) if end is not None}
        return {"range": {self.form.path: limits}} if limits else self.form.clause


def _bins_inside(former: Floats, holds: Mask, edges: Floats) -> Counts:
    """Return the bins between finer edges that lie in an open bin of any group."""
    lows = np.concatenate([[-np.inf], edges])
    in_question = np.logical_or.reduce(holds, axis=0)
    return np.flatnonzero(in_question[np.searchsorted(former, lows, side="right")])


def _ends(raw: Sequence[float], number: int) -> Ends:
    return (raw[number - 1] if number else None, raw[number] if number < len(raw) else None)


@dataclass(frozen=True)
class ReadNumbers:
    """Number of jobs that were read, with the group of each."""

    groups: Counts
    values: Floats

    def tells(self, edge: float) -> bool:
        del edge
        return True

    def sample(self, ranks: Sequence[float], holds: Mask | None, edges: Floats) -> list[float]:
        del ranks, holds, edges
        return []

    def counts(self, edges: Floats, n_groups: int, within: tuple[Floats, Mask] | None) -> Counts:
        """Count the jobs of each group in each bin; see :class:`Numbers`."""
        del within
        counts = np.zeros((n_groups, len(edges) + 1), np.int64)
        np.add.at(counts, (self.groups, np.searchsorted(edges, self.values, side="right")), 1)
        return counts

    def listed(self, edges: Floats, holds: Mask | None, n_jobs: int) -> Iterator[Listed]:
        del edges, holds, n_jobs
        yield self.groups, self.values, np.ones(len(self.values), np.int64)
