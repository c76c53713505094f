"""Scores of jobs: efficiency of their use of the allocation, one row per job."""

from esjobs.core.tables import Table, column, columns

SCORE_NAMES = ("score_cpu", "score_mem", "score_mpi", "score_io", "score_gpu", "score_gpumem")
"""The scores, 0 best and 100 worst."""
MEASURES = (*SCORE_NAMES, "cpu_efficiency")
"""Measures that have an unclipped value and a reason column."""
RANKED = (*MEASURES, "score_sum")
"""Measures for ranking; a column has the square of each, for standard deviations."""

_MEANINGS = {
    "score_cpu": "share of the pipeline that did not end as useful work",
    "score_mem": "time that the processor waited for memory",
    "score_mpi": "time that issues of communication cost",
    "score_io": "time that issues of input and output cost",
    "score_gpu": "share of the warps of GPUs that could not be issued",
    "score_gpumem": "share of the warps of GPUs that waited for memory",
}
_WORST = "%, 0 best, 100 worst"

SCORES = Table(
    "scores",
    "how well each job used what it was given: scores, CPU efficiency, requested against used",
    "day",
    (
        column("source", "keyword", "stream the record came from; with job_id the identity of a job"),
        column("job_id", "keyword", "identifier of the job inside its source"),
        column("queue", "keyword", "queue, as jobs name it"),
        column("user", "keyword", "who the job ran for"),
        column("project", "keyword", "group, account or project the job is charged to"),
        column("application", "keyword", "program or package the job ran"),
        column("processing_type", "keyword", "kind of work"),
        column("cpu_model", "keyword", "canonical CPU model; null when the record names none"),
        column("end_time", "time", "when the job ended", "UTC"),
        column("node_h", "number", "wall-clock time x nodes; of which nodes: node_h_from", "h"),
        *(column(name, "number", _MEANINGS[name], _WORST) for name in SCORE_NAMES),
        column("cpu_efficiency", "number", "CPU time over wall-clock time x cores; never above 1"),
        column("variant", "keyword", "definition behind score_cpu and score_mem: family of CPUs, events"),
        *(
            item
            for name in MEASURES
            for item in (
                column(f"{name}_unclipped", "number", f"{name} as the formula gives it"),
                column(f"{name}_reason", "keyword", f"why {name} is missing, or why it is clipped"),
            )
        ),
        column("day", "day", "day of the end time", "UTC"),
        column("core_h", "number", "wall-clock time x cores", "core h"),
        column("gpu_h", "number", "wall-clock time x GPUs", "GPU h"),
        column(
            "node_h_from",
            "keyword",
            "nodes: as recorded; cluster: cores over those of a described node; cpu: over those that the CPU "
            "string names; assumed: over the setting scores.cores_per_node",
            values=("nodes", "cluster", "cpu", "assumed"),
        ),
        column(
            "idle_core_h",
            "number",
            "core-hours without CPU time; below 0 where the record says more CPU time than cores could give",
            "core h",
        ),
        column("time_used_frac", "number", "wall-clock time over that requested; above 1: ran past it"),
        column("memory_used_frac", "number", "largest memory over that requested"),
        column("cores_used_frac", "number", "cores kept busy on average over those requested"),
        column("gpus_used_frac", "number", "GPUs kept busy on average over those requested"),
        column("requested_wall_s", "number", "wall-clock time requested", "s"),
        column("requested_memory_b", "number", "memory requested for the job", "B"),
        column(
            "used_memory_b", "number", "largest memory used: proportional where known, else resident", "B"
        ),
        column("requested_cores", "integer", "cores requested", "cores"),
        column("requested_gpus", "integer", "GPUs requested", "GPUs"),
        column("cores", "integer", "cores the job was given", "cores"),
        column("nodes", "integer", "nodes the job was given", "nodes"),
        column("gpus", "integer", "GPUs the job was given", "GPUs"),
        column("wall_s", "number", "wall-clock time", "s"),
        column("state", "keyword", "how the job ended"),
        column("cluster", "keyword", "machine"),
        column("subcluster", "keyword", "its part with one kind of node"),
        column("issues_variant", "keyword", "how issues add up in score_mpi and score_io: product or sum"),
        column("score_sum", "number", "sum of the scores that the job has", "%"),
        column("n_scores", "integer", "how many it has", "scores"),
        *(column(f"{name}_sq", "number", f"square of {name}: for spreads over jobs") for name in RANKED),
        *(
            column(f"{name}_from", "integer", f"the ten per cent in which {name} lies: from here on", "%")
            for name in MEASURES
        ),
        column("fingerprint", "keyword", "what the scores of the day were made from; moves when that does"),
        column("time_used_reason", "keyword", "why time_used_frac is missing"),
        column(
            "cores_from",
            "keyword",
            "cores: as recorded; cluster: nodes x those of a described node, where the record has none",
            values=("cores", "cluster"),
        ),
    ),
    time="end_time",
    made_by="score",
    shown=columns(
        "source job_id queue user end_time node_h score_cpu score_mem score_mpi score_io score_gpu "
        "score_gpumem cpu_efficiency variant"
    ),
    order=columns("end_time source job_id"),
)

NAMES = ("user", "project", "queue", "application", "processing_type", "cpu_model")
"""Name columns that can be ranked."""
BY = (*NAMES, "job")
"""The same, and the jobs one by one."""
SCORE_CHOICES = ("sum", *(name for name in RANKED if name != "score_sum"))
"""By what; ``sum``: of the scores that a job has."""
WEIGHTS = {"node_h": "node-hours", "core_h": "core-hours"}
BEST_IS_HIGH = ("cpu_efficiency",)
"""Measures that are good when large; every other one is good at 0."""

TABLES = (SCORES,)
