SELECT "run_step", "run", "step", "at", "seconds", "rows_in", "rows_out", "dropped", "counts", "notes", "window_start", "window_end", "settings", "program_version", "data_end", "window_days", "scope"
FROM "runs"
