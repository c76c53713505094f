"""Scores of jobs: efficiency of their use of the allocation; ordinary jobs of large days share rows."""

from esjobs.core.columns import OF_WORK
from esjobs.core.query import Present
from esjobs.core.tables import Table, column, columns

SCORE_NAMES = ("score_cpu", "score_mem", "score_mpi", "score_io", "score_gpu", "score_gpumem")
"""The scores, 0 best and 100 worst."""
MEASURES = (*SCORE_NAMES, "cpu_efficiency")
"""Measures that have an unclipped value and a reason column."""
RANKED = (*MEASURES, "score_sum")
"""Measures for ranking; a column has the square of each, for standard deviations."""

_MEANINGS = {
    "score_cpu": "share of pipeline slots without useful work",
    "score_mem": "share of time that the processor waited for memory",
    "score_mpi": "share of time in MPI (TALP), or lost to communication issues",
    "score_io": "share of time lost to I/O issues",
    "score_gpu": "share of GPU warps not issued, or of idle multiprocessors",
    "score_gpumem": "share of GPU warps that waited for memory, or of time with busy memory",
}
_WORST = "%, 0 best, 100 worst"

SCORES = Table(
    "scores",
    "use of the allocation of each job: scores, CPU efficiency, requested against used",
    "day",
    (
        column("source", "keyword", "source of the record; with job_id the identity of a job"),
        column("job_id", "keyword", "identifier of the job in its source; null: several jobs share the row"),
        *OF_WORK,
        column("end_time", "time", "end of the job", "UTC"),
        column("node_h", "number", "wall-clock time x nodes; source of the nodes: node_h_from", "h"),
        *(column(name, "number", _MEANINGS[name], _WORST) for name in SCORE_NAMES),
        column("cpu_efficiency", "number", "CPU time over wall-clock time x cores; never above 1"),
        column("variant", "keyword", "definition of score_cpu and score_mem: family of CPUs, events"),
        *(
            item
            for name in MEASURES
            for item in (
                column(f"{name}_unclipped", "number", f"{name} before clipping"),
                column(f"{name}_reason", "keyword", f"reason for a missing or clipped {name}"),
            )
        ),
        column("day", "day", "day of the end time", "UTC"),
        column("core_h", "number", "wall-clock time x cores", "core h"),
        column("gpu_h", "number", "wall-clock time x GPUs", "GPU h"),
        column(
            "node_h_from",
            "keyword",
            "nodes: as recorded; cluster: cores over those of a described node; cpu: over those in the CPU "
            "string; assumed: over the setting scores.cores_per_node",
            values=("nodes", "cluster", "cpu", "assumed"),
        ),
        column("idle_core_h", "number", "idle core-hours; below 0: more CPU time than core time", "core h"),
        column("time_used_frac", "number", "wall-clock time over requested; above 1: ran past it"),
        column("memory_used_frac", "number", "largest memory over requested"),
        column("cores_used_frac", "number", "mean busy cores over requested"),
        column("gpus_used_frac", "number", "mean busy GPUs over requested: the GPU efficiency"),
        column("requested_wall_s", "number", "requested wall-clock time", "s"),
        column("requested_memory_b", "number", "requested memory of the job", "B"),
        column("used_memory_b", "number", "largest memory in use: proportional if known, else resident", "B"),
        column("requested_cores", "integer", "requested cores", "cores"),
        column("requested_gpus", "integer", "requested GPUs", "GPUs"),
        column("cores", "integer", "allocated cores", "cores"),
        column("nodes", "integer", "allocated nodes", "nodes"),
        column("gpus", "integer", "allocated GPUs", "GPUs"),
        column("wall_s", "number", "wall-clock time", "s"),
        column("state", "keyword", "final state of the job"),
        column("cluster", "keyword", "machine"),
        column("subcluster", "keyword", "part of the cluster with one kind of node"),
        column("issues_variant", "keyword", "how score_mpi and score_io combine issues: product or sum"),
        # in the table, because a cluster cannot add columns of a row when it ranks
        column("score_sum", "number", "sum of the available scores of the job", "%"),
        column("n_scores", "integer", "number of available scores", "scores"),
        # sums of squares add up over groups, standard deviations do not
        *(column(f"{name}_sq", "number", f"square of {name}, for standard deviations") for name in RANKED),
        # histograms of every dashboard count the same bins
        *(column(f"{name}_from", "integer", f"lower end of the bin of {name}", "%") for name in MEASURES),
        column("fingerprint", "keyword", "digest of the inputs of the day"),
        column("time_used_reason", "keyword", "reason for a missing time_used_frac"),
        column(
            "cores_from", "keyword", "recorded; cluster: nodes x cores of a node", values=("cores", "cluster")
        ),
        column("cpu_from", "keyword", "CPU time: recorded; load: load x wall time", values=("cpu_s", "load")),
        column("gpu_variant", "keyword", "GPU scores by counters, by series", values=("warps", "activity")),
        # of a large day only the jobs that somebody will look at have rows of their own
        column("n_jobs", "integer", "jobs of the row; those that share one have sums and means", "jobs"),
        column("gpus_used_frac_sq", "number", "square of gpus_used_frac, for standard deviations over jobs"),
        column("job_name", "keyword", "name of the job; null in shared rows without gpus_used_frac"),
    ),
    time="end_time",
    made_by="score",
    shown=columns(
        "source job_id queue user end_time node_h score_cpu score_mem score_mpi score_io score_gpu "
        "score_gpumem cpu_efficiency variant"
    ),
    order=columns("end_time source job_id"),
)

OWN_ROW = Present("job_id")
"""Filter for rows of one job."""
NAMES = ("user", "project", "queue", "application", "processing_type", "cpu_model")
"""Name columns that can be ranked."""
BY = (*NAMES, "job")
"""The same, and single jobs."""
SCORE_COLUMNS = {"sum": "score_sum", **{name: name for name in MEASURES}, "gpu_efficiency": "gpus_used_frac"}
"""By what; ``sum``: of the scores that a job has. The column of each."""
SCORE_CHOICES = tuple(SCORE_COLUMNS)
USUAL_WEIGHTS = {name: "gpu_h" if name == "gpu_efficiency" else "node_h" for name in SCORE_CHOICES}
"""Hours by which jobs count in the mean of each."""
WEIGHTS = {"node_h": "node-hours", "core_h": "core-hours", "gpu_h": "GPU-hours"}
BEST_IS_HIGH = ("cpu_efficiency", "gpu_efficiency")
"""Measures that are good when large; every other one is good at 0."""

TABLES = (SCORES,)
