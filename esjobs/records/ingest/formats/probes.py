"""Benchmarks that ran in job slots of queues, such as HEPscore in the test jobs of HammerCloud."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats import entered_tables as tables
from esjobs.records.names.cpu_models import resolve
from esjobs.schema.references import PROBES

_WANTED = ("queue", "measured_at", "benchmark")
# As benchmarks call themselves, and as accounting does.
_SPELLINGS = {"HS06": "HS06", "HEPSPEC06": "HS06", "HS23": "HS23", "HEPSCORE23": "HS23", "HEPSCORE": "HS23"}
_LEAST, _MOST, _MOST_CORES = 0.1, 1000.0, 4096  # Score per core; cores of a node


def _rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    header, rows = tables.table_rows(text, path)
    tables.require_columns(header, _WANTED, path, "probes")
    if "value_per_core" not in header:
        tables.require_columns(header, ("score", "cores"), path, "probes (or value_per_core)")
    yield from tables.text_rows(rows, PROBES, _probe)


def _probe(row: Mapping[str, Any]) -> dict[str, Any]:
    benchmark = tables.name_in(row, "benchmark", required=True) or ""
    if benchmark.upper() not in _SPELLINGS:
        raise RowError(
            tables.BAD_TEXT, "benchmark", f"benchmark is '{benchmark[:60]}'; accepted: HS06 or HS23"
        )
    measured_at = tables.time_in(row, "measured_at")
    if measured_at is None:
        raise RowError(tables.MISSING, "measured_at", "measured_at is empty; accepted: a time")
    raw = tables.name_in(row, "cpu_model")
    model = resolve(raw) if raw else None
    return {
        "queue": tables.name_in(row, "queue", required=True),
        "node": tables.name_in(row, "node"),
        "measured_at": measured_at,
        "benchmark": _SPELLINGS[benchmark.upper()],
        "value_per_core": _per_core(row),
        "cpu_model": model and model.name,
    }


def _per_core(row: Mapping[str, Any]) -> float:
    value = tables.amount_in(row, "value_per_core", _MOST, _LEAST)
    if value is not None:
        return value
    score, cores = (
        tables.amount_in(row, "score", _MOST * _MOST_CORES, _LEAST),
        tables.whole_in(row, "cores", 1, _MOST_CORES),
    )
    if score is None or cores is None:
        raise RowError(
            tables.MISSING,
            "value_per_core",
            "no score per core; accepted: value_per_core, or score and cores",
        )
    return score / cores


PROBE_TABLE = tables.EnteredTables("probes", "benchmarks in job slots", (PROBES,), _rows)
"""The format ``probes``."""
