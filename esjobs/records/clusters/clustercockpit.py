"""ClusterCockpit's description of a cluster, ``cluster.json``, as ours.

What it says of a part counts per node: scalar and vector rates of floating-point operations (the larger is
the peak), bandwidth of the memory, sockets, cores, threads. Its ``metricConfig`` tells how much memory a node
has at most in use (``mem_used``, scope ``node``) and, where a metric of the network is per node, its peak. A
peak of ``ib_recv`` is of one direction; ours are of both together.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from esjobs.core.errors import InputError
from esjobs.records.clusters.description import Subcluster

PROBLEM = "{where}: {fact} is {value!r:.60}"
"""Beginning of a message about a fact."""

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
"""Prefixes of units; kilo is written either way."""


def parts_of_cockpit(content: Any, where: str) -> Iterator[Subcluster]:
    """The parts of one cluster. Raises :class:`InputError` for what is no such description."""
    name, parts = (
        content.get(key) if isinstance(content, Mapping) else None for key in ("name", "subClusters")
    )
    if not isinstance(name, str) or not isinstance(parts, list):
        raise InputError(f"{where} is not a valid cluster.json: name and subClusters are required")
    memory = _metric_peak(content, "mem_used", where)
    for part in parts:
        if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
            raise InputError(f"{where}: a subcluster of '{name}' has no name")
        yield _subcluster(name, part, memory, f"{where}, subcluster '{part['name']}'")


def _subcluster(cluster: str, part: Mapping[str, Any], memory: float | None, where: str) -> Subcluster:
    sockets = _count(part, "socketsPerNode", where)
    per_socket = _count(part, "coresPerSocket", where)
    threads = _count(part, "threadsPerCore", where)
    # either may be the larger: some sites fill in one of them alone
    scalar, vector = (_amount(part, key, where) for key in ("flopRateScalar", "flopRateSimd"))
    model = part.get("processorType")
    return Subcluster(
        cluster=cluster,
        name=part["name"],
        cpu_model=model.strip() or None if isinstance(model, str) else None,
        sockets=sockets,
        cores=None if sockets is None or per_socket is None else sockets * per_socket,
        smt=None if threads is None else threads > 1,
        memory_b=memory,
        gpus=_accelerators(part),
        peak_flops_s=max((rate for rate in (scalar, vector) if rate is not None), default=None),
        peak_scalar_flops_s=scalar,
        peak_mem_bw_b_s=_amount(part, "memoryBandwidth", where),
    )


def _metric_peak(content: Mapping[str, Any], metric: str, where: str) -> float | None:
    for configured in content.get("metricConfig") or ():
        if (
            isinstance(configured, Mapping)
            and configured.get("name") == metric
            and configured.get("scope") == "node"
        ):
            entry = {"peak": {"value": configured.get("peak"), "unit": configured.get("unit")}}
            return _amount(entry, "peak", f"{where}, metric '{metric}'")
    return None


def _accelerators(part: Mapping[str, Any]) -> int | None:
    # a node without a topology has an unknown number of GPUs, not none
    topology = part.get("topology")
    if not isinstance(topology, Mapping):
        return None
    listed = topology.get("accelerators")
    return len(listed) if isinstance(listed, list) else 0


def _count(part: Mapping[str, Any], key: str, where: str) -> int | None:
    value = part.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"{PROBLEM.format(where=where, fact=key, value=value)}; expected a whole number from 1"
        )
    return value


def is_amount(value: object) -> TypeGuard[float]:
    """True if a value is a finite number from 0."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    )


def _amount(part: Mapping[str, Any], key: str, where: str) -> float | None:
    # a bare number is in base units
    entry = part.get(key)
    if entry is None:
        return None
    value, unit = (entry.get("value"), entry.get("unit")) if isinstance(entry, Mapping) else (entry, None)
    if value is None:
        return None
    if not is_amount(value):
        raise InputError(
            f"{PROBLEM.format(where=where, fact=key, value=value)}; expected a number, 0 or more"
        )
    prefix = (unit.get("prefix") or "") if isinstance(unit, Mapping) else ""
    if prefix not in _PREFIXES:
        raise InputError(f"{where}: unknown prefix {prefix!r:.20} in the unit of {key}; use k, M, G, T or P")
    # 0 stands for a peak that nobody measured
    return float(value) * _PREFIXES[prefix] or None
