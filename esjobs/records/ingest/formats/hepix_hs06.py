"""HS06 scores as HEPiX publishes them: a table inside a page of Markdown."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.reference_scores import (
    NO_VALUE,
    Line,
    ReferenceScores,
    Refused,
    count,
    number,
    score,
)

_WANTED = ("CPU", "HS06", "Cores (runs)")
_CORES = re.compile(r"([0-9]{1,30})\s*(.*)")
_SMT = re.compile(r"\b(no HT|HT off|HT on)\b", re.IGNORECASE)


def _lines(text: str, path: Path) -> Iterator[Line]:
    header: list[str] | None = None
    for place, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            continue
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = row if row[0] == "CPU" else None
            if header is not None:
                _require_columns(header, path)
        elif any(row) and not all(set(cell) <= set(":- ") for cell in row):
            yield Line(place, line, partial(_typed, header, row))
    if header is None:
        raise InputError(f"{path}: no table that begins with CPU; expected HEPiX's page of HS06 results")


def _require_columns(header: list[str], path: Path) -> None:
    """Raise :class:`InputError` unless each column that is needed is there once."""
    for name in _WANTED:
        if header.count(name) != 1:
            found = f"{header.count(name)} columns {name}" if name in header else f"no column {name}"
            raise InputError(f"{path}: {found}; expected HEPiX's page of HS06 results")


def _typed(header: list[str], row: list[str]) -> Mapping[str, Any]:
    named = dict(zip(header, row, strict=False))
    if len(row) < len(header):
        raise Refused(NO_VALUE, "", f"{len(row)} of {len(header)} cells")
    cores = _CORES.match(named["Cores (runs)"])
    if cores is None:
        raise Refused(NO_VALUE, "cores", f"'{named['Cores (runs)'][:60]}' begins with no number")
    smt = _SMT.search(cores[2])
    remarks = [_SMT.sub("", cores[2]).strip(" ()")]
    memory = next((value for name, value in named.items() if name.startswith("Memory")), "")
    remarks += [f"memory {memory} GB"] if memory else []
    clock = next((value for name, value in named.items() if name.startswith("Clock speed")), "")
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


HEPIX_HS06 = ReferenceScores("hepix-hs06", _lines)
"""The format ``hepix-hs06``."""
