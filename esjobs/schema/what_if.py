"""Columns of the forecasts of changes; they are computed when asked and have no table."""

from esjobs.core.tables import Table

MOVE_FILES = (
    *("cpu_s_low_68", "cpu_s_high_68", "job_cpu_s_low", "job_cpu_s_high", "wall_s_low", "wall_s_high"),
    *("cores", "efficiency", "events_per_job", "n_queues", "n_jobs_left_out", "observed_cpu_s"),
    *("mem_per_core_p50_b", "mem_per_core_p95_b", "waiting_p50_s", "waiting_p95_s"),
)
"""Columns of a move that files have and the terminal omits; its notes are about them."""

TABLES: tuple[Table, ...] = ()
