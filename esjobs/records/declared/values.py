"""Brings together what was imported and what the records say, for every name of a level."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import Count, Days, In, Present, Query, Range, Sum, SumProduct
from esjobs.core.window import Window
from esjobs.core.words import LEVELS, NAMED_LEVELS
from esjobs.publish.publication import read_table
from esjobs.records.declared.of_models import declared_models
from esjobs.records.declared.origin import (
    Declaration,
    Declared,
    RecordedValue,
    country_named,
    declare,
    declare_site,
    is_core_ratio,
    newest_valid,
    site_named,
)
from esjobs.records.names.cpu_models import resolve_names
from esjobs.records.names.sites import Site, Sites
from esjobs.schema.declared import COREPOWER, QUEUES, RECORDS
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore


def _values_of_sites(rows: Iterable[Declaration | None], sites: Sites) -> dict[str, float]:
    values: dict[str, float] = {}
    for row in rows:
        if row and row.parent_corepower is not None and row.name in sites.named:
            values.setdefault(sites.named[row.name], row.parent_corepower)
    return values


def declared_values(store: JobStore, window: Window, level: str, names: Iterable[str]) -> dict[str, Declared]:
    """Return what each name declares in the window. One read and, for queues, two queries.

    A CPU model that nobody imported a value for has the published score of reference tables.
    """
    imported = _imported(store, level)
    recorded = recorded_values(store, window) if level == "queue" else {}
    sites = _named_sites(imported, store, window) if level == "queue" else Sites()
    declared: dict[str, Declared] = {}
    newest = {name: newest_valid(rows, window.end) for name, rows in imported.items()}
    site_values = _values_of_sites(newest.values(), sites)
    for name in names:
        settled = declare(
            name,
            newest.get(name),
            recorded.get(name),
            site=sites.of(name) if level == "queue" else Site(name, guessed=True),
            site_values=site_values,
            # a row is in force from its very first moment
            before=newest_valid(imported.get(name, ()), window.start + timedelta.resolution),
        )
        declared[name] = replace(settled, country=country_named(imported.get(name, ()), window.end))
    if level == "cpu_model":
        without = [name for name, settled in declared.items() if settled.corepower is None]
        declared |= declared_models(store, window, without)
    return declared


def declared_sites(
    store: JobStore, window: Window, queues: Mapping[str, Declared], names: Iterable[str]
) -> dict[str, Declared]:
    """Return what each site declares in the window: an imported value of its own, else that of its queues.

    ``queues``: what they declare; their core time in the buckets of the window weighs them. One read, one
    query.
    """
    imported = declared_values(store, window, "site", names)
    query = Query(("queue",), (Sum("core_s", "core_s"),), where=(Days.of_window(window),), over=BUCKETS)
    core_s = {row["queue"]: row["core_s"] or 0.0 for row in store.aggregate(query).table.to_pylist()}
    of_site: dict[str, list[Declared]] = defaultdict(list)
    for declared in queues.values():
        of_site[declared.site].append(declared)
    found: dict[str, Declared] = {}
    for name, own in imported.items():
        mine = of_site[name]
        guessed = all(declared.site_guessed for declared in mine)
        of_queues = declare_site(
            name, [(declared, core_s.get(declared.name, 0.0)) for declared in mine], guessed=guessed
        )
        # an imported value of the site itself wins over the mean of its queues
        found[name] = of_queues if own.corepower is None else replace(own, site_guessed=guessed)
    return found


def known_sites(store: JobStore, window: Window | None) -> Sites:
    """Return the sites that tables valid before the window's end name, else the clusters of its jobs.

    ``window`` None: all data. One read, one query.
    """
    imported = _imported(store, "queue", "site")
    window = window or stored_window(store)
    return Sites() if window is None else _named_sites(imported, store, window)


def _named_sites(imported: Mapping[str, list[Declaration]], store: JobStore, window: Window) -> Sites:
    clusters = recorded_clusters(store, window)
    named = {name: site_named(rows, window.end) for name, rows in imported.items()}
    tables = {name: site for name, site in named.items() if site is not None}
    # a partition of one name on two clusters has no single site
    several = {queue: names for queue, names in clusters.items() if len(names) > 1 and queue not in tables}
    alone = {queue: names[0] for queue, names in clusters.items() if len(names) == 1}
    return Sites({**alone, **tables}, several)


def recorded_clusters(store: JobStore, window: Window) -> dict[str, tuple[str, ...]]:
    """Return the clusters that the jobs of each queue name, sorted; one query."""
    query = Query(("queue", "cluster"), (Count(),), window, where=(Present("cluster"),), books=False)
    found: dict[str, list[str]] = defaultdict(list)
    for row in store.aggregate(query).table.to_pylist():
        found[row["queue"]].append(row["cluster"])
    return {queue: tuple(sorted(names)) for queue, names in found.items()}


def imported_countries(store: JobStore, window: Window | None) -> dict[str, str]:
    """Return the country of each queue, as imported tables name it; only of those that have one."""
    imported = _imported(store, "queue", "country")
    window = (window or stored_window(store)) if imported else None
    if window is None:
        return {}
    named = {name: country_named(rows, window.end) for name, rows in imported.items()}
    return {name: country for name, country in named.items() if country is not None}


def stored_window(store: JobStore) -> Window | None:
    """Return the days from the first to the last stored job, None without jobs."""
    span = store.span()
    if span.first is None or span.last is None:
        return None
    return Window.of_days(span.first.date(), span.last.date())


def _imported(store: JobStore, level: str, *only: str) -> Mapping[str, list[Declaration]]:
    # oldest first; ``only``: the columns needed beside name and dates
    columns = ("name", "imported_at", "valid_from", *only) if only else ()
    rows = read_table(store, COREPOWER, [In("level", (level,))], columns).to_pylist()
    names = [row["name"] for row in rows]
    resolved = resolve_names(names) if level == "cpu_model" else names
    canonical = {raw: name or raw for raw, name in zip(names, resolved, strict=True)}
    declarations: dict[str, list[Declaration]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["imported_at"]):
        name = canonical[row["name"]]
        said = (row.get(column) for column in _DECLARED)
        declarations[name].append(Declaration(name, *said))
    return declarations


_LEAST_SHARE = 0.05  # Of the core seconds of a day, that a value needs to count
# The columns behind the fields of a declaration, in their order.
_DECLARED = ("corepower", "benchmark", "valid_from", "site", "parent_corepower", "source", "country")


def declared_table(store: JobStore, window: Window | None) -> pa.Table:
    """Return imported values, those of records and of sites in the window, with the ``origin`` in force."""
    imported = read_table(store, COREPOWER).to_pylist()
    window = window or stored_window(store)
    recorded: Mapping[str, RecordedValue] = {}
    in_force: Mapping[tuple[str, str], Declared] = {}
    if window is not None:
        recorded = recorded_values(store, window)
        in_force = _in_force(store, window, imported, recorded)
    rows = []
    for row in imported:
        declared = in_force.get((row["level"], row["name"]))
        rows.append({**row, "origin": declared.origin if declared and declared.settles(row) else None})
    for name, value in recorded.items():
        declared = in_force["queue", name]
        row = {"level": "queue", "name": name, "corepower": value.value, "benchmark": "HS06"}
        origin = declared.origin if declared.source == RECORDS else None
        rows.append({**row, "site": declared.site, "source": RECORDS, "origin": origin})
    rows += [_site_row(declared) for declared in in_force.values() if declared.source == QUEUES]
    # values from records, which have no date, below the imported ones
    rows.sort(key=lambda row: (LEVELS.index(row["level"]), row["name"], row.get("valid_from") is None))
    schema = table_schema(COREPOWER).append(pa.field("origin", pa.string()))
    return pa.Table.from_pylist(rows, schema=schema)


def _in_force(
    store: JobStore, window: Window, imported: Sequence[Mapping[str, Any]], recorded: Collection[str]
) -> dict[tuple[str, str], Declared]:
    found: dict[tuple[str, str], Declared] = {}
    # queues also declare by their records, without any import
    named: dict[str, set[str]] = defaultdict(set)
    named["queue"].update(recorded)
    for row in imported:
        named[row["level"]].add(row["name"])
    for level in NAMED_LEVELS:
        names = named[level]
        settled = declared_values(store, window, level, names)
        found |= {(level, name): declared for name, declared in settled.items()}
    queues = {name: declared for (level, name), declared in found.items() if level == "queue"}
    sites = named["site"] | {declared.site for declared in queues.values()}
    settled = declared_sites(store, window, queues, sites)
    return found | {("site", name): declared for name, declared in settled.items()}


def _site_row(declared: Declared) -> dict[str, Any]:
    columns = ("name", "corepower", "benchmark", "site", "country", "source", "origin")
    row = {column: getattr(declared, column) for column in columns}
    return {"level": "site", "parent_corepower": declared.parent, **row}


def recorded_values(store: JobStore, window: Window) -> dict[str, RecordedValue]:
    """Return sums over the jobs of each queue that have normalised work, wall time and cores."""
    query = Query(
        keys=("queue", "day", "cores"),
        metrics=(
            Count(),
            Sum("hs06_s", "work"),
            Sum("wall_s", "wall"),
            SumProduct("hs06_s", "hs06_s", "work_sq"),
            SumProduct("hs06_s", "wall_s", "work_wall"),
            SumProduct("wall_s", "wall_s", "wall_sq"),
        ),
        window=window,
        where=(Range("hs06_s", gt=0), Range("wall_s", gt=0), Range("cores", gt=0)),
        books=False,
    )
    table = store.aggregate(query).table
    # cores is a key of the groups: within one, wall time x cores is a plain product
    cores = _column(table, "cores")
    sums = {
        "n_jobs": _column(table, "n_jobs"),
        "work": _column(table, "work"),
        "core_s": _column(table, "wall") * cores,
        "work_sq": _column(table, "work_sq"),
        "work_core_s": _column(table, "work_wall") * cores,
        "core_s_sq": _column(table, "wall_sq") * cores**2,
    }
    totals: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(sums, 0.0))
    queues = table.column("queue").to_pylist()
    for position, site in enumerate(queues):
        for name, values in sums.items():
            totals[site][name] += float(values[position])
    days = table.column("day").to_pylist()
    values_ratio = _values_ratio(zip(queues, days, sums["work"], sums["core_s"], strict=True))
    return {
        site: RecordedValue(n_jobs=int(total.pop("n_jobs")), **total, values_ratio=values_ratio.get(site))
        for site, total in totals.items()
    }


def _values_ratio(cells: Iterable[tuple[str, date, float, float]]) -> dict[str, float]:
    """Return the ratio of two values on the same days, of queues that have them on most of their days.

    ``cells``: queue, day, normalised work and core seconds, one cell for each core count. On a day the values
    that hold a twentieth of the core seconds count.
    """
    of_day: dict[tuple[str, date], list[tuple[float, float]]] = defaultdict(list)
    for queue, day, work, core_s in cells:
        of_day[queue, day].append((work / core_s, core_s))
    ratios: dict[str, list[float]] = defaultdict(list)
    for (queue, _), found in of_day.items():
        least = _LEAST_SHARE * sum(core_s for _, core_s in found)
        values = [value for value, core_s in found if core_s >= least]
        # 1 on a day with one value
        ratios[queue].append(max(values) / min(values))
    medians = {queue: median(each) for queue, each in ratios.items()}
    return {queue: ratio for queue, ratio in medians.items() if is_core_ratio(ratio)}


def _column(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(table.column(name).to_numpy(), np.float64)
