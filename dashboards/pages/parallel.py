"""The page of parallel efficiency: POP metrics measured by TALP.

Efficiencies of names are weighted by time; the parallel efficiency is a ratio of sums.
"""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Count, Sum, SumProduct, SumWhere

SECTION = "Parallel efficiency"
_EMPTY = "No TALP reports in this selection; load them: esjobs ingest talp."
MOST_ROWS = 1000
"""Most rows of a table."""

_OF_APPLICATION = (Where("level", ("application",)),)
# Rows of whole runs; adding their regions would count time twice
_RUNS = (*_OF_APPLICATION, Where("main", (True,)))
_MEASURED = (Where("useful_s"), Where("active_s", above=0))


def _lost(id_: str, title: str, by: str, heading: str, where: tuple[Where, ...], about: str) -> Panel:
    return Panel(
        id_,
        title,
        "waste",
        SECTION,
        View(
            "pop",
            types="every",
            where=(*where, *_MEASURED, Where(by)),
            by=(by,),
            metrics=(Sum("useful_s", "useful"), Sum("active_s", "active"), Count()),
            sort=("-active",),
        ),
        about,
        fields=(
            Entry(by, heading, "name", "label"),
            Entry("useful", "CPU-hours lost", "number", "x", per="active"),
        ),
        most=(20,),
        empty=_EMPTY,
    )


def _efficiency(column: str, title: str) -> Panel:
    return Panel(
        f"parallel-{column.replace('_', '-')}",
        f"{title} by application",
        "shares",
        SECTION,
        View(
            "pop",
            types="every",
            where=(*_RUNS, Where("application"), Where(column), Where("active_s", above=0)),
            by=("application",),
            metrics=(
                # panels of a page share their sums, so each has a name of its own
                SumProduct(column, "active_s", f"{column}_active"),
                SumWhere("active_s", (column,), f"{column}_known"),
                Count(),
            ),
            sort=(f"-{column}_known",),
        ),
        "Good from 90 %, fair from 80 %. Largest CPU time first; dashed: all.",
        fields=(
            Entry("application", "Application", "name", "label"),
            Entry(f"{column}_active", title, "fraction", "x", per=f"{column}_known"),
        ),
        most=(15,),
        empty=_EMPTY,
    )


LOST_BY_APPLICATION = _lost(
    "parallel-lost-by-application",
    "CPU-hours lost by application",
    "application",
    "Application",
    _RUNS,
    "CPU time in MPI, in the OpenMP runtime and in waiting.",
)
LOST_BY_REGION = _lost(
    "parallel-lost-by-region",
    "CPU-hours lost by region",
    "region",
    "Region",
    (*_OF_APPLICATION, Where("main", (True,), negate=True)),
    "Regions named by programs; nested regions count twice. Select an application.",
)
EFFICIENCIES = (
    _efficiency("parallel_efficiency", "Parallel efficiency"),
    _efficiency("mpi_communication_efficiency", "MPI communication efficiency"),
    _efficiency("mpi_load_balance", "MPI load balance"),
    _efficiency("omp_parallel_efficiency", "OpenMP efficiency"),
)

WORST = Panel(
    "parallel-worst",
    "Regions losing more than 10 %, largest jobs first",
    "rows",
    SECTION,
    View(
        "pop",
        types="every",
        where=(*_OF_APPLICATION, Where("worst")),
        sort=("-core_h", "source", "job_id", "region"),
        most=MOST_ROWS,
    ),
    fields=(
        Entry("time", "Measured", "time"),
        Entry("application", "Application", "name"),
        Entry("region", "Region", "name"),
        Entry("job_id", "Job", "name", "label"),
        Entry("user", "User", "name"),
        Entry("project", "Project", "name"),
        Entry("core_h", "Core-hours of the job", "number"),
        Entry("cpus", "CPUs", "count"),
        Entry("parallel_efficiency", "Parallel", "fraction"),
        Entry("mpi_communication_efficiency", "MPI communication", "fraction"),
        Entry("mpi_load_balance", "MPI load balance", "fraction"),
        Entry("mpi_load_balance_in", "... inside nodes", "fraction"),
        Entry("mpi_load_balance_out", "... between nodes", "fraction"),
        Entry("omp_parallel_efficiency", "OpenMP", "fraction"),
        Entry("worst", "Worst branch", "name"),
    ),
    few=("job_id", "region", "worst", "core_h", "parallel_efficiency"),
    empty=_EMPTY,
)


def _by_size(column: str, title: str, heading: str, about: str) -> Panel:
    return Panel(
        f"parallel-{column.replace('_', '-')}-by-size",
        title,
        "sizes",
        SECTION,
        View(
            "pop_scaling",
            types="every",
            where=(Where("main", (True,)), Where(column)),
            sort=("application", "source", "cpus"),
            most=MOST_ROWS,
        ),
        about,
        fields=(
            Entry("application", "Application", "name", "label"),
            Entry("cpus", "CPUs", "count", "x"),
            Entry(column, heading, "fraction", "y"),
            Entry("mode", "Scaling", "name"),
            Entry("n_runs", "Runs", "count"),
        ),
        empty=_EMPTY,
    )


SPEEDUP_BY_SIZE = _by_size(
    "speedup_efficiency",
    "How well does it scale?",
    "Efficiency of the speedup",
    "Relative to the smallest size: speedup over CPU ratio (strong scaling), or speedup (weak). The eight "
    "applications with the most sizes. Dashed: fair and good.",
)
PARALLEL_BY_SIZE = _by_size(
    "parallel_efficiency",
    "Parallel efficiency by number of CPUs",
    "Parallel efficiency",
    "Medians over runs of a size; dashed: fair and good. If speedup falls more, computing is slower: more "
    "instructions, fewer per cycle, or a lower frequency.",
)

SCALING = Panel(
    "parallel-scaling",
    "Scaling runs",
    "rows",
    SECTION,
    View(
        "pop_scaling",
        types="every",
        where=(Where("main", (True,)),),
        sort=("-cpus", "application", "source"),
        most=MOST_ROWS,
    ),
    fields=(
        Entry("application", "Application", "name"),
        Entry("cpus", "CPUs", "count"),
        Entry("reference_cpus", "Against", "count"),
        Entry("mode", "Scaling", "name"),
        Entry("n_runs", "Runs", "count"),
        Entry("elapsed_s", "Elapsed, s", "number"),
        Entry("parallel_efficiency", "Parallel", "fraction"),
        Entry("computation_scalability", "Computation", "fraction"),
        Entry("global_efficiency", "Global", "fraction"),
        Entry("speedup", "Speedup", "number"),
        Entry("last_time", "Newest run", "time"),
    ),
    empty=_EMPTY,
)

ORPHANS = Panel(
    "parallel-orphans",
    "TALP reports without a job record",
    "rows",
    SECTION,
    View("pop_orphans", types="every", sort=("-time", "job_id", "report"), most=MOST_ROWS),
    fields=(
        Entry("time", "Measured", "time"),
        Entry("job_id", "Job", "name"),
        Entry("step", "Launch", "name"),
        Entry("source", "Source", "name"),
        Entry("n_regions", "Regions", "count"),
        Entry("reason", "Why", "sentence"),
        Entry("file", "File", "name"),
    ),
    empty="All reports match a job (job filters do not apply here).",
)

READ_ME = Panel(
    "parallel-about",
    "How to read this page",
    "markdown",
    SECTION,
    text=(
        (
            "Efficiencies",
            "Fractions of time (POP): good from 90 %, fair from 80 %. MPI and OpenMP efficiencies do not "
            "multiply. Largest loss of one job, with advice: esjobs job JOBID.",
        ),
        (
            "Measured",
            "Only jobs that ran under TALP and were not killed. One application: esjobs show pop_scaling "
            "--application NAME --plot.",
        ),
    ),
)

PARALLEL = Page(
    "parallel",
    "Parallel efficiency",
    "Where do parallel programs wait, and how do they scale?",
    stacked(
        (10, ((READ_ME, 48),)),
        (18, ((LOST_BY_APPLICATION, 24), (LOST_BY_REGION, 24))),
        (16, tuple((panel, 24) for panel in EFFICIENCIES[:2])),
        (16, tuple((panel, 24) for panel in EFFICIENCIES[2:])),
        (16, ((WORST, 48),)),
        (18, ((SPEEDUP_BY_SIZE, 24), (PARALLEL_BY_SIZE, 24))),
        (18, ((SCALING, 48),)),
        (16, ((ORPHANS, 48),)),
    ),
    choices=(
        Choice("pop", "application", "Application"),
        Choice("pop", "user", "User"),
        Choice("pop", "project", "Project"),
        Choice("pop", "queue", "Queue"),
    ),
    beyond=(READ_ME.id, SCALING.id, ORPHANS.id),
)
