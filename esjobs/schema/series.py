"""Stored time series of jobs: one packed row per job, metric and unit."""

from esjobs.core.metrics import SCOPES
from esjobs.core.tables import Table, column, columns

SERIES = Table(
    "series",
    "time series of jobs, one packed row per job, metric and unit",
    "load_id",
    (
        column("load_id", "keyword", "load of the row; the latest load counts"),
        column("source", "keyword", "source of the job, as in the jobs"),
        column("job_id", "keyword", "job id"),
        column("end_time", "time", "end of the job if known, else of its last sample", "UTC"),
        column("metric", "keyword", "measured metric (docs/fields.md); other names begin with x_"),
        column("scope", "keyword", "level of the unit: job, node, core, ...", values=SCOPES),
        column("unit", "keyword", "node, core or device: node07, node07/3; empty for the whole job"),
        column("start_time", "time", "time of the first sample", "UTC"),
        column("step_s", "number", "sampling interval; 0 for a single sample", "s"),
        column("n_samples", "integer", "samples from the first to the last, gaps included"),
        # one value per job, metric and unit: a row per sample would be a thousand times as many documents
        column("packed", "bytes", "packed samples, see docs/sources.md"),
        column("n_gaps", "integer", "missing samples"),
        column("remark", "text", "repairs when the series was read"),
        column("day", "day", "day of the end", "UTC"),
        # a day of series may not fit into memory; a slot of it does
        column("slot", "integer", "number from source and job_id, by which a day is read in parts"),
        column("loaded_at", "time", "time of the load", "UTC"),
    ),
    time="end_time",
    made_by="ingest",
    shown=columns("source job_id metric scope unit start_time step_s n_samples n_gaps remark"),
    order=columns("source job_id metric scope unit"),
)

TABLES = (SERIES,)
