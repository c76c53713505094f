"""Panels that give account: processing types, the books, the method, the fits, provenance."""

from dashboards.panels.columns import JOBS, UNITS
from dashboards.spec import Entry, Panel, View
from esjobs.core.numbers import exact_percent
from esjobs.core.query import Sum
from esjobs.core.words import SURE

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
    "The same fit for each processing type alone. A processor may be fast for one type and slow for "
    "another; verdicts use all types together.",
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
    empty="Job records name no processing types.",
)

BOOKS = Panel(
    "books",
    "Accounting of jobs",
    "books",
    "Accounting of jobs",
    View("day_books", by=("day", "kind", "outcome"), metrics=(Sum("n_jobs", "n_jobs"),), sort=("day",)),
    "Each job of the window is either in a bucket or counted under the first rule that it fails.",
    fields=(Entry("outcome", "Outcome", "text", "label"), Entry("n_jobs", "Jobs", "count", "x")),
    empty="No day has been aggregated.",
)

METHOD = Panel(
    "method",
    "Method",
    "markdown",
    "Method",
    text=(
        (
            "What is compared",
            "Jobs of a task do the same work, so CPU time per event depends on the processor and on the "
            "start-up time. Jobs are summed per day, task, core class, site, CPU model and processing type. "
            "Buckets with too few jobs are excluded. A task that mixes kinds of work is split if the "
            "records name them, otherwise excluded.",
        ),
        (
            "Start-up time per job",
            "A job of n events takes CPU time in proportion to n + ρ. The ρ of each task, in events, is "
            "estimated inside queues from jobs of different length, and corrected where it matters. "
            "Otherwise k would favour long jobs. Raw k and raw deviations are without this correction.",
        ),
        (
            "Objective",
            "Method gamma, the default: factors k and task means A minimise the sum over buckets of 2 w (x "
            "− ln x − 1), x = a k / A, where a is the corrected CPU time per event. The weight w is the "
            "inverse relative variance: scatter of jobs, and a part that more jobs do not reduce. Outlier "
            "buckets are rejected. Each connected component is fitted alone, scaled so that its factors sum "
            "to their count.",
        ),
        (
            "Reproduction",
            "Method paper reproduces the published χ² without corrections, (a k / A − 1)², with equal "
            "weights and raw sums. Minuit's MIGRAD minimises it from k = 1, HESSE gives its errors. Verdicts "
            "rest on gamma, because a χ² whose σ is proportional to the mean is biased if queues scatter "
            "unequally. Verdicts of both methods are stored; this report shows the method named above.",
        ),
        (
            "Errors",
            "k_err² = k_err_stat² + k_err_int². The first part is the scatter of jobs inside buckets. The "
            "second is the interaction of queue and task, a relative scatter σ int common to all buckets. "
            "Both are propagated through the fit. (σ int² / tasks is only the leading term of the second: "
            "task means and other queues are uncertain, too.) σ int is estimated from the residuals if at "
            "least 10 independent loops exist (dof); otherwise it is 0.10 and marked assumed. An estimated "
            "σ int makes χ²/dof 1 by construction. S, the standard deviation of residuals, is shown with "
            "its dof and is not an error.",
        ),
        (
            "Line and deviation",
            "A line through the origin, k = slope × corepower, one per benchmark, with one entry per "
            "site and declared value, where the honest declarations lie. The deviation is k over what the "
            "line expects, less 1, the line being fitted without the whole site: above 0 the jobs ran faster "
            "than declared.",
        ),
        (
            "Verdict",
            "How declarations scatter, and where the honest ones lie, is learned from all entries of the "
            "line; it gives each declared value a probability P of being off by more than {limit}. Deviates "
            f"when P > {exact_percent(SURE)}, ok when P < {exact_percent(1 - SURE)}, undecided between. A "
            "verdict is stable if no stability check changes it: method, start-up time, rejected buckets, "
            "each task, type and core class. A deviation is confirmed if it is stable and the line tells "
            "who is wrong; otherwise it is a candidate. Send confirmed deviations only.",
        ),
        (
            "Limits",
            "Results are relative to the declarations of the other sites: if all are outdated by 10 %, so "
            "is the line. A deviation may come from SMT, overcommitted cores or load as well as from a "
            "wrong declaration. The remedy is a new benchmark.",
        ),
        (
            "No circular reasoning",
            "hs06sec contains the declared corepower. It may provide a declared value, but never enters a "
            "fit.",
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
            note="standard deviation of residuals: paper relative, gamma in errors",
            always=True,
        ),
        Entry("sigma_int", "σ int", "number", error="sigma_int_err", note="queue × task interaction"),
        Entry("sigma_int_kind", "σ int is"),
        Entry("minuit_valid", "MIGRAD valid", "yesno", note="of method paper"),
        Entry("minuit_edm", "EDM", "number", note="MIGRAD's estimated distance to the minimum"),
        Entry("minuit_calls", "Calls", "count", note="function calls of MIGRAD and HESSE"),
        Entry("minuit_agreement", "Searches differ", "number", note="MIGRAD and our own search, in errors"),
        Entry("reason", "Reason"),
    ),
    empty="No fits.",
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
    empty="No step reports.",
)
