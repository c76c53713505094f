"""Similar programs and jobs: symbol names, and scores predicted from similar jobs."""

from esjobs.core.columns import OF_WORK
from esjobs.core.tables import Table, column, columns

SYMBOLS_FROM = ("symtab", "dynsym", "none")
"""Sources of symbols: all; those for linking alone, of a stripped file; none."""

EXECUTABLES = Table(
    "executables",
    "executables and libraries with their symbol names, one row per file",
    "executable",
    (
        column("executable", "keyword", "derived from the path; a new scan replaces it"),
        column("path", "keyword", "path of the file, links resolved; non-text bytes as escapes"),
        column("name", "keyword", "last part of the path"),
        column("module", "keyword", "module that provides it, as specified with the scan"),
        column("symbols_from", "keyword", "symtab; dynsym: stripped; none: no symbols", values=SYMBOLS_FROM),
        column("stripped", "boolean", "true without a complete symbol table"),
        column("n_symbols", "integer", "distinct symbol names"),
        # a sample by hash: two files that share symbols keep the same ones, so shares can be compared
        column("n_kept", "integer", "stored symbol names: those with the least hashes"),
        column("digest", "keyword", "hash of the names; null without any"),
        column("size_b", "number", "size of the file", "B"),
        column("packed", "bytes", "names, sorted, separated by NUL, in UTF-8, compressed by zlib"),
        column("scanned_at", "time", "time of the scan", "UTC"),
    ),
    entered=True,
    made_by="symbols scan",
    shown=columns("name module symbols_from stripped n_symbols path"),
    order=columns("name path"),
)

PREDICTED_NAMES = ("score_cpu", "score_mem")
"""Scores that are predicted: they need counters, which few jobs have."""
APPROACHES = ("combined-1", "combined-2", "dynamic")
"""Neighbours: jobs of similar programs, else any; of similar programs only; any."""
AGGREGATIONS = ("softmax", "median", "mean")
"""Aggregations of several scores."""

PREDICTED_SCORES = Table(
    "predicted_scores",
    "scores of jobs without counters, predicted from similar jobs",
    "day",
    (
        column("source", "keyword", "source of the record; with job_id the identity of a job"),
        column("job_id", "keyword", "identifier of the job in its source"),
        column("score_name", "keyword", "predicted score", values=PREDICTED_NAMES),
        column("value", "number", "predicted value", "%, 0 best, 100 worst"),
        column("error_68", "number", "half of the 68 % interval", "%"),
        column("error_95", "number", "half of the 95 % interval; null if too few jobs", "%"),
        column("n_neighbours", "integer", "number of neighbours", "jobs"),
        column("spread", "number", "weighted standard deviation of their scores; null for a single one", "%"),
        column("nearest", "number", "distance of the nearest neighbour, in standard deviations"),
        column("approach", "keyword", "ids of the neighbours", values=APPROACHES),
        column("search_step", "keyword", "A: jobs of similar programs, B: any jobs", values=("A", "B")),
        column("aggregation", "keyword", "combination of their scores", values=AGGREGATIONS),
        column("static", "number", "static similarity limit for programs; null: not used"),
        column("distance_limit_a", "number", "distance limit in step A; null: not used"),
        column("distance_limit_b", "number", "distance limit in step B; null: no limit is small enough"),
        column("variant", "keyword", "score definition of the neighbours; several: they differ"),
        column("metrics", "keyword", "compared metrics, separated by commas"),
        column("n_known", "integer", "jobs with this score in the knowledge base", "jobs"),
        column("n_errors", "integer", "of these, jobs behind the errors", "jobs"),
        *OF_WORK,
        column("end_time", "time", "end of the job", "UTC"),
        column("node_h", "number", "wall-clock time x nodes", "h"),
        column("core_h", "number", "wall-clock time x cores", "core h"),
        # standard deviations over groups follow from sums of squares, which add up where they cannot
        column("value_sq", "number", "square of value, for standard deviations over jobs"),
        column("day", "day", "day of the end time", "UTC"),
        column("fingerprint", "keyword", "inputs of the scores of the day in which this one was missing"),
    ),
    time="end_time",
    made_by="similar predict",
    shown=columns(
        "source job_id end_time score_name value error_68 error_95 n_neighbours spread nearest search_step "
        "variant"
    ),
    order=columns("end_time source job_id score_name"),
)

TABLES = (EXECUTABLES, PREDICTED_SCORES)
