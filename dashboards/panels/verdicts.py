"""Panels about verdicts: counts, conclusion, who deviates, the chart of the line, and everyone else."""

from dashboards.panels.columns import (
    ADVICE,
    COREPOWER,
    DEVIATION,
    FINDING,
    JOBS,
    LEVEL,
    MODEL,
    NAME,
    OF_SITE,
    ORIGIN,
    REFERENCE,
    SENTENCE,
    TASKS,
    VERDICT,
    VIA,
    K,
)
from dashboards.panels.flags import SINCE, STATE
from dashboards.panels.reasons import WHY
from dashboards.spec import Entry, Join, Panel, Tile, View, Where
from esjobs.core.numbers import exact_percent
from esjobs.core.words import CANDIDATE, CONFIRMED, HALF_WIDTH_90, NAMED_LEVELS, SURE, Level

_STABLE = Entry("stable", "Stable", "yesno", note="no stability check changes the verdict")
_SURE = Entry("p_off", "Sure", "sure", note="that the declared value is off by more than the limit")
_UNSTABLE_UNDER = Entry("unstable_under", "Changes under")
_SCATTER_FIELDS = (
    Entry("name", "Name", "name", "label"),
    OF_SITE,
    Entry("corepower", "Declared corepower", "declared", "x", unit="benchmark"),
    ORIGIN,
    Entry("k", "Speed factor k", "number", "y", error="k_err"),
    DEVIATION,
    VERDICT,
    JOBS,
    TASKS,
)

_MODEL_SCATTER_FIELDS = (
    MODEL,
    Entry("corepower", "Reference score", "declared", "x", unit="benchmark"),
    *_SCATTER_FIELDS[4:],
)

_DEVIATION_FIELDS = (
    Entry("name", "Name", "name", "label"),
    OF_SITE,
    Entry("deviation", "Deviation", "percent", "x", error="deviation_err"),
    Entry("corepower", "Declared corepower", "declared", unit="benchmark"),
    ORIGIN,
    K,
    VERDICT,
    JOBS,
    TASKS,
)

_FLAG_COLUMNS = (
    VERDICT,
    COREPOWER,
    ORIGIN,
    K,
    Entry("expected_k", "Expected k", "number", note="from the line fitted without this site"),
    DEVIATION,
    _SURE,
    _STABLE,
    _UNSTABLE_UNDER,
    VIA,
    JOBS,
    TASKS,
    STATE,
    SINCE,
)

_LIST_COLUMNS = (NAME, COREPOWER, ORIGIN, K, DEVIATION, JOBS, TASKS, SENTENCE)


_CONFIRMED = (Where("confirmed", (True,)),)
_CANDIDATES = (
    Where("verdict", ("deviates",)),
    Where("confirmed", (True,), negate=True),
    Where("level", NAMED_LEVELS),
)


def _verdict(*values: str) -> tuple[Where, ...]:
    return (Where("verdict", values),)


def _line(level: Level) -> tuple[Join, ...]:
    """The line of the benchmark in which a row is declared."""
    return (Join("line", View("lines", level=level), "benchmark", ("slope", "status")),)


COUNTS = Panel(
    "counts",
    "At a glance",
    "tiles",
    "At a glance",
    View("fit_summaries", level="queue"),
    tiles=(
        Tile(
            "queues",
            "n_names",
            note="queues with jobs in buckets; each has one of these verdicts",
            one="queue",
        ),
        Tile("with a speed factor", "n_with_factor", note="queues with a speed factor k"),
        Tile(
            CONFIRMED,
            "n_confirmed",
            "confirmed",
            f"{exact_percent(SURE)} sure to be beyond the limit, and survive every check",
        ),
        Tile(
            f"{CANDIDATE}s",
            "n_candidates",
            "candidate",
            f"{exact_percent(SURE)} sure to be beyond the limit, but fail a check: do not send",
            one=CANDIDATE,
        ),
        Tile("undecided", "n_undecided", "undecided", "neither beyond nor within the limit for sure"),
        Tile("ok", "n_ok", "ok", f"{exact_percent(SURE)} sure to be within the limit"),
        Tile("undeclared", "n_undeclared", "default", "no declared value, or a default"),
        Tile(
            "other verdicts",
            "n_others",
            "other",
            "too few jobs, mixed, implausible, comparable via CPU models only, or not",
            parts=(
                ("n_implausible", "implausible"),
                ("n_mixed", "mixed"),
                ("n_not_comparable", "not comparable"),
                ("n_via_cpu_models", "via CPU models"),
                ("n_too_few", "too few"),
            ),
        ),
    ),
)

CONCLUSION = Panel(
    "conclusion",
    "Conclusion",
    "sentence",
    "At a glance",
    View("fit_summaries", level="queue"),
    fields=(Entry("sentence", "Conclusion"), Entry("evidence", "Evidence")),
    empty="No conclusion: the run stored no verdicts.",
)

_RAN_LIKE = Entry(
    "proposed_corepower",
    "Measured",
    "estimate",
    error="proposed_corepower_err",
    note="on the scale of the other sites, with an error of at least 5 %",
    unit="benchmark",
)

DEVIATING = Panel(
    "deviating",
    "Queues with a confirmed deviation",
    "table",
    "At a glance",
    View(
        "flags",
        where=_CONFIRMED,
        level="queue",
        sort=("rank",),
    ),
    "Above 0 faster than declared, below it slower, by more than the limit. Each survives every check; Sure "
    "is the probability that the declared value is off by more than the limit.",
    fields=(
        NAME,
        DEVIATION,
        _SURE,
        COREPOWER,
        _RAN_LIKE,
        VIA,
        STATE,
        SINCE,
        Entry("acknowledged_by", "Acknowledged by", table="flag_states"),
        Entry("acknowledged_until", "Until", table="flag_states"),
        FINDING,
        WHY,
        Entry("note", "Note", "sentence", table="flag_states"),
        ADVICE,
    ),
    empty="No confirmed deviations of queues.",
    half=True,
)

DEVIATING_MODELS = Panel(
    "deviating-cpu-model",
    "CPU models with a confirmed deviation",
    "table",
    "What deviates",
    View(
        "flags",
        where=_CONFIRMED,
        level="cpu_model",
        sort=("rank",),
    ),
    fields=(
        MODEL,
        DEVIATION,
        REFERENCE,
        _RAN_LIKE,
        K,
        VIA,
        JOBS,
        TASKS,
        STATE,
        SINCE,
        FINDING,
        ADVICE,
    ),
    requires=(Where("deviation"),),
    empty="No CPU model has a confirmed deviation from its reference score.",
)

CANDIDATES = Panel(
    "candidates",
    "Candidates (not confirmed)",
    "table",
    "At a glance",
    View(
        "flags",
        where=_CANDIDATES,
        sort=("-level", "rank"),
    ),
    "Beyond the limit, but something plausible explains it: one task, a start-up time, two speeds, or a line "
    "that does not tell who is wrong. Do not send them; more common tasks confirm or dismiss them.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        DEVIATION,
        COREPOWER,
        _SURE,
        _STABLE,
        _UNSTABLE_UNDER,
        ORIGIN,
        K,
        VIA,
        JOBS,
        TASKS,
        STATE,
        SINCE,
        SENTENCE,
    ),
    empty="No candidates.",
    folded=True,
    optional=True,
    half=True,
    stands_in="deviating",
)

SCATTER = Panel(
    "corepower-site",
    "Speed factor against declared corepower",
    "scatter-line",
    "At a glance",
    View(
        "flags",
        where=(Where("k"), Where("corepower"), Where("component", (0, None))),
        level="queue",
    ),
    "Each mark is a queue of the largest component; bars: one standard error. Band: accepted deviation; "
    "above it a queue runs faster than declared, below it slower. Confirmed deviations are labelled; "
    "default values are not in the line.",
    fields=_SCATTER_FIELDS,
    joins=_line("queue"),
    band=True,
    empty="No queue has both a speed factor and a declared corepower.",
    half=True,
)

SCATTER_MODEL = Panel(
    "corepower-cpu-model",
    "CPU models against their reference score",
    "scatter-line",
    "Speed factors",
    View(
        "flags",
        where=(Where("k"), Where("corepower"), Where("component", (0, None))),
        level="cpu_model",
    ),
    "Reference scores come from an imported table, never from declarations of queues. Above the band a CPU "
    "model runs faster than its score, below it slower.",
    fields=_MODEL_SCATTER_FIELDS,
    joins=_line("cpu_model"),
    band=True,
    requires=(Where("k"),),
    empty="No reference scores of CPU models imported; run: esjobs reference import.",
)

DEVIATIONS = Panel(
    "deviation-site",
    "Deviation from the declaration, queue by queue",
    "dots-with-errors",
    "Speed against declaration",
    View(
        "flags",
        where=(Where("deviation"),),
        level="queue",
        sort=("rank",),
    ),
    "Deviation from the line fitted without the site itself: right of 0 ran faster than declared, left "
    f"slower. Bars are 90 % intervals; a verdict needs {exact_percent(SURE)} on one side of the band's edge, "
    "given how the others declare.",
    fields=_DEVIATION_FIELDS,
    interval=HALF_WIDTH_90,
    band=True,
    empty="No deviations.",
)

FLAGS_TABLE = Panel(
    "flags-site-table",
    "All verdicts on queues",
    "table",
    "Speed against declaration",
    View(
        "flags",
        level="queue",
        sort=("rank",),
    ),
    fields=(NAME, *_FLAG_COLUMNS),
    empty="No verdicts.",
    folded=True,
    optional=True,
)

FLAGS_OF_SITES = Panel(
    "flags-of-sites",
    "Sites: all queues together",
    "table",
    "Speed against declaration",
    View(
        "flags",
        level="site",
        sort=("rank",),
    ),
    "The declared value of a site is the mean of what its queues declare, weighted with their core time. A "
    "deviation of a site is that of its queues; messages are about queues.",
    fields=(Entry("site", "Site", "name", "label"), *_FLAG_COLUMNS),
    empty="No verdicts were made on sites.",
    folded=True,
    optional=True,
)

UNDECIDED = Panel(
    "undecided",
    "Undecided",
    "table",
    "Other queues",
    View(
        "flags",
        where=_verdict("undecided"),
        level="queue",
        sort=("rank",),
    ),
    "Neither beyond the limit nor within it for sure. More tasks common with other queues would tell; "
    "more jobs of the same tasks only where statistics is the larger part of the error.",
    fields=_LIST_COLUMNS,
    empty="No undecided queues.",
    folded=True,
)

UNDECLARED = Panel(
    "undeclared",
    "Undeclared",
    "table",
    "Other queues",
    View(
        "flags",
        where=_verdict("undeclared"),
        level="queue",
        sort=("name",),
    ),
    "No declared value, or a default of the information system: drawn, never fitted.",
    fields=(
        *_LIST_COLUMNS[:3],
        Entry(
            "corepower_from_records",
            "In records",
            "declared",
            note="implied by the job records",
            unit="benchmark",
        ),
        Entry(
            "corepower_parent",
            "Of the site",
            "declared",
            note="shown, never substituted",
            unit="benchmark",
        ),
        *_LIST_COLUMNS[3:4],
        *_LIST_COLUMNS[5:],
    ),
    empty="All queues declare a value of their own.",
    folded=True,
)

SET_ASIDE = Panel(
    "set-aside",
    "Not comparable, via CPU models only, too few jobs, mixed or implausible",
    "table",
    "Other queues",
    View(
        "flags",
        where=(Where("verdict", ("deviates", "undecided", "ok", "undeclared"), negate=True),),
        level="queue",
        sort=("verdict", "name"),
    ),
    "Too few jobs, mixed tasks, implausible values, or no common scale with the largest component but their "
    "CPU models.",
    fields=(NAME, VERDICT, *_LIST_COLUMNS[1:]),
    empty="No queues with another verdict.",
    folded=True,
)
