"""Energy of groups of jobs, measured or by the watts per core of their CPU models, and the carbon of it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from statistics import median
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import UsageError
from esjobs.core.numbers import amount, exact_percent
from esjobs.core.query import In
from esjobs.core.states import FINISHED
from esjobs.core.window import Window
from esjobs.delivered.pledges import LONG_AGO
from esjobs.delivered.sampled import Sampled, read_sampled
from esjobs.delivered.scores import Measured, measured_scores, parts, run_for
from esjobs.delivered.work import require_groupings, rows_in, span_of
from esjobs.publish.publication import newest, read_table
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.countries import country_code
from esjobs.schema.delivered import EMISSION_FACTORS, ENERGY_BY, KINDS_OF_FACTORS, POWER
from esjobs.schema.references import POWER_ERROR, REFERENCES
from esjobs.store.base import JobStore

Source = Literal["measured", "sampled", "own", "model_smt", "model", "assumed"]
SOURCES: tuple[Source, ...] = ("measured", "sampled", "own", "model_smt", "model", "assumed")
"""Origins of energy, best first: the joules of the job's record; its power series; watts per core that are
imported, of the CPU model with the SMT state of the job, of the CPU model with any, of none of them."""
ASSUMED_W, ASSUMED_ERROR = 4.9, 0.36
"""Median watts per logical core of the 40 CPU models of HEPiX that have any, and their scatter in ln."""
PROBE_ERROR = 0.15
"""Scatter in ln between machines of a CPU model whose power is measured by probes inside jobs."""
_UNCOUNTED: Mapping[str, float] = {"jobs": 0, "core_h": 0.0, "events": 0.0}
_OF_POWER = ("site", "cpu_model", "smt")
_KEYS = ("queue", "site", "country", "cpu_model", "smt", "month", "state")
_NUMBERS = (
    *("core_h", "energy_kwh", "energy_kwh_err", "gco2e", "wh_per_event", "g_per_event"),
    *("wh_per_hs23_h", "g_per_hs23_h"),
    *(f"{source}_frac" for source in SOURCES),
    *("older_factor_kwh", "no_factor_kwh"),
)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sourced:
    """Watts per core, or kWh; ``error``: standard error of ln, common to all jobs of the same ``origin``."""

    value: float
    error: float
    source: Source
    origin: tuple[object, ...]


@dataclass(frozen=True)
class Power:
    """Watts and PUE: imported ``rows``, and ``models``: (CPU model, SMT or "any") -> watts and error."""

    rows: Sequence[Row] = ()
    models: Mapping[tuple[str | None, object], tuple[float, float]] = field(default_factory=dict)

    def watts(self, job: Row, at: datetime) -> Sourced:
        """Return the watts per core of jobs with site, cpu_model and smt: imported, of the model, assumed."""
        row, model, smt = self.best("watts_per_core", job, at), job["cpu_model"], job["smt"]
        if row is not None:
            return Sourced(row["watts_per_core"], POWER_ERROR, "own", tuple(row[name] for name in _OF_POWER))
        if smt is not None and (model, smt) in self.models:
            return Sourced(*self.models[model, smt], "model_smt", (model, smt))
        if (model, "any") in self.models:
            return Sourced(*self.models[model, "any"], "model", (model,))
        return Sourced(ASSUMED_W, ASSUMED_ERROR, "assumed", (model,))

    def pue(self, job: Row, at: datetime) -> float:
        """Return the imported PUE of the site, 1 without one.

        A PUE is of a building: one that is given beside some CPU model of a site holds for all of them.
        """
        row = self.best("pue", job, at)
        if row is None:
            site = (job["site"] or "").lower()
            of_site = [
                each
                for each in self.rows
                if each["pue"] is not None and each["site"] == site and each["valid_from"] <= at
            ]
            row = max(of_site, key=itemgetter("valid_from"), default=None)
        return 1.0 if row is None else float(row["pue"])

    def best(self, column: str, job: Row, at: datetime) -> Row | None:
        """Return the imported row with a value that fits best: the most specific, of those the newest."""
        wanted = [(job["site"] or "").lower(), job["cpu_model"], job["smt"]]
        ranked = [
            # lists compare from the left: site, then CPU model, then SMT, then the date
            ([value is not None for value in has] + [row["valid_from"]], row)
            for row in self.rows
            if row[column] is not None and row["valid_from"] <= at
            for has in [[row[name] for name in _OF_POWER]]
            if all(value in (None, of_job) for value, of_job in zip(has, wanted, strict=True))
        ]
        return max(ranked, key=itemgetter(0), default=(None, None))[1]


def read_power(store: JobStore) -> Power:
    """Return imported watts and PUE, and the watts of CPU models in reference tables; two reads."""
    rows = [
        {**row, "site": row["site"] and row["site"].lower(), "valid_from": row["valid_from"] or LONG_AGO}
        for row in read_table(store, POWER).to_pylist()
    ]
    columns = ["cpu_model", "smt", "watts_per_core", "measured_by"]
    measured = read_table(store, REFERENCES, columns=columns).to_pylist()
    return Power(newest(POWER, rows), model_watts(row for row in measured if row["watts_per_core"]))


def model_watts(rows: Iterable[Row]) -> dict[tuple[str | None, object], tuple[float, float]]:
    """Return the median watts per core and their error by CPU model and SMT state, and of "any" state.

    Machines that a site measured count before probes.
    """
    groups: dict[tuple[str | None, object], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in rows:
        # twice: a job whose SMT state is unknown takes any machine of its model
        for state in (row["smt"], "any"):
            groups[row["cpu_model"], state][row["measured_by"] is None].append(row["watts_per_core"])
    return {
        key: (median(by_site), POWER_ERROR) if by_site else (median(probes), PROBE_ERROR)
        for key, (by_site, probes) in groups.items()
    }


@dataclass(frozen=True)
class Factors:
    """Emission factors of one kind in g/kWh by country code, year, and month or None."""

    values: Mapping[tuple[str, int, int | None], float] = field(default_factory=dict)

    def of(self, country: str | None, year: int, month: int) -> tuple[float, bool] | None:
        """Return a factor, and if it is an earlier year's: of the month, year, newest earlier year."""
        code = country_code(country or "")
        if code is None:
            return None
        # a month of another year has another season: only whole years stand in for later ones
        years = [of for (of_code, of, of_month) in self.values if (of_code, of_month) == (code, None)]
        earlier = max((of for of in years if of < year), default=0)
        for key in ((code, year, month), (code, year, None), (code, earlier, None)):
            if key in self.values:
                return self.values[key], key[1] < year
        return None


def read_factors(store: JobStore, kind: str) -> Factors:
    """Return the emission factors of a kind; one read. Raises :class:`UsageError` for an unknown kind."""
    if kind not in KINDS_OF_FACTORS:
        raise UsageError(f"unknown kind of factors '{kind}'; use {' or '.join(KINDS_OF_FACTORS)}")
    rows = read_table(store, EMISSION_FACTORS, [In("kind", (kind,))]).to_pylist()
    rows = sorted((row for row in rows if row["country_code"]), key=itemgetter("imported_at"))
    return Factors({(row["country_code"], row["year"], row["month"]): row["g_per_kwh"] for row in rows})


# -- sums ------------------------------------------------------------------------------------------------


@dataclass
class _Sums:
    """Sums of one group; ``of_events``, ``of_hs23``: energy in kWh, carbon in g, and events or hours."""

    n_jobs: int = 0
    core_h: float = 0.0
    gco2e: float = 0.0
    blocks: dict[tuple[object, ...], tuple[float, float]] = field(default_factory=dict)
    sources: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    factors: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    of_events: list[float] = field(default_factory=lambda: [0.0] * 3)
    of_hs23: list[float] = field(default_factory=lambda: [0.0] * 3)

    def row(self) -> dict[str, float | int | None]:
        """Return the columns of the group."""
        # in the order of the shares: that of the only source is 1 to the last digit
        energy = sum(self.sources.values())
        missing = self.factors["none"]
        sums = {
            "core_h": self.core_h,
            "energy_kwh": energy,
            # inside a block errors are common and have been added up; blocks are independent
            "energy_kwh_err": math.hypot(*(kwh * error for kwh, error in self.blocks.values())),
            "older_factor_kwh": self.factors["older"],
            "no_factor_kwh": missing,
        }
        return {
            "n_jobs": self.n_jobs,
            **{name: value or None for name, value in sums.items()},
            # 0 g without a factor would look like clean power
            "gco2e": self.gco2e if self.factors["exact"] or self.factors["older"] else None,
            **{f"{name}_frac": _ratio(self.sources[name], energy) for name in SOURCES},
            **_per("event", self.of_events, complete=not missing),
            **_per("hs23_h", self.of_hs23, complete=not missing),
        }


def _per(unit: str, sums: Sequence[float], *, complete: bool) -> dict[str, float | None]:
    kwh, grams, number = sums
    return {
        f"wh_per_{unit}": _ratio(1000 * kwh, number),
        f"g_per_{unit}": _ratio(grams, number) if complete else None,
    }


def _ratio(part: float, of: float) -> float | None:
    return part / of if of else None


def energy(
    store: JobStore,
    by: Sequence[str],
    window: Window | None,
    where: Sequence[str] = (),
    *,
    kind: str = "life_cycle",
) -> Answer:
    """Return energy and carbon per group, most energy first.

    ``energy_kwh``: the joules of jobs that have ``energy_j``, else those of their power series (see
    :func:`esjobs.records.series.energy.joules`), of the others the sum of core_h x watts per core / 1000
    (wall time, because an idle core draws power, too) and the power series of their GPUs, times PUE. Watts:
    the site's imported
    ones, else those of the CPU model in reference tables, else 4.9; ``..._frac``: share of the energy by
    source. ``energy_kwh_err``: the error of watts is common to a CPU model, those of several add in squares;
    measured energy counts as exact. ``gco2e``: energy x the emission factor of country and month,
    else of the year, else of the newest earlier year (``older_factor_kwh``), else left out
    (``no_factor_kwh``). ``wh_per_event``: energy of all jobs, failed ones too, per event of finished ones.
    ``wh_per_hs23_h``: per measured HS23-hour, of queues with a measured score. Carbon per unit is null unless
    all energy has a factor.

    Cost: one grouped query per stretch of constant watts and PUE, two where jobs have joules, and those of
    power series. Raises :class:`NoJobsError` without jobs, :class:`UsageError` for an unknown grouping or
    kind.
    """
    require_groupings("energy", by, ENERGY_BY)
    span, conditions = span_of(store, window), tuple(where)
    power, factors = read_power(store), read_factors(store, kind)
    run = run_for(store, span)
    measured = {} if run is None else measured_scores(store, run)
    groups: dict[tuple[Any, ...], _Sums] = defaultdict(_Sums)
    gpu_h = 0.0
    keys = tuple(dict.fromkeys((*by, *_KEYS)))
    for part in parts(span, (row["valid_from"] for row in power.rows)):
        sampled = read_sampled(store, keys, conditions, part)
        gpu_h += sum(row["gpu_h"] for each in (sampled.complete, sampled.gpus) for row in each.values())
        for row, used in _used(store, keys, conditions, part, power, sampled):
            sums = groups[tuple(row[name] for name in by)]
            _add(sums, row, used, factors, measured.get(row["queue"]))
    if not groups:
        query_jobs(store, [], ["jobs"], where=conditions, window=span)  # raises with the nearest span
    table = _table(by, groups)
    notes = (*_notes(table, kind, power), *_gpu_notes(store, conditions, span, gpu_h))
    return Answer(table, notes, title=f"energy by {', '.join(by) or 'all'}", run=run)


def _used(
    store: JobStore,
    keys: Sequence[str],
    where: Sequence[str],
    part: Window,
    power: Power,
    sampled: Sampled,
) -> Iterator[tuple[Row, Sourced | None]]:
    """Yield groups of jobs with their energy; None where neither joules nor core-hours are recorded."""
    metrics = ("jobs", "core_h", "events")
    recorded = any(row["energy_kwh"] is not None for row in rows_in(store, (), ("energy_kwh",), where, part))
    # two queries in place of one for all jobs, so only where some have joules
    if recorded:
        # a bound, because it holds beside every other condition on the field
        for row in rows_in(store, keys, (*metrics, "energy_kwh"), (*where, "energy_j>=0"), part):
            kwh = row["energy_kwh"] * power.pue(row, part.start)
            yield row, Sourced(kwh, 0.0, "measured", ("measured",))
        where = (*where, "energy_j is missing")
    # jobs of whose power that of GPUs alone is known are counted below, with the energy of their cores
    for groups, counted in ((sampled.complete, {}), (sampled.gpus, _UNCOUNTED)):
        for key, sums in groups.items():
            row = {**dict(zip(keys, key, strict=True)), **sums, **counted}
            kwh = sums["joules"] / 3.6e6 * power.pue(row, part.start)
            yield row, Sourced(kwh, 0.0, "sampled", ("sampled",))
    for row in rows_in(store, keys, metrics, where, part):
        _subtract(row, sampled.complete.get(tuple(row[name] for name in keys)))
        if not row["jobs"]:
            continue
        # wall time or cores are missing: a count, and no energy
        if row["core_h"] is None:
            yield row, None
            continue
        watts = power.watts(row, part.start)
        kwh = row["core_h"] * watts.value * power.pue(row, part.start) / 1000
        yield row, replace(watts, value=kwh)


def _subtract(row: dict[str, Any], other: Row | None) -> None:
    """Take jobs out of a group."""
    if other is None:
        return
    for name in ("jobs", "core_h", "events"):
        if row[name] is not None:
            row[name] = max(row[name] - other[name], 0)


def _add(sums: _Sums, row: Row, used: Sourced | None, factors: Factors, score: Measured | None) -> None:
    sums.n_jobs += row["jobs"]
    if used is None:
        return
    kwh, core_h = used.value, row["core_h"] or 0.0
    sums.core_h += core_h
    sums.blocks[used.origin] = sums.blocks.get(used.origin, (0.0, 0.0))[0] + kwh, used.error
    sums.sources[used.source] += kwh
    # of the month of the end: jobs are short beside it
    factor = factors.of(row["country"], int(row["month"][:4]), int(row["month"][5:]))
    grams, older = factor or (0.0, False)
    sums.factors["none" if factor is None else "older" if older else "exact"] += kwh
    sums.gco2e += kwh * grams
    events = row["events"] if row["state"] in FINISHED else None
    _add_to(sums.of_events, kwh, kwh * grams, events or 0.0)
    # an HS06-hour is another amount of work
    if score is not None and score.benchmark == "HS23":
        _add_to(sums.of_hs23, kwh, kwh * grams, core_h * score.score)


def _add_to(sums: list[float], *values: float) -> None:
    sums[:] = [total + value for total, value in zip(sums, values, strict=True)]


def _table(by: Sequence[str], groups: Mapping[tuple[Any, ...], _Sums]) -> pa.Table:
    rows = [dict(zip(by, key, strict=True)) | sums.row() for key, sums in groups.items()]
    rows.sort(key=lambda row: (-(row["energy_kwh"] or 0.0), *(str(row[name]) for name in by)))
    names = [(name, pa.string()) for name in by]
    columns = [*names, *((name, pa.float64()) for name in _NUMBERS), ("n_jobs", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _gpu_notes(store: JobStore, where: Sequence[str], span: Window, sampled_h: float) -> Iterator[str]:
    for row in rows_in(store, (), ("gpu_h",), (*where, "energy_j is missing"), span):
        # rounding leaves a rest of equal sums
        if (left := (row["gpu_h"] or 0.0) - sampled_h) > 1e-6 * sampled_h:
            yield f"without the power of GPUs: {amount(left)} GPU-hours of jobs without joules"


def _notes(table: pa.Table, kind: str, power: Power) -> Iterator[str]:
    yield f"emission factors: {kind}"
    if not any(row["pue"] for row in power.rows):
        yield "power of computers only (PUE 1); import PUE: esjobs ingest power"
    else:
        yield "sites without an imported PUE count with PUE 1"
    energy = table["energy_kwh"]
    parts_of_it = {
        "is measured by power series of sockets, memory and GPUs": pc.multiply(table["sampled_frac"], energy),
        f"assumes {ASSUMED_W} W per core": pc.multiply(table["assumed_frac"], energy),
        "has no emission factor; gco2e excludes it": table["no_factor_kwh"],
        "uses the factor of an earlier year": table["older_factor_kwh"],
    }
    for what, column in parts_of_it.items():
        if kwh := pc.sum(column).as_py():
            yield f"{exact_percent(kwh / pc.sum(energy).as_py())} of the energy {what}"
