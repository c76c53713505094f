"""The page of efficiency: what jobs make of the cores that they hold.

Detectors and scores of jobs add their panels here.
"""

from dashboards.spec import Choice, Entry, Page, Panel, View, Where, stacked
from esjobs.core.query import Sum

_SUMS = (Sum("cpu_s", "cpu_s"), Sum("core_s", "core_s"), Sum("n_jobs", "n_jobs"))
_EMPTY = "No aggregated day lies in the chosen time, or none has jobs of the chosen filters."
_ABOUT = "CPU time over wall-clock time × cores, summed over the jobs that count in the fit."


def _by(name: str, what: str, column: str, heading: str, most: int) -> Panel:
    return Panel(
        f"efficiency-by-{name}",
        f"CPU time over core time by {what}, most core time first (dashed: those together)",
        "shares",
        "Efficiency",
        View("buckets", types="every", by=(column,), metrics=_SUMS, sort=("-core_s",)),
        _ABOUT,
        fields=(
            Entry(column, heading, "name", "label"),
            Entry("cpu_s", "CPU efficiency", "fraction", "x", per="core_s"),
        ),
        most=(most,),
        empty=_EMPTY,
    )


BY_SITE = _by("queue", "queue", "site", "Queue", 30)
BY_TYPE = _by("type", "processing type", "processing_type", "Processing type", 20)
BY_MODEL = _by("model", "CPU model", "cpu_model", "CPU model", 20)

WASTED = Panel(
    "efficiency-wasted",
    "Core-hours without CPU time, of the 30 queues with most core time",
    "waste",
    "Efficiency",
    View("buckets", types="every", by=("site",), metrics=_SUMS, sort=("-core_s",)),
    _ABOUT,
    fields=(
        Entry("site", "Queue", "name", "label"),
        Entry("cpu_s", "Core-hours without CPU time", "number", "x", per="core_s"),
    ),
    most=(30,),
    empty=_EMPTY,
)

JOBS_BY_SITE = Panel(
    "efficiency-jobs",
    "Jobs by queue that the efficiencies rest on",
    "bars",
    "Efficiency",
    View("buckets", types="every", by=("site",), metrics=_SUMS, sort=("-n_jobs",)),
    fields=(Entry("site", "Queue", "name", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    most=(30,),
    empty=_EMPTY,
)

DROPPED = Panel(
    "efficiency-dropped",
    "Jobs by what became of them: in buckets, or dropped and why",
    "bars",
    "Efficiency",
    View(
        "days",
        where=(Where("kind", ("binned", "dropped")),),
        by=("outcome",),
        metrics=(Sum("n_jobs", "n_jobs"),),
        sort=("-n_jobs",),
    ),
    fields=(Entry("outcome", "Outcome", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    most=(20,),
    empty="No day was aggregated.",
)

READ_ME = Panel(
    "efficiency-about",
    "What these numbers are about",
    "markdown",
    "Efficiency",
    text=(
        (
            "Which jobs",
            "The efficiencies are those of the jobs that count in the fits: finished, with a task, events "
            "and plausible times. What was dropped, and why, stands on the page Trust.",
        ),
        (
            "Coverage",
            "A rate without its coverage misleads: the bars of jobs say what each efficiency rests on.",
        ),
        (
            "Filters",
            "These panels name a queue `site`, as jobs do; results of fits name it `name`.",
        ),
    ),
)

EFFICIENCY = Page(
    "efficiency",
    "Efficiency",
    "What do jobs make of the cores that they hold, where are core-hours without CPU time, and of how many "
    "jobs is that known?",
    stacked(
        (24, ((BY_SITE, 24), (WASTED, 24))),
        (16, ((BY_TYPE, 24), (BY_MODEL, 24))),
        (20, ((JOBS_BY_SITE, 24), (READ_ME, 24))),
    ),
    choices=(
        Choice("buckets", "site", "Queue"),
        Choice("buckets", "processing_type", "Processing type"),
        Choice("buckets", "cpu_model", "CPU model"),
        Choice("buckets", "core_class", "Cores: single or multi"),
    ),
)
