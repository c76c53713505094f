"""The page of CPU models: how fast they are, and whether that agrees with their reference scores."""

from dataclasses import replace

from dashboards.pages.sites import TYPE
from dashboards.panels.columns import JOBS, MODEL, TASKS, K
from dashboards.panels.factors import FACTORS_MODEL
from dashboards.panels.verdicts import SCATTER_MODEL
from dashboards.spec import UNFILTERED, Choice, Entry, Join, Page, Panel, View, Where, stacked
from esjobs.core.query import Maximum, Minimum

MODELS = replace(
    FACTORS_MODEL,
    id="models-factors",
    title="Speed factors, fastest first (bars: one standard error)",
    view=replace(FACTORS_MODEL.view, types="every"),
    most=(40,),
    empty="No CPU model has a speed factor: the records name none, or no two models ran the same task.",
)

AGAINST = replace(
    SCATTER_MODEL,
    id="models-scatter",
    title="Speed factor (one standard error) against reference score per core, ±20 %",
    view=replace(SCATTER_MODEL.view, types="every"),
    fields=(*SCATTER_MODEL.fields, TYPE),
)


def _scores(benchmark: str, title: str) -> Panel:
    scores = View(
        "references",
        where=(Where("benchmark", (benchmark,)), Where("value_per_core")),
        by=("cpu_model",),
        metrics=(Minimum("value_per_core", "low"), Maximum("value_per_core", "high")),
    )
    return Panel(
        f"models-{benchmark}",
        f"Speed factor (one standard error) against published {title} per core, lowest to highest",
        "against-scores",
        "CPU models",
        View("factors", where=(Where("k"), Where("component", (0,))), level="cpu_model", types="every"),
        "Imported references (esjobs reference import); a CPU model may have several: SMT, clock.",
        fields=(
            MODEL,
            Entry("high", f"{title} per core", "declared", "x", table="references"),
            Entry("k", "Speed factor k", "number", "y", error="k_err"),
            TYPE,
        ),
        joins=(Join(UNFILTERED, scores, "cpu_model", ("low", "high")),),
        empty="No CPU model has a speed factor for the chosen type and filters.",
    )


HS23 = _scores("hs23", "HS23")
HS06 = _scores("hs06", "HS06")

SPREAD = Panel(
    "models-spread",
    "One CPU model at several queues: the 15 furthest from the model's mean speed, in standard errors",
    "ranked",
    "CPU models",
    View("cpu_speed_by_queue", where=(Where("sigmas"),), level="cpu_model", types="every", sort=("-n_jobs",)),
    "Right of 0 the model is faster at that queue than elsewhere. Beyond 3 on either side is hardly chance.",
    fields=(
        Entry("pair", "Queue and CPU model", "name", "label"),
        Entry("sigmas", "Distance in standard errors", "number", "x"),
        Entry("relative", "Speed against the model's mean", "shift", error="relative_err"),
        JOBS,
    ),
    most=(15,),
    empty="No CPU model runs at two queues, or nobody has asked yet: esjobs decompose does, and every night.",
)

SPREAD_TABLE = Panel(
    "models-at-queues",
    "The same CPU models at each queue: speed there against the model's mean over all queues that run it",
    "rows",
    "CPU models",
    View("cpu_speed_by_queue", level="cpu_model", types="every", sort=("-n_jobs",)),
    fields=(
        MODEL,
        Entry("queue", "Queue", "name"),
        Entry("relative", "Against the mean", "shift", error="relative_err"),
        Entry("relative_err", "Standard error", "fraction"),
        Entry("n_queues", "Queues", "count"),
        Entry("cpu_share", "of the queue's CPU time", "fraction"),
        JOBS,
    ),
    empty="No CPU model runs at two queues, or nobody has asked yet: esjobs decompose does, and every night.",
)

TABLE = Panel(
    "models-table",
    "All CPU models: speed factor, its standard error, what it rests on",
    "table",
    "CPU models",
    View("factors", where=(Where("k"),), level="cpu_model", types="every", sort=("-k",)),
    fields=(
        MODEL,
        TYPE,
        Entry("k", "k", "number", error="k_err"),
        Entry("k_raw", "k raw", "number"),
        Entry("efficiency", "CPU efficiency", "fraction"),
        Entry("component", "Component", "count"),
        Entry("n_jobs", "Jobs", "count"),
        TASKS,
    ),
    empty="No CPU model has a speed factor.",
)

ROWS = Panel(
    "models-rows",
    "Every CPU model and processing type, those without a factor too, and why",
    "rows",
    "CPU models",
    View("factors", level="cpu_model", types="every", sort=("-k",)),
    fields=(
        MODEL,
        TYPE,
        K,
        Entry("status", "Status", "name"),
        Entry("reason", "Reason"),
        JOBS,
    ),
    empty="The records name no CPU model.",
)

CPU_MODELS = Page(
    "cpu-models",
    "CPU models",
    "How fast are the processors that the jobs name, for each kind of work, and does that agree with their "
    "reference scores?",
    stacked(
        (24, ((MODELS, 24), (AGAINST, 24))),
        (20, ((HS23, 24), (HS06, 24))),
        (16, ((SPREAD, 24), (SPREAD_TABLE, 24))),
        (15, ((TABLE, 48),)),
        (14, ((ROWS, 48),)),
    ),
    choices=(
        Choice("factors", "processing_type", "Processing type", chosen="all", single=True),
        Choice("factors", "name", "CPU model"),
    ),
)
