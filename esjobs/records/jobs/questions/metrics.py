"""The numbers that ``esjobs query`` gives, each defined once: formula, unit, weight, what it leaves out."""

import difflib
import re
from dataclasses import dataclass

from esjobs.core import fields
from esjobs.core.errors import UsageError
from esjobs.core.query import Either, In, Maximum, Minimum, Missing, NotIn, Quantile
from esjobs.core.states import ALL_STATES, CANCELLED, FAILED, FINISHED
from esjobs.records.jobs.questions.formulas import (
    Amount,
    Difference,
    Formula,
    OfJobs,
    OfScores,
    Ratio,
    Spread,
    Total,
)

_FAILED = (In("state", FAILED),)
_CANCELLED = (In("state", CANCELLED),)
# No state, or one that the catalogue does not know.
_UNKNOWN = (Either((Missing("state"), NotIn("state", ALL_STATES))),)
_ENDED = (In("state", (*FINISHED, *FAILED)),)
_HOUR = 1 / 3600
_KWH = 1 / 3.6e6
_GB = 1e-9
_MB = 1e-6


@dataclass(frozen=True)
class QueryMetric:
    """A number that ``esjobs query`` gives.

    ``weight``: of a job; empty for sums. ``leaves_out``: the jobs that do not count. ``scale``: from base
    units to ``unit``.
    """

    name: str
    unit: str
    meaning: str
    formula: Formula
    weight: str = ""
    leaves_out: str = ""
    scale: float = 1.0

    @property
    def adds_up(self) -> bool:
        """True if groups together have the sum of theirs: the base of shares."""
        return isinstance(self.formula, Total | Difference)

    @property
    def has_error(self) -> bool:
        """True if there is a standard error."""
        return isinstance(self.formula, Total | Difference | Ratio)


def _sum(name: str, field: str, unit: str, meaning: str, scale: float = 1.0) -> QueryMetric:
    return QueryMetric(name, unit, meaning, Total(Amount((field,))), leaves_out=_without(field), scale=scale)


def _sum_of(name: str, unit: str, meaning: str, formula: Formula, leaves_out: str) -> QueryMetric:
    return QueryMetric(
        name, unit, meaning, formula, leaves_out=leaves_out, scale=_HOUR if unit == "core h" else 1.0
    )


def _ratio(
    name: str,
    unit: str,
    meaning: str,
    over: str,
    under: str,
    *,
    also: tuple[str, ...] = (),
    scale: float = 1.0,
) -> QueryMetric:
    having = (over, under, *also)
    formula = Ratio(Amount((over,), having), Amount((under,), having))
    excluded = _without(*dict.fromkeys(part for name in having for part in _stored(name)))
    return QueryMetric(name, unit, meaning, formula, f"its {under}", excluded, scale)


def _mean(name: str, unit: str, meaning: str, field: str, scale: float = 1.0) -> QueryMetric:
    formula = Ratio(Amount((field,)), Amount((), (field,)))
    return QueryMetric(name, unit, meaning, formula, "1", _without(field), scale)


def _of_jobs(
    name: str, unit: str, meaning: str, part: Quantile | Minimum | Maximum, scale: float = 1.0
) -> QueryMetric:
    return QueryMetric(name, unit, meaning, OfJobs(part), "1", _without(part.field), scale)


def _without(*names: str) -> str:
    return f"jobs without {' or '.join(names)}"


def _stored(name: str) -> tuple[str, ...]:
    derived = fields.field(name).derived
    return (*derived.over, *derived.under) if isinstance(derived, fields.Quotient) else (name,)


_STATES = "jobs that neither finished nor failed: cancelled, unknown"
_NO_STATE = "jobs whose state is missing or unknown"

METRICS: tuple[QueryMetric, ...] = (
    QueryMetric("jobs", "jobs", "number of jobs", Total(Amount())),
    _sum("events", "events", "events", "sum of events"),
    _sum("cpu_h", "cpu_s", "h", "sum of CPU time", _HOUR),
    _sum("wall_h", "wall_s", "h", "sum of wall-clock time", _HOUR),
    _sum("core_h", "core_s", "core h", "sum of wall-clock time x cores", _HOUR),
    _sum("gpu_h", "gpu_s", "GPU h", "sum of wall-clock time x GPUs", _HOUR),
    _sum("energy_kwh", "energy_j", "kWh", "sum of measured energy", _KWH),
    QueryMetric(
        "gpu_efficiency",
        "",
        "mean busy GPUs over requested, of scored jobs: gpus_used_frac",
        OfScores("gpus_used_frac", "gpu_h"),
        "its gpu_h",
        "scored jobs with GPUs of unknown load",
    ),
    _ratio("j_per_event", "J", "sum of measured energy over sum of events", "energy_j", "events"),
    _ratio("efficiency", "", "sum of CPU time over sum of wall-clock time x cores", "cpu_s", "core_s"),
    _ratio("cpu_s_per_event", "s", "sum of CPU time over sum of events", "cpu_s", "events"),
    _mean("events_per_job", "events", "mean events of a job", "events"),
    _sum("hs06_h", "hs06_s", "HS06 h", "normalised work; contains the declared corepower", _HOUR),
    _sum_of(
        "idle_core_h",
        "core h",
        "core hours without CPU time: core_h x (1 - efficiency) over the jobs that have both",
        Difference(("core_s",), ("cpu_s",)),
        _without("cpu_s", "wall_s", "cores"),
    ),
    _sum_of(
        "failed",
        "jobs",
        f"number of failed jobs: state {', '.join(FAILED)}",
        Total(Amount((), (), _FAILED), _UNKNOWN),
        _NO_STATE,
    ),
    _sum_of(
        "cancelled",
        "jobs",
        f"number of cancelled jobs: state {', '.join(CANCELLED)}",
        Total(Amount((), (), _CANCELLED), _UNKNOWN),
        _NO_STATE,
    ),
    _sum_of(
        "spare_core_h",
        "core h",
        "core hours beyond one core: with cores>1 and busy_cores<=1.1 what one core would save",
        Difference(("core_s",), ("wall_s",)),
        _without("wall_s", "cores"),
    ),
    _sum_of(
        "blocked_core_h",
        "core h",
        "core hours of 2 GB for the memory of jobs, less their cores: with mem_per_core_b>2GB the slots that "
        "memory blocks",
        # 2 GB a core: what sites of WLCG commonly provide
        Difference(("max_rss_b", "wall_s"), ("core_s",), 1 / (2 * 1e9)),
        _without("max_rss_b", "wall_s", "cores"),
    ),
    QueryMetric(
        "failure_rate",
        "",
        "failed jobs over those that finished or failed",
        Ratio(Amount((), (), _FAILED), Amount((), (), _ENDED)),
        "1",
        _STATES,
    ),
    _sum_of(
        "lost_core_h",
        "core h",
        "core hours of failed jobs",
        Total(Amount(("core_s",), (), _FAILED), _UNKNOWN),
        f"{_NO_STATE}; failed {_without('wall_s', 'cores')}",
    ),
    _sum_of(
        "cancelled_core_h",
        "core h",
        "core hours of cancelled jobs, which are not among those lost",
        Total(Amount(("core_s",), (), _CANCELLED), _UNKNOWN),
        f"{_NO_STATE}; cancelled {_without('wall_s', 'cores')}",
    ),
    QueryMetric(
        "lost_share",
        "",
        "core hours of failed jobs over those of jobs that finished or failed",
        Ratio(Amount(("core_s",), (), _FAILED), Amount(("core_s",), (), _ENDED)),
        "its core_s",
        f"{_STATES}; {_without('wall_s', 'cores')}",
    ),
    _sum("retries", "failed_attempts", "attempts", "attempts that failed before these jobs"),
    _mean("retries_per_job", "attempts", "mean number of failed attempts before a job", "failed_attempts"),
    _mean("mem_per_core_gb", "GB", "mean over jobs of the largest memory per core", "mem_per_core_b", _GB),
    _of_jobs(
        "mem_per_core_p95_gb",
        "GB",
        "memory per core that 95 % of the jobs stay below",
        Quantile("mem_per_core_b", 0.95, ""),
        _GB,
    ),
    _of_jobs(
        "mem_per_core_max_gb", "GB", "memory per core of the largest job", Maximum("mem_per_core_b", ""), _GB
    ),
    _mean("waiting_s", "s", "mean time between submission and start", "queue_s"),
    _of_jobs(
        "waiting_median_s", "s", "median time between submission and start", Quantile("queue_s", 0.5, "")
    ),
    _of_jobs(
        "waiting_p95_s",
        "s",
        "time between submission and start that 95 % of the jobs stay below",
        Quantile("queue_s", 0.95, ""),
    ),
    _ratio(
        "time_used",
        "",
        "wall-clock time over that requested; above 1: jobs ran past it",
        "wall_s",
        "requested_wall_s",
    ),
    _ratio(
        "memory_used",
        "",
        "largest resident memory over the memory requested",
        "max_rss_b",
        "requested_memory_b",
    ),
    _mean("stagein_mean_s", "s", "mean time spent fetching input", "stagein_s"),
    _mean("stageout_mean_s", "s", "mean time spent storing output", "stageout_s"),
    _ratio("stagein_share", "", "time spent fetching input over wall-clock time", "stagein_s", "wall_s"),
    _ratio("stageout_share", "", "time spent storing output over wall-clock time", "stageout_s", "wall_s"),
    _ratio("read_mb_s", "MB/s", "bytes read over wall-clock time", "read_b", "wall_s", scale=_MB),
    _ratio("written_mb_s", "MB/s", "bytes written over wall-clock time", "written_b", "wall_s", scale=_MB),
)
"""Every metric with a name of its own, in the order of the documentation."""

GENERIC = {
    "sum": "sum",
    "mean": "mean over jobs",
    "median": "median over jobs",
    "pNN": "percentile over jobs: p95, p99.9",
    "min": "smallest value of a job",
    "max": "largest value of a job",
    "sd": "standard deviation over jobs, with n - 1 below",
    "sem": "standard error of the mean",
}
"""Functions that ``FUNCTION:FIELD`` accepts for any number of the catalogue."""

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?|100)")


def metric(name: str) -> QueryMetric:
    """Look a metric up, or raise :class:`UsageError` that lists them all.

    >>> metric("p95:queue_s").meaning
    'percentile over jobs: 95 % of them stay below'
    """
    for candidate in METRICS:
        if candidate.name == name:
            return candidate
    # names of their own first: none of them has a colon
    function, colon, field = name.partition(":")
    if colon:
        return _generic(name, function, field)
    close = difflib.get_close_matches(name, [each.name for each in METRICS], n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    listed = ", ".join(each.name for each in METRICS)
    raise UsageError(
        f"unknown metric '{name}'{hint}; use one of {listed}, or FUNCTION:FIELD for any number, such as "
        "median:wall_s"
    )


def _generic(name: str, function: str, field: str) -> QueryMetric:
    requested = fields.field(field)
    if requested.type not in ("integer", "number"):
        raise UsageError(f"'{field}' is not numeric, so it has no {function}; list fields: esjobs fields")
    unit, of = requested.unit, requested.name
    if function == "sum":
        return _sum(name, of, unit, GENERIC[function])
    if function == "mean":
        return _mean(name, unit, GENERIC[function], of)
    if function in ("min", "max"):
        return _of_jobs(name, unit, GENERIC[function], (Minimum if function == "min" else Maximum)(of, ""))
    if function in ("sd", "sem"):
        spread = Spread(of, "sd" if function == "sd" else "sem")
        return QueryMetric(name, unit, GENERIC[function], spread, "1", _without(of))
    # p50 of a store is its median
    percentile = _PERCENTILE.fullmatch("p50" if function == "median" else function)
    if percentile is None:
        raise UsageError(f"unknown function '{function}'; use one of: {', '.join(GENERIC)}")
    quantile = Quantile(of, float(percentile[1]) / 100, "")
    meaning = f"percentile over jobs: {percentile[1]} % of them stay below"
    return _of_jobs(name, unit, meaning, quantile)
