"""Columns of the forecasts of changes; they are computed when asked and have no table."""

from esjobs.core.tables import Table

AT_QUEUE = {
    "mem_per_core_gb": "mem_per_core_gb",
    "mem_per_core_p95_gb": "mem_per_core_p95_gb",
    "waiting_p50_s": "waiting_median_s",
    "waiting_p95_s": "waiting_p95_s",
}
"""Columns about memory and waiting of the jobs of a queue, and their metrics."""

MOVE_NUMBERS = (
    *("cpu_s", "cpu_s_low", "cpu_s_high", "wall_s", "wall_s_low", "wall_s_high", "cpu_s_from"),
    *("cpu_s_low_68", "cpu_s_high_68", "job_cpu_s", "job_cpu_s_low", "job_cpu_s_high", "observed_cpu_s"),
    *("efficiency", "events_per_job"),
)
"""Numbers of a move beside them."""

NOT_SHOWN = (
    *("core_class", "from", "to", "n_jobs_left_out", "n_queues", "mem_per_core_gb", "mem_per_core_max_gb"),
    *("cpu_s_low_68", "cpu_s_high_68", "job_cpu_s", "job_cpu_s_low", "job_cpu_s_high", "events_per_job"),
    *("measured_low", "measured_high"),
)
"""Columns that files have and the terminal omits."""

TABLES: tuple[Table, ...] = ()
