"""Tables about jobs: buckets and their books, loads and rejected rows."""

from esjobs.core.tables import Table, column, columns

BUCKETS = Table(
    "buckets",
    "sums over the jobs of one day, task, core class, queue, CPU model and processing type; "
    "late jobs of a large day have rows of their own",
    "day",
    (
        column("day", "day", "day of the end time", "UTC"),
        column("task_id", "keyword", "task"),
        column("core_class", "keyword", "single or multi"),
        column("queue", "keyword", "queue, as jobs name it"),
        column("cpu_model", "keyword", "canonical CPU model; null if unknown"),
        column("processing_type", "keyword", "processing type; null if unknown"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("events", "number", "sum of events", "events"),
        column("events_sq", "number", "sum of squared events", "events²"),
        column("cpu_s", "number", "sum of CPU time", "s"),
        column("cpu_s_sq", "number", "sum of squared CPU time", "s²"),
        column("events_cpu_s", "number", "sum of events x CPU time", "events s"),
        column("wall_s", "number", "sum of wall-clock time", "s"),
        column("core_s", "number", "sum of wall-clock time x cores", "core s"),
        # sums of quotients cannot be had from quotients of sums: one pass over the jobs makes both
        column("cpe_sum", "number", "sum over jobs of CPU time per event", "s"),
        column("cpe_sq", "number", "sum over jobs of squared CPU time per event", "s²"),
    ),
    time="day",
    made_by="aggregate",
    packed="beside",
)

DAYS = Table(
    "day_books",
    "accounting balance of one aggregated day: jobs in = binned + dropped, and the inputs of the buckets",
    "day",
    (
        column("day", "day", "day of the end time", "UTC"),
        column("outcome", "keyword", "binned, a drop reason, or a note such as 'state unknown'"),
        column("kind", "keyword", "binned, dropped, or note (a note counts jobs that are also binned)"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("fingerprint", "keyword", "digest of the day's jobs at aggregation"),
        column("rules", "keyword", "digest of the cleaning rules"),
        # a new resolver or new columns make the buckets of all days stale
        column("resolver", "keyword", "version of the CPU model resolver, and of the columns of the buckets"),
        # dashboards add these three up; notes would count their jobs twice
        column("n_in", "integer", "jobs of the row; 0 in a note", "jobs"),
        column("n_used", "integer", "of these, binned jobs", "jobs"),
        column("n_dropped", "integer", "of these, dropped jobs; by reason: by outcome", "jobs"),
        column("n_invalid", "integer", "of the dropped: invalid records of a foreign index", "jobs"),
    ),
    time="day",
    made_by="aggregate",
)

REJECTS = Table(
    "rejects",
    "a rejected input row, or many of a kind; n_rows adds up to the rejected rows of the load",
    "load_id",
    (
        column("load_id", "keyword", "load"),
        column("reason", "keyword", "why"),
        column("file", "keyword", "file"),
        column("line", "integer", "line or row number, from 1"),
        column("field", "keyword", "invalid field"),
        column("detail", "text", "value found and accepted values"),
        # of the first 1,000 rows of a kind only: a broken file must not be stored a second time
        column("excerpt", "text", "beginning of the row"),
        column("n_rows", "integer", "rows of the entry: 1, or all after the first 1,000 of a kind", "rows"),
        column("table_name", "keyword", "target of the row: jobs, or a table"),
    ),
    made_by="ingest",
    shown=columns("load_id reason n_rows file line field detail excerpt"),
)

LOADS = Table(
    "loads",
    "files read by one call of ingest; reading them again keeps the first account",
    "load_id",
    (
        column("load_id", "keyword", "hash of the files' contents, the format and the values of --set"),
        column("state", "keyword", "started or complete"),
        column("format", "keyword", "input format"),
        column("files", "text", "file names"),
        column("filled", "text", "fields filled by --set"),
        column("rows_in", "integer", "rows read", "rows"),
        column("stored", "integer", "new jobs, and new rows of other tables", "rows"),
        column("updated", "integer", "rows that replaced existing ones", "rows"),
        column("rejected", "integer", "rejected rows", "rows"),
        column("first_end", "time", "earliest end time", "UTC"),
        column("last_end", "time", "latest end time", "UTC"),
        column("loaded_at", "time", "when", "UTC"),
        column("without_task_id", "integer", "accepted rows without a task id", "rows"),
        column("without_events", "integer", "accepted rows without a number of events", "rows"),
        column("without_cores", "integer", "accepted rows without a number of cores", "rows"),
        column("without_cpu_raw", "integer", "accepted rows without a CPU string", "rows"),
        column("jobs_changed", "integer", "updated jobs with a changed field", "jobs"),
        # reloading the same records writes nothing, but its rows must be accounted for
        column("unchanged", "integer", "of the updated: rows that changed nothing", "rows"),
    ),
    made_by="ingest",
    shown=columns("load_id state format files filled rows_in stored updated rejected loaded_at"),
    order=("-loaded_at",),
)

LOAD_COUNTS = Table(
    "load_counts",
    "rows of one load for jobs and for each other table; rows_in = stored + updated + rejected",
    "load_id",
    (
        column("load_id", "keyword", "load"),
        column("table_name", "keyword", "jobs, or the table"),
        column("rows_in", "integer", "rows read", "rows"),
        column("stored", "integer", "new rows", "rows"),
        column("updated", "integer", "rows that replaced existing ones", "rows"),
        column("rejected", "integer", "rejected rows", "rows"),
        column("unchanged", "integer", "of the updated jobs: rows that changed nothing", "rows"),
    ),
    made_by="ingest",
)

TABLES = (BUCKETS, DAYS, REJECTS, LOADS, LOAD_COUNTS)
