"""Panels about speed factors: sites, CPU models, correlation, siblings, components."""

from dashboards.columns import BENCHMARK, JOBS, MODEL, NAME, RC_SITE, TASKS, K
from dashboards.spec import Entry, Panel, Where

_FACTOR_FIELDS = (
    Entry("name", "Name", "name", "label"),
    RC_SITE,
    Entry("k", "Speed factor k", "number", "x", error="k_err"),
    Entry("component", "Component", "count", "category"),
    Entry("events_per_job", "Events per job", "number"),
    Entry("efficiency", "CPU efficiency", "fraction"),
    JOBS,
    TASKS,
)

_FACTOR_COLUMNS = (
    K,
    Entry("k_raw", "k raw", "number", note="without correction for fixed cost per job"),
    Entry("k_err_stat", "Statistics", "number", note="error from the scatter of jobs"),
    Entry("k_err_int", "Interaction", "number", note="error from the site × task interaction"),
    Entry("k_err_sandwich", "Sandwich", "number", note="robust error clustered by task; none below 20 tasks"),
    Entry("events_per_job", "Events/job", "number"),
    Entry("efficiency", "CPU eff.", "fraction"),
    JOBS,
    TASKS,
    Entry("component", "Comp.", "count"),
)

FACTORS_SITE = Panel(
    "factors-site",
    "Speed factors of sites",
    "dots-with-errors",
    "Speed factors",
    "factors",
    "Sorted by speed, with one standard error. The mean of a component is 1: only ratios have a meaning. "
    "Hollow marks belong to other components and cannot be compared with the filled ones.",
    fields=_FACTOR_FIELDS,
    where=(Where("k"),),
    level="site",
    sort=("-k", "name"),
    empty="No site has a speed factor: no two sites ran jobs of the same task, or too few of them.",
)

FACTORS_SITE_TABLE = Panel(
    "factors-site-table",
    "All speed factors of sites",
    "table",
    "Speed factors",
    "factors",
    fields=(NAME, RC_SITE, *_FACTOR_COLUMNS),
    where=(Where("k"),),
    level="site",
    sort=("-k", "name"),
    empty="No site has a speed factor.",
    folded=True,
    optional=True,
)

FACTORS_MODEL = Panel(
    "factors-cpu-model",
    "Speed factors of CPU models",
    "dots-with-errors",
    "Speed factors",
    "factors",
    "The same for the processors that the jobs name, with one standard error.",
    fields=_FACTOR_FIELDS,
    where=(Where("k"),),
    level="cpu_model",
    sort=("-k", "name"),
    empty="No CPU model has a speed factor: the records name none, or no two models ran jobs of the same "
    "task.",
)

FACTORS_MODEL_TABLE = Panel(
    "factors-cpu-model-table",
    "All speed factors of CPU models",
    "table",
    "Speed factors",
    "factors",
    fields=(MODEL, *_FACTOR_COLUMNS),
    where=(Where("k"),),
    level="cpu_model",
    sort=("-k", "name"),
    empty="No CPU model has a speed factor.",
    folded=True,
    optional=True,
)

CORRELATION = Panel(
    "correlation",
    "Correlation of speed and declaration",
    "table",
    "Correlation",
    "lines",
    "Pearson's r and Spearman's rank correlation over queues, and over sites, because queues of one site are "
    "not independent. The line's scatter is what remains beyond the errors.",
    fields=(
        Entry("processing_type", "Processing type", "name"),
        BENCHMARK,
        Entry("pearson", "Pearson, queues", "number"),
        Entry("spearman", "Spearman, queues", "number"),
        Entry("n_names", "n queues", "count"),
        Entry("pearson_sites", "Pearson, sites", "number"),
        Entry("spearman_sites", "Spearman, sites", "number"),
        Entry("n_sites", "n sites", "count"),
        Entry("slope", "Slope", "number", error="slope_err", note="speed factor per unit of corepower"),
        Entry("tau", "Scatter", "fraction", note="relative scatter about the line beyond the errors"),
        Entry("status", "Status", "name"),
        Entry("reason", "Reason"),
    ),
    level="site",
    types="every",
    sort=("processing_type",),
    empty="Without declared values there is nothing to correlate.",
)

SIBLINGS = Panel(
    "siblings",
    "Queues of one site",
    "siblings",
    "Siblings",
    "factors",
    "Queues of one site often run on the same hardware. If those with longer jobs look faster, a fixed cost "
    "per job is at work rather than a difference of machines. Both axes are relative to the site's mean.",
    fields=(
        Entry("rc_site", "WLCG site", "name", "group"),
        Entry("name", "Queue", "name", "label"),
        Entry("k", "k", "number", "y", error="k_err"),
        Entry("k_raw", "k raw", "number", note="without correction for fixed cost per job"),
        Entry("events_per_job", "Events/job", "number", "x"),
        Entry("efficiency", "CPU eff.", "fraction"),
        JOBS,
        TASKS,
        Entry("component", "Comp.", "count", "category"),
        Entry(
            "rc_site_guessed",
            "Site guessed",
            "yesno",
            note="from the queue's name, for want of a queue table",
        ),
    ),
    where=(Where("k"), Where("rc_site")),
    level="site",
    sort=("rc_site", "-k"),
    empty="No site has two queues with a speed factor.",
)

COMPONENTS = Panel(
    "components",
    "What can be compared with what",
    "table",
    "Components",
    "components",
    "Sites that share tasks, directly or through others, form a component. Factors of different components "
    "have no common scale.",
    fields=(
        Entry("component", "Component", "count"),
        Entry("n_names", "Sites", "count"),
        TASKS,
        JOBS,
        Entry("dof", "dof", "count", note="independent loops"),
        Entry(
            "spread", "S", "number", note="relative spread of residuals; no error below 10 dof", always=True
        ),
        Entry("minuit_valid", "Minuit valid", "yesno"),
        Entry("names", "Sites in it", "names"),
        Entry("link", "What would link it"),
    ),
    level="site",
    sort=("component",),
    empty="There is no component: no two sites ran jobs of the same task.",
)

WITHOUT = Panel(
    "without-factor",
    "Names without a factor",
    "table",
    "Components",
    "factors",
    fields=(
        Entry("level", "Level", "level"),
        Entry("name", "Name", "name", "label"),
        Entry("status", "Status", "name"),
        Entry("reason", "Reason"),
        JOBS,
    ),
    where=(Where("status", ("ok",), negate=True),),
    sort=("-level", "name"),
    empty="Every name has a factor.",
    folded=True,
)
