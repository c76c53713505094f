"""The POP metrics once more, written down from the definitions in the units and names of the reports.

Nothing of esjobs is used: integers in ns, keys of DLB, a model told by the keys of a region.
"""

from fractions import Fraction
from typing import Any


def ratio(part: int | Fraction, total: int | Fraction) -> float | None:
    """Exact, then rounded once; None without a denominator."""
    return float(Fraction(part) / Fraction(total)) if total else None


def tree(region: dict[str, Any]) -> dict[str, float | None]:
    """By the names that DLB prints since 3.5."""
    if "usefulCpuTotal" in region:
        return _of_33(region)
    keys = ("ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime", "gpuRuntimeTime")
    imbalance, scheduling, serial, gpu = (region.get(key, 0) for key in keys)
    useful, mpi = region["usefulTime"], region["mpiTime"]
    steps = [useful + mpi + gpu]
    for more in (serial, imbalance, scheduling):
        steps.append(steps[-1] + more)
    found = {
        "parallelEfficiency": ratio(useful, steps[3]),
        "ompSerializationEfficiency": ratio(steps[0], steps[1]),
        "ompLoadBalance": ratio(steps[1], steps[2]),
        "ompSchedulingEfficiency": ratio(steps[2], steps[3]),
        "ompParallelEfficiency": ratio(steps[0], steps[3]),
    }
    if "gpuRuntimeTime" in region:
        host = steps[3] - mpi - gpu
        found["deviceOffloadEfficiency"] = ratio(host, host + gpu)
        found |= _of_gpus(region)
    return found | (_of_36(region) if "minMpiNormdProc" in region else _of_35(region))


def _of_36(region: dict[str, Any]) -> dict[str, float | None]:
    elapsed, cpus = region["elapsedTime"], region["numCpus"]
    if not cpus:
        return {}
    mean = elapsed - Fraction(region["mpiTime"] + region.get("mpiWorkerIdleTime", 0), cpus)
    process, node = elapsed - region["minMpiNormdProc"], elapsed - region["minMpiNormdNode"]
    return {
        "mpiParallelEfficiency": ratio(mean, elapsed),
        "mpiCommunicationEfficiency": ratio(process, elapsed),
        "mpiLoadBalance": ratio(mean, process),
        "mpiLoadBalanceIn": ratio(node, process),
        "mpiLoadBalanceOut": ratio(mean, node),
    }


def _of_35(region: dict[str, Any]) -> dict[str, float | None]:
    mean, process = region["usefulNormdApp"], region["maxUsefulNormdProc"]
    node, mpi = region["maxUsefulNormdNode"], region["mpiNormdOfMaxUseful"]
    return {
        "mpiParallelEfficiency": ratio(mean, process + mpi),
        "mpiCommunicationEfficiency": ratio(process, process + mpi),
        "mpiLoadBalance": ratio(mean, process),
        "mpiLoadBalanceIn": ratio(node, process),
        "mpiLoadBalanceOut": ratio(mean, node),
    }


def _of_33(region: dict[str, Any]) -> dict[str, float | None]:
    elapsed, cpus, nodes = region["elapsedTime"], region["numCpus"], region["numNodes"]
    total, process, node = region["usefulCpuTotal"], region["elapsedUseful"], region["usefulCpuNode"]
    return {
        "parallelEfficiency": ratio(total, elapsed * cpus),
        "communicationEfficiency": ratio(process, elapsed),
        "loadBalance": ratio(total, process * cpus),
        "lbIn": ratio(node * nodes, process * cpus),
        "lbOut": ratio(total, node * nodes),
    }


def _of_gpus(region: dict[str, Any]) -> dict[str, float | None]:
    gpus, elapsed = region["numGpus"], region["elapsedTime"]
    useful, most, active = (region[key] for key in ("gpuUsefulTime", "maxGpuUsefulTime", "maxGpuActiveTime"))
    return {
        "gpuParallelEfficiency": ratio(useful, elapsed * gpus),
        "gpuLoadBalance": ratio(useful, most * gpus),
        "gpuCommunicationEfficiency": ratio(most, active),
        "gpuOrchestrationEfficiency": ratio(active, elapsed if gpus else 0),
    }
