"""Published scores of CPU models: HS23 and HS06 of HEPiX, HS06 and speed factors kept by ATLAS.

- HEPiX's HS23: a CSV table of machines with their mean score. Job probes have fewer columns than dedicated
  measurements and write ``-`` for unknown.
- HEPiX's HS06: a table inside a page of Markdown.
- ATLAS's HS06: lines of ``CPU,HS06,cores`` and, in a later form, ``on``, ``off`` or ``na`` for SMT; a CPU
  without a measurement stands alone.
- ATLAS's factors: a table with tabs, CPU strings as pilots report them and a column per fit. Different fits
  have no common scale, so that each column is a source of its own.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats.entered_tables import NO_NUMBER
from esjobs.records.ingest.formats.reference_scores import (
    NO_VALUE,
    Line,
    cells,
    count,
    number,
    reference_scores,
    score,
)

_HS23_COLUMNS = ("CPU", "SMT enabled", "Ncores", "Score")


def _hs23_lines(text: str, path: Path) -> Iterator[Line]:
    for row_number, row in cells(text, path, _HS23_COLUMNS, "HEPiX's HS23 results"):
        yield row_number, ",".join(row.values()), partial(_hs23_row, row)


def _hs23_row(row: Mapping[str, str]) -> Mapping[str, Any]:
    threads = count("Threads/core", row.get("Threads/core", ""))
    policy = row.get("Power Policy", "")
    said = number("SMT enabled", row["SMT enabled"])
    smt = None if said is None else said > 0
    remarks = [f"power policy {policy}"] if policy not in ("", "-", "not_available") else []
    # a contradiction in the table: neither is believed
    if smt is not None and threads is not None and smt != (threads > 1):
        remarks.append(f"SMT is reported as {'on' if smt else 'off'} with {threads} threads per core")
        smt = None
    return {
        "benchmark": "hs23",
        "cpu_raw": row["CPU"],
        "smt": smt,
        "cores": count("Ncores", row["Ncores"]),
        "value": score("Score", row["Score"]),
        "measured_by": row.get("Site") or None,
        "n_measurements": count("# Meas", row.get("# Meas", "")),
        "spread": number("Spread", row.get("Spread", "")),
        "first_measured": _moment("first_date", row.get("first_date", "")),
        "last_measured": _moment("last_date", row.get("last_date", "")),
        "remark": "; ".join(remarks) or None,
        "power_w": _power(row.get("electric_power_mean", "")),
    }


def _power(text: str) -> float | None:
    watts = number("electric_power_mean", text)
    # probes in a slice of a machine write 0
    return watts if watts is not None and watts > 0 else None


def _moment(name: str, text: str) -> datetime | None:
    if text in ("", "-"):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RowError(NO_NUMBER, name, f"'{text[:60]}' is not a time") from error
    # dates without a zone; a day more or less does not matter for a score
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


HEPIX_HS23 = reference_scores("hepix-hs23", _hs23_lines)
"""The format ``hepix-hs23``."""


_HS06_COLUMNS = ("CPU", "HS06", "Cores (runs)")
_CORES = re.compile(r"([0-9]{1,30})\s*(.*)")
_HS06_SMT = re.compile(r"\b(no HT|HT off|HT on)\b", re.IGNORECASE)


def _hs06_lines(text: str, path: Path) -> Iterator[Line]:
    header: list[str] | None = None
    for row_number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            continue
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = row if row[0] == "CPU" else None
            if header is not None:
                _require_columns(header, path)
        # without the line |---|:-:| under the header
        elif set("".join(row)) - set(":- "):
            yield row_number, line, partial(_hs06_row, header, row)
    if header is None:
        raise InputError(f"{path}: no table that begins with CPU; expected HEPiX's page of HS06 results")


def _require_columns(header: list[str], path: Path) -> None:
    for name in _HS06_COLUMNS:
        if header.count(name) != 1:
            found = f"{header.count(name)} columns {name}" if name in header else f"no column {name}"
            raise InputError(f"{path}: {found}; expected HEPiX's page of HS06 results")


def _hs06_row(header: list[str], row: list[str]) -> Mapping[str, Any]:
    named = dict(zip(header, row, strict=False))
    if len(row) < len(header):
        raise RowError(NO_VALUE, "", f"{len(row)} of {len(header)} cells")
    cores = _CORES.match(named["Cores (runs)"])
    if cores is None:
        raise RowError(NO_VALUE, "cores", f"'{named['Cores (runs)'][:60]}' does not begin with a number")
    smt = _HS06_SMT.search(cores[2])
    remarks = [_HS06_SMT.sub("", cores[2]).strip(" ()")]
    # units stand behind the names of these columns, and differ from page to page
    memory = _beginning(named, "Memory")
    remarks += [f"memory {memory} GB"] if memory else []
    clock = _beginning(named, "Clock speed")
    return {
        "benchmark": "hs06",
        "cpu_raw": named["CPU"],
        "smt": None if smt is None else smt[0].lower() == "ht on",
        "cores": count("cores", cores[1]) if int(cores[1]) else None,
        "value": score("HS06", named["HS06"]),
        "clock_mhz": number("clock", clock),
        "board": named.get("Mainboard type") or None,
        "measured_by": named.get("Site", "").strip("()") or None,
        "remark": "; ".join(filter(None, remarks)) or None,
    }


def _beginning(named: Mapping[str, str], begin: str) -> str:
    return next((value for name, value in named.items() if name.startswith(begin)), "")


HEPIX_HS06 = reference_scores("hepix-hs06", _hs06_lines)
"""The format ``hepix-hs06``."""


_ATLAS_SMT = {"on": True, "off": False, "na": None, "": None}


def _atlas_lines(text: str, path: Path) -> Iterator[Line]:
    lines = [(row_number, line) for row_number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and not any(line.count(",") in (2, 3) for _, line in lines):
        raise InputError(f"{path}: no line has the form CPU,HS06,cores or CPU,HS06,cores,on|off|na")
    for row_number, line in lines:
        yield row_number, line, partial(_atlas_row, line)


def _atlas_row(line: str) -> Mapping[str, Any]:
    cpu, *rest = [cell.strip() for cell in line.split(",")]
    if not rest:
        raise RowError(NO_VALUE, "value", "no measurement")
    if len(rest) not in (2, 3) or (len(rest) == 3 and rest[2].lower() not in _ATLAS_SMT):
        raise RowError(NO_NUMBER, "", "expected CPU,HS06,cores and optionally on, off or na")
    return {
        "benchmark": "hs06",
        "cpu_raw": cpu,
        "smt": _ATLAS_SMT[rest[2].lower()] if len(rest) == 3 else None,
        "cores": count("cores", rest[1]),
        "value": score("HS06", rest[0]),
    }


def _factor_lines(text: str, path: Path) -> Iterator[Line]:
    for row_number, row in cells(text, path, ("cputype",), "factors"):
        fits = [name for name in row if name != "cputype"]
        if not fits:
            raise InputError(f"{path}, line 1: no column of factors beside cputype")
        for fit in fits:
            yield row_number, f"{row['cputype']}\t{row[fit]}", partial(_factor, path, fit, row)


def _factor(path: Path, fit: str, row: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "benchmark": "factor",
        "cpu_raw": row["cputype"],
        "value": score(fit, row[fit]),
        "source": f"{path.name}: {fit}",
    }


ATLAS_HS06 = reference_scores("atlas-hs06", _atlas_lines)
"""The format ``atlas-hs06``."""

ATLAS_FACTORS = reference_scores("atlas-factors", _factor_lines)
"""The format ``atlas-factors``."""
