"""The page of all queues: deviations from declared scores."""

from dataclasses import replace

from dashboards.panels.columns import COREPOWER, JOBS, NAME, OF_SITE, TASKS, K
from dashboards.panels.flags import OPEN_FLAGS
from dashboards.panels.verdicts import CONCLUSION, DEVIATIONS, SCATTER
from dashboards.spec import Choice, Entry, Mean, Page, Panel, Tile, View, Where, stacked
from esjobs.core.query import Maximum
from esjobs.core.words import CANDIDATE, CONFIRMED, JUDGED, VERDICTS

TYPE = Entry("processing_type", "Processing type", "name")

OTHERS = tuple(word for word in VERDICTS if word not in (*JUDGED, "undeclared", "not comparable"))
"""Verdicts without a speed that can be compared."""

STATEMENT = replace(
    CONCLUSION,
    id="sites-conclusion",
    title="Result of the latest run",
    kind="statement",
    view=replace(CONCLUSION.view, types="every"),
    most=(1,),
    empty="No result for this selection. Clear the queue filter or choose another processing type.",
)

COUNTS = Panel(
    "sites-counts",
    "How many queues deviate?",
    "tiles",
    "Sites",
    View("flags", level="queue", types="every"),
    fields=(Entry("name", "queues", "name", "label"),),
    tiles=(
        Tile("fitted", where=(Where("k"),)),
        Tile(CONFIRMED, verdict="confirmed", where=(Where("status_shown", (CONFIRMED,)),)),
        Tile(f"{CANDIDATE}s", verdict="candidate", where=(Where("status_shown", (CANDIDATE,)),)),
        Tile("undecided", verdict="undecided", where=(Where("status_shown", ("undecided",)),)),
        Tile("ok", verdict="ok", where=(Where("status_shown", ("ok",)),)),
        Tile("undeclared", verdict="default", where=(Where("status_shown", ("undeclared",)),)),
        Tile("not comparable", verdict="not comparable", where=(Where("status_shown", ("not comparable",)),)),
        Tile("others", verdict="other", where=(Where("status_shown", OTHERS),)),
    ),
)

AGAINST = replace(
    SCATTER,
    id="sites-scatter",
    title="Does speed follow the declared score?",
    view=replace(SCATTER.view, types="every"),
    fields=(*SCATTER.fields, TYPE),
    empty="No queue in this selection has both a speed factor and a declared corepower.",
)

SORTED = replace(
    DEVIATIONS,
    id="sites-deviations",
    title="Which queues deviate, and by how much?",
    view=View(
        "flags",
        where=(Where("deviation"), Where("status_shown", (CONFIRMED, CANDIDATE))),
        level="queue",
        types="every",
        sort=("rank",),
    ),
    fields=(*DEVIATIONS.fields, TYPE),
    most=(40,),
    empty="No queue deviates beyond 20 % for this selection.",
)

TO_DECLARE = Panel(
    "sites-to-declare",
    "Declared and measured score of confirmed queues",
    "table",
    "Sites",
    View("flags", where=(Where("confirmed", (True,)),), level="queue", types="every", sort=("rank",)),
    "Significant over all tests of the run; all stability checks passed. Intervals: 90 %.",
    fields=(
        NAME,
        OF_SITE,
        Entry("deviation", "Deviation", "percent", error="deviation_err"),
        Entry("corepower", "Declared", "declared"),
        Entry("proposed_corepower", "Measured", "estimate"),
        Entry("estimate_low", "from", "estimate"),
        Entry("estimate_high", "to", "estimate"),
        JOBS,
        TASKS,
    ),
    few=("name", "site", "deviation", "corepower", "proposed_corepower"),
    empty="No deviation is confirmed; nothing to send.",
)

HOW_MANY = Panel(
    "sites-how-many",
    "Confirmed deviations",
    "caption",
    "Sites",
    TO_DECLARE.view,
    tiles=(
        Tile(
            "confirmed deviations.",
            one="confirmed deviation.",
        ),
    ),
    empty="No deviation is confirmed in this selection; nothing to send.",
)

OVER_TIME = Panel(
    "sites-over-time",
    "Are confirmed deviations persistent?",
    "trend",
    "Sites",
    View(
        "flags",
        where=(Where("deviation"), Where("scope", ("all", None))),
        level="queue",
        types="every",
        by=("name",),
        metrics=(
            Mean("deviation", "deviation"),
            Mean("deviation_err", "deviation_err"),
            Maximum("n_jobs", "n_jobs"),
        ),
        runs="every",
        over="window_end",
        first=(Where("confirmed", (True,)),),
    ),
    fields=(
        Entry("name", "Queue", "name", "label"),
        Entry("window_end", "End of the window", "time", "x"),
        Entry("deviation", "Deviation", "percent", "y", error="deviation_err"),
        JOBS,
    ),
    band=True,
    most=(8,),
    empty="No run in this period measured a deviation.",
)

IN_WORDS = Panel(
    "sites-in-words",
    "Verdicts in words",
    "rows",
    "Sites",
    View("flags", level="queue", types="every", sort=("rank",)),
    fields=(
        NAME,
        Entry("status_shown", "Verdict", "name"),
        Entry("deviation", "Deviation", "percent"),
        COREPOWER,
        K,
        Entry("sentence", "In words", "sentence"),
    ),
    empty="No verdicts.",
)

COMBINED = Panel(
    "sites-combined",
    "Sites: all queues together",
    "rows",
    "Sites",
    View("flags", level="site", types="every", sort=("rank",)),
    "Declared: mean of the queues, weighted by their core time.",
    fields=(
        replace(OF_SITE, role="label"),
        Entry("status_shown", "Verdict", "name"),
        Entry("deviation", "Deviation", "percent"),
        COREPOWER,
        K,
        JOBS,
    ),
    few=("site", "status_shown", "deviation", "corepower", "n_jobs"),
    empty="No verdicts on sites.",
)

OPEN = replace(
    OPEN_FLAGS,
    id="sites-open-flags",
    title="Open deviations: since when?",
    kind="rows",
    section="Sites",
    view=replace(OPEN_FLAGS.view, types="every"),
    fields=(
        NAME,
        OF_SITE,
        TYPE,
        Entry("state", "State", "name"),
        Entry("since", "Since", "time"),
        Entry("nights", "Nights", "count"),
        Entry("deviation", "Deviation", "percent"),
        Entry("deviation_low", "from", "percent"),
        Entry("deviation_high", "to", "percent"),
        Entry("acknowledged_until", "Acknowledged until", "time"),
        Entry("sentence", "In words", "sentence"),
    ),
    empty="No flag is open in this selection.",
    optional=False,
    besides="",
)

HOW_MANY_OPEN = Panel(
    "sites-how-many-open",
    "Open flags",
    "caption",
    "Sites",
    OPEN.view,
    tiles=(Tile("open flags, acknowledged ones included.", one="open flag."),),
    empty="No open flags. Flags are tracked from the first nightly run.",
)

SITES = Page(
    "sites",
    "Sites and queues",
    "Which queues deviate from their declared benchmark score, and since when?",
    stacked(
        (7, ((STATEMENT, 48),)),
        (7, ((COUNTS, 48),)),
        (26, ((AGAINST, 26), (SORTED, 22))),
        (3, ((HOW_MANY, 48),)),
        (14, ((TO_DECLARE, 48),)),
        (3, ((HOW_MANY_OPEN, 48),)),
        (14, ((OPEN, 48),)),
        (16, ((OVER_TIME, 48),)),
        (18, ((IN_WORDS, 48),)),
        (14, ((COMBINED, 48),)),
    ),
    choices=(
        Choice("flags", "processing_type", "Processing type", chosen="all", single=True),
        Choice("flags", "site", "Site"),
        Choice("flags", "country", "Country"),
        Choice("flags", "status_shown", "Verdict"),
    ),
    leads_to="site",
    beyond=(HOW_MANY_OPEN.id, OPEN.id, IN_WORDS.id),
)
