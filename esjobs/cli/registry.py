"""Commands of the program by purpose; a command is imported when it is called."""

from dataclasses import dataclass

from esjobs.core.capability import Lazy


@dataclass(frozen=True)
class CommandEntry:
    """A command: name, module and function below ``esjobs.cli``, sentence in ``esjobs --help``."""

    name: str
    source: str
    help: str

    @property
    def load(self) -> Lazy:
        """Import of the command."""
        return Lazy(f"esjobs.cli.{self.source}")


@dataclass(frozen=True)
class Group:
    """Commands for one purpose, with an example."""

    name: str
    example: str
    commands: tuple[CommandEntry, ...]


_QUERY = (
    CommandEntry("show", "results:show", "Print a result table; default: the latest complete run."),
    CommandEntry("query", "query:query", "Aggregate jobs by any field; one row per group."),
    CommandEntry(
        "site",
        "profile:site",
        "Profile one site or queue: verdicts, causes, CPU models, efficiency, tasks, history.",
    ),
    CommandEntry(
        "cpu",
        "profile:cpu",
        "Profile one CPU model: speed factor, reference score, queues that run it, history.",
    ),
    CommandEntry(
        "user",
        "profile:user",
        "Profile one user: hours, scores, ranking, issues with hints, jobs to look at.",
    ),
    CommandEntry(
        "project",
        "profile:project",
        "Profile one project: hours, scores, ranking, issues with hints, jobs to look at.",
    ),
    CommandEntry(
        "task",
        "what_if:task_command",
        "Profile one task: queues that ran it, CPU time against expected, failures, stragglers.",
    ),
    CommandEntry("jobs", "jobs:jobs", "List the stored jobs that match the conditions."),
    CommandEntry(
        "compare", "results:compare", "Compare two runs: changed verdicts and factors, in standard errors."
    ),
    CommandEntry(
        "probes", "probes:probes", "Compare benchmarks in job slots with production and the declared values."
    ),
    CommandEntry(
        "report",
        "results:report",
        "Write a self-contained HTML report: who deviates, by how much, on what evidence.",
    ),
    CommandEntry("flags", "flags:flags", "List open deviations, longest-standing first."),
    CommandEntry(
        "today",
        "today:today",
        "List incidents: what is wrong, since when, at what cost, and why; most costly first.",
    ),
    CommandEntry(
        "incident",
        "today:incident",
        "Cost of an incident at SITE: lost core-hours in parts, jobs, waiting, a paragraph for a meeting.",
    ),
    CommandEntry(
        "job", "detect:job", "Report on one job: record, scores, tags, issues with evidence, time series."
    ),
    CommandEntry(
        "similar", "similar:similar", "Find jobs similar to one job, and predict scores from similar jobs."
    ),
    CommandEntry(
        "rank", "efficiency:rank", "Rank users, projects, queues or applications by mean score, worst first."
    ),
    CommandEntry(
        "issues",
        "efficiency:issues",
        "Rank users, projects, rules or jobs by the node-hours that issues cost.",
    ),
    CommandEntry(
        "provision",
        "provisioning:provision",
        "Service quality of a centre: waiting, lost hours, quality index, effect of user contacts.",
    ),
    CommandEntry(
        "delivered",
        "delivered:delivered",
        "Delivered work in HS23-hours or HS06-hours, by the declared and the measured score.",
    ),
    CommandEntry(
        "what-if", "what_if:what_if", "Forecast changes: move jobs, use free cores, declare, drain, buy."
    ),
    CommandEntry(
        "energy",
        "delivered:energy",
        "Energy and carbon of jobs, measured or by the watts of their CPU models.",
    ),
    CommandEntry(
        "errors",
        "errors:errors",
        "Core-hours of jobs that did not finish, by reason: share, jobs, tasks, sites, who acts.",
    ),
    CommandEntry(
        "nodes",
        "errors:nodes",
        "Nodes on which jobs fail more often than on others of the site with the same tasks.",
    ),
    CommandEntry(
        "export",
        "results:export",
        "Export jobs in canonical columns (lossless: `esjobs ingest jobs` reads them back).",
    ),
    CommandEntry("sql", "jobs:sql", "Run one read-only SELECT on the embedded store."),
    CommandEntry("web", "web:web", "Serve pages and rows over HTTP."),
    CommandEntry("fields", "results:list_fields", "List the fields and metrics of queries, with units."),
    CommandEntry("nights", "nights:nights", "List nightly runs: state, reason, jobs, duration."),
    CommandEntry(
        "demo",
        "system:demo",
        "Generate a synthetic grid with planted faults, run everything on it, report which were found.",
    ),
)

_PIPELINE = (
    CommandEntry("ingest", "steps:ingest", "Load job records, monitoring data or declared values in FORMAT."),
    CommandEntry("corepower", "declared:corepower", "Import or remove declared benchmark scores per core."),
    CommandEntry(
        "reference", "declared:reference", "Import or remove published benchmark scores of CPU models."
    ),
    CommandEntry("run", "steps:run", "Run the whole pipeline for a window and publish its results together."),
    CommandEntry(
        "aggregate",
        "steps:aggregate",
        "Aggregate jobs into daily buckets; each job is binned or dropped with a reason.",
    ),
    CommandEntry("fit", "steps:fit", "Fit speed factors of queues, sites and CPU models."),
    CommandEntry("correlate", "steps:correlate", "Fit the line of speed factor against declared score."),
    CommandEntry("flag", "steps:flag", "Compute deviations, verdicts and their stability."),
    CommandEntry("watch", "steps:watch", "Update flag states for one night: open, close, withdraw."),
    CommandEntry(
        "drift",
        "steps:drift",
        "Find dates on which a queue, site or CPU model became faster or slower, and likely causes.",
    ),
    CommandEntry(
        "decompose",
        "steps:decompose",
        "Decompose deviations: CPU mix, SMT, declared value, unexplained rest.",
    ),
    CommandEntry("detect", "steps:detect", "Find issues in jobs, from time series, footprints and records."),
    CommandEntry(
        "score", "steps:score", "Score how efficiently jobs used their allocation (0 best, 100 worst)."
    ),
    CommandEntry(
        "talp",
        "talp:talp",
        "Parallel efficiency (POP metrics) from TALP: run, collect, join with job records.",
    ),
    CommandEntry(
        "symbols", "symbols:symbols", "Symbol names of executables, used to recognise similar programs."
    ),
    CommandEntry("fit-file", "files:fit_file", "Fit speed factors from a table file, without a store."),
    CommandEntry(
        "line-file",
        "files:line_file",
        "Fit the line through the origin from a table file with factors and declared values.",
    ),
)

_OPERATIONS = (
    CommandEntry(
        "setup",
        "system:setup",
        "Create missing indices and aliases on a cluster, and print the role esjobs needs.",
    ),
    CommandEntry(
        "doctor", "system:doctor", "Check the installation, store and last run; exit code 1 if a check fails."
    ),
    CommandEntry(
        "serve",
        "nights:serve",
        "Run the nightly service: aggregate, fit, judge, notify; overdue nights first.",
    ),
    CommandEntry("catch-up", "nights:catch_up", "Run missing and failed nights, oldest first."),
    CommandEntry("rerun", "nights:rerun", "Rerun all steps of one night."),
    CommandEntry(
        "notify", "notify:notify", "Notify sites, coordinators and operators by mail, webhook or chat."
    ),
    CommandEntry("rules", "detect:rules", "Show, validate and replay the rules that judge jobs."),
    CommandEntry(
        "noise", "noise:noise", "Measure the overhead of monitoring with MPI collectives and injected noise."
    ),
    CommandEntry(
        "dashboards",
        "dashboards:dashboards",
        "Render, check, import or remove the dashboards (Kibana, OpenSearch Dashboards).",
    ),
    CommandEntry("prune", "steps:prune", "Delete old results and buckets; keep jobs and entered data."),
    CommandEntry(
        "forget-user",
        "system:forget_user",
        "Remove a person's name from the store: jobs, results, notes, messages.",
    ),
)

# Commands by purpose, with one example each
GROUPS: tuple[Group, ...] = (
    Group("Query and report", "esjobs show flags --level queue --type all", _QUERY),
    Group("Pipeline steps", "esjobs run --window 2025-06-01/2025-07-01", _PIPELINE),
    Group("Operations", "esjobs doctor", _OPERATIONS),
)

# Every command by its name
COMMANDS: dict[str, CommandEntry] = {each.name: each for group in GROUPS for each in group.commands}
