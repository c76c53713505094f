"""CPU models by measured speed, power and price: work per euro and per kilowatt-hour."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import InputError
from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import read_table
from esjobs.records.answer import Answer
from esjobs.records.ingest.formats.reference_scores import cells
from esjobs.records.ingest.reading.small_files import text_of
from esjobs.records.names.cpu_models import resolve_names
from esjobs.schema.references import POWER_ERROR, REFERENCES
from esjobs.schema.speed import FACTORS, SPEED
from esjobs.store.base import JobStore
from esjobs.what_if.placing import Measured

_MACHINE = ("price", "cores", "power_w")
_NUMBERS = (
    "score",
    "score_err",
    *_MACHINE,
    "score_per_eur",
    "score_per_eur_err",
    "work_per_kwh",
    "work_per_kwh_err",
)
_SCHEMA = pa.schema(
    [("cpu_model", pa.string()), ("unit", pa.string()), *((name, pa.float64()) for name in _NUMBERS)]
)


def buy(store: JobStore, measured: Measured, prices: Path | None = None) -> Answer:
    """Rank CPU models by score per euro, those without a price by work per kilowatt-hour, then by score.

    ``score``: measured score per core in ``unit`` (HS23, HS06; ``k``: speed factor, where no line leads to a
    score), with its standard error. ``cores``: job slots of a machine, ``power_w``: of the machine; from
    ``prices``, else from imported reference tables: their mean per core, for as many cores as they agree on.
    ``score_per_eur``: score of the machine over its price; ``work_per_kwh``: score-hours per kilowatt-hour at
    full load, 10 % error of the power included. ``prices``: CSV with cpu_model, price [, cores] [, power_w].
    Raises :class:`InputError` for a wrong file. Cost: factors and flags of the run, the reference tables.
    """
    run = run_of_everything(store, SPEED, "fit")
    offers = {} if prices is None else read_prices(prices)
    scores, machines = measured(store, run, "cpu_model"), _machines(store)
    where = [In("run", (run.run,)), In("level", ("cpu_model",)), In("processing_type", (ALL_TYPES,))]
    where.append(In("method", (run.headline or "",)))
    rows: list[dict[str, Any]] = []
    for each in read_table(store, FACTORS, where, ["name", "k", "k_err", "component"]).to_pylist():
        # factors of other components have a scale of their own
        if each["k"] is not None and each["component"] == 0:
            # an offer knows better than a table of benchmarks
            machine = machines.get(each["name"], {}) | offers.get(each["name"], {})
            rows.append(_model(each, scores.get(each["name"]), machine))
    rows.sort(key=_order)
    notes = [f"measured by {run.title}"]
    if missing := sorted(offers.keys() - {row["cpu_model"] for row in rows}):
        notes.append(f"left out, no comparable speed factor: {', '.join(missing)}")
    if len({row["unit"] for row in rows}) > 1:
        notes.append("rows of different units must not be compared")
    return Answer(
        pa.Table.from_pylist(rows, schema=_SCHEMA), tuple(notes), title="CPU models to buy", run=run
    )


def _order(row: Mapping[str, Any]) -> list[Any]:
    return [row["unit"], *(-(row.get(name) or 0.0) for name in ("score_per_eur", "work_per_kwh", "score"))]


def _model(factor: Mapping[str, Any], measured: Any, machine: Mapping[str, float]) -> dict[str, Any]:
    unit, score, error = "k", factor["k"], factor["k_err"] / factor["k"]
    if measured is not None:
        unit, score = measured.benchmark, measured.score
        # shown is the score itself, not a difference: what is common to all models is an error, too
        error = float(np.hypot(measured.own, measured.line))
    row = {"cpu_model": factor["name"], "unit": unit, "score": score, "score_err": score * error, **machine}
    return row | _ratios(row, error)


def _ratios(row: Mapping[str, Any], error: float) -> dict[str, float]:
    ratios = {}
    if row.get("cores") and row.get("price"):
        ratios["score_per_eur"] = row["score"] * row["cores"] / row["price"]
        ratios["score_per_eur_err"] = ratios["score_per_eur"] * error
    if row.get("cores") and row.get("power_w"):
        # score-hours of an hour over the kWh of that hour
        ratios["work_per_kwh"] = 1000.0 * row["score"] * row["cores"] / row["power_w"]
        ratios["work_per_kwh_err"] = ratios["work_per_kwh"] * float(np.hypot(error, POWER_ERROR))
    return ratios


def read_prices(path: Path) -> dict[str, dict[str, float]]:
    """Return price, cores and power by canonical CPU model; the last row of a model counts."""
    offers = {}
    for line, row in cells(text_of(path, path, "prices"), path, ("cpu_model", "price"), "prices"):
        (model,) = resolve_names([row["cpu_model"]])
        if model is None:
            raise InputError(f"{path}, line {line}: '{row['cpu_model'][:60]}' does not name a CPU model")
        try:
            numbers = {name: float(row[name]) for name in _MACHINE if row.get(name)}
        except ValueError:
            numbers = {}
        if "price" not in numbers or not all(0 < value < float("inf") for value in numbers.values()):
            raise InputError(f"{path}, line {line}: price, cores and power_w must be positive numbers")
        offers[model] = numbers
    return offers


def _machines(store: JobStore) -> dict[str, dict[str, float]]:
    """Return cores and power of a machine by CPU model; cores only where all rows agree."""
    listed: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in read_table(store, REFERENCES, columns=["cpu_model", "cores", "power_w"]).to_pylist():
        if row["cores"]:
            listed[row["cpu_model"]].append(row)
    return {model: _machine(rows) for model, rows in listed.items()}


def _machine(rows: list[dict[str, Any]]) -> dict[str, float]:
    cores = {float(row["cores"]) for row in rows}
    # one name, several machines: which would be bought is unknown
    if len(cores) > 1:
        return {}
    powers = [row["power_w"] for row in rows if (row["power_w"] or 0.0) > 0]
    return {"cores": cores.pop(), **({"power_w": float(np.mean(powers))} if powers else {})}
