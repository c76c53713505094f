"""HS23 scores as HEPiX publishes them: a CSV table of machines with their mean score.

Both tables of the benchmarking site are read: that of dedicated measurements and that of job probes, which
has fewer columns and writes ``-`` for what is not known.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from esjobs.records.ingest.formats.reference_scores import (
    NO_NUMBER,
    Line,
    ReferenceScores,
    Refused,
    cells,
    count,
    number,
    score,
)

_WANTED = ("CPU", "SMT enabled", "Ncores", "Score")


def _lines(text: str, path: Path) -> Iterator[Line]:
    for place, row in cells(text, path, _WANTED, ","):
        if any(row.values()):
            yield Line(place, ",".join(row.values()), partial(_typed, row))


def _typed(row: Mapping[str, str]) -> Mapping[str, Any]:
    threads = count("Threads/core", row.get("Threads/core", ""))
    policy = row.get("Power Policy", "")
    said = number("SMT enabled", row["SMT enabled"])
    smt = None if said is None else said > 0
    remarks = [f"power policy {policy}"] if policy not in ("", "-", "not_available") else []
    if smt is not None and threads is not None and smt != (threads > 1):
        remarks.append(f"SMT is said to be {'on' if smt else 'off'} with {threads} threads a core")
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
    }


def _moment(name: str, text: str) -> datetime | None:
    if text in ("", "-"):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(NO_NUMBER, name, f"'{text[:60]}' is no time") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


HEPIX_HS23 = ReferenceScores("hepix-hs23", _lines)
"""The format ``hepix-hs23``."""
