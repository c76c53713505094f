"""Commands of the program by what they are for; none of them is imported before it is called."""

from dataclasses import dataclass

from esjobs.core.capability import Lazy


@dataclass(frozen=True)
class CommandEntry:
    """A command: its name, the object, and the sentence of it in ``esjobs --help``."""

    name: str
    load: Lazy
    help: str


@dataclass(frozen=True)
class Group:
    """Commands for one purpose, with an example."""

    name: str
    example: str
    commands: tuple[CommandEntry, ...]


_EVERYDAY = (
    CommandEntry(
        "show",
        Lazy("esjobs.cli.results:show"),
        "Show stored results; those of the latest run: complete, unrestricted, of the newest window.",
    ),
    CommandEntry(
        "query",
        Lazy("esjobs.cli.query:query"),
        "An ad-hoc question to the stored jobs, one row per group.",
    ),
    CommandEntry(
        "site",
        Lazy("esjobs.cli.profile:site"),
        "Everything about one site or queue: verdict, why, CPU models, efficiency, tasks, history.",
    ),
    CommandEntry(
        "cpu",
        Lazy("esjobs.cli.profile:cpu"),
        "Everything about one CPU model: factor, score, where it runs and how fast there, tasks, history.",
    ),
    CommandEntry(
        "jobs",
        Lazy("esjobs.cli.jobs:jobs"),
        "The stored jobs themselves, those that meet conditions.",
    ),
    CommandEntry(
        "compare",
        Lazy("esjobs.cli.results:compare"),
        "What changed between two runs, in sigma; of one run: until the latest.",
    ),
    CommandEntry(
        "report",
        Lazy("esjobs.cli.results:report"),
        "One HTML file that works offline: who deviates, by how much, and what it rests on.",
    ),
    CommandEntry(
        "flags",
        Lazy("esjobs.cli.flags:flags"),
        "What stands open, one line a name; the longest first.",
    ),
    CommandEntry(
        "job",
        Lazy("esjobs.cli.detect:job"),
        "Everything about one job on a page: record, scores, tags, issues with evidence, time series.",
    ),
    CommandEntry(
        "similar",
        Lazy("esjobs.cli.similar:similar"),
        "The jobs most like JOBID, by time series or programs, and scores predicted from such jobs.",
    ),
    CommandEntry(
        "rank",
        Lazy("esjobs.cli.efficiency:rank"),
        "Who uses what they are given worst: means of a score, weighted by the hours of the jobs.",
    ),
    CommandEntry(
        "provision",
        Lazy("esjobs.cli.provisioning:provision"),
        "How well resources are provided: waiting, losses, an index of five areas, what contacts achieved.",
    ),
    CommandEntry(
        "export",
        Lazy("esjobs.cli.results:export"),
        "Write stored jobs in canonical columns; esjobs ingest jobs reads them back unchanged.",
    ),
    CommandEntry("sql", Lazy("esjobs.cli.jobs:sql"), "One SELECT over the embedded store, read-only."),
    CommandEntry(
        "fields",
        Lazy("esjobs.cli.results:list_fields"),
        "Every field and metric that queries take, with unit and meaning.",
    ),
    CommandEntry(
        "nights",
        Lazy("esjobs.cli.nights:nights"),
        "Show the nights: done, failed or missing, why, how many jobs, how long.",
    ),
    CommandEntry(
        "demo",
        Lazy("esjobs.cli.system:demo"),
        "Make up a grid whose truth is known, run the whole chain on it, and say what was found.",
    ),
)

_STEPS = (
    CommandEntry(
        "ingest",
        Lazy("esjobs.cli.steps:ingest"),
        "Read records of jobs, of monitoring or of declared values: FORMAT says whose they are.",
    ),
    CommandEntry("corepower", Lazy("esjobs.cli.steps:corepower"), "Declared benchmark scores per core."),
    CommandEntry(
        "reference",
        Lazy("esjobs.cli.why:reference"),
        "Scores of CPU models that others have measured and published.",
    ),
    CommandEntry(
        "run",
        Lazy("esjobs.cli.steps:run"),
        "Aggregate, fit, correlate and flag; results become visible together at the end.",
    ),
    CommandEntry(
        "aggregate",
        Lazy("esjobs.cli.steps:aggregate"),
        "Make the buckets of the window: jobs cleaned, grouped and summed, every job accounted for.",
    ),
    CommandEntry(
        "fit",
        Lazy("esjobs.cli.steps:fit"),
        "Fit speed factors of queues and CPU models from the buckets of the window.",
    ),
    CommandEntry(
        "correlate",
        Lazy("esjobs.cli.steps:correlate"),
        "Fit the line through the origin to the newest factors of the window.",
    ),
    CommandEntry(
        "flag",
        Lazy("esjobs.cli.steps:flag"),
        "Judge the newest factors of the window: deviations, verdicts, their stability.",
    ),
    CommandEntry(
        "watch",
        Lazy("esjobs.cli.flags:watch"),
        "Bring the memory of flags up to a night: what opens, closes, and is said about it.",
    ),
    CommandEntry(
        "drift",
        Lazy("esjobs.cli.why:drift"),
        "Look for days from which on queues or CPU models ran faster or slower, and for what changed then.",
    ),
    CommandEntry(
        "decompose",
        Lazy("esjobs.cli.why:decompose"),
        "Take the deviations of queues apart: CPU mix, SMT, the declaration, and an unexplained rest.",
    ),
    CommandEntry(
        "detect",
        Lazy("esjobs.cli.detect:detect"),
        "Look for tags and issues of jobs: from their time series, footprints and records.",
    ),
    CommandEntry(
        "score",
        Lazy("esjobs.cli.efficiency:score"),
        "Score jobs: what counters, issues and accounting say of how well they used what they were given.",
    ),
    CommandEntry(
        "talp",
        Lazy("esjobs.cli.talp:talp"),
        "Parallel efficiency of jobs (POP metrics) by TALP: measure, gather, join with the jobs' records.",
    ),
    CommandEntry(
        "symbols",
        Lazy("esjobs.cli.symbols:symbols"),
        "Executables by the names of their symbols, by which programs of jobs are told to be alike.",
    ),
    CommandEntry(
        "fit-file",
        Lazy("esjobs.cli.files:fit_file"),
        "Fit speed factors straight from a CSV or Parquet table; no store is opened.",
    ),
    CommandEntry(
        "line-file",
        Lazy("esjobs.cli.files:line_file"),
        "Compare factors in a CSV or Parquet table with declared values by a line through the origin.",
    ),
)

_UPKEEP = (
    CommandEntry(
        "setup",
        Lazy("esjobs.cli.system:setup"),
        "Make the indices and aliases that a cluster lacks; print the role that esjobs needs.",
    ),
    CommandEntry(
        "doctor",
        Lazy("esjobs.cli.system:doctor"),
        "Versions, store, row counts, last run, and what is missing; exit code 1 when a check failed.",
    ),
    CommandEntry(
        "serve",
        Lazy("esjobs.cli.nights:serve"),
        "Run the nights: aggregate the last day, fit the windows, judge, tell; late and missing ones first.",
    ),
    CommandEntry(
        "catch-up",
        Lazy("esjobs.cli.nights:catch_up"),
        "Run the nights that are missing or failed, oldest first.",
    ),
    CommandEntry("rerun", Lazy("esjobs.cli.nights:rerun"), "Run a night again, every step of it."),
    CommandEntry(
        "notify",
        Lazy("esjobs.cli.notify:notify"),
        "Messages to sites, coordinators and operators: mail, webhooks, chats ([notify] in the settings).",
    ),
    CommandEntry(
        "rules",
        Lazy("esjobs.cli.detect:rules"),
        "The rules that jobs are judged by: what is in force, and what others would change.",
    ),
    CommandEntry(
        "noise",
        Lazy("esjobs.cli.noise:noise"),
        "What monitoring costs: collective operations of MPI timed with and without noise.",
    ),
    CommandEntry(
        "dashboards",
        Lazy("esjobs.cli.dashboards:dashboards"),
        "Pages for Kibana and OpenSearch Dashboards: written, checked, imported, removed.",
    ),
    CommandEntry(
        "prune",
        Lazy("esjobs.cli.steps:prune"),
        "Remove results of old runs, buckets of old months, and what old loads replaced.",
    ),
    CommandEntry(
        "forget-user",
        Lazy("esjobs.cli.system:forget_user"),
        "Take a person's name out of the store: jobs, results, notes, messages.",
    ),
)

GROUPS: tuple[Group, ...] = (
    Group("Everyday (ask, look, tell)", "esjobs show flags --level site --type all", _EVERYDAY),
    Group("Steps (from records to verdicts)", "esjobs run --window 2025-06-01/2025-07-01", _STEPS),
    Group("Upkeep (nights, messages, stores)", "esjobs doctor", _UPKEEP),
)
"""The commands by what they are for, with one example each."""

COMMANDS: dict[str, CommandEntry] = {each.name: each for group in GROUPS for each in group.commands}
"""Every command by its name."""
