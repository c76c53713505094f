"""Panels that give account: processing types, the books, the method, the fits, provenance."""

from dashboards.panels.columns import JOBS, UNITS
from dashboards.spec import Entry, Panel, View
from esjobs.core.query import Sum
from esjobs.core.words import FALSE_DISCOVERY_RATE, HALF_WIDTH_90

TYPES = Panel(
    "types",
    "By processing type",
    "types",
    "By processing type",
    View(
        "flags",
        level="queue",
        types="every",
    ),
    "The same fit made for each kind of work alone. A processor may be fast for one kind and slow for "
    "another; verdicts rest on all types together.",
    repeat=(
        "conclusion",
        "deviating",
        "candidates",
        "corepower-site",
        "deviation-site",
        "factors-site",
        "flags-site-table",
    ),
    most=(40,),
    empty="The records name no processing types.",
)

BOOKS = Panel(
    "books",
    "The books",
    "books",
    "The books",
    View("day_books", by=("day", "kind", "outcome"), metrics=(Sum("n_jobs", "n_jobs"),), sort=("day",)),
    "Every job of the window is either in a bucket or counted under the first rule that it fails.",
    fields=(Entry("outcome", "Outcome", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    empty="No day was aggregated.",
)

METHOD = Panel(
    "method",
    "How it is done",
    "markdown",
    "Method",
    text=(
        (
            "What is compared",
            "Inside a task all jobs do the same work, so CPU time per event depends on the processor, and on "
            "what a job costs before its first event. Jobs are summed per day, task, core class, site, CPU "
            "model and processing type; buckets with too few jobs do not enter. A task that holds several "
            "kinds of work is split where the records name them, else set aside.",
        ),
        (
            "Start-up time per job",
            "A job of n events takes CPU time in proportion to n + ρ. Each task's ρ, in events, is estimated "
            "inside queues from jobs of different length and taken out where it matters, so that k does not "
            "reward long jobs. k raw and raw deviations are shown beside: without this correction.",
        ),
        (
            "Objective",
            "Method gamma, the headline: factors k and task means A minimise the sum "
            "over buckets of 2 w (x − ln x − 1), x = a k / A, a being the corrected CPU time per event. The "
            "weight w is the inverse relative variance from the scatter of jobs and from what does not "
            "average with them; buckets that are far off are rejected. Each connected "
            "component is fitted alone, scaled so that its factors sum to their count, and judged by Minuit.",
        ),
        (
            "Reproduction",
            "Method paper is the article's as it was published, nothing corrected: (a k / A − 1)², every "
            "bucket alike, raw sums. Verdicts of both methods are stored; those of the method named above "
            "are shown.",
        ),
        (
            "Errors",
            "k_err² = k_err_stat² + k_err_int². The first part is the scatter of jobs inside buckets, the "
            "second the interaction of queue and task, a relative scatter σ int common to all buckets; "
            "both are propagated through the fit. (σ int² / tasks is only the leading term of the second: "
            "it forgets that task means and other queues are uncertain too.) σ int is estimated from the "
            "residuals when there are at least 10 independent loops (dof), and is otherwise 0.10 and marked "
            "assumed. Where it is estimated, it is the value that makes χ²/dof 1: that 1 proves nothing. "
            "S, the spread of residuals, is shown with its dof and is no error of its own.",
        ),
        (
            "Line and deviation",
            "A robust line through the origin, k = slope × corepower, one per benchmark, with one entry per "
            "site and declared value. The deviation is k over what the line expects, less 1, the line "
            "being fitted without the whole site: above 0 the jobs ran faster than declared.",
        ),
        (
            "Verdict",
            f"With deviation d and its whole error σ: deviates when |d| − {HALF_WIDTH_90} σ > {{limit}}; ok "
            f"when |d| + {HALF_WIDTH_90} σ < {{limit}}; undecided between. Because many names are tested, "
            "q-values follow Benjamini and Hochberg. A verdict is stable when no tried change of method, "
            "minimum jobs or tasks alters it. A deviation is confirmed when it is significant "
            f"(q ≤ {FALSE_DISCOVERY_RATE}) and stable, else a candidate: only what is confirmed may be sent.",
        ),
        (
            "What it cannot say",
            "Everything is relative to what the other sites declare: if everyone is stale by 10 %, so "
            "is the line. A deviation may come from SMT, overcommitted cores or load as well as from a wrong "
            "declaration, so the remedy is to benchmark again.",
        ),
        (
            "Guard against circles",
            "hs06sec contains the declared corepower. It may supply a declared value; it never enters a fit.",
        ),
    ),
)

FITS = Panel(
    "fits",
    "The fits",
    "table",
    "Method",
    View("fits", types="every"),
    fields=(
        Entry("level", "Level", "level"),
        Entry("processing_type", "Type", "name"),
        Entry("method", "Method", "name"),
        Entry("status", "Status", "name"),
        Entry("n_names", "Names", "count", note="names with a speed factor"),
        Entry("n_names_without", "Without", "count", note="names without a speed factor"),
        UNITS,
        Entry("n_buckets", "Buckets", "count"),
        JOBS,
        Entry("dof", "dof", "count", note="independent loops"),
        Entry(
            "rel_spread",
            "S",
            "number",
            note="spread of residuals: paper relative, gamma in errors",
            always=True,
        ),
        Entry("sigma_int", "σ int", "number", error="sigma_int_err", note="queue × task interaction"),
        Entry("sigma_int_kind", "σ int is"),
        Entry("minuit_valid", "Minuit valid", "yesno"),
        Entry("reason", "Reason"),
    ),
    empty="No fit was made.",
    on_request=True,
)

PROVENANCE = Panel(
    "provenance",
    "Provenance",
    "provenance",
    "Provenance",
    View("runs"),
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
