"""Tables of CPU models that ATLAS keeps: HS06 of machines, and speed factors that others have fitted.

The first is lines of ``CPU,HS06,cores`` and, in a later form, ``on``, ``off`` or ``na`` for SMT; a CPU that
nobody has measured stands there alone. The second is a table with tabs, CPU strings as pilots report them and
a column per fit. Factors of unlike fits have no common scale, so that each column is a source of its own.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.reference_scores import (
    NO_NUMBER,
    NO_VALUE,
    Line,
    ReferenceScores,
    Refused,
    cells,
    count,
    score,
)

_SMT = {"on": True, "off": False, "na": None, "": None}


def _hs06_lines(text: str, path: Path) -> Iterator[Line]:
    lines = [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and not any(line.count(",") in (2, 3) for _, line in lines):
        raise InputError(f"{path}: no line is CPU,HS06,cores or CPU,HS06,cores,on|off|na")
    for place, line in lines:
        yield Line(place, line, partial(_hs06, line))


def _hs06(line: str) -> Mapping[str, Any]:
    cpu, *rest = [cell.strip() for cell in line.split(",")]
    if not rest:
        raise Refused(NO_VALUE, "value", "nothing was measured")
    if len(rest) not in (2, 3) or (len(rest) == 3 and rest[2].lower() not in _SMT):
        raise Refused(NO_NUMBER, "", "expected CPU,HS06,cores and perhaps on, off or na")
    return {
        "benchmark": "hs06",
        "cpu_raw": cpu,
        "smt": _SMT[rest[2].lower()] if len(rest) == 3 else None,
        "cores": count("cores", rest[1]),
        "value": score("HS06", rest[0]),
    }


def _factor_lines(text: str, path: Path) -> Iterator[Line]:
    for place, row in cells(text, path, ("cputype",), "\t"):
        fits = [name for name in row if name != "cputype"]
        if not fits:
            raise InputError(f"{path}, line 1: no column of factors beside cputype")
        for fit in fits:
            yield Line(place, f"{row['cputype']}\t{row[fit]}", partial(_factor, path, fit, row))


def _factor(path: Path, fit: str, row: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "benchmark": "factor",
        "cpu_raw": row["cputype"],
        "value": score(fit, row[fit]),
        "source": f"{path.name}: {fit}",
    }


ATLAS_HS06 = ReferenceScores("atlas-hs06", _hs06_lines)
"""The format ``atlas-hs06``."""

ATLAS_FACTORS = ReferenceScores("atlas-factors", _factor_lines)
"""The format ``atlas-factors``."""
