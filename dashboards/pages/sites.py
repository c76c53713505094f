"""The page of all queues: who deviates from the declaration, by how much, since when."""

from dataclasses import replace

from dashboards.panels.columns import COREPOWER, JOBS, NAME, OF_SITE, TASKS, K
from dashboards.panels.flags import OPEN_FLAGS
from dashboards.panels.verdicts import CONCLUSION, DEVIATIONS, SCATTER
from dashboards.spec import Choice, Entry, Mean, Page, Panel, Tile, View, Where, stacked
from esjobs.core.query import Maximum
from esjobs.core.words import CANDIDATE, CONFIRMED, JUDGED, VERDICTS

TYPE = Entry("processing_type", "Processing type", "name")

OTHERS = tuple(word for word in VERDICTS if word not in (*JUDGED, "undeclared", "not comparable"))
"""Verdicts on queues about whose speed too little is known, or nothing that can be."""

STATEMENT = replace(
    CONCLUSION,
    id="sites-conclusion",
    title="What can be concluded from the latest run",
    kind="statement",
    view=replace(CONCLUSION.view, types="every"),
    most=(1,),
    empty="The latest run concluded nothing for these filters: choose a processing type, no single queue.",
)

COUNTS = Panel(
    "sites-counts",
    "Queues of the latest run by verdict: speed against declared corepower, 90 % intervals",
    "tiles",
    "Sites",
    View("flags", level="queue", types="every"),
    fields=(Entry("name", "n", "name", "label"),),
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
    title="Speed factor (one standard error) against declared corepower, line and ±20 %",
    view=replace(SCATTER.view, types="every"),
    fields=(*SCATTER.fields, TYPE),
    empty="No queue has both a speed factor and a declared corepower for the chosen type and filters.",
)

SORTED = replace(
    DEVIATIONS,
    id="sites-deviations",
    title="Deviation from the declared corepower (bars: 90 % intervals; shaded: ±20 %)",
    view=View(
        "flags",
        where=(Where("deviation"), Where("status_shown", (CONFIRMED, CANDIDATE))),
        level="queue",
        types="every",
        sort=("rank",),
    ),
    fields=(*DEVIATIONS.fields, TYPE),
    most=(40,),
    empty="No queue deviates beyond the limit, errors included, for the chosen type and filters.",
)

TO_DECLARE = Panel(
    "sites-to-declare",
    "Confirmed deviations: what the jobs of a queue ran like (90 % interval), beside what it declares",
    "table",
    "Sites",
    View("flags", where=(Where("confirmed", (True,)),), level="queue", types="every", sort=("rank",)),
    "Significant over all tests of the run and stable under every tried change.",
    fields=(
        NAME,
        OF_SITE,
        Entry("deviation", "Deviation", "percent", error="deviation_err"),
        Entry("corepower", "Declared", "declared"),
        Entry("proposed_corepower", "Ran like", "estimate"),
        Entry("estimate_low", "from", "estimate"),
        Entry("estimate_high", "to", "estimate"),
        JOBS,
        TASKS,
    ),
    empty="No deviation of a queue is confirmed.",
)

HOW_MANY = Panel(
    "sites-how-many",
    "How many deviations are confirmed",
    "caption",
    "Sites",
    TO_DECLARE.view,
    tiles=(
        Tile(
            "queues run beyond the limit, confirmed.",
            one="queue runs beyond the limit, confirmed.",
        ),
    ),
    empty="No deviation of a queue is confirmed for the chosen type and filters: nothing is to be sent.",
)

OVER_TIME = Panel(
    "sites-over-time",
    "Deviation of the queues most often confirmed, run by run (one standard error; shaded: ±20 %)",
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
    empty="No run in the chosen time has a deviation.",
)

IN_WORDS = Panel(
    "sites-in-words",
    "Every verdict in words (90 % intervals)",
    "rows",
    "Sites",
    View("flags", level="queue", types="every", sort=("rank",)),
    fields=(
        NAME,
        Entry("status_shown", "Standing", "name"),
        Entry("deviation", "Deviation", "percent"),
        COREPOWER,
        K,
        Entry("sentence", "In words", "sentence"),
    ),
    empty="No verdicts were made.",
    hint="open a row for all of it",
)

OPEN = replace(
    OPEN_FLAGS,
    id="sites-open-flags",
    title="Open flags, as of the last night: since when, and on how many nights (90 % intervals)",
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
    empty="No flag is open for these filters.",
    optional=False,
    besides="",
)

HOW_MANY_OPEN = Panel(
    "sites-how-many-open",
    "How many flags are open",
    "caption",
    "Sites",
    OPEN.view,
    tiles=(Tile("flags are open, acknowledged ones too.", one="flag is open."),),
    empty="No flag is open for these filters; flags are remembered from the first night on that was watched.",
)

SITES = Page(
    "sites",
    "Sites",
    "Which queues run faster or slower than their declared corepower promises, which of these deviations are "
    "confirmed, since when?",
    stacked(
        (7, ((STATEMENT, 48),)),
        (6, ((COUNTS, 48),)),
        (26, ((AGAINST, 26), (SORTED, 22))),
        (3, ((HOW_MANY, 48),)),
        (16, ((TO_DECLARE, 48),)),
        (3, ((HOW_MANY_OPEN, 48),)),
        (14, ((OPEN, 48),)),
        (16, ((OVER_TIME, 48),)),
        (18, ((IN_WORDS, 48),)),
    ),
    choices=(
        Choice("flags", "processing_type", "Processing type", chosen="all", single=True),
        Choice("flags", "site", "Site"),
        Choice("flags", "country", "Country"),
        Choice("flags", "status_shown", "Verdict"),
    ),
    leads_to="site",
)
