"""What the report shows, in order: the literal tuple of its panels."""

from dashboards.panels import NINETY_PERCENT, Entry, Panel, Tile, Where

_NAME = Entry("name", "Site", "name", "label")
_MODEL = Entry("name", "CPU model", "name", "label")
_RC_SITE = Entry("rc_site", "WLCG site", "name")
_JOBS = Entry("n_jobs", "Jobs", "count")
_TASKS = Entry("n_tasks", "Tasks", "count")
_ORIGIN = Entry("origin", "Origin", note="own, inherited from the site, default, changed in the window, none")
_VERDICT = Entry("verdict", "Verdict", "verdict", "category")
_COREPOWER = Entry("corepower", "Declared", "number", note="declared benchmark score per core")
_BENCHMARK = Entry("benchmark", "Benchmark")
_DEVIATION = Entry(
    "deviation", "Deviation ± 90 %", "percent", error="deviation_err", note="k over what the line expects, less 1"
)
_SENTENCE = Entry("sentence", "In words", "sentence")
_K = Entry("k", "k", "number", error="k_err", note="speed factor with standard error")

_FITTED = (Where("status", ("ok",)),)
_SCATTER_FIELDS = (
    Entry("name", "Name", "name", "label"),
    _RC_SITE,
    Entry("corepower", "Declared corepower", "number", "x"),
    _ORIGIN,
    Entry("k", "Speed factor k", "number", "y", error="k_err"),
    _DEVIATION,
    _VERDICT,
    _JOBS,
    _TASKS,
)
_DEVIATION_FIELDS = (
    Entry("name", "Name", "name", "label"),
    _RC_SITE,
    Entry("deviation", "Deviation", "percent", "x", error="deviation_err"),
    Entry("corepower", "Declared corepower", "number"),
    _ORIGIN,
    _K,
    _VERDICT,
    _JOBS,
    _TASKS,
)
_FACTOR_FIELDS = (
    Entry("name", "Name", "name", "label"),
    _RC_SITE,
    Entry("k", "Speed factor k", "number", "x", error="k_err"),
    Entry("component", "Component", "count", "category"),
    Entry("events_per_job", "Events per job", "number"),
    Entry("efficiency", "CPU efficiency", "fraction"),
    _JOBS,
    _TASKS,
)
_FACTOR_COLUMNS = (
    _K,
    Entry("k_raw", "k raw", "number", note="without correction for fixed cost per job"),
    Entry("k_err_stat", "Statistics", "number", note="error from the scatter of jobs"),
    Entry("k_err_int", "Interaction", "number", note="error from the site × task interaction"),
    Entry("k_err_sandwich", "Sandwich", "number", note="robust error clustered by task; none below 20 tasks"),
    Entry("events_per_job", "Events/job", "number"),
    Entry("efficiency", "CPU eff.", "fraction"),
    _JOBS,
    _TASKS,
    Entry("component", "Comp.", "count"),
)
_FLAG_COLUMNS = (
    _VERDICT,
    _COREPOWER,
    _BENCHMARK,
    _ORIGIN,
    _K,
    Entry("expected_k", "Expected k", "number", note="from the line fitted without this site"),
    _DEVIATION,
    Entry("q_value", "q", "number", note="Benjamini-Hochberg q-value of a deviation beyond the limit"),
    Entry("stable", "Stable", "yesno", note="the verdict is the same under every tried change"),
    _JOBS,
    _TASKS,
)
_LIST_COLUMNS = (_NAME, _COREPOWER, _BENCHMARK, _ORIGIN, _K, _DEVIATION, _JOBS, _TASKS, _SENTENCE)


def _verdict(*values: str) -> tuple[Where, ...]:
    return (Where("verdict", values),)


COUNTS = Panel(
    "counts",
    "At a glance",
    "tiles",
    "At a glance",
    "flags",
    level="site",
    tiles=(
        Tile("sites fitted", "factors", _FITTED, note="sites with a speed factor"),
        Tile("deviate", "flags", _verdict("deviates"), "deviates", "beyond the limit, errors included"),
        Tile("undecided", "flags", _verdict("undecided"), "undecided", "the error reaches across the limit"),
        Tile("ok", "flags", _verdict("ok"), "ok", "within the limit, errors included"),
        Tile("undeclared or default", "flags", _verdict("undeclared"), "default", "no measured declaration"),
        Tile(
            "set aside",
            "flags",
            (Where("verdict", ("deviates", "undecided", "ok", "undeclared"), negate=True),),
            "other",
            "too few jobs, mixed, implausible or not comparable",
        ),
    ),
)
CONCLUSION = Panel(
    "conclusion",
    "Conclusion",
    "sentence",
    "At a glance",
    "conclusions",
    fields=(Entry("sentence", "Conclusion"),),
    where=(Where("sentence"),),
    level="site",
    empty="Nothing can be concluded: no site has both a speed factor and a declared corepower.",
)
DEVIATING = Panel(
    "deviating",
    "Sites that deviate",
    "table",
    "Sites that deviate",
    "flags",
    "Sites whose speed differs from what their declared corepower promises by more than the limit, errors "
    "included. Only stable verdicts should be sent.",
    fields=(
        _NAME,
        _RC_SITE,
        _DEVIATION,
        _COREPOWER,
        _BENCHMARK,
        _ORIGIN,
        _K,
        Entry("proposed_corepower", "Jobs ran like", "number", error="proposed_corepower_err"),
        Entry("significant", "Signif.", "yesno", note="survives Benjamini-Hochberg at 5 %"),
        Entry("stable", "Stable", "yesno", note="the verdict is the same under every tried change"),
        Entry("unstable_under", "Changes under"),
        _JOBS,
        _TASKS,
        _SENTENCE,
    ),
    where=_verdict("deviates"),
    level="site",
    sort=("-|deviation|",),
    empty="No site deviates beyond the limit once its error is taken into account.",
)
SCATTER = Panel(
    "corepower-site",
    "Speed factor against declared corepower",
    "scatter-line",
    "Speed against declaration",
    "flags",
    "Each mark is a site (a queue); bars are one standard error. The line goes through the origin, the band is "
    "the accepted deviation. Hollow marks are drawn but not fitted.",
    fields=_SCATTER_FIELDS,
    where=(Where("k"), Where("corepower")),
    level="site",
    band=True,
    empty="No site has both a speed factor and a declared corepower, so there is nothing to compare.",
)
DEVIATION = Panel(
    "deviation-site",
    "Deviation from the declaration, site by site",
    "dots-with-errors",
    "Speed against declaration",
    "flags",
    "Deviation from the line fitted without the site itself; bars are 90 % intervals. A verdict needs the whole "
    "bar on one side of the band's edge.",
    fields=_DEVIATION_FIELDS,
    where=(Where("deviation"),),
    level="site",
    sort=("-deviation", "name"),
    interval=NINETY_PERCENT,
    band=True,
    empty="No deviation could be computed.",
)
FLAGS_TABLE = Panel(
    "flags-site-table",
    "All verdicts on sites",
    "table",
    "Speed against declaration",
    "flags",
    fields=(_NAME, *_FLAG_COLUMNS),
    level="site",
    sort=("name",),
    empty="No verdicts were made.",
    folded=True,
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
    fields=(_NAME, _RC_SITE, *_FACTOR_COLUMNS),
    where=(Where("k"),),
    level="site",
    sort=("-k", "name"),
    empty="No site has a speed factor.",
    folded=True,
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
    empty="No CPU model has a speed factor: the records name none, or no two models ran jobs of the same task.",
)
FACTORS_MODEL_TABLE = Panel(
    "factors-cpu-model-table",
    "All speed factors of CPU models",
    "table",
    "Speed factors",
    "factors",
    fields=(_MODEL, *_FACTOR_COLUMNS),
    where=(Where("k"),),
    level="cpu_model",
    sort=("-k", "name"),
    empty="No CPU model has a speed factor.",
    folded=True,
)
SCATTER_MODEL = Panel(
    "corepower-cpu-model",
    "CPU models against their reference score",
    "scatter-line",
    "Speed factors",
    "flags",
    "CPU models have a declared value only where a reference table was imported; none is derived from queues.",
    fields=_SCATTER_FIELDS,
    where=(Where("k"), Where("corepower")),
    level="cpu_model",
    band=True,
    empty="No reference scores of CPU models were imported, so their factors stand without a comparison.",
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
        _BENCHMARK,
        Entry("pearson", "Pearson, queues", "number"),
        Entry("spearman", "Spearman, queues", "number"),
        Entry("n_names", "n queues", "count"),
        Entry("pearson_sites", "Pearson, sites", "number"),
        Entry("spearman_sites", "Spearman, sites", "number"),
        Entry("n_sites", "n sites", "count"),
        Entry("slope", "Slope", "number", error="slope_err", note="speed factor per unit of corepower"),
        Entry("tau", "Scatter", "fraction", note="relative scatter about the line beyond the errors"),
        Entry("status", "Status"),
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
    "Queues of one site often run on the same hardware. If those with longer jobs look faster, a fixed cost per "
    "job is at work rather than a difference of machines. Both axes are relative to the site's mean.",
    fields=(
        Entry("rc_site", "WLCG site", "name", "group"),
        Entry("name", "Queue", "name", "label"),
        Entry("k", "k", "number", "y", error="k_err"),
        Entry("k_raw", "k raw", "number", note="without correction for fixed cost per job"),
        Entry("events_per_job", "Events/job", "number", "x"),
        Entry("efficiency", "CPU eff.", "fraction"),
        _JOBS,
        _TASKS,
        Entry("component", "Comp.", "count", "category"),
        Entry("rc_site_guessed", "Site guessed", "yesno", note="from the queue's name, for want of a queue table"),
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
    "Sites that share tasks, directly or through others, form a component. Factors of different components have "
    "no common scale.",
    fields=(
        Entry("component", "Component", "count"),
        Entry("n_names", "Sites", "count"),
        _TASKS,
        _JOBS,
        Entry("dof", "dof", "count", note="independent loops"),
        Entry("spread", "S", "number", note="relative spread of residuals; no error below 10 dof"),
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
        Entry("status", "Status"),
        Entry("reason", "Reason"),
        _JOBS,
    ),
    where=(Where("status", ("ok",), negate=True),),
    sort=("-level", "name"),
    empty="Every name has a factor.",
    folded=True,
)
UNDECIDED = Panel(
    "undecided",
    "Undecided",
    "table",
    "Other sites",
    "flags",
    "The 90 % interval reaches across the edge of the band: more jobs or more tasks would decide.",
    fields=_LIST_COLUMNS,
    where=_verdict("undecided"),
    level="site",
    sort=("-|deviation|",),
    empty="No site is undecided.",
    folded=True,
)
UNDECLARED = Panel(
    "undeclared",
    "Undeclared or default",
    "table",
    "Other sites",
    "flags",
    "No declared value, or one that is a default of the information system: drawn, never fitted.",
    fields=(
        *_LIST_COLUMNS[:4],
        Entry("corepower_records", "In records", "number", note="value found in the job records"),
        Entry("corepower_parent", "Of the site", "number", note="value of the parent, shown, never substituted"),
        *_LIST_COLUMNS[4:5],
        *_LIST_COLUMNS[6:],
    ),
    where=_verdict("undeclared"),
    level="site",
    sort=("name",),
    empty="Every site declares a value of its own.",
    folded=True,
)
SET_ASIDE = Panel(
    "set-aside",
    "Set aside",
    "table",
    "Other sites",
    "flags",
    "Too few jobs, mixed tasks, implausible values, or no common scale with the largest component.",
    fields=(_NAME, _VERDICT, *_LIST_COLUMNS[1:]),
    where=(Where("verdict", ("deviates", "undecided", "ok", "undeclared"), negate=True),),
    level="site",
    sort=("verdict", "name"),
    empty="No site was set aside.",
    folded=True,
)
TYPES = Panel(
    "types",
    "By processing type",
    "types",
    "By processing type",
    "flags",
    "The same fit made for each kind of work alone. A processor may be fast for one kind and slow for another; "
    "verdicts rest on all types together.",
    level="site",
    types="every",
    repeat=("conclusion", "deviating", "corepower-site", "deviation-site", "factors-site", "flags-site-table"),
    empty="The records name no processing types.",
)
BOOKS = Panel(
    "books",
    "The books",
    "books",
    "The books",
    "days",
    "Every job of the window is either in a bucket or counted under the first rule that it fails.",
    fields=(Entry("outcome", "Outcome", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    empty="No day was aggregated.",
)
FITS = Panel(
    "fits",
    "The fits",
    "table",
    "Method",
    "fits",
    fields=(
        Entry("level", "Level", "level"),
        Entry("processing_type", "Type", "name"),
        Entry("method", "Method", "name"),
        Entry("status", "Status"),
        Entry("n_names", "Names", "count"),
        Entry("n_names_without", "Without", "count", note="names without a factor"),
        _TASKS,
        Entry("n_buckets", "Buckets", "count"),
        _JOBS,
        Entry("dof", "dof", "count", note="independent loops"),
        Entry("spread", "S", "number", note="relative spread of residuals; no error below 10 dof"),
        Entry("sigma_int", "σ int", "number", error="sigma_int_err", note="site × task interaction"),
        Entry("sigma_int_kind", "σ int is"),
        Entry("minuit_valid", "Minuit valid", "yesno"),
        Entry("reason", "Reason"),
    ),
    types="every",
    methods="every",
    empty="No fit was made.",
)
METHOD = Panel(
    "method",
    "How it is done",
    "markdown",
    "Method",
    text=(
        (
            "What is compared",
            "Inside a task all jobs do the same work, so CPU time per event depends on the processor only. "
            "Jobs are summed per day, task, core class, site, CPU model and processing type; buckets with "
            "too few jobs do not enter.",
        ),
        (
            "Objective",
            "Factors k and task means A minimise the sum over buckets of (a k / A − 1)², a being the bucket's "
            "CPU time per event (method paper); method gamma uses the gamma quasi-likelihood with the same "
            "variance law. Each connected component is fitted alone and scaled so that its factors sum to "
            "their count. Minuit judges every minimum.",
        ),
        (
            "Errors",
            "σ(k)² = σ(stat)² + σ(int)² / tasks. The first term comes from the scatter of jobs inside buckets, "
            "the second from the interaction of site and task. σ(int) is estimated from the data when there are "
            "at least 10 independent loops (dof), and is otherwise 0.10 and marked assumed. S, the spread of "
            "residuals, is shown with its dof and is no error of its own.",
        ),
        (
            "Line and deviation",
            "A robust line through the origin, k = slope × corepower, one per benchmark, with one entry per site "
            "and declared value. A site's deviation is taken from the line fitted without that site.",
        ),
        (
            "Verdict",
            "With deviation d and its whole error σ: deviates when |d| − 1.645 σ > {limit}; ok when "
            "|d| + 1.645 σ < {limit}; undecided between. Because many sites are tested, q-values follow Benjamini "
            "and Hochberg. A verdict is stable when no tried change of method, minimum jobs or tasks alters it.",
        ),
        (
            "What it cannot say",
            "Everything is relative to what the other sites declare: if everyone is stale by 10 %, so is the "
            "line. A deviation may come from SMT, overcommitted cores or load as well as from a wrong "
            "declaration, so the remedy is to benchmark again.",
        ),
        (
            "Guard against circles",
            "hs06sec contains the declared corepower. It may supply a declared value; it never enters a fit.",
        ),
    ),
)
PROVENANCE = Panel(
    "provenance",
    "Provenance",
    "provenance",
    "Provenance",
    "runs",
    fields=(
        Entry("step", "Step", "name"),
        Entry("at", "Ended", "time"),
        Entry("seconds", "Seconds", "number"),
        Entry("rows_in", "Rows in", "count"),
        Entry("rows_out", "Rows out", "count"),
        Entry("dropped", "Dropped", "json"),
        Entry("notes", "Notes", "json"),
    ),
    empty="The steps left no report.",
)

REPORT: tuple[Panel, ...] = (
    COUNTS,
    CONCLUSION,
    DEVIATING,
    SCATTER,
    DEVIATION,
    FLAGS_TABLE,
    FACTORS_SITE,
    FACTORS_SITE_TABLE,
    FACTORS_MODEL,
    FACTORS_MODEL_TABLE,
    SCATTER_MODEL,
    CORRELATION,
    SIBLINGS,
    COMPONENTS,
    WITHOUT,
    UNDECIDED,
    UNDECLARED,
    SET_ASIDE,
    TYPES,
    BOOKS,
    METHOD,
    FITS,
    PROVENANCE,
)
"""The panels of the report, in order."""


def panel(identity: str) -> Panel:
    """Look a panel up by its id.

    >>> panel("deviating").table
    'flags'
    """
    for candidate in REPORT:
        if candidate.id == identity:
            return candidate
    raise LookupError(f"no panel '{identity}'; there are {', '.join(p.id for p in REPORT)}")
