"""TALP measurements of jobs: reports, efficiencies made of them, reports without a job."""

from esjobs.core.fields import Field
from esjobs.core.tables import Table, column, columns

MODELS = ("minimum", "normalised", "summed", "printed")
"""Models of efficiencies: the raw times that a region has, and so the formulas."""

LEVELS = ("application", "node", "process")
"""Levels of the times of a row."""

EFFICIENCIES: dict[str, str] = {
    "parallel_efficiency": "share of the time on CPUs that was useful",
    "mpi_parallel_efficiency": "share of the elapsed time that processes were outside MPI, on average",
    "mpi_communication_efficiency": "the same of the process that was in MPI least: what communication cost",
    "mpi_load_balance": "work per process on average over that of the busiest one",
    "mpi_load_balance_in": "the part of mpi_load_balance inside nodes",
    "mpi_load_balance_out": "the part of mpi_load_balance between nodes",
    "omp_parallel_efficiency": "share of the time of all threads that OpenMP did not cost",
    "omp_load_balance": "what unequal shares of work of OpenMP threads left",
    "omp_scheduling_efficiency": "what handing out work to OpenMP threads left",
    "omp_serialization_efficiency": "what parts outside OpenMP's parallel regions left",
    "device_offload_efficiency": "share of the time of the host that calls of the GPU's runtime left",
    "gpu_parallel_efficiency": "share of the elapsed time that GPUs computed",
    "gpu_load_balance": "computing time per GPU on average over that of the busiest one",
    "gpu_communication_efficiency": "what moving data left of the active time of the busiest GPU",
    "gpu_orchestration_efficiency": "share of the elapsed time that the busiest GPU was active",
}
"""The efficiencies that TALP prints, from 0 to 1."""

UNMEASURED: dict[str, str] = {
    "mpi_transfer_efficiency": "what moving data left; needs a replay on an ideal network",
    "mpi_serialization_efficiency": "what waiting for each other left; needs a replay on an ideal network",
}
"""Efficiencies of the POP method that TALP cannot measure: always missing."""

RATES: dict[str, tuple[str, str]] = {
    "ipc": ("instructions per cycle, in useful time", ""),
    "frequency_ghz": ("cycles per useful time", "GHz"),
}

METRICS = (*EFFICIENCIES, *UNMEASURED, *RATES)
"""Metrics that have a status column."""

STATUSES = (
    "computed",
    "printed",
    "no_data",
    "no_mpi",
    "no_openmp",
    "no_gpu",
    "no_counters",
    "bad_counters",
    "inconsistent",
    "not_measurable",
)
"""Reasons for the value of a metric, or for none."""

TIMES: dict[str, str] = {
    "elapsed_s": "elapsed time of the region",
    "useful_s": "time of all CPUs outside MPI, OpenMP's runtime and the GPU's runtime",
    "mpi_s": "time of all CPUs in MPI",
    "mpi_worker_idle_s": "time that threads waited while their process was in MPI",
    "omp_load_imbalance_s": "time that OpenMP threads waited for each other",
    "omp_scheduling_s": "time that OpenMP took to hand out work",
    "omp_serialization_s": "time that OpenMP threads waited outside parallel regions",
    "gpu_runtime_s": "time of all CPUs in the GPU's runtime",
    "min_mpi_process_s": "time in MPI per CPU, of the process with the least",
    "min_mpi_node_s": "the same of the node with the least",
    "useful_mean_s": "useful time per CPU, of the application",
    "useful_max_process_s": "useful time per CPU, of the process with the most",
    "useful_max_node_s": "useful time per CPU, of the node with the most",
    "mpi_of_most_useful_s": "time in MPI per CPU, of the process with the most useful time",
    "gpu_useful_s": "time that GPUs computed, all of them together",
    "gpu_communication_s": "time that GPUs moved data, all of them together",
    "max_gpu_useful_s": "time that the busiest GPU computed",
    "max_gpu_active_s": "time that the most active GPU computed or moved data",
}
"""Raw times, in s; whatever a report has not is missing."""

COUNTS: dict[str, str] = {
    "cpus": "CPUs that took part in the region",
    "ranks": "MPI ranks, of the application even where a region was entered by some of them",
    "nodes": "nodes",
    "gpus": "GPUs",
    "measurements": "how often the region was entered",
    "mpi_calls": "calls of MPI",
    "omp_parallels": "parallel regions of OpenMP",
    "gpu_runtime_calls": "calls of the GPU's runtime",
}

COUNTERS: dict[str, str] = {
    "gigacycles": "cycles in useful time",
    "gigainstructions": "instructions in useful time",
}
"""In units of 10^9: jobs of many cores pass what numbers may be otherwise."""

_OF_REPORT = (
    column("report", "keyword", "the report: equal for equal contents about the same job and step"),
    column("job_id", "keyword", "the job's id, from the name of the file"),
    column(
        "step", "keyword", "which launch of the job, from the name of the file; empty where it does not say"
    ),
    column("region", "keyword", "name of the region, as the report has it"),
    column("level", "keyword", "what the times are of", values=LEVELS),
    column("unit", "keyword", "which node or process (host/pid); empty for the application"),
    column("time", "time", "when the report was written; the time of the file where it does not say", "UTC"),
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
    "reports of TALP as they came: a row a region, node and process, raw times and what was printed",
    "load_id",
    (
        column("load_id", "keyword", "the load that brought the row"),
        *_OF_REPORT,
        column("source", "keyword", "the job's source, where the load was told it; else it is looked for"),
        column("main", "boolean", "whether the region is the one around everything"),
        column("model", "keyword", "which raw times there are", values=MODELS),
        column("dlb_version", "keyword", "version of DLB as it prints it; nothing is decided by it"),
        column("part_of", "keyword", "of a report of one process: the report that these are parts of"),
        column("host", "keyword", "node of a process"),
        column("counters", "keyword", "whether counters can be used", values=("ok", "none", "bad")),
        column("file", "keyword", "the file"),
        column("time_from", "keyword", "where the time comes from", values=("report", "file", "given")),
        column("remark", "text", "what was repaired, or is unusual"),
        *_measured(", as printed"),
        column("day", "day", "day of the time", "UTC"),
        column("loaded_at", "time", "when the load was made", "UTC"),
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
    "parallel efficiencies of jobs (POP metrics) by region, made from the raw times of reports of TALP",
    "day",
    (
        column("source", "keyword", "stream the job's record came from; with job_id the identity of a job"),
        *_OF_REPORT,
        column("queue", "keyword", "queue, as jobs name it"),
        column("user", "keyword", "who the job ran for"),
        column("project", "keyword", "group, account or project the job is charged to"),
        column("application", "keyword", "program or package the job ran"),
        column("end_time", "time", "when the job ended", "UTC"),
        column("core_h", "number", "wall-clock time x cores of the job", "core h"),
        column("model", "keyword", "by which formulas the efficiencies are made", values=MODELS),
        column("main", "boolean", "whether it is the row of the application for all of the run"),
        *_measured(""),
        *(column(name, "number", text) for name, text in UNMEASURED.items()),
        *(column(name, "number", text, unit) for name, (text, unit) in RATES.items()),
        *(
            column(f"{name}_status", "keyword", f"why {name} has its value or none", values=STATUSES)
            for name in METRICS
        ),
        column(
            "status", "keyword", "of the row: no_data, where the region was never entered", values=STATUSES
        ),
        column("worst", "keyword", "the branch of the tree that costs most; none above 0.9"),
        column("score_mpi_talp", "number", "100 x (1 - mpi_parallel_efficiency)", "%, 0 best, 100 worst"),
        column("dlb_version", "keyword", "version of DLB as it prints it"),
        column("remark", "text", "what was repaired, or is unusual"),
        column("day", "day", "day of the report's time", "UTC"),
        column("fingerprint", "keyword", "what the rows of the day were made from; moves when that does"),
        column("active_s", "number", "time that the parallel efficiency is the useful part of", "s"),
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
    "reports of TALP whose job is not known; they are joined when its record comes",
    "day",
    (
        column("report", "keyword", "the report"),
        column("job_id", "keyword", "the job's id, from the name of the file"),
        column("step", "keyword", "which launch of the job"),
        column("source", "keyword", "the job's source, where the load was told it"),
        column("time", "time", "when the report was written", "UTC"),
        column("file", "keyword", "the file"),
        column("n_regions", "integer", "regions in it", "regions"),
        column("reason", "text", "why it has no job"),
        column("day", "day", "day of the time", "UTC"),
        column("fingerprint", "keyword", "what the rows of the day were made from; moves when that does"),
    ),
    time="time",
    made_by="talp join",
    shown=columns("job_id step source time file n_regions reason"),
    order=columns("time job_id step report"),
)

SCALING = Table(
    "pop_scaling",
    "runs of one application at several sizes: how well it scales, against the smallest",
    "application",
    (
        column("source", "keyword", "stream the jobs' records came from"),
        column("application", "keyword", "program or package the jobs ran"),
        column("region", "keyword", "region of the program"),
        column("main", "boolean", "whether the region is the one around everything"),
        column("cpus", "integer", "CPUs that took part", "CPUs"),
        column("n_runs", "integer", "runs of this size; numbers are medians over them", "runs"),
        column("last_time", "time", "when the newest of them was written", "UTC"),
        column(
            "mode",
            "keyword",
            "strong: the problem stays; weak: it grows with the CPUs; unknown without counters",
            values=("strong", "weak", "single", "unknown"),
        ),
        column("reference_cpus", "integer", "the size that it is compared with", "CPUs"),
        column("elapsed_s", "number", "elapsed time", "s"),
        column("parallel_efficiency", "number", EFFICIENCIES["parallel_efficiency"]),
        column("mpi_parallel_efficiency", "number", EFFICIENCIES["mpi_parallel_efficiency"]),
        column("mpi_communication_efficiency", "number", EFFICIENCIES["mpi_communication_efficiency"]),
        column("mpi_load_balance", "number", EFFICIENCIES["mpi_load_balance"]),
        column("omp_parallel_efficiency", "number", EFFICIENCIES["omp_parallel_efficiency"]),
        column("gigainstructions", "number", COUNTERS["gigainstructions"], "10^9"),
        column("ipc", "number", RATES["ipc"][0]),
        column("frequency_ghz", "number", RATES["frequency_ghz"][0], "GHz"),
        column(
            "instruction_scalability", "number", "instructions of the reference over those; weak: per CPU"
        ),
        column("ipc_scalability", "number", "IPC over that of the reference"),
        column("frequency_scalability", "number", "frequency over that of the reference"),
        column("computation_scalability", "number", "product of the three"),
        column("global_efficiency", "number", "parallel_efficiency x computation_scalability"),
        column("speedup", "number", "elapsed time of the reference over this one"),
        column("speedup_efficiency", "number", "speedup over growth of CPUs (strong), speedup (weak)"),
        column("global_from_times", "number", "speedup_efficiency x parallel efficiency of the reference"),
        column("reason", "keyword", "why scalabilities are missing"),
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
    "days from which on an application ran slower or faster, or less or more efficiently",
    "application",
    (
        column("source", "keyword", "stream the jobs' records came from"),
        column("application", "keyword", "program or package the jobs ran"),
        column("region", "keyword", "the region around everything"),
        column("cpus", "integer", "CPUs that took part", "CPUs"),
        column("metric", "keyword", "what changed", values=("elapsed_s", "parallel_efficiency")),
        column("kind", "keyword", "which way", values=("regression", "improvement")),
        column("day", "day", "first day at the new level", "UTC"),
        column("day_low", "day", "the 90 % interval of the day begins here", "UTC"),
        column("day_high", "day", "and ends here", "UTC"),
        column("change", "number", "relative change; 0.1: ten per cent more than before"),
        column("change_err", "number", "its standard error"),
        column("significance", "number", "change over error"),
        column("n_days", "integer", "days that were looked at", "days"),
    ),
    time="day",
    made_by="talp join",
    shown=columns("application cpus metric kind day day_low day_high change change_err significance"),
    order=columns("-day application region cpus metric"),
)

TABLES = (POP, ORPHANS, SCALING, POP_CHANGES, POP_REPORTS)
