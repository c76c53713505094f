"""TALP measurements of jobs: reports, efficiencies made of them, reports without a job."""

from esjobs.core.columns import OF_JOB
from esjobs.core.fields import Field
from esjobs.core.tables import Table, column, columns

SCALINGS = ("strong", "weak", "single", "unknown")
"""Modes of a series of runs; single: one size only, unknown: no counters."""

MODELS = ("minimum", "normalised", "summed", "printed")
"""Models of efficiencies: the raw times that a region has, and so the formulas."""

LEVELS = ("application", "node", "process")
"""Levels of the times of a row."""

EFFICIENCIES: dict[str, str] = {
    "parallel_efficiency": "share of the time on CPUs that was useful",
    "mpi_parallel_efficiency": "share of the elapsed time that processes were outside MPI, on average",
    "mpi_communication_efficiency": "share of elapsed time outside MPI, of the process with least MPI time",
    "mpi_load_balance": "mean work per process over that of the busiest one",
    "mpi_load_balance_in": "the part of mpi_load_balance inside nodes",
    "mpi_load_balance_out": "the part of mpi_load_balance between nodes",
    "omp_parallel_efficiency": "share of the time of all threads not lost to OpenMP",
    "omp_load_balance": "remaining share after unequal work of OpenMP threads",
    "omp_scheduling_efficiency": "remaining share after scheduling of work to OpenMP threads",
    "omp_serialization_efficiency": "remaining share after serial parts outside OpenMP regions",
    "device_offload_efficiency": "remaining share of the host's time after calls of the GPU runtime",
    "gpu_parallel_efficiency": "share of the elapsed time that GPUs computed",
    "gpu_load_balance": "mean computing time per GPU over that of the busiest one",
    "gpu_communication_efficiency": "share of computing in the active time of the busiest GPU",
    "gpu_orchestration_efficiency": "share of the elapsed time that the busiest GPU was active",
}
"""The efficiencies that TALP prints, from 0 to 1."""

UNMEASURED: dict[str, str] = {
    # both need a replay of the trace on an ideal network (Dimemas); TALP keeps sums only
    "mpi_transfer_efficiency": "remaining share after data transfer; requires a replay on an ideal network",
    "mpi_serialization_efficiency": "remaining share after waiting; requires a replay on an ideal network",
}
"""Efficiencies of the POP method that TALP cannot measure: always missing."""

RATES: dict[str, tuple[str, str]] = {
    "ipc": ("instructions per cycle, in useful time", ""),
    "frequency_ghz": ("cycles per useful time", "GHz"),
}

METRICS = (*EFFICIENCIES, *UNMEASURED, *RATES)
"""Metrics that have a status column."""

STATUSES = columns(
    "computed printed no_data no_mpi no_openmp no_gpu no_counters bad_counters inconsistent not_measurable"
)
"""Reasons for the value of a metric, or for none."""

TIMES: dict[str, str] = {
    "elapsed_s": "elapsed time of the region",
    "useful_s": "time of all CPUs outside MPI and the runtimes of OpenMP and GPU",
    "mpi_s": "time of all CPUs in MPI",
    "mpi_worker_idle_s": "time that threads waited while their process was in MPI",
    "omp_load_imbalance_s": "time that OpenMP threads waited for each other",
    "omp_scheduling_s": "time of OpenMP for scheduling of work",
    "omp_serialization_s": "time that OpenMP threads waited outside parallel regions",
    "gpu_runtime_s": "time of all CPUs in the runtime of the GPU",
    "min_mpi_process_s": "time in MPI per CPU, of the process with the least",
    "min_mpi_node_s": "the same for the node with the least",
    "useful_mean_s": "useful time per CPU, of the application",
    "useful_max_process_s": "useful time per CPU, of the process with the most",
    "useful_max_node_s": "useful time per CPU, of the node with the most",
    "mpi_of_most_useful_s": "time in MPI per CPU, of the process with the most useful time",
    "gpu_useful_s": "time of computing on GPUs, summed over them",
    "gpu_communication_s": "time of data transfer of GPUs, summed over them",
    "max_gpu_useful_s": "computing time of the busiest GPU",
    "max_gpu_active_s": "computing and transfer time of the most active GPU",
}
"""Raw times in s; missing if the report lacks them."""

COUNTS: dict[str, str] = {
    "cpus": "CPUs of the region",
    "ranks": "MPI ranks of the application, even if only some entered the region",
    "nodes": "nodes",
    "gpus": "GPUs",
    "measurements": "number of entries of the region",
    "mpi_calls": "calls of MPI",
    "omp_parallels": "parallel regions of OpenMP",
    "gpu_runtime_calls": "calls of the GPU runtime",
}

COUNTERS: dict[str, str] = {
    "gigacycles": "cycles in useful time",
    "gigainstructions": "instructions in useful time",
}
"""In units of 10^9: plain counts of many cores would exceed the range of integers."""

_OF_REPORT = (
    column("report", "keyword", "report: equal for equal contents about the same job and step"),
    column("job_id", "keyword", "job id, from the file name"),
    column("step", "keyword", "launch of the job, from the file name; empty if missing"),
    column("region", "keyword", "name of the region in the report"),
    column("level", "keyword", "level of the times: application, node or process", values=LEVELS),
    column("unit", "keyword", "node or process (host/pid); empty for the application"),
    column("time", "time", "time of the report; time of the file if missing", "UTC"),
)


def _measured(meaning_of_efficiencies: str) -> tuple[Field, ...]:
    return (
        *(column(name, "number", text, "s") for name, text in TIMES.items()),
        *(column(name, "integer", text) for name, text in COUNTS.items()),
        *(column(name, "number", text, "10^9") for name, text in COUNTERS.items()),
        *(column(name, "number", f"{text}{meaning_of_efficiencies}") for name, text in EFFICIENCIES.items()),
    )


POP_REPORTS = Table(
    "pop_reports",
    "raw reports of TALP: one row per region, node and process, with raw times and printed efficiencies",
    "load_id",
    (
        column("load_id", "keyword", "load of the row"),
        *_OF_REPORT,
        column("source", "keyword", "source of the job, if the load specified it; else it is searched"),
        column("main", "boolean", "true for the region around the complete program"),
        column("model", "keyword", "available raw times", values=MODELS),
        column("dlb_version", "keyword", "version of DLB in the report, for information only"),
        # processes that wrote a report each: only the combined one is joined with a job
        column("part_of", "keyword", "of a report of one process: the combined report"),
        column("host", "keyword", "node of a process"),
        column("counters", "keyword", "true if counters are usable", values=("ok", "none", "bad")),
        column("file", "keyword", "source file"),
        # where a report has no time, that of its file is the end of the run at best
        column("time_from", "keyword", "source of the time", values=("report", "file", "given")),
        column("remark", "text", "repairs and unusual values"),
        *_measured(", as printed"),
        column("day", "day", "day of the time", "UTC"),
        column("loaded_at", "time", "time of the load", "UTC"),
    ),
    time="time",
    made_by="ingest",
    shown=columns(
        "source job_id step region level unit time cpus elapsed_s useful_s mpi_s parallel_efficiency"
    ),
    order=columns("time job_id step region level unit"),
)

POP = Table(
    "pop",
    "parallel efficiencies of jobs (POP metrics) by region, computed from the raw times of TALP reports",
    "day",
    (
        column("source", "keyword", "source of the job's record; with job_id the identity of a job"),
        *_OF_REPORT,
        *OF_JOB,
        column("end_time", "time", "end of the job", "UTC"),
        column("core_h", "number", "wall-clock time x cores of the job", "core h"),
        column("model", "keyword", "version of the formulas", values=MODELS),
        column("main", "boolean", "true for the row of the application over the whole run"),
        *_measured(""),
        *(column(name, "number", text) for name, text in UNMEASURED.items()),
        *(column(name, "number", text, unit) for name, (text, unit) in RATES.items()),
        # a missing efficiency is never 0: its status says why it is missing
        *(column(f"{name}_status", "keyword", f"reason for {name}", values=STATUSES) for name in METRICS),
        column("status", "keyword", "no_data if the region was never entered", values=STATUSES),
        # the least factor of the tree: where tuning pays first
        column("worst", "keyword", "most expensive branch of the tree; none above 0.9"),
        column("score_mpi_talp", "number", "100 x (1 - mpi_parallel_efficiency)", "%, 0 best, 100 worst"),
        column("dlb_version", "keyword", "version of DLB in the report"),
        column("remark", "text", "repairs and unusual values"),
        column("day", "day", "day of the report's time", "UTC"),
        column("fingerprint", "keyword", "digest of the inputs of the day"),
        column("active_s", "number", "time of which parallel efficiency is the useful share", "s"),
    ),
    time="time",
    made_by="talp join",
    shown=columns(
        "source job_id step region level unit cpus elapsed_s parallel_efficiency mpi_parallel_efficiency "
        "mpi_load_balance mpi_communication_efficiency omp_parallel_efficiency ipc worst"
    ),
    order=columns("time source job_id step report region level unit"),
)

ORPHANS = Table(
    "pop_orphans",
    "TALP reports without a job; they are joined when the job's record arrives",
    "day",
    (
        column("report", "keyword", "the report"),
        column("job_id", "keyword", "job id, from the file name"),
        column("step", "keyword", "launch of the job"),
        column("source", "keyword", "source of the job, if the load specified it"),
        column("time", "time", "time of the report", "UTC"),
        column("file", "keyword", "source file"),
        column("n_regions", "integer", "regions in the report", "regions"),
        column("reason", "text", "reason for the missing job"),
        column("day", "day", "day of the time", "UTC"),
        column("fingerprint", "keyword", "digest of the inputs of the day"),
    ),
    time="time",
    made_by="talp join",
    shown=columns("job_id step source time file n_regions reason"),
    order=columns("time job_id step report"),
)

SCALING = Table(
    "pop_scaling",
    "scaling of an application: runs at several sizes, relative to the smallest",
    "application",
    (
        column("source", "keyword", "source of the jobs' records"),
        column("application", "keyword", "program or package of the jobs"),
        column("region", "keyword", "region of the program"),
        column("main", "boolean", "true for the region around the complete program"),
        column("cpus", "integer", "CPUs of the runs", "CPUs"),
        column("n_runs", "integer", "runs of this size; numbers are medians over them", "runs"),
        column("last_time", "time", "time of the newest run", "UTC"),
        column("mode", "keyword", "strong: constant problem; weak: it grows with the CPUs", values=SCALINGS),
        column("reference_cpus", "integer", "reference size", "CPUs"),
        column("elapsed_s", "number", "elapsed time", "s"),
        column("parallel_efficiency", "number", EFFICIENCIES["parallel_efficiency"]),
        column("mpi_parallel_efficiency", "number", EFFICIENCIES["mpi_parallel_efficiency"]),
        column("mpi_communication_efficiency", "number", EFFICIENCIES["mpi_communication_efficiency"]),
        column("mpi_load_balance", "number", EFFICIENCIES["mpi_load_balance"]),
        column("omp_parallel_efficiency", "number", EFFICIENCIES["omp_parallel_efficiency"]),
        column("gigainstructions", "number", COUNTERS["gigainstructions"], "10^9"),
        column("ipc", "number", RATES["ipc"][0]),
        column("frequency_ghz", "number", RATES["frequency_ghz"][0], "GHz"),
        column("instruction_scalability", "number", "reference instructions over its own; weak: per CPU"),
        column("ipc_scalability", "number", "IPC over that of the reference"),
        column("frequency_scalability", "number", "frequency over that of the reference"),
        # M. Wagner, S. Mohr, J. Gimenez, J. Labarta, Tools for HPC 2017: product of the three scalabilities
        column("computation_scalability", "number", "product of the three"),
        column("global_efficiency", "number", "parallel_efficiency x computation_scalability"),
        column("speedup", "number", "elapsed time of the reference over this one"),
        column("speedup_efficiency", "number", "speedup over growth of CPUs (strong), speedup (weak)"),
        # the same efficiency without counters; the two agree where IPC, frequency and instructions are right
        column("global_from_times", "number", "speedup_efficiency x parallel efficiency of the reference"),
        column("reason", "keyword", "reason for missing scalabilities"),
    ),
    time="last_time",
    made_by="talp join",
    shown=columns(
        "application region cpus n_runs mode elapsed_s parallel_efficiency instruction_scalability "
        "ipc_scalability frequency_scalability computation_scalability global_efficiency speedup_efficiency"
    ),
    order=columns("source application -main region cpus"),
)

POP_CHANGES = Table(
    "pop_changes",
    "dates on which an application became slower or faster, or more or less efficient",
    "application",
    (
        column("source", "keyword", "source of the jobs' records"),
        column("application", "keyword", "program or package of the jobs"),
        column("region", "keyword", "region around the complete program"),
        column("cpus", "integer", "CPUs of the runs", "CPUs"),
        column("metric", "keyword", "changed metric", values=("elapsed_s", "parallel_efficiency")),
        column("kind", "keyword", "direction of the change", values=("regression", "improvement")),
        column("day", "day", "first day at the new level", "UTC"),
        column("day_low", "day", "begin of the 90 % interval of the day", "UTC"),
        column("day_high", "day", "end of the 90 % interval of the day", "UTC"),
        column("change", "number", "relative change; 0.1: ten per cent more"),
        column("change_err", "number", "its standard error"),
        column("significance", "number", "change over error"),
        column("n_days", "integer", "examined days", "days"),
    ),
    time="day",
    made_by="talp join",
    shown=columns("application cpus metric kind day day_low day_high change change_err significance"),
    order=columns("-day application region cpus metric"),
)

TABLES = (POP, ORPHANS, SCALING, POP_CHANGES, POP_REPORTS)
