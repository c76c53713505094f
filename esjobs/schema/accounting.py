"""Sums over jobs as accounting systems exchange them; no single job can be told from them."""

from collections.abc import Mapping
from types import MappingProxyType

from esjobs.core.tables import Table, column, columns

UNDECLARED = 12.0
"""The HS06 per core by which a site that never declared one is accounted."""

EFFICIENT, NO_WALL, ABOVE_WALL, NO_CORES = "", "no wall time", "CPU time above wall time x cores", "no cores"
"""Reasons for a row without efficiency; empty where it has one."""

REMARKS: Mapping[str, str] = MappingProxyType(
    {
        NO_WALL: "no wall time, so neither an efficiency nor a corepower",
        ABOVE_WALL: "more CPU time than wall time x cores, which no job can use: no efficiency",
        NO_CORES: "no number of cores, so no efficiency",
    }
)

ACCOUNTING = Table(
    "accounting",
    "jobs of a month summed up per site, VO, user and number of cores, as accounting messages report them",
    "load_id",
    (
        column("load_id", "keyword", "load that the row came with"),
        column("month", "day", "first day of the month", "UTC"),
        column("site", "keyword", "site, as the message names it"),
        column("submit_host", "keyword", "computing element; null: the message does not say"),
        column("infrastructure", "keyword", "who accounts: Gratia-OSG, grid, ..."),
        column("vo", "keyword", "virtual organisation"),
        column("vo_group", "keyword", "group inside it"),
        column("vo_role", "keyword", "role inside it"),
        column("user", "keyword", "name in the users' certificates"),
        column("processors", "integer", "cores of each of the jobs", "cores"),
        column("nodes", "integer", "nodes of each of the jobs", "nodes"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("first_end", "time", "earliest end of a job", "UTC"),
        column("last_end", "time", "latest end of a job", "UTC"),
        column("wall_s", "number", "sum of wall-clock time, not multiplied by cores", "s"),
        column("cpu_s", "number", "sum of CPU time over cores", "s"),
        column("core_s", "number", "wall-clock time x cores", "core s"),
        column("hs06_wall_s", "number", "normalised wall-clock time, not multiplied by cores", "HS06 s"),
        column("hs06_cpu_s", "number", "normalised CPU time", "HS06 s"),
        column("hs23_wall_s", "number", "normalised wall-clock time, not multiplied by cores", "HS23 s"),
        column("hs23_cpu_s", "number", "normalised CPU time", "HS23 s"),
        column("hs06_per_core", "number", "declared HS06 per core: normalised by plain wall-clock time"),
        column("hs23_per_core", "number", "declared HS23 per core, alike"),
        column(
            "declared",
            "boolean",
            "whether the site declared a score per core; false: accounted by 12 HS06, the default; null: the "
            "row has none",
        ),
        column("efficiency", "number", "CPU time over wall-clock time x cores; null with a remark"),
        column(
            "remark",
            "keyword",
            "why there is no efficiency: no wall time, no cores, CPU time above wall time x cores",
            values=tuple(REMARKS),
        ),
        column("source", "text", "file it came from"),
        column("line", "integer", "line at which its record begins"),
        column("loaded_at", "time", "when it was loaded", "UTC"),
    ),
    time="month",
    made_by="ingest",
    shown=columns("month site vo processors n_jobs core_s cpu_s efficiency hs06_per_core declared remark"),
    order=columns("month site vo -core_s"),
)

TABLES = (ACCOUNTING,)
