"""Fields that a job record may carry."""

from esjobs.core.fields.types import Field


def _keyword(name: str, meaning: str, *, required: bool = False) -> Field:
    return Field(name, "keyword", "", meaning, required=required, groupable=True)


def _time(name: str, meaning: str, *, required: bool = False) -> Field:
    return Field(name, "time", "UTC", meaning, required=required)


def _number(name: str, unit: str, meaning: str) -> Field:
    return Field(name, "number", unit, meaning, bounded=True)


def _integer(name: str, unit: str, meaning: str, *, groupable: bool = False) -> Field:
    return Field(name, "integer", unit, meaning, bounded=True, groupable=groupable)


JOB_FIELDS: tuple[Field, ...] = (
    _keyword("source", "source of the record: panda, a cluster; with job_id the identity of a job"),
    Field("job_id", "keyword", "", "identifier of the job in its source", required=True),
    _keyword("task_id", "set of similar jobs (JEDI task); CPU time per event depends on the CPU only"),
    _keyword("queue", "queue that jobs name: PanDA queue, Slurm partition", required=True),
    _keyword("cpu_raw", "CPU string reported by the job"),
    _keyword("processing_type", "processing type: evgen, simul, pile, reprocessing, ..."),
    _keyword("transformation", "program of the job"),
    _keyword("state", "final state of the job: finished, failed, cancelled, ...; missing: unknown"),
    _keyword("user", "user of the job"),
    _keyword("project", "group, account or project that is charged"),
    _time("submit_time", "creation or submission of the job"),
    _time("start_time", "start of the job"),
    _time("end_time", "end of the job; determines its window and day", required=True),
    _integer("cores", "cores", "cores allocated to the job", groupable=True),
    _integer("events", "events", "events processed by the job"),
    _number("cpu_s", "s", "CPU time summed over cores"),
    _number("wall_s", "s", "wall-clock time, not multiplied by cores"),
    # wall time x cores x declared corepower: a fit of it would confirm every declaration
    Field(
        "hs06_s", "number", "HS06 s", "normalised work at the declared corepower", bounded=True, declared=True
    ),
    _number("queue_s", "s", "time between submission and start"),
    _number("stagein_s", "s", "time spent fetching input"),
    _number("exe_s", "s", "time spent in the payload"),
    _number("stageout_s", "s", "time spent storing output"),
    _number("max_rss_b", "B", "largest resident memory"),
    _number("avg_rss_b", "B", "mean resident memory"),
    _number("max_pss_b", "B", "largest proportional memory"),
    _number("avg_pss_b", "B", "mean proportional memory"),
    _number("max_vmem_b", "B", "largest virtual memory"),
    _number("read_b", "B", "bytes read from storage"),
    _number("written_b", "B", "bytes written to storage"),
    _number("input_b", "B", "size of the input files"),
    _number("output_b", "B", "size of the output files"),
    _integer("failed_attempts", "attempts", "attempts that failed before this one"),
    _integer("nodes", "nodes", "nodes of the job", groupable=True),
    _integer("gpus", "GPUs", "GPUs allocated to the job", groupable=True),
    Field(
        "smt",
        "boolean",
        "",
        "true if cores ran several hardware threads each (SMT, hyper-threading); missing: unknown",
        groupable=True,
    ),
    _number("requested_wall_s", "s", "requested wall-clock time; missing: no limit, or unknown"),
    _number("requested_memory_b", "B", "requested memory of the whole job"),
    _integer("requested_cores", "cores", "requested cores"),
    _integer("requested_gpus", "GPUs", "requested GPUs"),
    _keyword("application", "program or package, by its usual name"),
    _keyword("cluster", "host of the job"),
    _keyword("subcluster", "part of the cluster with one kind of node"),
    _keyword("exit_code", "exit code in the form of the scheduler, such as 0:15"),
    Field(
        "counters",
        "map",
        "",
        "counts of hardware events by the event's name, summed over cores and samples; read and written as "
        "columns counter.EVENT in CSV, as an object in JSON lines",
        bounded=True,
    ),
    _keyword("executable", "program file: its path or name"),
    # components of PanDA number their errors independently: the family tells equal codes apart
    _keyword("error", "primary error of a job that did not finish, as FAMILY:CODE; missing: not recorded"),
    _keyword("node", "worker node, without its slot; missing for jobs on several nodes"),
    _keyword("job_name", "name that the user gave the job"),
    _number("energy_j", "J", "measured energy of the job's nodes; missing: not measured"),
    _keyword("release", "release of the software, such as Athena/24.0.41"),
    _number("system_s", "s", "CPU time in the kernel"),
)
"""Fields that a job record may carry, in the order in which they are stored and exported; new ones at the
end."""
