"""The questions of coordinators: as one command, as SQL on the same file, as an aggregation of the client.

SQL and aggregations are what somebody writes who wants these numbers and no others: sites and CPU
models of what jobs name are given to both, the SQL as tables ``sites`` and ``models``. Some answers say more:
how many jobs a number leaves out, groups where it is 0. For these there is SQL that gives all of it, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.words import JUDGED

WEEK, WEEK_BEFORE = ("2025-06-23", "2025-06-30"), ("2025-06-16", "2025-06-23")
MONTH, MONTH_BEFORE = ("2025-06-01", "2025-06-29"), ("2025-05-04", "2025-06-01")
FAILED = (
    "failed",
    "timeout",
    "out_of_memory",
    "node_fail",
    "boot_fail",
    "deadline",
    "launch_failed",
    "reconfig_fail",
)


@dataclass(frozen=True)
class Asked:
    """One question.

    ``command``: arguments of ``esjobs``; ``{queue}`` and ``{site}`` stand for names of the grid. ``sql``:
    statements on the file, the last of which gives the numbers; ``checked``: its columns that must be those
    of the command. ``whole``: one that gives all that the answer says; empty where the SQL does. ``body``: of
    a search by the client; None where results answer, or a list of jobs does.
    """

    title: str
    command: tuple[str, ...]
    sql: tuple[str, ...]
    checked: tuple[str, ...] = ()
    whole: str = ""
    body: Callable[[Mapping[str, str]], dict[str, Any]] | None = None


def _quoted(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _within(window: tuple[str, str]) -> str:
    return f"end_time >= '{window[0]}' AND end_time < '{window[1]}'"


def _range(window: tuple[str, str]) -> dict[str, Any]:
    return {"range": {"end_time": {"gte": window[0], "lt": window[1]}}}


_EFFICIENCY_SQL = (
    "sum(cpu_s) FILTER (wall_s IS NOT NULL AND cores IS NOT NULL)"
    " / sum(wall_s * cores) FILTER (cpu_s IS NOT NULL) AS efficiency"
)


_COUNTS_SQL = "count(*) AS jobs, count(cpu_s) FILTER (wall_s IS NOT NULL AND cores IS NOT NULL) AS counted"


def _sum(field: str) -> dict[str, Any]:
    return {"sum": {"field": field}}


def _terms(field: str, aggs: Mapping[str, Any], size: int = 1000) -> dict[str, Any]:
    return {"terms": {"field": field, "size": size, "missing": "-"}, "aggs": dict(aggs)}


def _by_cores(aggs: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers by the cores of jobs, of which sums over cores x time are made: no script is needed."""
    return {"cores": {"terms": {"field": "cores", "size": 1000}, "aggs": dict(aggs)}}


_SUMS = _by_cores({"cpu": _sum("cpu_s"), "wall": _sum("wall_s")})
_CORE_TIME = _by_cores({"wall": _sum("wall_s")})


def _grouped(field: str, aggs: Mapping[str, Any], *filters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "size": 0,
        "query": {"bool": {"filter": list(filters)}},
        "aggs": {"groups": _terms(field, aggs)},
    }


QUESTIONS: tuple[Asked, ...] = (
    Asked(
        "worst efficiency last week, queues of 100 jobs or more",
        (
            *("query", "--by", "queue", "--metric", "efficiency", "--window", "/".join(WEEK)),
            *("--sort", "efficiency", "--asc", "--min-jobs", "100"),
        ),
        (
            f"SELECT queue, {_EFFICIENCY_SQL} FROM jobs WHERE {_within(WEEK)} GROUP BY ALL"
            " HAVING count(*) >= 100 ORDER BY efficiency",
        ),
        ("efficiency",),
        f"SELECT queue, {_EFFICIENCY_SQL}, {_COUNTS_SQL} FROM jobs WHERE {_within(WEEK)} GROUP BY ALL"
        " HAVING jobs >= 100 ORDER BY efficiency",
        body=lambda _: _grouped(
            "site",
            _SUMS,
            _range(WEEK),
        ),
    ),
    Asked(
        "core hours lost in failed jobs by site, the top 10 and others",
        (
            *("query", "--by", "site", "--metric", "lost_core_h", "--share", "--top", "10"),
            *("--sort", "lost_core_h"),
        ),
        (
            "WITH each AS (SELECT site, sum(wall_s * cores) / 3600 AS lost_core_h FROM jobs"
            f" LEFT JOIN sites USING (queue) WHERE state IN ({_quoted(FAILED)}) GROUP BY ALL),"
            " placed AS (SELECT *, row_number() OVER (ORDER BY lost_core_h DESC) AS place FROM each)"
            " SELECT if(place <= 10, site, 'others') AS site, sum(lost_core_h) AS lost_core_h,"
            " sum(lost_core_h) / (SELECT sum(lost_core_h) FROM each) AS lost_core_h_share"
            " FROM placed GROUP BY 1, least(place, 11) ORDER BY least(place, 11)",
        ),
        ("lost_core_h", "lost_core_h_share"),
        "WITH every AS (SELECT queue, count(*) AS jobs FROM jobs GROUP BY queue), lost AS (SELECT queue,"
        " sum(wall_s * cores) / 3600 AS core_h, count(wall_s * cores) AS counted FROM jobs"
        f" WHERE state IN ({_quoted(FAILED)}) GROUP BY queue), each AS (SELECT site,"
        " coalesce(sum(core_h), 0) AS lost_core_h, sum(jobs) AS jobs, sum(counted) AS counted FROM every"
        " LEFT JOIN lost USING (queue) LEFT JOIN sites USING (queue) GROUP BY 1),"
        " placed AS (SELECT *, row_number() OVER (ORDER BY lost_core_h DESC) AS place FROM each)"
        " SELECT if(place <= 10, site, 'others') AS site, sum(lost_core_h) AS lost_core_h,"
        " sum(lost_core_h) / (SELECT sum(lost_core_h) FROM each) AS lost_core_h_share,"
        " sum(jobs) AS jobs, sum(counted) AS counted"
        " FROM placed GROUP BY 1, least(place, 11) ORDER BY least(place, 11)",
        body=lambda _: _grouped(
            "site",
            _CORE_TIME,
            {"terms": {"state": list(FAILED)}},
        ),
    ),
    Asked(
        "events per job by queue",
        ("query", "--by", "queue", "--metric", "events_per_job"),
        ("SELECT queue, avg(events) AS events_per_job FROM jobs GROUP BY ALL ORDER BY count(*) DESC, queue",),
        ("events_per_job",),
        "SELECT queue, avg(events) AS events_per_job, count(*) AS jobs, count(events) AS counted"
        " FROM jobs GROUP BY ALL ORDER BY jobs DESC, queue",
        body=lambda _: _grouped("site", {"mean": {"avg": {"field": "events"}}}),
    ),
    Asked(
        "CPU models at a site with their shares",
        ("query", "--by", "cpu_model", "--metric", "core_h", "--share", "--where", "site={site}"),
        (
            "SELECT cpu_model, sum(wall_s * cores) / 3600 AS core_h,"
            " sum(wall_s * cores) / sum(sum(wall_s * cores)) OVER () AS core_h_share FROM jobs"
            " LEFT JOIN models USING (cpu_raw)"
            " WHERE queue IN (SELECT queue FROM sites WHERE site = '{site}')"
            " GROUP BY 1 ORDER BY count(*) DESC",
        ),
        ("core_h", "core_h_share"),
        body=lambda names: _grouped(
            "cpu_raw",
            _CORE_TIME,
            {"terms": {"site": names["queues"].split(",")}},
        ),
    ),
    Asked(
        "efficiency of a week against the week before, largest losers first",
        (
            *("query", "--by", "queue", "--metric", "efficiency", "--window", "/".join(WEEK)),
            *("--compare", "previous"),
        ),
        (
            "WITH sums AS (SELECT queue, end_time >= '" + WEEK[0] + "' AS now,"
            " count(*) FILTER (cpu_s IS NOT NULL AND core_s IS NOT NULL) AS n,"
            " sum(cpu_s) FILTER (core_s IS NOT NULL) AS o, sum(core_s) FILTER (cpu_s IS NOT NULL) AS u,"
            " sum(cpu_s * cpu_s) FILTER (core_s IS NOT NULL) AS oo, sum(cpu_s * core_s) AS ou,"
            " sum(core_s * core_s) FILTER (cpu_s IS NOT NULL) AS uu"
            " FROM (SELECT queue, end_time, cpu_s, wall_s * cores AS core_s FROM jobs WHERE "
            + _within((WEEK_BEFORE[0], WEEK[1]))
            + ") GROUP BY ALL), ratios AS (SELECT queue, now, o / u AS r,"
            " sqrt(n / (n - 1) * (oo - 2 * r * ou + r * r * uu)) / u AS err FROM sums)"
            " SELECT a.queue, a.r AS efficiency, b.r AS efficiency_before,"
            " a.r - b.r AS efficiency_diff, (a.r - b.r) / sqrt(a.err ** 2 + b.err ** 2) AS efficiency_z"
            " FROM ratios a JOIN ratios b USING (queue) WHERE a.now AND NOT b.now ORDER BY efficiency_diff",
        ),
        ("efficiency", "efficiency_before", "efficiency_diff"),
        body=lambda _: _grouped(
            "site",
            {
                "weeks": {
                    "filters": {"filters": {"now": _range(WEEK), "before": _range(WEEK_BEFORE)}},
                    "aggs": _by_cores(
                        {
                            "cpu": {"extended_stats": {"field": "cpu_s"}},
                            "wall": {"extended_stats": {"field": "wall_s"}},
                        }
                    ),
                }
            },
            _range((WEEK_BEFORE[0], WEEK[1])),
        ),
    ),
    Asked(
        "only simulation, only 8 cores",
        (
            *("query", "--by", "queue", "--metric", "jobs,efficiency"),
            *("--where", "processing_type=simul", "--where", "cores=8"),
        ),
        (
            f"SELECT queue, count(*) AS jobs, {_EFFICIENCY_SQL} FROM jobs"
            " WHERE processing_type = 'simul' AND cores = 8 GROUP BY ALL ORDER BY jobs DESC, queue",
        ),
        ("jobs", "efficiency"),
        f"SELECT queue, {_EFFICIENCY_SQL}, {_COUNTS_SQL} FROM jobs"
        " WHERE processing_type = 'simul' AND cores = 8 GROUP BY ALL ORDER BY jobs DESC, queue",
        body=lambda _: _grouped(
            "site",
            _SUMS,
            {"term": {"processing_type": "simul"}},
            {"term": {"cores": 8}},
        ),
    ),
    Asked(
        "memory per core above 2 GB by queue and type",
        (
            *("query", "--by", "queue,processing_type", "--metric", "jobs,mem_per_core_gb"),
            *("--where", "mem_per_core_b>2GB"),
        ),
        (
            "SELECT queue, processing_type, count(*) AS jobs,"
            " avg(max_rss_b / cores) / 1e9 AS mem_per_core_gb FROM jobs"
            " WHERE max_rss_b / nullif(cores, 0) > 2e9 GROUP BY ALL ORDER BY jobs DESC, queue",
        ),
        ("jobs",),
        "SELECT queue, processing_type, count(*) AS jobs,"
        " avg(max_rss_b / cores) / 1e9 AS mem_per_core_gb, count(max_rss_b / cores) AS counted FROM jobs"
        " WHERE max_rss_b / nullif(cores, 0) > 2e9 GROUP BY ALL ORDER BY jobs DESC, queue",
        body=lambda _: {
            "size": 0,
            "query": {
                "bool": {
                    "should": [
                        {
                            "bool": {
                                "filter": [
                                    {"term": {"cores": cores}},
                                    {"range": {"max_rss_b": {"gt": 2e9 * cores}}},
                                ]
                            }
                        }
                        for cores in (1, 8)
                    ]
                }
            },
            "aggs": {
                "groups": _terms(
                    "site", {"types": _terms("processing_type", _by_cores({"memory": _sum("max_rss_b")}))}
                )
            },
        },
    ),
    Asked(
        "waiting time, median and 95 %, by site and week",
        ("query", "--by", "site,week", "--metric", "waiting_median_s,waiting_p95_s"),
        (
            "SELECT site, date_trunc('week', end_time) AS week, quantile_cont(queue_s, [0.5, 0.95]) AS q,"
            " q[1] AS waiting_median_s, q[2] AS waiting_p95_s FROM jobs LEFT JOIN sites USING (queue)"
            " GROUP BY ALL ORDER BY 1, 2",
        ),
        ("waiting_median_s", "waiting_p95_s"),
        "SELECT site, date_trunc('week', end_time) AS week, quantile_cont(queue_s, [0.5, 0.95]) AS q,"
        " q[1] AS waiting_median_s, q[2] AS waiting_p95_s, count(*) AS jobs, count(queue_s) AS counted"
        " FROM jobs LEFT JOIN sites USING (queue) GROUP BY ALL ORDER BY 1, 2",
        body=lambda _: _grouped(
            "site",
            {
                "weeks": {
                    "date_histogram": {"field": "end_time", "calendar_interval": "week"},
                    "aggs": {"p": {"percentiles": {"field": "queue_s", "percents": [50, 95]}}},
                }
            },
        ),
    ),
    Asked(
        "volume by week and site as a heat map",
        ("query", "--by", "site,week", "--metric", "core_h", "--plot"),
        (
            "SELECT site, date_trunc('week', end_time) AS week, sum(wall_s * cores) / 3600 AS core_h"
            " FROM jobs LEFT JOIN sites USING (queue) GROUP BY ALL ORDER BY 1, 2",
        ),
        ("core_h",),
        body=lambda _: _grouped(
            "site",
            {
                "weeks": {
                    "date_histogram": {"field": "end_time", "calendar_interval": "week"},
                    "aggs": _CORE_TIME,
                }
            },
        ),
    ),
    Asked(
        "what should a queue declare, and how sure",
        ("show", "flags", "--name", "{queue}", "--level", "site"),
        ("SELECT * FROM latest_flags WHERE level = 'queue' AND name = '{queue}'",),
    ),
    Asked(
        "everything about a site",
        ("site", "{site}"),
        (
            "SELECT * FROM latest_flags WHERE name IN (SELECT queue FROM sites WHERE site = '{site}')",
            "SELECT * FROM latest_factors WHERE name IN (SELECT queue FROM sites WHERE site = '{site}')",
            "SELECT queue, cpu_model, count(*), sum(wall_s * cores) FROM jobs JOIN sites USING (queue)"
            " LEFT JOIN models USING (cpu_raw) WHERE site = '{site}' AND " + _within(MONTH) + " GROUP BY ALL",
            "SELECT queue, task_id, core_class, processing_type, sum(n_jobs) FROM buckets"
            " JOIN sites USING (queue) WHERE sites.site = '{site}' GROUP BY ALL",
            "SELECT queue, count(*), sum(cpu_s), sum(wall_s * cores), avg(queue_s),"
            f" count(*) FILTER (state IN ({_quoted(FAILED)})), avg(max_rss_b / cores),"
            " median(queue_s) FROM jobs WHERE " + _within(MONTH) + " GROUP BY ALL",
        ),
    ),
    Asked(
        "whose verdict changed since last month",
        ("compare",),
        (
            "SELECT name, a.verdict, b.verdict AS before FROM flags a JOIN flags b"
            " USING (level, name, processing_type, method) WHERE a.window_end > b.window_end"
            " AND a.verdict <> b.verdict",
            "SELECT name, ln(a.k / b.k) AS shift FROM factors a JOIN factors b"
            " USING (level, name, processing_type, method) WHERE a.window_end > b.window_end",
        ),
        whole=f"""
            WITH runs AS (SELECT DISTINCT run, window_end FROM factors ORDER BY window_end DESC LIMIT 2),
            a AS (FROM factors WHERE run = (SELECT arg_min(run, window_end) FROM runs)),
            b AS (FROM factors WHERE run = (SELECT arg_max(run, window_end) FROM runs)),
            pairs AS (SELECT level, processing_type, method, name, a.k AS k_a, b.k AS k_b,
                a.n_jobs AS n_jobs_a, b.n_jobs AS n_jobs_b, a.run AS run_a, b.run AS run_b, b.site,
                sqrt((a.k_err / a.k) ** 2 + (b.k_err / b.k) ** 2) AS err, if(a.status = 'ok'
                AND b.status = 'ok' AND a.component = 0 AND b.component = 0, ln(b.k / a.k), NULL) AS shift
                FROM a FULL JOIN b USING (level, processing_type, method, name)),
            scaled AS (SELECT *, shift - median(shift) OVER (PARTITION BY level, processing_type, method)
                AS moved FROM pairs)
            SELECT p.*, exp(moved) - 1 AS change, exp(moved) * err AS change_err, moved / err AS sigma,
                c.verdict AS verdict_a, d.verdict AS verdict_b, c.confirmed AS confirmed_a,
                d.confirmed AS confirmed_b FROM scaled p
            LEFT JOIN flags c ON c.run = (SELECT arg_min(run, window_end) FROM runs) AND (c.level, c.name,
                c.processing_type, c.method) = (p.level, p.name, p.processing_type, p.method)
            LEFT JOIN flags d ON d.run = (SELECT arg_max(run, window_end) FROM runs) AND (d.level, d.name,
                d.processing_type, d.method) = (p.level, p.name, p.processing_type, p.method)
            ORDER BY coalesce(c.verdict <> d.verdict AND (c.verdict IN ({_quoted(JUDGED)})
                OR d.verdict IN ({_quoted(JUDGED)})), false) DESC, abs(sigma) DESC""",
    ),
    Asked(
        "which jobs at a site ran with an efficiency below 10 %",
        ("jobs", "--where", "site={site}", "--where", "efficiency<10%"),
        (
            "SELECT * FROM jobs WHERE queue IN (SELECT queue FROM sites WHERE site = '{site}')"
            " AND cpu_s / nullif(wall_s * cores, 0) < 0.1 ORDER BY end_time DESC LIMIT 50",
        ),
    ),
    Asked(
        "how much of the work has no CPU model",
        ("query", "--metric", "jobs,core_h", "--where", "cpu_model is missing"),
        (
            "SELECT count(*) AS jobs, sum(wall_s * cores) / 3600 AS core_h FROM jobs"
            " LEFT JOIN models USING (cpu_raw) WHERE cpu_model IS NULL",
        ),
        ("jobs", "core_h"),
        body=lambda _: {
            "size": 0,
            "query": {"bool": {"must_not": {"exists": {"field": "cpu_raw"}}}},
            "aggs": _CORE_TIME,
        },
    ),
)
"""In the order in which coordinators ask them."""
