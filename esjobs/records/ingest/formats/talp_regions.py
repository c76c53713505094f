"""The regions, nodes and processes in a report of TALP as rows of ``talp_reports``, told by their keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.records.ingest.base import MAX_INTEGER, RowError
from esjobs.schema.pop import EFFICIENCIES

Row = dict[str, Any]

# Characters of the name of a region: an index refuses keys of many thousands.
_LONGEST = 1000

MAIN_REGIONS = ("Global", "Application", "MPI Execution")
"""Names of the outermost region, today's first: a user may name one as older versions did."""

_TIMES: dict[str, tuple[str, ...]] = {
    "elapsed_s": ("elapsedTime",),
    "useful_s": ("usefulTime", "useful", "usefulCpuTotal"),
    "mpi_s": ("mpiTime", "notUsefulMPI"),
    "mpi_worker_idle_s": ("mpiWorkerIdleTime",),
    "omp_load_imbalance_s": ("ompLoadImbalanceTime", "notUsefulOMPLoadBalance"),
    "omp_scheduling_s": ("ompSchedulingTime", "notUsefulOMPScheduling"),
    "omp_serialization_s": ("ompSerializationTime", "notUsefulOMPSerialization"),
    "gpu_runtime_s": ("gpuRuntimeTime",),
    "min_mpi_process_s": ("minMpiNormdProc",),
    "min_mpi_node_s": ("minMpiNormdNode",),
    # 3.5 alpha misspelt the first of these in some builds
    "useful_mean_s": ("usefulNormdApp", "usefulNomrdApp"),
    "useful_max_process_s": ("maxUsefulNormdProc", "elapsedUseful"),
    "useful_max_node_s": ("maxUsefulNormdNode", "usefulCpuNode"),
    "mpi_of_most_useful_s": ("mpiNormdOfMaxUseful",),
    "gpu_useful_s": ("gpuUsefulTime",),
    "gpu_communication_s": ("gpuCommunicationTime",),
    "max_gpu_useful_s": ("maxGpuUsefulTime",),
    "max_gpu_active_s": ("maxGpuActiveTime",),
}
_COUNTS: dict[str, tuple[str, ...]] = {
    "cpus": ("numCpus",),
    "ranks": ("numMpiRanks", "numRanks"),
    "nodes": ("numNodes",),
    "gpus": ("numGpus",),
    "measurements": ("numMeasurements",),
    "mpi_calls": ("numMpiCalls", "numMPICalls"),
    "omp_parallels": ("numOmpParallels",),
    "gpu_runtime_calls": ("numGpuRuntimeCalls",),
}
_COUNTERS: dict[str, str] = {"gigacycles": "cycles", "gigainstructions": "instructions"}
_PRINTED: dict[str, tuple[str, ...]] = {
    name: (first + "".join(part.title() for part in rest),)
    for name, (first, *rest) in ((name, name.split("_")) for name in EFFICIENCIES)
} | {
    "mpi_communication_efficiency": ("mpiCommunicationEfficiency", "communicationEfficiency"),
    "mpi_load_balance": ("mpiLoadBalance", "loadBalance"),
    "mpi_load_balance_in": ("mpiLoadBalanceIn", "lbIn"),
    "mpi_load_balance_out": ("mpiLoadBalanceOut", "lbOut"),
}
# Times that a process has; its ``elapsedUseful`` is the useful time again.
_OF_PROCESS = {
    name: keys for name, keys in _TIMES.items() if not name.startswith(("min_", "max_", "useful_m"))
}


@dataclass(frozen=True)
class Refused:
    """A region, node or process that cannot be stored, and why."""

    reason: str
    field: str
    detail: str
    name: str


def regions_of(document: Mapping[str, Any], part_of: str | None) -> Iterator[Row | Refused]:
    """The rows of a report. ``part_of``: of a report of one process, what it is a part of by its name."""
    process = document.get("processInfo")
    if part_of is not None or isinstance(process, dict):
        yield from _partial(document, process if isinstance(process, dict) else {}, part_of)
        return
    listed = dict(_application(document))
    of_processes = dict(_processes(document))
    main = next((name for name in MAIN_REGIONS if name in {**listed, **of_processes}), None)
    for name, members in listed.items():
        yield _row(name, members, main, level="application")
    for name, processes in of_processes.items():
        yield from _process_rows(name, processes, main)
    nodes = document.get("node")
    if isinstance(nodes, list):
        yield from (_node(node, number, main or "Global") for number, node in enumerate(nodes))


def _process_rows(name: str, processes: Any, main: str | None) -> Iterator[Row | Refused]:
    if not isinstance(processes, list):
        yield Refused("not a list", "Process", "processes is not a list", name[:_LONGEST])
        return
    for number, members in enumerate(processes):
        yield _row(name, members, main, level="process", number=number)


def _application(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    application = document.get("Application")
    if isinstance(application, dict):
        yield from application.items()
        return
    raw, printed = (
        {
            str(each["name"]): each
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict) and "name" in each
        }
        for listed in (document.get("popRaw"), document.get("popMetrics"))
    )
    for name in dict.fromkeys([*raw, *printed]):
        # raw times win over printed ones of the same region
        yield name, {**printed.get(name, {}), **raw.get(name, {})}


def _processes(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    processes = document.get("Process")
    if isinstance(processes, dict):
        yield from processes.items()
    regions = document.get("region")
    for each in regions if isinstance(regions, list) else ():
        if isinstance(each, dict) and "name" in each:
            yield str(each["name"]), each.get("process")


def _partial(
    document: Mapping[str, Any], process: Mapping[str, Any], part_of: str | None
) -> Iterator[Row | Refused]:
    # one process wrote its share of the application: a process here
    listed = dict(_application(document))
    main = next((name for name in MAIN_REGIONS if name in listed), None)
    for name, members in listed.items():
        own = members if isinstance(members, dict) else {}
        row = _row(name, {**process, **own} if own else members, main, level="process")
        if not isinstance(row, Refused):
            row |= {
                "part_of": part_of or "",
                # what would be 0 or trivial of one process
                "ranks": None,
                **dict.fromkeys(EFFICIENCIES),
            }
        yield row


def _node(node: Any, number: int, main: str) -> Row | Refused:
    if not isinstance(node, dict) or not isinstance(node.get("process"), list):
        return Refused("not an object", "node", "a node without a list of processes", str(number))
    try:
        times = [
            (_seconds(each, ("usefulTime",)), _seconds(each, ("mpiTime",)))
            for each in node["process"]
            if isinstance(each, dict)
        ]
    except RowError as error:
        return Refused(error.reason, error.field, error.detail, f"node {number}")
    name = str(node.get("id", number))[:_LONGEST].encode(errors="replace").decode()
    return {
        **_blank("node", f"node {name}", main, is_main=True),
        "host": name,
        "useful_s": sum(useful or 0.0 for useful, _ in times),
        "mpi_s": sum(mpi or 0.0 for _, mpi in times),
        "nodes": 1,
    }


def _blank(level: str, unit: str, region: str, *, is_main: bool) -> Row:
    named = {"region": region, "level": level, "unit": unit, "main": is_main}
    return {**named, "model": "minimum", "counters": "none"}


def _row(name: str, members: Any, main: str | None, *, level: str, number: int = 0) -> Row | Refused:
    shown = name[:_LONGEST].encode(errors="replace").decode()
    if shown != name[:_LONGEST]:
        return Refused("bad name", "region", "a name with incomplete characters", shown)
    if not isinstance(members, dict):
        return Refused("not an object", level, "the object is empty", shown)
    if len(name) > _LONGEST:
        return Refused("out of range", "region", f"a name of {len(name):,} characters", shown[:100])
    try:
        row = _measured(members, level)
    except RowError as error:
        return Refused(error.reason, error.field, error.detail, shown)
    host = members.get("hostname")
    host = host[:_LONGEST].encode(errors="replace").decode() if isinstance(host, str) else None
    pid = members.get("pid")
    own = pid if isinstance(pid, int) else number
    unit = "" if level == "application" else f"{host or 'process'}/{str(own)[:20]}"
    return {**_blank(level, unit, name, is_main=name == main), **row, "host": host}


def _measured(members: Mapping[str, Any], level: str) -> Row:
    times = _TIMES if level == "application" else _OF_PROCESS
    row: Row = {name: _seconds(members, keys) for name, keys in times.items()}
    row |= {name: _count(members, keys) for name, keys in _COUNTS.items()}
    row |= {name: _number(members, keys) for name, keys in _PRINTED.items()}
    if row["elapsed_s"] is None:
        raise RowError("missing value", "elapsedTime", "elapsedTime is missing")
    row["model"] = _model(members, level)
    if row["model"] == "summed":
        # what 3.3 and 3.4 print as parallel efficiency has no part but MPI
        row["mpi_parallel_efficiency"] = row["parallel_efficiency"]
    row |= _counters(members)
    if level == "application" and _entered_by_some(row["cpus"], row["ranks"]):
        row["remark"] = f"entered on {row['cpus']} CPUs by an application of {row['ranks']} ranks"
    return row


def _entered_by_some(cpus: int | None, ranks: int | None) -> bool:
    return bool(cpus and ranks and cpus < ranks)


def _counters(members: Mapping[str, Any]) -> Row:
    counters = {name: _number(members, (key,)) for name, key in _COUNTERS.items()}
    state = _state(list(counters.values()))
    if state != "ok":
        return {"counters": state}
    # DLB counts, rows have thousands of millions
    return {"counters": state, **{name: value / 1e9 for name, value in counters.items() if value is not None}}


def _model(members: Mapping[str, Any], level: str) -> str:
    if level != "application" or "minMpiNormdProc" in members:
        return "minimum"
    if "maxUsefulNormdProc" in members:
        return "normalised"
    if "usefulCpuTotal" in members:
        return "summed"
    return "minimum" if "usefulTime" in members else "printed"


def _state(values: list[float | None]) -> str:
    if any(value is not None and value < 0 for value in values):
        return "bad"
    # 0 is what DLB writes without hardware counters
    return "ok" if all(values) else "none"


def _value(members: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, Any]:
    return next(((key, members[key]) for key in keys if key in members), (keys[0], None))


def _number(members: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    key, value = _value(members, keys)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError("not a number", key, f"{key} contains {str(value)[:60]!r}; accepted: a number")
    try:
        return float(value)
    except OverflowError:
        raise RowError("out of range", key, f"{key} contains a number of hundreds of digits") from None


def _amount(members: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    value = _number(members, keys)
    if value is not None and value < 0:
        key, _ = _value(members, keys)
        raise RowError("negative", key, f"{key} contains {value:g}; accepted: a number from 0")
    return value


def _seconds(members: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    # times are in ns; a 0 of a current report stays 0
    value = _amount(members, keys)
    return None if value is None else value / 1e9


def _count(members: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    value = _amount(members, keys)
    if value is None:
        return None
    if value > MAX_INTEGER or value != int(value):
        key, _ = _value(members, keys)
        raise RowError("out of range", key, f"{key} contains {value:g}; accepted: a count")
    return int(value)
