"""The page of parallel efficiency: what TALP measured in parallel programs, by the metrics of POP.

Efficiencies of names are means over the time that each is a share of, so that a long run counts for more than
a short one; the parallel efficiency is a ratio of sums.
"""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Count, Sum, SumProduct, SumWhere

SECTION = "Parallel efficiency"
_EMPTY = "No job of the chosen time and filters has this: esjobs ingest talp takes reports of TALP."
FOREMOST = 1000
"""Rows that are listed one by one at most."""

_OF_APPLICATION = (Where("level", ("application",)),)
_RUNS = (*_OF_APPLICATION, Where("main", (True,)))
"""Rows about all of a run; regions inside them would count the same time again."""
_KNOWN = (Where("useful_s"), Where("active_s", above=0))


def _lost(id_: str, title: str, by: str, heading: str, where: tuple[Where, ...], about: str) -> Panel:
    """CPU-hours that were no work, per name."""
    return Panel(
        id_,
        title,
        "waste",
        SECTION,
        View(
            "pop",
            types="every",
            where=(*where, *_KNOWN, Where(by)),
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
    """An efficiency by application, a mean over the time on CPUs."""
    return Panel(
        f"parallel-{column.replace('_', '-')}",
        f"{title} by application, most time on CPUs first (dashed: all of them)",
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
        "From 90 % on good, from 80 % fair, below poor.",
        fields=(
            Entry("application", "Application", "name", "label"),
            Entry(f"{column}_active", title, "fraction", "x", per=f"{column}_known"),
        ),
        most=(15,),
        empty=_EMPTY,
    )


LOST_BY_APPLICATION = _lost(
    "parallel-lost-by-application",
    "CPU-hours that were no work, by application, the most first",
    "application",
    "Application",
    _RUNS,
    "Time on CPUs in MPI, in OpenMP's runtime and in waiting: what a better division could give back.",
)
LOST_BY_REGION = _lost(
    "parallel-lost-by-region",
    "CPU-hours that were no work, by region of the program, the most first",
    "region",
    "Region",
    (*_OF_APPLICATION, Where("main", (True,), negate=True)),
    "Regions that programs name; those inside others count their time again. Choose an application.",
)
EFFICIENCIES = (
    _efficiency("parallel_efficiency", "Parallel efficiency"),
    _efficiency("mpi_communication_efficiency", "MPI communication efficiency"),
    _efficiency("mpi_load_balance", "MPI load balance"),
    _efficiency("omp_parallel_efficiency", "OpenMP efficiency"),
)

WORST = Panel(
    "parallel-worst",
    "Regions that lose more than a tenth by one branch, largest jobs first",
    "rows",
    SECTION,
    View(
        "pop",
        types="every",
        where=(*_OF_APPLICATION, Where("worst")),
        sort=("-core_h", "source", "job_id", "region"),
        most=FOREMOST,
    ),
    fields=(
        Entry("time", "Measured", "time"),
        Entry("application", "Application", "name"),
        Entry("region", "Region", "name"),
        Entry("job_id", "Job", "name"),
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
    empty=_EMPTY,
    hint="open a row for all of it",
)


def _by_size(column: str, title: str, heading: str, about: str) -> Panel:
    """An efficiency over the size of runs, a line per application."""
    return Panel(
        f"parallel-{column.replace('_', '-')}-by-size",
        f"{title} by number of CPUs (dashed: fair and good)",
        "sizes",
        SECTION,
        View(
            "pop_scaling",
            types="every",
            where=(Where("main", (True,)), Where(column)),
            sort=("application", "source", "cpus"),
            most=FOREMOST,
        ),
        about,
        fields=(
            Entry("application", "Application", "name", "label"),
            Entry("cpus", "CPUs", "count", "x"),
            Entry(column, heading, "fraction", "y"),
            Entry("mode", "Scaling", "name"),
            Entry("n_runs", "Runs", "count"),
        ),
        empty="No application of the chosen time and filters was measured: esjobs ingest talp takes reports.",
    )


SPEEDUP_BY_SIZE = _by_size(
    "speedup_efficiency",
    "What is left of the speedup",
    "Efficiency of the speedup",
    "Against the smallest size: speedup over growth of CPUs where the problem stays (strong scaling), "
    "speedup where it grows with them (weak). The eight applications that ran at most sizes.",
)
PARALLEL_BY_SIZE = _by_size(
    "parallel_efficiency",
    "Parallel efficiency",
    "Parallel efficiency",
    "Medians over the runs of a size. Where it falls less than the speedup, the rest is lost in computing: "
    "more instructions, fewer of them per cycle, a lower frequency.",
)

SCALING = Panel(
    "parallel-scaling",
    "How applications scale: runs by size, against the smallest",
    "rows",
    SECTION,
    View(
        "pop_scaling",
        types="every",
        where=(Where("main", (True,)),),
        sort=("-cpus", "application", "source"),
        most=FOREMOST,
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
    empty="No application of the chosen time and filters was measured: esjobs ingest talp takes reports.",
)

ORPHANS = Panel(
    "parallel-orphans",
    "Reports whose job is not known, newest first",
    "rows",
    SECTION,
    View("pop_orphans", types="every", sort=("-time", "job_id", "report"), most=FOREMOST),
    fields=(
        Entry("time", "Measured", "time"),
        Entry("job_id", "Job", "name"),
        Entry("step", "Launch", "name"),
        Entry("source", "Source", "name"),
        Entry("n_regions", "Regions", "count"),
        Entry("reason", "Why", "sentence"),
        Entry("file", "File", "name"),
    ),
    empty="Every report of the chosen time has its job, or filters of jobs are set, which these have not.",
)

READ_ME = Panel(
    "parallel-about",
    "How to read this page",
    "markdown",
    SECTION,
    text=(
        (
            "Efficiencies",
            "Shares of time, by the method of POP: from 90 % on good, from 80 % fair, below poor. MPI and "
            "OpenMP stand beside each other: they do not multiply. What lost most in one job, and what "
            "usually helps: esjobs job JOBID.",
        ),
        (
            "Measured",
            "Only jobs that ran under TALP, and ended by themselves, are here. One application with all its "
            "efficiencies: esjobs show pop_scaling --application NAME --plot.",
        ),
    ),
)

PARALLEL = Page(
    "parallel",
    "Parallel efficiency",
    "Which parallel programs wait instead of working, where in them, and how do they scale?",
    stacked(
        (10, ((READ_ME, 48),)),
        (18, ((LOST_BY_APPLICATION, 24), (LOST_BY_REGION, 24))),
        (16, tuple((panel, 24) for panel in EFFICIENCIES[:2])),
        (16, tuple((panel, 24) for panel in EFFICIENCIES[2:])),
        (26, ((WORST, 48),)),
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
)
