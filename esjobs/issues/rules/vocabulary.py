"""Names that rules may use, with the kind of their values.

Fields of the job record; ``METRIC.FIGURE`` of the footprint; ``node.FACT`` and ``peak.FACT`` of the cluster
description; ``tag.NAME`` of earlier rules (``-`` written ``_``); and :data:`COMPUTED`.
"""

from collections.abc import Mapping

from esjobs.core.fields import DERIVED_FIELDS, JOB_FIELDS, FieldType
from esjobs.core.metrics import METRICS, OTHER
from esjobs.issues.rules.expressions import Kind
from esjobs.issues.rules.measures import ANYTHING, HOURS, NUMBER, SECONDS, Measure, dimension_of
from esjobs.records.clusters.description import FACTS

_KINDS: Mapping[FieldType, Kind] = {
    "integer": "number",
    "number": "number",
    "keyword": "text",
    "boolean": "truth",
}

JOB_NAMES: Mapping[str, Kind] = {
    field.name: _KINDS[field.type] for field in (*JOB_FIELDS, *DERIVED_FIELDS) if field.type in _KINDS
}
"""Record fields, without times and counters."""

_UNITS: Mapping[str, str] = {
    field.name: field.unit for field in (*JOB_FIELDS, *DERIVED_FIELDS) if _KINDS.get(field.type) == "number"
}

COMPUTED: Mapping[str, str] = {
    "duration": "s: wall time, else end minus start, else duration of the longest series",
    "core_h": "h: cores x duration",
    "gpu_h": "h: GPUs x duration",
    "node_h": "h: nodes x duration",
    "nodes_used": "nodes of the record, else nodes with time series",
    "gpus_used": "GPUs of the record, else GPUs with time series",
    "cores_used": "cores of the record, else cores with time series, else nodes x cores per node",
}
"""Computed numbers per job, with unit and meaning."""

FIGURES = (
    *("mean", "max", "min", "sd", "p05", "p95", "imbalance", "total", "n_samples", "n_units", "gap_frac"),
    *("node_mean", "node_max", "job_mean", "job_max"),
)
"""Statistics in a footprint."""

_UNIT_OF_METRIC = {metric.name: metric.unit for metric in METRICS}
_METRICS = frozenset(_UNIT_OF_METRIC)
PEAKS = tuple(fact.removeprefix("peak_") for fact in FACTS if fact.startswith("peak_"))
"""Facts named ``peak.FACT``."""
NODE_FACTS = tuple(fact for fact in FACTS if not fact.startswith("peak_") and fact != "cpu_model")
"""Facts named ``node.FACT``."""


def kind_of_fact(name: str) -> Kind | None:
    """Return the kind of a name, None if unknown.

    >>> kind_of_fact("cores"), kind_of_fact("cpu_load.mean"), kind_of_fact("node.smt"), kind_of_fact("nodez")
    ('number', 'number', 'truth', None)
    """
    first, dot, second = name.partition(".")
    if not dot:
        return "number" if name in COMPUTED else JOB_NAMES.get(name)
    if name == "node.smt":
        return "truth"
    of_other = first.startswith(OTHER) and len(first) > len(OTHER)
    names = {"peak": PEAKS, "node": NODE_FACTS}.get(first, FIGURES if first in _METRICS or of_other else ())
    return "number" if second in names else None


def measure_of_fact(name: str) -> Measure:
    """Return dimension and range of a name; nothing is below 0.

    >>> measure_of_fact("max_rss_b") == measure_of_fact("node.memory_b") == measure_of_fact("read_b_s.total")
    True
    >>> measure_of_fact("x_pages.mean"), measure_of_fact("cpu_load.imbalance").high
    (Measure(dimension=None, low=-inf, high=inf), 1.0)
    """
    first, dot, second = name.partition(".")
    if not dot:
        return _measure_of_job(name)
    if first in ("peak", "node"):
        return Measure(dimension_of(_unit_of_description(second)), 0.0)
    if second in ("imbalance", "gap_frac"):
        return Measure(NUMBER, 0.0, 1.0)
    if second in ("n_samples", "n_units"):
        return Measure(NUMBER, 0.0)
    if first not in _UNIT_OF_METRIC:
        return ANYTHING
    dimension = dimension_of(_UNIT_OF_METRIC[first])
    if second == "total" and dimension is not None:
        # a sum over time
        n_bytes, seconds, joules, hours = dimension
        dimension = (n_bytes, seconds + 1, joules, hours)
    return Measure(dimension, 0.0)


def _measure_of_job(name: str) -> Measure:
    if name == "duration":
        return Measure(SECONDS, 0.0)
    if name in COMPUTED:
        return Measure(HOURS if name.endswith("_h") else NUMBER, 0.0)
    return Measure(dimension_of(_UNITS[name]), 0.0) if name in _UNITS else ANYTHING


def _unit_of_description(fact: str) -> str:
    # the longer ending first: bytes per second are not bytes
    endings = {"_b_s": "B/s", "flops_s": "1/s", "_b": "B"}
    return next((unit for ending, unit in endings.items() if fact.endswith(ending)), "1")


def metric_of(name: str) -> str | None:
    """Return the metric of a footprint name, None for other names.

    >>> metric_of("cpu_load.mean"), metric_of("cores")
    ('cpu_load', None)
    """
    first, dot, _ = name.partition(".")
    return first if dot and first not in ("peak", "node", "tag") else None


def close_names(name: str) -> list[str]:
    """Return up to three similar names."""
    import difflib

    figures = [f"{metric}.{figure}" for metric in sorted(_METRICS) for figure in FIGURES]
    facts = [*(f"peak.{fact}" for fact in PEAKS), *(f"node.{fact}" for fact in NODE_FACTS)]
    return difflib.get_close_matches(name, [*JOB_NAMES, *COMPUTED, *facts, *figures], n=3)
