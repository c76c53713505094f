"""Panels about speed factors: queues, CPU models, correlation, components."""

from dashboards.panels.columns import (
    BENCHMARK,
    EVENTS_PER_JOB,
    JOBS,
    K_RAW,
    MODEL,
    NAME,
    OF_SITE,
    RANKS,
    RHO,
    TASKS,
    UNITS,
    VIA,
    K,
)
from dashboards.spec import Entry, Panel, View, Where

_FACTOR_FIELDS = (
    Entry("name", "Name", "name", "label"),
    OF_SITE,
    Entry("k", "Speed factor k", "number", "x", error="k_err"),
    *RANKS,
    K_RAW,
    RHO,
    Entry("component", "Component", "count", "category"),
    VIA,
    Entry("events_per_job", "Events per job", "number"),
    Entry("efficiency", "CPU efficiency", "fraction"),
    JOBS,
    TASKS,
)

_FACTOR_COLUMNS = (
    K,
    *RANKS,
    K_RAW,
    RHO,
    Entry("k_err_stat", "Statistics", "number", note="error from the scatter of jobs"),
    Entry("k_err_int", "Interaction", "number", note="error from the queue × task interaction"),
    Entry(
        "k_err_sandwich", "Sandwich", "number", note="robust error, clustered by task; none below 20 tasks"
    ),
    EVENTS_PER_JOB,
    Entry("efficiency", "CPU eff.", "fraction"),
    JOBS,
    TASKS,
    VIA,
    Entry("component", "Comp.", "count"),
)

FACTORS_SITE = Panel(
    "factors-site",
    "Speed factors of queues",
    "dots-with-errors",
    "Speed factors",
    View(
        "factors",
        where=(Where("k"),),
        level="queue",
        sort=("-k", "name"),
    ),
    "Sorted by speed, with one standard error. The mean of a component is 1, so only ratios have a meaning. "
    "Hollow marks belong to other components and are not comparable with the filled ones. Names of one grade "
    "do not differ significantly; their order has no meaning.",
    fields=_FACTOR_FIELDS,
    empty="No queue has a speed factor: no two queues share a task with enough jobs.",
)

FACTORS_SITE_TABLE = Panel(
    "factors-site-table",
    "All speed factors of queues",
    "table",
    "Speed factors",
    View(
        "factors",
        where=(Where("k"),),
        level="queue",
        sort=("-k", "name"),
    ),
    fields=(NAME, OF_SITE, *_FACTOR_COLUMNS),
    empty="No queue has a speed factor.",
    folded=True,
    optional=True,
    on_request=True,
)

FACTORS_MODEL = Panel(
    "factors-cpu-model",
    "Speed factors of CPU models",
    "dots-with-errors",
    "Speed factors",
    View(
        "factors",
        where=(Where("k"),),
        level="cpu_model",
        sort=("-k", "name"),
    ),
    "Sorted by speed, with one standard error, for the processors in the job records.",
    # a CPU model has no site, and is linked by many queues
    fields=tuple(each for each in _FACTOR_FIELDS if each.column not in ("site", "sole_link")),
    empty="No CPU model has a speed factor: records name none, or no two models ran the same task.",
)

FACTORS_MODEL_TABLE = Panel(
    "factors-cpu-model-table",
    "All speed factors of CPU models",
    "table",
    "Speed factors",
    View(
        "factors",
        where=(Where("k"),),
        level="cpu_model",
        sort=("-k", "name"),
    ),
    fields=(MODEL, *_FACTOR_COLUMNS),
    empty="No CPU model has a speed factor.",
    folded=True,
    optional=True,
    on_request=True,
)

CORRELATION = Panel(
    "correlation",
    "Correlation of speed and declaration",
    "table",
    "Correlation",
    View(
        "lines",
        level="queue",
        types="every",
        sort=("processing_type",),
    ),
    "Pearson's r and Spearman's rank correlation over queues, and over sites, because queues of one site "
    "are not independent. The scatter of the line is the scatter beyond the errors.",
    fields=(
        Entry("processing_type", "Processing type", "name"),
        BENCHMARK,
        Entry("pearson", "Pearson, queues", "number"),
        Entry("spearman", "Spearman, queues", "number"),
        Entry("n_names", "n queues", "count"),
        Entry("pearson_groups", "Pearson, sites", "number"),
        Entry("spearman_groups", "Spearman, sites", "number"),
        Entry("n_groups", "n sites", "count"),
        Entry("slope", "Slope", "number", error="slope_err", note="speed factor per unit of corepower"),
        Entry("tau", "Scatter", "fraction", note="relative scatter about the line beyond the errors"),
        Entry("status", "Status", "name"),
        Entry("reason", "Reason"),
    ),
    empty="No declared values, so no correlation.",
)

COMPONENTS = Panel(
    "components",
    "Which queues are comparable?",
    "table",
    "Components",
    View(
        "components",
        level="queue",
        sort=("component",),
    ),
    "Queues that share tasks, directly or through others, form a component. Factors of different components "
    "have no common scale.",
    fields=(
        Entry("component", "Component", "count"),
        Entry("n_names", "Queues", "count"),
        UNITS,
        JOBS,
        Entry("dof", "dof", "count", note="independent loops"),
        Entry(
            "rel_spread",
            "S",
            "number",
            note="standard deviation of residuals over stated errors",
            always=True,
        ),
        Entry("names", "Queues in it", "names"),
        Entry("link", "Missing link"),
    ),
    empty="No components: no two queues ran the same task.",
)

WITHOUT = Panel(
    "without-factor",
    "Names without a factor",
    "table",
    "Components",
    View(
        "factors",
        where=(Where("status", ("ok",), negate=True),),
        sort=("-level", "name"),
    ),
    fields=(
        Entry("level", "Level", "level"),
        Entry("name", "Name", "name", "label"),
        Entry("status", "Status", "name"),
        Entry("reason", "Reason"),
        JOBS,
    ),
    empty="All names have a factor.",
    folded=True,
)
