"""Similar programs and jobs: symbol names, and scores predicted from similar jobs."""

from esjobs.core.tables import Table, column, columns

SYMBOLS_FROM = ("symtab", "dynsym", "none")
"""Sources of symbols: all; those for linking alone, of a stripped file; none."""

EXECUTABLES = Table(
    "executables",
    "executables and libraries with the names of their symbols, a row a file",
    "executable",
    (
        column("executable", "keyword", "follows from the path; scanned again it is replaced"),
        column("path", "keyword", "the file, links resolved; bytes that are no text as escapes"),
        column("name", "keyword", "last part of the path"),
        column("module", "keyword", "module that provides it, as given with the scan"),
        column("symbols_from", "keyword", "symtab; dynsym: stripped; none: no names", values=SYMBOLS_FROM),
        column("stripped", "boolean", "whether it has no table of all symbols"),
        column("n_symbols", "integer", "different names of symbols"),
        column("n_kept", "integer", "of these those that are kept: those of the least hashes"),
        column("digest", "keyword", "hash of the names; null without any"),
        column("size_b", "number", "size of the file", "B"),
        column("packed", "bytes", "the names, sorted, separated by NUL, in UTF-8, compressed by zlib"),
        column("scanned_at", "time", "when it was scanned", "UTC"),
    ),
    entered=True,
    made_by="symbols scan",
    shown=columns("name module symbols_from stripped n_symbols path"),
    order=columns("name path"),
)

PREDICTED_NAMES = ("score_cpu", "score_mem")
"""Scores that are predicted: they need counters, which few jobs have."""
APPROACHES = ("combined-1", "combined-2", "dynamic")
"""From which jobs: of programs that are alike, else any; of these alone; any."""
AGGREGATIONS = ("softmax", "median", "mean")
"""Aggregations of several scores."""

PREDICTED_SCORES = Table(
    "predicted_scores",
    "scores of jobs that were not measured, predicted from jobs that behaved alike; never among the measured",
    "day",
    (
        column("source", "keyword", "stream the record came from; with job_id the identity of a job"),
        column("job_id", "keyword", "identifier of the job inside its source"),
        column("score_name", "keyword", "which score", values=PREDICTED_NAMES),
        column("value", "number", "the score as it is predicted", "%, 0 best, 100 worst"),
        column(
            "error_68", "number", "half the interval that has the measured score in 68 % of the cases", "%"
        ),
        column("error_95", "number", "the same in 95 %; null where too few jobs tell", "%"),
        column("n_neighbours", "integer", "jobs that it was predicted from", "jobs"),
        column("spread", "number", "weighted standard deviation of their scores; null of a single one", "%"),
        column("nearest", "number", "distance of the nearest of them, in spreads of the knowledge base"),
        column("approach", "keyword", "which jobs it is predicted from", values=APPROACHES),
        column("search_step", "keyword", "A: jobs of programs that are alike, B: any", values=("A", "B")),
        column("aggregation", "keyword", "what was made of their scores", values=AGGREGATIONS),
        column("static", "number", "static similarity from which on programs are alike; null: not asked"),
        column("distance_limit_a", "number", "limit of the distance in step A; null: not asked"),
        column("distance_limit_b", "number", "limit of the distance in step B; null: none is small enough"),
        column(
            "variant", "keyword", "definition of the scores of the neighbours; several: they differ in it"
        ),
        column("metrics", "keyword", "in which jobs were compared, with commas between"),
        column("n_known", "integer", "jobs with this score in the knowledge base", "jobs"),
        column("n_errors", "integer", "of these those whose predictions tell the errors", "jobs"),
        column("queue", "keyword", "queue, as jobs name it"),
        column("user", "keyword", "who the job ran for"),
        column("project", "keyword", "group, account or project the job is charged to"),
        column("application", "keyword", "program or package the job ran"),
        column("processing_type", "keyword", "kind of work"),
        column("cpu_model", "keyword", "canonical CPU model; null when the record names none"),
        column("end_time", "time", "when the job ended", "UTC"),
        column("node_h", "number", "wall-clock time x nodes", "h"),
        column("core_h", "number", "wall-clock time x cores", "core h"),
        column("value_sq", "number", "square of value: for spreads over jobs"),
        column("day", "day", "day of the end time", "UTC"),
        column("fingerprint", "keyword", "that of the scores of the day among which this one was missing"),
    ),
    time="end_time",
    made_by="similar predict",
    shown=columns(
        "source job_id end_time score_name value error_68 error_95 n_neighbours spread nearest search_step "
        "variant"
    ),
    order=columns("end_time source job_id score_name"),
)
"""A row a job and score."""

TABLES = (EXECUTABLES, PREDICTED_SCORES)
