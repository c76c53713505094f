"""Columns of several panels."""

from dashboards.spec import Entry

NAME = Entry("name", "Queue", "name", "label")
MODEL = Entry("name", "CPU model", "name", "label")
OF_SITE = Entry("site", "Site", "name")
JOBS = Entry("n_jobs", "Jobs", "count")
TASKS = Entry("n_tasks", "Tasks", "count")
UNITS = Entry(
    "n_units",
    "Units of the fit",
    "count",
    note="task × core class × processing type; more than the number of tasks",
)
ORIGIN = Entry(
    "origin",
    "Origin",
    note="own, inherited from the site, mean of its queues, default, changed in the window, none",
)
VERDICT = Entry("verdict", "Verdict", "verdict", "category")
COREPOWER = Entry("corepower", "Declared", "declared", note="benchmark score per core", unit="benchmark")
REFERENCE = Entry(
    "corepower", "Reference score", "declared", note="per core, from the imported table", unit="benchmark"
)
BENCHMARK = Entry("benchmark", "Benchmark")
DEVIATION = Entry(
    "deviation",
    "Deviation ± 90 %",
    "percent",
    error="deviation_err",
    note="k over the value expected from the line, minus 1; above 0: faster than declared",
)
SENTENCE = Entry("sentence", "In words", "sentence")
FINDING = Entry("finding", "In words", "sentence")
ADVICE = Entry("advice", "Asked of", "shared")
K = Entry("k", "k", "number", error="k_err", note="speed factor with standard error")
RANKS = (
    Entry("grade", "Grade", "name", note="A the fastest; names of one grade do not differ significantly"),
    Entry("rank_low", "Rank from", "count", note="by speed, 90 % interval"),
    Entry("rank_high", "to", "count"),
)
K_RAW = Entry("k_raw", "k raw", "number", note="without correction for start-up time per job")
RHO = Entry("rho", "ρ, events", "number", note="start-up time per job that was corrected, mean over its jobs")
VIA = Entry("sole_link", "Sole link", "name", note="the only name that links it to the others, or few jobs")
EVENTS_PER_JOB = Entry("events_per_job", "Events/job", "number")
LEVEL = Entry("level", "Level", "level")
METHOD = Entry("method", "Method", "name")
