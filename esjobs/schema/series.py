"""Time series of jobs as they are stored: a row a job, metric and unit, all samples packed into one value."""

from esjobs.core.metrics import SCOPES
from esjobs.core.tables import Table, column, columns

SERIES = Table(
    "series",
    "time series of jobs, a row a job, metric and unit; the samples are packed",
    "load_id",
    (
        column("load_id", "keyword", "the load that brought the row; of two, the one that came last counts"),
        column("source", "keyword", "where the job comes from, as in the jobs"),
        column("job_id", "keyword", "the job's id"),
        column("end_time", "time", "end of the job where it is known, else of its last sample", "UTC"),
        column("metric", "keyword", "what was measured; those of docs/fields.md, others behind x_"),
        column("scope", "keyword", "what the series is of", values=SCOPES),
        column(
            "unit", "keyword", "which node, core or device: node07, node07/3; empty for the job as a whole"
        ),
        column("start_time", "time", "time of the first sample", "UTC"),
        column("step_s", "number", "distance of the samples; 0 for a single one", "s"),
        column("n_samples", "integer", "samples from the first to the last, gaps among them"),
        column("packed", "bytes", "the samples, as docs/sources.md says"),
        column("n_gaps", "integer", "samples that are missing"),
        column("remark", "text", "what was repaired when the series was read"),
        column("day", "day", "day of the end", "UTC"),
        column("slot", "integer", "a number from source and job_id, by which a day is read in parts"),
        column("loaded_at", "time", "when the load was made", "UTC"),
    ),
    time="end_time",
    made_by="ingest",
    shown=columns("source job_id metric scope unit start_time step_s n_samples n_gaps remark"),
    order=columns("source job_id metric scope unit"),
)

TABLES = (SERIES,)
