"""Columns that rules use: job records, footprints, cluster descriptions."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core import fields
from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import job_keys
from esjobs.issues.rules.expressions import UNKNOWN, Column
from esjobs.issues.rules.rule import Rules
from esjobs.issues.rules.vocabulary import JOB_NAMES, metric_of
from esjobs.records.clusters.description import Clusters
from esjobs.schema.issues import FEWEST_SAMPLES, LEAST_COVERED

CARRIED = (
    *("source", "job_id", "end_time", "queue", "user", "project", "application", "processing_type"),
    "cpu_model",
    "job_name",
)
"""Record fields that issues carry."""
# Fields of the record that others are worked out of
_COUNTED = ("start_time", "wall_s", "cores", "nodes", "gpus", "cluster", "subcluster", "counters")
# Figures of a footprint that hold however few its samples are
_OF_SAMPLES = ("n_samples", "n_units", "gap_frac")


def fields_needed(rules: Rules) -> tuple[str, ...]:
    """Return the record fields that rules and issues need."""
    return tuple(dict.fromkeys((*CARRIED, *_COUNTED, *sorted(_names(rules) & JOB_NAMES.keys()))))


def metrics_needed(rules: Rules) -> frozenset[str]:
    """Return the footprint metrics that rules need, and those that stand in for missing record fields."""
    return frozenset({"cpu_load", "gpu_load", *filter(None, map(metric_of, _names(rules)))})


def _names(rules: Rules) -> frozenset[str]:
    of_eligible = (condition.expression.names for condition in rules.eligible)
    return frozenset().union(*(rule.names for rule in rules.rules), *of_eligible)


class Facts:
    """Columns of a batch of jobs by the names of :mod:`esjobs.issues.rules.vocabulary`.

    ``jobs``: records with :func:`fields_needed`. ``footprints``: their rows; those of other jobs are ignored.
    ``series_s``: length of series, NaN without any.
    """

    def __init__(
        self,
        jobs: pa.Table,
        clusters: Clusters,
        footprints: pa.Table | None = None,
        series_s: Floats | None = None,
    ) -> None:
        self.jobs = jobs
        self.n = jobs.num_rows
        self._clusters = clusters
        self._series_s = np.full(self.n, np.nan) if series_s is None else series_s
        self._columns: dict[str, Column] = {}
        self._places: dict[str, tuple[Ints, pa.Table]] = {}
        if footprints is not None and footprints.num_rows:
            self._index(footprints)

    @cached_property
    def keys(self) -> pa.Array:
        """Unique texts of the jobs."""
        return job_keys(self.jobs)

    def rows_of(self, of_jobs: pa.Table) -> Ints:
        """Return for each row of another table of jobs the one of its job here; -1: not in this batch."""
        found = pc.index_in(job_keys(of_jobs), value_set=self.keys)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)

    def column(self, name: str) -> Column:
        """Return the column of a name."""
        if name not in self._columns:
            self._columns[name] = self._made(name)
        return self._columns[name]

    def put(self, name: str, values: Column) -> None:
        """Store a column: result of an earlier rule, or a measurement."""
        self._columns[name] = values

    def _made(self, name: str) -> Column:
        first, dot, second = name.partition(".")
        if not dot:
            return self._computed(name) if name not in JOB_NAMES else self._field(name)
        if first == "peak":
            return self._described(f"peak_{second}")
        if first == "node":
            facts = self._described(second)
            # a truth: not described is neither on nor off
            return np.where(np.isnan(facts), UNKNOWN, facts) if second == "smt" else facts
        return self._figure(first, second)

    def _field(self, name: str) -> Column:
        column = self.jobs.column(name)
        kind = fields.field(name).type
        if kind == "keyword":
            return np.asarray(column.to_pylist(), object)
        if kind == "boolean":
            return _floats(pc.cast(column, pa.int8()), UNKNOWN)
        return _floats(column, np.nan)

    def _computed(self, name: str) -> Column:
        duration = self._duration
        match name:
            case "duration":
                return duration
            case "cores_used":
                described = self._field("nodes") * self._described("cores")
                recorded = self._field("cores")
                # with SMT a record of more cores than its nodes have counts hardware threads
                threads = (self._described("smt") == 1) & (recorded > described)
                counted = np.where(threads, described, recorded)
                # units of other scopes are sockets or threads, not cores
                return _coalesced(counted, self._units("cpu_load", ("core",)), described)
            case "gpus_used":
                return _coalesced(self._field("gpus"), self._units("gpu_load", ("accelerator",)))
            case "nodes_used":
                # not rounded: a job of half a node has half of its hours
                by_cores = self._field("cores") / self._described("cores")
                return _coalesced(self._field("nodes"), by_cores)
            case "core_h":
                return self.column("cores_used") * duration / 3600
            case "gpu_h":
                return self.column("gpus_used") * duration / 3600
            case "node_h":
                return self.column("nodes_used") * duration / 3600
        raise KeyError(name)

    @cached_property
    def _duration(self) -> Floats:
        times = [
            self.jobs.column(name).cast(pa.timestamp("us", "UTC")) for name in ("end_time", "start_time")
        ]
        apart = _floats(pc.cast(pc.subtract(*times), pa.int64()), np.nan) / 1e6
        # a job that ends when it starts says nothing of its duration
        apart[~(apart > 0)] = np.nan
        return _coalesced(self._field("wall_s"), apart, self._series_s)

    def _described(self, fact: str) -> Floats:
        name = f"described {fact}"
        if name not in self._columns:
            joined = pc.binary_join_element_wise(
                pc.fill_null(self.jobs.column("cluster"), ""),
                pc.fill_null(self.jobs.column("subcluster"), ""),
                pc.fill_null(self.jobs.column("queue"), ""),
                "\0",
            )
            # few parts of clusters: each is looked up once
            encoded = pa.chunked_array(joined).combine_chunks().dictionary_encode()
            values = []
            for names in encoded.dictionary.to_pylist():
                part = self._clusters.described(*names.split("\0"))
                value = None if part is None else getattr(part, fact)
                if value is None or (fact.startswith("peak_") and not value):
                    # a peak of 0 would be passed by everything
                    values.append(np.nan)
                else:
                    values.append(float(value))
            codes = encoded.indices.to_numpy(zero_copy_only=False)
            self._columns[name] = np.asarray(values, np.float64)[codes] if len(codes) else np.empty(0)
        return self._columns[name]

    def _index(self, footprints: pa.Table) -> None:
        rows = self.rows_of(footprints)
        # a table of a day, for a batch of its jobs
        here = np.flatnonzero(rows >= 0)
        footprints, rows = footprints.take(pa.array(here)), rows[here]
        names = np.asarray(footprints.column("metric").to_pylist(), object)
        for metric in dict.fromkeys(names.tolist()):
            of_metric = np.flatnonzero(names == metric)
            self._places[metric] = (rows[of_metric], footprints.take(pa.array(of_metric)))

    def _figure(self, metric: str, figure: str) -> Floats:
        """Return a figure of the footprint, else the one that the record has among its counters."""
        values = np.full(self.n, np.nan)
        if metric in self._places:
            rows, footprints = self._places[metric]
            stored = _floats(footprints.column(figure), np.nan)
            if figure not in _OF_SAMPLES:
                stored = np.where(self._thin(rows, footprints), np.nan, stored)
            values[rows] = stored
        recorded = pc.map_lookup(self.jobs.column("counters"), pa.scalar(f"{metric}.{figure}"), "first")
        return _coalesced(values, _floats(recorded, np.nan))

    def _thin(self, rows: Ints, footprints: pa.Table) -> Mask:
        """Return the mask of footprints with too few samples to judge by."""
        n, units, gaps, series_s = (
            _floats(footprints.column(name), np.nan)
            for name in ("n_samples", "n_units", "gap_frac", "series_s")
        )
        # duration not known: a comparison with NaN is false, and gaps alone decide
        return (
            (n < FEWEST_SAMPLES * units)
            | (gaps > 1 - LEAST_COVERED)
            | ((1 - gaps) * series_s < LEAST_COVERED * self._duration[rows])
        )

    def _units(self, metric: str, scopes: Iterable[str]) -> Floats:
        """Return the number of units that have a metric; NaN if it has another scope."""
        values = np.full(self.n, np.nan)
        if metric in self._places:
            rows, footprints = self._places[metric]
            units = _floats(footprints.column("n_units"), np.nan)
            fits = pc.is_in(footprints.column("scope"), pa.array(list(scopes))).to_numpy(zero_copy_only=False)
            values[rows] = np.where(fits, units, np.nan)
        return values


def _floats(column: pa.ChunkedArray | pa.Array, missing: float) -> Floats:
    filled = pc.fill_null(pc.cast(column, pa.float64()), missing)
    return np.array(
        filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled, np.float64
    )


def _coalesced(*columns: Floats) -> Floats:
    value = columns[0]
    for other in columns[1:]:
        value = np.where(np.isnan(value), other, value)
    return value
