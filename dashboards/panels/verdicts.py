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
    ORIGIN,
    RC_SITE,
    REFERENCE,
    SENTENCE,
    TASKS,
    VERDICT,
    VIA,
    K,
)
from dashboards.panels.flags import SINCE, STATE
from dashboards.spec import Entry, Join, Panel, Tile, View, Where
from esjobs.core.words import CANDIDATE, CONFIRMED, FALSE_DISCOVERY_RATE, HALF_WIDTH_90, Level

_STABLE = Entry("stable", "Stable", "yesno", note="the verdict is the same under every tried change")
_SIGNIFICANT = Entry(
    "significant",
    "Signif.",
    "yesno",
    note=f"survives Benjamini-Hochberg at {100 * FALSE_DISCOVERY_RATE:.0f} % over all tests of the run",
)
_UNSTABLE_UNDER = Entry("unstable_under", "Changes under")
_SCATTER_FIELDS = (
    Entry("name", "Name", "name", "label"),
    RC_SITE,
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
    RC_SITE,
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
    Entry("expected_k", "Expected k", "number", note="from the line fitted without this WLCG site"),
    DEVIATION,
    Entry("q_value", "q", "number", note="Benjamini-Hochberg q-value of a deviation beyond the limit"),
    _SIGNIFICANT,
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
_CANDIDATES = (Where("verdict", ("deviates",)), Where("confirmed", (True,), negate=True))


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
    View("conclusions", level="site"),
    tiles=(
        Tile(
            "queues",
            "n_names",
            note="queues with jobs in buckets; each has one of the verdicts beside",
            one="queue",
        ),
        Tile("with a speed factor", "n_with_factor", note="queues with a speed factor k"),
        Tile(
            CONFIRMED,
            "n_confirmed",
            "confirmed",
            "beyond the limit, errors included; significant and stable: may be sent",
        ),
        Tile(
            f"{CANDIDATE}s",
            "n_candidates",
            "candidate",
            "beyond the limit, errors included, but not significant or not stable: not to be sent",
            one=CANDIDATE,
        ),
        Tile("undecided", "n_undecided", "undecided", "the error reaches across the limit"),
        Tile("ok", "n_ok", "ok", "within the limit, errors included"),
        Tile("undeclared", "n_undeclared", "default", "no declared value, or a default"),
        Tile(
            "other verdicts",
            "n_others",
            "other",
            "too few jobs, mixed, implausible or not comparable",
            parts=(
                ("n_implausible", "implausible"),
                ("n_mixed", "mixed"),
                ("n_not_comparable", "not comparable"),
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
    View("conclusions", level="site"),
    fields=(Entry("sentence", "Conclusion"), Entry("evidence", "Evidence")),
    empty="Nothing can be concluded: the run kept no verdicts.",
)

DEVIATING = Panel(
    "deviating",
    "Queues whose deviation is confirmed",
    "table",
    "What deviates",
    View(
        "flags",
        where=_CONFIRMED,
        level="site",
        sort=("-|deviation|",),
    ),
    "The speed differs from what the declared corepower promises by more than the limit, errors included: "
    "above 0 faster than declared, below it slower. Each is significant over all tests of the run and stable "
    "under every tried change, and may be sent.",
    fields=(
        NAME,
        DEVIATION,
        COREPOWER,
        Entry(
            "proposed_corepower",
            "Jobs ran like",
            "estimate",
            error="proposed_corepower_err",
            note="at the level of the others, with an error of at least 5 %",
            unit="benchmark",
        ),
        ORIGIN,
        K,
        RC_SITE,
        VIA,
        JOBS,
        TASKS,
        STATE,
        SINCE,
        FINDING,
        ADVICE,
    ),
    empty="No deviation of a queue is confirmed.",
)

DEVIATING_MODELS = Panel(
    "deviating-cpu-model",
    "CPU models whose deviation is confirmed",
    "table",
    "What deviates",
    View(
        "flags",
        where=_CONFIRMED,
        level="cpu_model",
        sort=("-|deviation|",),
    ),
    fields=(
        MODEL,
        DEVIATION,
        REFERENCE,
        *(field for field in DEVIATING.fields[3:] if field not in {ORIGIN, RC_SITE}),
    ),
    given=(Where("deviation"),),
    empty="No deviation of a CPU model from its reference score is confirmed.",
)

CANDIDATES = Panel(
    "candidates",
    "Candidates, not confirmed",
    "table",
    "What deviates",
    View(
        "flags",
        where=_CANDIDATES,
        sort=("-level", "-|deviation|", "name"),
    ),
    "Beyond the limit with the error included, but not significant over all tests of the run, or not stable: "
    "perhaps chance, perhaps one task. Not to be sent; more tasks in common confirm or dismiss them.",
    fields=(
        Entry("name", "Name", "name", "label"),
        LEVEL,
        DEVIATION,
        COREPOWER,
        _SIGNIFICANT,
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
    empty="There is no candidate.",
    folded=True,
    optional=True,
)

SCATTER = Panel(
    "corepower-site",
    "Speed factor against declared corepower",
    "scatter-line",
    "Speed against declaration",
    View(
        "flags",
        where=(Where("k"), Where("corepower"), Where("component", (0, None))),
        level="site",
    ),
    "Each mark is a queue of the largest component; bars are one standard error. The line goes through the "
    "origin, the band is the accepted deviation. Above the band a queue runs faster than it declares, below "
    "it slower. Confirmed deviations are named, candidates are not; default values have no part in the line.",
    fields=_SCATTER_FIELDS,
    joins=_line("site"),
    band=True,
    empty="No queue has both a speed factor and a declared corepower, so there is nothing to compare.",
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
    "Reference scores come from an imported table; none is derived from what queues declare. Above the band "
    "a CPU model runs faster than its score, below it slower.",
    fields=_MODEL_SCATTER_FIELDS,
    joins=_line("cpu_model"),
    band=True,
    given=(Where("k"),),
    empty="No reference scores of CPU models were imported, so their factors stand without a comparison.",
)

DEVIATIONS = Panel(
    "deviation-site",
    "Deviation from the declaration, queue by queue",
    "dots-with-errors",
    "Speed against declaration",
    View(
        "flags",
        where=(Where("deviation"),),
        level="site",
        sort=("-deviation", "name"),
    ),
    "Deviation from the line fitted without the WLCG site itself: right of 0 ran faster than declared, left "
    "slower. Bars are 90 % intervals; a verdict needs the whole bar on one side of the band's edge.",
    fields=_DEVIATION_FIELDS,
    interval=HALF_WIDTH_90,
    band=True,
    empty="No deviation could be computed.",
)

FLAGS_TABLE = Panel(
    "flags-site-table",
    "All verdicts on queues",
    "table",
    "Speed against declaration",
    View(
        "flags",
        level="site",
        sort=("name",),
    ),
    fields=(NAME, *_FLAG_COLUMNS),
    empty="No verdicts were made.",
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
        level="site",
        sort=("-|deviation|",),
    ),
    "The 90 % interval reaches across the edge of the band. More tasks common with other queues would narrow "
    "it; more jobs of the same tasks only where statistics is the larger part of the error.",
    fields=_LIST_COLUMNS,
    empty="No queue is undecided.",
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
        level="site",
        sort=("name",),
    ),
    "No declared value, or one that is a default of the information system: drawn, never fitted.",
    fields=(
        *_LIST_COLUMNS[:3],
        Entry("corepower_records", "In records", "declared", note="found in the records", unit="benchmark"),
        Entry(
            "corepower_parent",
            "Of the WLCG site",
            "declared",
            note="shown, never substituted",
            unit="benchmark",
        ),
        *_LIST_COLUMNS[3:4],
        *_LIST_COLUMNS[5:],
    ),
    empty="Every queue declares a value of its own.",
    folded=True,
)

SET_ASIDE = Panel(
    "set-aside",
    "Not comparable, too few jobs, mixed or implausible",
    "table",
    "Other queues",
    View(
        "flags",
        where=(Where("verdict", ("deviates", "undecided", "ok", "undeclared"), negate=True),),
        level="site",
        sort=("verdict", "name"),
    ),
    "Too few jobs, mixed tasks, implausible values, or no common scale with the largest component.",
    fields=(NAME, VERDICT, *_LIST_COLUMNS[1:]),
    empty="No queue has another verdict.",
    folded=True,
)
