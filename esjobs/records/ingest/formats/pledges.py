"""Pledges of federations and their sites: CRIC's JSON, REBUS's JSON, and tables in text.

The pledge year begins on 1 April: quarter 1 is April to June of the year, quarter 4 January to March of the
next. CRIC names no unit; from pledge year 2023 on its numbers are HS23, before HS06. A missing number is no
pledge, 0 is a pledge of nothing.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.core.tables import column
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats import entered_tables as tables
from esjobs.records.ingest.formats.declared_values import BENCHMARKS
from esjobs.records.names.countries import country_code
from esjobs.schema.delivered import FEDERATION_SITES, PLEDGES

NO_PLEDGE, NOT_CPU, NO_BENCHMARK = "no CPU pledge", "not CPU", "no benchmark"
EXPECTED = "federations of CRIC, rows of REBUS, or a table with columns federation, year, vo, cpu, benchmark"
HS23_FROM = 2023
"""First pledge year in HS23 [WLCG: ChangesForHEPscore]; the factor to HS06 is 1."""
_MOST = 1e9  # HS23; all of WLCG is at 2e7
_REBUS_VOS = ("ALICE", "ATLAS", "CMS", "LHCb")
_UNITS = {"hep-spec06": "HS06", "hs06": "HS06", "hepscore23": "HS23", "hs23": "HS23"}


def _rows(text: str, path: Path, options: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    benchmark = options.get("benchmark")
    if benchmark is not None and benchmark not in BENCHMARKS:
        raise InputError(f"benchmark '{str(benchmark)[:60]}' is unknown; use HS06 or HS23")
    if not text.lstrip().startswith(("{", "[")):
        yield from _table(text, path, options)
        return
    content = tables.document(text, path, EXPECTED)
    listed = content if isinstance(content, list) else _federations(content)
    rebus = any(isinstance(each, dict) and "PledgeType" in each for each in listed)
    for number, each in enumerate(listed, 1):
        if not isinstance(each, dict):
            yield tables.refused(
                number, PLEDGES, each, RowError("not a federation", "", f"accepted: {EXPECTED}")
            )
        elif rebus:
            yield from _rebus(number, each, options)
        else:
            yield from _cric(number, each, options)


def _federations(content: Mapping[str, Any]) -> list[Any]:
    # a file about one federation has its members at the top
    return [content] if "pledges" in content else list(content.values())


# -- CRIC ------------------------------------------------------------------------------------------------


def _cric(number: int, of: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    name, sites, vos = of.get("name"), of.get("rcsites") or [], of.get("vos") or [None]
    if not isinstance(sites, list) or not isinstance(vos, list):
        yield tables.refused(
            number, FEDERATION_SITES, sites, RowError("not a list", "rcsites", "accepted: names")
        )
        sites, vos = [], []
    for site, vo in product(sites, vos):
        typed = partial(_site, {"federation": name, "site": site, "vo": vo})
        yield tables.EnteredRow(number, FEDERATION_SITES, f"{name} {site} {vo}", typed)
    # pledges by year, quarter and VO
    for path, cell in _leaves(of.get("pledges"), 3):
        if len(path) < 3 or not isinstance(cell, dict):
            error = RowError(NO_PLEDGE, "pledges", "accepted: CPU by year, quarter and VO")
            yield tables.refused(number, PLEDGES, f"{name} {cell}", error)
            continue
        # quarters are written Q1 and 1
        year, quarter, vo = path
        facts = {**of, "federation": name, "year": year, "vo": vo, "cpu": cell.get("CPU")}
        facts |= {"quarter": quarter.upper().removeprefix("Q"), "tier": of.get("tier_level")}
        yield tables.EnteredRow(number, PLEDGES, f"{name} {path}", partial(_pledge, facts, options))


def _leaves(value: Any, depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values at a depth of nested objects with their keys; what ends earlier as it is."""
    if depth == 0 or not isinstance(value, dict):
        yield (), value
        return
    for key, below in value.items():
        for path, leaf in _leaves(below, depth - 1):
            yield (key, *path), leaf


# -- REBUS -----------------------------------------------------------------------------------------------


def _rebus(number: int, row: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    year = row.get("Year", options.get("year"))
    if year is None:
        raise InputError("REBUS names no pledge year; add --set year=2020 (the year of its April)")
    for vo in _REBUS_VOS:
        text = f"{row.get('Federation')} {row.get('PledgeType')} {vo}"
        if row.get("PledgeType") != "CPU":
            yield tables.refused(number, PLEDGES, text, RowError(NOT_CPU, "PledgeType", "only CPU is stored"))
            continue
        facts = {
            "federation": row.get("Federation"),
            "country_code": row.get("Country"),
            "tier": str(row.get("Tier", "")).lower().removeprefix("tier"),
            "year": year,
            "vo": vo,
            "cpu": row.get(vo),
            "benchmark": row.get("PledgeUnit"),
        }
        yield tables.EnteredRow(number, PLEDGES, text, partial(_pledge, facts, options))


# -- tables in text --------------------------------------------------------------------------------------


def _table(text: str, path: Path, options: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    header, rows = tables.table_rows(text, path)
    if "site" in header and "cpu" not in header:
        tables.require_columns(header, ("federation", "site"), path, "sites of federations")
        yield from tables.text_rows(rows, FEDERATION_SITES, _site)
        return
    tables.require_columns(header, ("federation", "year", "vo", "cpu"), path, "pledges")
    yield from tables.text_rows(rows, PLEDGES, partial(_pledge, options=options))


def _site(row: Mapping[str, Any]) -> dict[str, Any]:
    vo = tables.name_in(row, "vo")
    return {
        "federation": tables.name_in(row, "federation", required=True),
        "site": tables.name_in(row, "site", required=True),
        "vo": vo and vo.lower(),
        "fraction": tables.amount_in(row, "fraction", 1.0),
        "valid_from": tables.time_in(row, "valid_from"),
    }


def _pledge(row: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    federation = tables.name_in(row, "federation", required=True)
    cpu = tables.amount_in(row, "cpu", _MOST)
    if cpu is None:
        raise RowError(NO_PLEDGE, "cpu", "no number; a pledge of nothing is 0")
    year, quarter = tables.year_in(row), tables.whole_in(row, "quarter", 1, 4)
    vo = tables.name_in(row, "vo", required=True)
    country = tables.name_in(row, "country_code")
    return {
        "federation": federation,
        "accounting_name": tables.name_in(row, "accounting_name"),
        "country_code": country and country_code(country),
        "tier": tables.whole_in(row, "tier", 0, 3),
        "infrastructure": tables.name_in(row, "infrastructure"),
        "year": year,
        "quarter": quarter,
        "vo": vo and vo.lower(),
        "benchmark": _benchmark(row, options, year),
        "cpu": cpu,
        "valid_from": quarter_start(year, quarter or 1),
    }


def _benchmark(row: Mapping[str, Any], options: Mapping[str, Any], year: int) -> str:
    cric = "tier_level" in row or "rcsites" in row
    text = tables.name_in(row, "benchmark") or options.get("benchmark")
    if text is None and cric:
        return "HS23" if year >= HS23_FROM else "HS06"
    found = _UNITS.get((text or "").lower())
    if found is None:
        raise RowError(NO_BENCHMARK, "benchmark", f"'{(text or '')[:60]}'; accepted: HS06 or HS23")
    return found


def quarter_start(year: int, quarter: int) -> datetime:
    """Return the start of a quarter of a pledge year; quarter 5 is quarter 1 of the next year.

    >>> quarter_start(2026, 1).date().isoformat(), quarter_start(2026, 4).date().isoformat()
    ('2026-04-01', '2027-01-01')
    """
    # quarter 1 begins in April: 3 x 1, counted from 0
    later, month = divmod(3 * quarter, 12)
    return datetime(year + later, month + 1, 1, tzinfo=UTC)


PLEDGE_TABLES = tables.EnteredTables(
    "pledges",
    "pledges",
    (PLEDGES, FEDERATION_SITES),
    _rows,
    (
        column("benchmark", "text", "HS06 or HS23; CRIC's default: HS23 from pledge year 2023 on"),
        column("year", "integer", "pledge year of REBUS: the year of its April"),
    ),
)
"""The format ``pledges``."""
