"""Sums over jobs as accounting systems exchange them, without single jobs."""

from collections.abc import Mapping
from types import MappingProxyType

from esjobs.core.tables import Table, column, columns

UNDECLARED = 12.0
"""The HS06 per core by which a site that never declared one is accounted."""

NO_WALL, ABOVE_WALL, NO_CORES = "no wall time", "CPU time above wall time x cores", "no cores"
"""Reasons for a row without efficiency; empty where it has one."""

REMARKS: Mapping[str, str] = MappingProxyType(
    {
        NO_WALL: "no wall time, so neither an efficiency nor a corepower",
        ABOVE_WALL: "more CPU time than wall time x cores, which is impossible; no efficiency",
        NO_CORES: "no number of cores, so no efficiency",
    }
)

ACCOUNTING = Table(
    "accounting",
    "one row per month, site, VO, user and number of cores: sums over jobs, as in accounting messages",
    "load_id",
    (
        column("load_id", "keyword", "load of the row"),
        column("month", "day", "first day of the month", "UTC"),
        column("site", "keyword", "site as in the message"),
        column("submit_host", "keyword", "computing element; null if missing in the message"),
        column("infrastructure", "keyword", "accounting system: Gratia-OSG, grid, ..."),
        column("vo", "keyword", "virtual organisation"),
        column("vo_group", "keyword", "group in the organisation"),
        column("vo_role", "keyword", "role in the organisation"),
        column("user", "keyword", "name in the user's certificate"),
        column("processors", "integer", "cores per job", "cores"),
        column("nodes", "integer", "nodes per job", "nodes"),
        column("n_jobs", "integer", "jobs", "jobs"),
        column("first_end", "time", "earliest end of a job", "UTC"),
        column("last_end", "time", "latest end of a job", "UTC"),
        # as APEL has it: WallDuration counts once whatever the cores
        column("wall_s", "number", "sum of wall-clock time, not multiplied by cores", "s"),
        column("cpu_s", "number", "sum of CPU time over cores", "s"),
        column("core_s", "number", "wall-clock time x cores", "core s"),
        column("hs06_wall_s", "number", "normalised wall-clock time, not multiplied by cores", "HS06 s"),
        column("hs06_cpu_s", "number", "normalised CPU time", "HS06 s"),
        column("hs23_wall_s", "number", "normalised wall-clock time, not multiplied by cores", "HS23 s"),
        column("hs23_cpu_s", "number", "normalised CPU time", "HS23 s"),
        column("hs06_per_core", "number", "declared HS06 per core: normalised over plain wall-clock time"),
        column("hs23_per_core", "number", "declared HS23 per core, computed likewise"),
        column("declared", "boolean", "true if the site declared a score per core; false: 12 HS06"),
        column("efficiency", "number", "CPU time over wall-clock time x cores; null with a remark"),
        column("remark", "keyword", "reason for a missing efficiency", values=tuple(REMARKS)),
        column("source", "text", "source file"),
        column("line", "integer", "first line of the record"),
        column("loaded_at", "time", "time of the load", "UTC"),
    ),
    time="month",
    made_by="ingest",
    shown=columns("month site vo processors n_jobs core_s cpu_s efficiency hs06_per_core declared remark"),
    order=columns("month site vo -core_s"),
)

TABLES = (ACCOUNTING,)
