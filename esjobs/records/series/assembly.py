"""Rows of the table as arrays: units of a job side by side, samples at common instants."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Ints
from esjobs.core.metrics import SCOPES
from esjobs.records.series.chosen import job_codes, micros
from esjobs.records.series.packing import Samples, spans, unpack_equal

# Share of a step by which series of a job may be off each other and stand at the same instants.
_OFF = 0.05

# How often as many instants as samples a job may get, so that its finest series keeps its distance.
_LONGER = 4

_DIGITS = re.compile(r"(\d+)")


def assembled(rows: pa.Table, metrics: Sequence[str], most: int) -> Iterator[tuple[Any, ...]]:
    """The rows (columns ``chosen.READ``, each key once) as what blocks are made of, see :class:`Block`."""
    if not rows.num_rows:
        return
    layout = _Layout(rows, metrics)
    for jobs in layout.groups(most):
        yield layout.block(jobs, metrics)


class _Layout:
    """Rows by job, metric and unit, of each metric the finest scope, with common instants."""

    def __init__(self, rows: pa.Table, metrics: Sequence[str]) -> None:
        job, metric, scope = (
            job_codes(rows),
            _positions(rows, "metric", metrics),
            _positions(rows, "scope", SCOPES),
        )
        unit = _unit_ranks(rows.column("unit"))
        # one number of job, metric, scope and unit: a single sort finds the groups of all
        key = ((job * len(metrics) + metric) * len(SCOPES) + scope) * (int(unit.max()) + 1) + unit
        order = np.argsort(key, kind="stable")
        last = np.r_[key[order][1:] != key[order][:-1], True]
        if not last.all():
            # a load brought it twice: the longer one
            order = np.lexsort((rows.column("n_samples").to_numpy(), key))[last]
        group = job[order] * len(metrics) + metric[order]
        new = np.r_[True, group[1:] != group[:-1]]
        # the first row of each job and metric has its finest scope
        finest = scope[order][new][np.cumsum(new) - 1]
        order = order[scope[order] == finest]
        self.order = order
        self.rows = rows.drop_columns(["packed"]).take(pa.array(order))
        self.job, self.metric, self.scope = job[order], metric[order], scope[order]
        group = self.job * len(metrics) + self.metric
        begins = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        counts = np.diff(np.r_[begins, len(group)])
        self.position = np.arange(len(group)) - np.repeat(begins, counts)
        self.first = np.searchsorted(self.job, np.arange(int(job.max()) + 1))
        self.n_units = np.zeros((len(self.first), len(metrics)), np.int64)
        self.n_units[self.job[begins], self.metric[begins]] = counts
        self.packed = spans(rows.column("packed").combine_chunks())
        self.n_samples = self.rows.column("n_samples").to_numpy()
        self.step = self.rows.column("step_s").to_numpy()
        self.start = micros(self.rows.column("start_time")) / 1e6
        self._instants()

    def _instants(self) -> None:
        begin = np.minimum.reduceat(self.start, self.first)
        positive = np.where(self.step > 0, self.step, np.inf)
        distance = np.minimum.reduceat(positive, self.first)
        coarsest = np.maximum.reduceat(self.step, self.first)
        distance[~np.isfinite(distance)] = 0.0
        # over its whole length a series may drift by this share of a step
        mixed = coarsest > distance * (
            1 + _OFF / np.maximum(1, np.maximum.reduceat(self.n_samples, self.first))
        )
        span = self.start + np.maximum(self.n_samples - 1, 0) * self.step
        length_s = np.maximum.reduceat(span, self.first) - begin
        longest = np.maximum.reduceat(self.n_samples, self.first)
        for job in np.flatnonzero(mixed):
            last = self.first[job + 1] if job + 1 < len(self.first) else len(self.step)
            steps = np.unique(self.step[self.first[job] : last])
            steps = steps[steps > 0]
            fitting = steps[length_s[job] / steps < _LONGER * longest[job]]
            distance[job] = fitting[0] if len(fitting) else steps[-1]
        divisor = np.where(distance > 0, distance, 1.0)
        offset = (self.start - begin[self.job]) / divisor[self.job]
        self.offset = np.rint(offset).astype(np.int64)
        same = np.abs(self.step - distance[self.job]) * self.n_samples <= _OFF * divisor[self.job]
        self.aligned = (same | (self.n_samples <= 1)) & (np.abs(offset - self.offset) <= _OFF)
        self.length = np.rint(length_s / divisor).astype(np.int64) + 1
        ends = np.where(self.aligned, self.offset + self.n_samples, 0)
        self.length = np.maximum(self.length, np.maximum.reduceat(ends, self.first))
        self.begin, self.distance = begin, distance
        self.resampled = np.add.reduceat(~self.aligned, self.first) > 0

    def groups(self, most: int) -> Iterator[Ints]:
        """The jobs of each block: of one length, with as alike numbers of units as can be."""
        order = np.lexsort((*self.n_units.T, self.length))
        at = 0
        while at < len(order):
            length = self.length[order[at]]
            end = at + int(np.searchsorted(self.length[order[at:]], length, side="right"))
            # an array is as wide as its job with most units: the values it has with each further job
            widest = np.maximum.accumulate(self.n_units[order[at:end]], axis=0).sum(axis=1)
            values = widest * np.arange(1, end - at + 1) * length
            count = max(1, int(np.searchsorted(values, most, side="right")))
            yield np.sort(order[at : at + count])
            at += count

    def block(self, jobs: Ints, metrics: Sequence[str]) -> tuple[Any, ...]:
        """The arrays of some jobs of one length."""
        length = int(self.length[jobs[0]])
        local = np.full(len(self.first), -1, np.int64)
        local[jobs] = np.arange(len(jobs))
        wanted = np.flatnonzero(local[self.job] >= 0)
        values = {
            name: self._values(wanted[self.metric[wanted] == number], local, len(jobs), length)
            for number, name in enumerate(metrics)
        }
        units: dict[str, tuple[tuple[str, ...], ...]] = {}
        scopes: dict[str, tuple[str, ...]] = {}
        for number, name in enumerate(metrics):
            units[name], scopes[name] = self._names(jobs, wanted[self.metric[wanted] == number], local)
        firsts = pa.array(self.first[jobs])
        table = self.rows.select(["source", "job_id"]).take(firsts)
        ends = np.maximum.reduceat(micros(self.rows.column("end_time")), self.first)[jobs]
        table = table.append_column("end_time", pa.array(ends, pa.int64()).cast(pa.timestamp("us", tz="UTC")))
        started = (self.begin[jobs] * 1e6).round().astype("datetime64[us]")
        return table, started, self.distance[jobs], values, units, scopes, self.resampled[jobs]

    def _values(self, rows: Ints, local: Ints, n_jobs: int, length: int) -> Samples:
        n_units = int(self.position[rows].max()) + 1 if len(rows) else 0
        sizes = np.unique(self.n_samples[rows])
        plain = self.aligned[rows] & (self.offset[rows] == 0)
        if len(rows) == n_jobs * n_units and sizes.tolist() == [length] and plain.all():
            # rows are in the order of jobs and units: what is unpacked is the answer, and nothing is missing
            return unpack_equal(self.packed.take(self.order[rows]), length).reshape(n_jobs, n_units, length)
        values = np.full((n_jobs, n_units, length), np.nan, np.float32)
        for size in sizes.tolist():
            self._fill(values, rows[self.n_samples[rows] == size], local, int(size))
        return values

    def _fill(self, into: Samples, rows: Ints, local: Ints, size: int) -> None:
        samples = unpack_equal(self.packed.take(self.order[rows]), size)
        jobs, units = local[self.job[rows]], self.position[rows]
        plain = self.aligned[rows] & (self.offset[rows] == 0)
        if plain.all():
            into[jobs, units, :size] = samples
            return
        into[jobs[plain], units[plain], :size] = samples[plain]
        for row in np.flatnonzero(~plain).tolist():
            offset, job = int(self.offset[rows[row]]), int(self.job[rows[row]])
            target = into[jobs[row], units[row]]
            if self.aligned[rows[row]]:
                target[offset : offset + size] = samples[row]
                continue
            instants = self.begin[job] + np.arange(len(target)) * self.distance[job]
            nearest = (instants - self.start[rows[row]]) / (self.step[rows[row]] or 1.0)
            index = np.rint(nearest).astype(np.int64)
            inside = (index >= 0) & (index < size)
            target[inside] = samples[row][index[inside]]

    def _names(
        self, jobs: Ints, rows: Ints, local: Ints
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        names = pc.take(self.rows.column("unit"), pa.array(rows)).combine_chunks()
        ends = np.searchsorted(local[self.job[rows]], np.arange(len(jobs) + 1))
        begins, counts = ends[:-1], np.diff(ends)
        scope = np.full(len(jobs), len(SCOPES))
        scope[counts > 0] = self.scope[rows[begins[counts > 0]]]
        scopes = tuple(map((*SCOPES, "").__getitem__, scope.tolist()))
        if (counts == 1).all():
            # a series a job: jobs whose units are called alike share the name
            encoded = names.dictionary_encode()
            single = [(name,) for name in encoded.dictionary.to_pylist()]
            return tuple(map(single.__getitem__, encoded.indices.to_pylist())), scopes
        listed = names.to_pylist()
        return tuple(tuple(listed[start:end]) for start, end in pairwise(ends.tolist())), scopes


def _positions(rows: pa.Table, column: str, names: Sequence[str]) -> Ints:
    found: Ints = (
        pc.index_in(rows.column(column), pa.array(list(names), pa.string())).to_numpy().astype(np.int64)
    )
    return found


def _unit_ranks(units: pa.ChunkedArray) -> Ints:
    # as people count: node2 before node10
    encoded = units.combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    ordered = sorted(range(len(names)), key=lambda position: _counted(names[position] or ""))
    rank = np.empty(len(names), np.int64)
    rank[ordered] = np.arange(len(names))
    ranks: Ints = rank[encoded.indices.to_numpy()]
    return ranks


def _counted(name: str) -> tuple[tuple[int, int, str], ...]:
    parts = _DIGITS.split(name)
    return tuple((1, int(part), "") if position % 2 else (0, 0, part) for position, part in enumerate(parts))
