"""The page of CPU models: speed, and comparison with reference scores."""

from dataclasses import replace

from dashboards.pages.sites import TYPE
from dashboards.panels.columns import JOBS, MODEL, RANKS, TASKS, K
from dashboards.panels.factors import FACTORS_MODEL
from dashboards.panels.verdicts import SCATTER_MODEL
from dashboards.spec import UNFILTERED, Choice, Entry, Join, Page, Panel, View, Where, stacked
from esjobs.core.query import Maximum, Minimum

MODELS = replace(
    FACTORS_MODEL,
    id="models-factors",
    title="Which CPU models are fastest?",
    view=replace(FACTORS_MODEL.view, types="every"),
    most=(40,),
    empty="No speed factors: records name no CPU, or no two models ran the same task.",
)

AGAINST = replace(
    SCATTER_MODEL,
    id="models-scatter",
    title="Does speed match the reference score?",
    view=replace(SCATTER_MODEL.view, types="every"),
    fields=(*SCATTER_MODEL.fields, TYPE),
    empty="No reference scores imported; run: esjobs reference import.",
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
        f"Speed against published {title}",
        "against-scores",
        "CPU models",
        View("factors", where=(Where("k"), Where("component", (0,))), level="cpu_model", types="every"),
        "Lowest to highest published score per core (SMT, clock). Bars: one standard error.",
        fields=(
            MODEL,
            Entry("high", f"{title} per core", "declared", "x", table="references"),
            Entry("k", "Speed factor k", "number", "y", error="k_err"),
            TYPE,
        ),
        joins=(Join(UNFILTERED, scores, "cpu_model", ("low", "high")),),
        empty="No CPU model in this selection has a speed factor.",
    )


HS23 = _scores("hs23", "HS23")
HS06 = _scores("hs06", "HS06")

SPREAD = Panel(
    "models-spread",
    "Which queues run a CPU model unusually fast or slow?",
    "ranked",
    "CPU models",
    View("cpu_speed_by_queue", where=(Where("sigmas"),), types="every", sort=("-n_jobs",)),
    "In standard errors from the mean of the model; right is faster. Beyond 3 is unlikely to be chance.",
    fields=(
        Entry("label", "Queue and CPU model", "name", "label"),
        Entry("sigmas", "Distance in standard errors", "number", "x"),
        Entry("relative", "Speed against the model's mean", "shift", error="relative_err"),
        JOBS,
    ),
    most=(15,),
    empty="No CPU model runs at two queues, or esjobs decompose has not run.",
)

SPREAD_TABLE = Panel(
    "models-at-queues",
    "Speed of each CPU model by queue",
    "rows",
    "CPU models",
    View("cpu_speed_by_queue", types="every", sort=("-n_jobs",)),
    fields=(
        Entry("cpu_model", "CPU model", "name", "label"),
        Entry("queue", "Queue", "name"),
        Entry("relative", "Against the mean", "shift", error="relative_err"),
        Entry("relative_err", "Standard error", "fraction"),
        Entry("n_queues", "Queues", "count"),
        Entry("cpu_share", "of the queue's CPU time", "fraction"),
        JOBS,
    ),
    empty="No CPU model runs at two queues, or esjobs decompose has not run.",
)

TABLE = Panel(
    "models-table",
    "Speed factors and sample sizes",
    "table",
    "CPU models",
    View("factors", where=(Where("k"),), level="cpu_model", types="every", sort=("-k",)),
    fields=(
        MODEL,
        TYPE,
        Entry("k", "k", "number", error="k_err"),
        *RANKS,
        Entry("k_raw", "k raw", "number"),
        Entry("efficiency", "CPU efficiency", "fraction"),
        Entry("component", "Component", "count"),
        Entry("n_jobs", "Jobs", "count"),
        TASKS,
    ),
    few=("name", "k", "k_err", "grade", "efficiency", "n_jobs"),
    empty="No CPU model has a speed factor.",
)

ROWS = Panel(
    "models-rows",
    "All CPU models, including those without a result",
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
    empty="Records do not name the CPU.",
)

CPU_MODELS = Page(
    "cpu-models",
    "CPU models",
    "How fast is each CPU model, and does it match its reference score?",
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
    beyond=(SPREAD_TABLE.id, ROWS.id),
)
