"""Watts per core and PUE of sites, and emission factors of electricity: tables in text."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from esjobs.records.ingest.base import FALSE, TRUE, RowError
from esjobs.records.ingest.formats import entered_tables as tables
from esjobs.records.names.countries import country_code
from esjobs.records.names.cpu_models import resolve
from esjobs.schema.delivered import EMISSION_FACTORS, KINDS_OF_FACTORS, POWER

NO_COUNTRY, AVERAGED = "not a country", "averaged into its month"
_MOST_WATTS, _MOST_PUE, _MOST_G = 1000.0, 5.0, 5000.0
_OWID = "carbon intensity of electricity"
# older files of Electricity Maps say LCA, newer ones "Life cycle"
_MAPS = re.compile(r"carbon intensity gco2eq/kwh \((direct|life ?cycle|lca)\)")
_TIME = "datetime (utc)"


def _power_rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    header, rows = tables.table_rows(text, path)
    tables.require_columns(header, () if "pue" in header else ("watts_per_core",), path, "watts per core")
    yield from tables.text_rows(rows, POWER, _power)


def _power(row: Mapping[str, Any]) -> dict[str, Any]:
    raw, smt = tables.name_in(row, "cpu_model"), (tables.name_in(row, "smt") or "").lower()
    model = resolve(raw) if raw else None
    if raw and model is None:
        raise RowError("no CPU model", "cpu_model", f"'{raw[:60]}' does not name a CPU model")
    if smt not in ("", *TRUE, *FALSE):
        raise RowError(
            tables.BAD_TEXT, "smt", f"smt is '{smt[:60]}'; accepted: true, false, or an empty cell"
        )
    watts = tables.amount_in(row, "watts_per_core", _MOST_WATTS, 0.01)
    pue = tables.amount_in(row, "pue", _MOST_PUE, 1.0)
    if watts is None and pue is None:
        raise RowError(
            tables.MISSING, "watts_per_core", "neither watts_per_core nor pue; accepted: one of them"
        )
    return {
        "site": tables.name_in(row, "site"),
        "cpu_model": model and model.name,
        "smt": smt in TRUE if smt else None,
        "watts_per_core": watts,
        "pue": pue,
        "valid_from": tables.time_in(row, "valid_from"),
    }


POWER_TABLE = tables.EnteredTables("power", "watts per core or PUE", (POWER,), _power_rows)
"""The format ``power``."""


# -- emission factors ------------------------------------------------------------------------------------


def _factor_rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    # real headers write CO2 with a subscript
    head, newline, rest = text.partition("\n")
    header, rows = tables.table_rows(head.replace("₂", "2") + newline + rest, path)
    owid = next((name for name in header if name.startswith(_OWID)), None)
    if _TIME in header:
        yield from _of_maps(header, rows, path)
        return
    wanted = ("entity", "code", "year") if owid else ("country_code", "year", "g_per_kwh", "kind")
    tables.require_columns(header, wanted, path, "emission factors (OWID, Electricity Maps, or our own)")
    typed = partial(_of_owid, column=owid) if owid else _factor
    yield from tables.text_rows(rows, EMISSION_FACTORS, typed)


def _factor(row: Mapping[str, Any]) -> dict[str, Any]:
    country, kind = tables.name_in(row, "country_code"), tables.name_in(row, "kind", required=True)
    code = country and country_code(country)
    if country and code is None:
        raise RowError(NO_COUNTRY, "country_code", f"'{country[:60]}'; accepted: a country of ISO 3166")
    if kind not in KINDS_OF_FACTORS:
        raise RowError(
            tables.BAD_TEXT, "kind", f"kind is '{kind}'; accepted: {' or '.join(KINDS_OF_FACTORS)}"
        )
    grams = tables.amount_in(row, "g_per_kwh", _MOST_G)
    if grams is None:
        raise RowError(tables.MISSING, "g_per_kwh", "g_per_kwh is empty; accepted: a number")
    return {
        "zone": tables.name_in(row, "zone", required=code is None) or code,
        "country_code": code,
        "year": tables.year_in(row),
        "month": tables.whole_in(row, "month", 1, 12),
        "g_per_kwh": grams,
        "kind": kind,
        "licence": tables.name_in(row, "licence"),
    }


def _of_owid(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    # the world and other regions have no code, or one that begins with OWID_
    code = tables.name_in(row, "code")
    if code is None or country_code(code) is None:
        raise RowError(
            NO_COUNTRY, "code", f"'{row.get('entity', '')[:60]}' is a region; only countries are used"
        )
    facts = {"zone": row.get("entity"), "country_code": code, "year": row.get("year")}
    return _factor({**facts, "g_per_kwh": row.get(column), "kind": "life_cycle", "licence": "CC BY 4.0"})


def _of_maps(
    header: Sequence[str], rows: Iterator[tuple[int, dict[str, str]]], path: Path
) -> Iterator[tables.EnteredRow]:
    """Yield monthly means of Electricity Maps, or years of a file with one 1 January per zone and year."""
    kinds = [(name, "direct" if "direct" in name else "life_cycle") for name in header if _MAPS.match(name)]
    tables.require_columns(header, ("zone id",), path, "Electricity Maps")
    values: dict[tuple[str, str, datetime], tuple[int, float]] = {}
    for (number, row), (column, kind) in product(rows, kinds):
        try:
            tables.require_cells(row)
            at, grams = tables.time_in(row, _TIME), tables.amount_in(row, column, _MOST_G)
            if at is None or grams is None:
                raise RowError(tables.MISSING, column, "no time or no carbon intensity")
            if values.setdefault((row["zone id"], kind, at), (number, grams))[0] != number:
                raise RowError(tables.REPEATED, _TIME, "an earlier row has the same zone and time")
        except RowError as error:
            yield tables.refused(number, EMISSION_FACTORS, ",".join(row.values()), error)
    yield from _means(values)


def _means(values: Mapping[tuple[str, str, datetime], tuple[int, float]]) -> Iterator[tables.EnteredRow]:
    years = {(zone, kind, at.year) for zone, kind, at in values if (at.month, at.day) == (1, 1)}
    months: dict[tuple[str, str, int, int | None], list[tuple[int, float]]] = defaultdict(list)
    for (zone, kind, at), value in values.items():
        # a file of years has nothing but one 1 January each
        months[zone, kind, at.year, None if len(years) == len(values) else at.month].append(value)
    for (zone, kind, year, month), found in months.items():
        facts = {"zone": zone, "kind": kind, "year": year, "month": month, "licence": "ODbL"}
        facts["country_code"] = zone if len(zone) == 2 and country_code(zone) else None
        facts["g_per_kwh"] = sum(grams for _, grams in found) / len(found)
        yield tables.EnteredRow(found[0][0], EMISSION_FACTORS, zone, partial(_factor, facts))
        # every row is accounted for: the first bears the mean
        for number, _ in found[1:]:
            yield tables.refused(
                number, EMISSION_FACTORS, zone, RowError(AVERAGED, "", "the month has the mean")
            )


EMISSION_TABLE = tables.EnteredTables("emissions", "emission factors", (EMISSION_FACTORS,), _factor_rows)
"""The format ``emissions``."""
