"""Declared corepower of queues, sites and CPU models, and its origin.

A declared corepower is a benchmark score per core (HS06 or HS23). It is imported with a date, or it follows
from the records themselves, because ``hs06_s = wall x cores x corepower`` holds a queue's declared value. A
default of the information system (10.0) or of the accounting (12.0) declares nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeVar

from esjobs.records.names.sites import Site
from esjobs.schema.declared import QUEUES, RECORDS

_Value = TypeVar("_Value")
Origin = Literal["own", "inherited", "default", "changed", "mean", "reference", "none"]

DEFAULTS = (10.0, 12.0)
"""Values that information systems fill in where nobody declared any: CRIC 10, APEL 12."""
DEFAULT_TOLERANCE = 0.02
"""A table was seen that serves a queue 10.01: still the default."""
SERVED_DEFAULTS = (*DEFAULTS, 10.01)
"""Values that records of queues without a declaration carry."""
WORK_UNIT = 1.0
"""Normalised work is kept in whole units, rounded or cut off: by up to one unit of each job."""
SAME_VALUE = 1e-3
"""Relative difference below which two declarations are the same (records give three digits)."""
CHANGED_SPREAD = 2e-3
"""Relative scatter of a queue's value above which it has changed inside the window; rounding stays below."""
LEAST_DECLARED = 0.5
"""Share of the core time of a site for which its queues must declare a value, so that it has one."""
DISAGREEMENT = 0.01
"""Relative difference between the imported value and the records above which both are shown."""
CORE_RATIOS = (2.0, 4.0, 8.0, 16.0)
"""Ratios of two values of one queue on the same days that wrong core counts make: 8-core jobs as 4."""
RATIO_TOLERANCE = 0.02


@dataclass(frozen=True)
class Declaration:
    """One imported row. ``corepower`` None: the table names the queue but declares nothing for it."""

    name: str
    corepower: float | None
    benchmark: str
    valid_from: datetime
    site: str | None = None
    parent_corepower: float | None = None
    source: str = ""
    country: str | None = None


@dataclass(frozen=True)
class RecordedValue:
    """Benchmark per core implied by the jobs of one queue that have normalised work, wall time and cores.

    ``work``: sum of hs06_s, ``core_s``: of wall x cores; the others are sums of squares and of the product.
    ``values_ratio``: ratio of two values on the same days, in jobs of different core counts; None without.
    """

    n_jobs: int
    work: float
    core_s: float
    work_sq: float
    work_core_s: float
    core_s_sq: float
    values_ratio: float | None = None

    @property
    def value(self) -> float:
        """Core-second mean of the declared corepower."""
        return self.work / self.core_s

    @property
    def spread(self) -> float:
        """Relative scatter over jobs, weighted by squared core seconds, less rounding (1/12 per job)."""
        value = self.value
        # sum((w - v c)^2), multiplied out; a rounded whole number has the variance 1/12
        residual = self.work_sq - 2 * value * self.work_core_s + value**2 * self.core_s_sq
        noise = self.n_jobs / 12
        # differences of sums of squares have some 16 digits
        roundoff = 1e-13 * self.work_sq
        if residual <= noise + roundoff or value <= 0:
            return 0.0
        return math.sqrt((residual - noise) / self.core_s_sq) / value

    @property
    def changed(self) -> bool:
        """True if jobs carry several values that wrong core counts do not explain."""
        return self.values_ratio is None and self.spread > CHANGED_SPREAD


@dataclass(frozen=True)
class Declared:
    """The declared corepower of a name in one window; None if there is none.

    ``from_records`` is set where it differs from the imported value by more than 1 %. ``parent`` is shown
    beside a default and never replaces it. ``values_ratio``: of a value that follows from records, the ratio
    of the two values that its jobs carry on the same days, where wrong core counts explain it. ``error``:
    relative, of a published score that tables give a range for. ``note``: why they give no value.
    ``before``: another value that was imported and in force when the window began.
    """

    name: str
    corepower: float | None
    benchmark: str | None
    origin: Origin
    site: str
    site_guessed: bool
    from_records: float | None = None
    parent: float | None = None
    source: str = ""
    country: str | None = None
    values_ratio: float | None = None
    error: float = 0.0
    note: str = ""
    before: float | None = None

    @property
    def changed(self) -> bool:
        """True if several values were in force inside the window, by the records or by dates of imports."""
        return self.origin == "changed" or self.before is not None

    @property
    def usable(self) -> bool:
        """True if a line may rest on the value: no default, and not the mean of two at once."""
        return self.origin != "default" and self.values_ratio is None

    def settles(self, row: Mapping[str, object]) -> bool:
        """True if an imported row is the one in force."""
        return (row["corepower"], row["source"]) == (self.corepower, self.source)


def is_default(value: float, core_s_per_job: float | None = None) -> bool:
    """True if a value is one that systems fill in where nobody declared any.

    ``core_s_per_job``: mean wall time x cores of a job, of a value from records: it limits which defaults
    they allow (9.98 from jobs of 9000 core seconds excludes 10). An imported value is a default within 0.02.

    >>> is_default(10.01), is_default(12.0), is_default(10.4), is_default(9.98, 9000.0)
    (True, True, False, False)
    """
    if core_s_per_job is None:
        # 10.02 - 10 is a little more than 0.02 in binary
        return any(abs(value - default) <= DEFAULT_TOLERANCE + 1e-12 for default in DEFAULTS)
    return any(abs(value - default) * core_s_per_job <= WORK_UNIT + 1e-9 for default in SERVED_DEFAULTS)


def same_value(left: float | None, right: float | None, tolerance: float = SAME_VALUE) -> bool:
    """True if two declarations agree to the digits that records keep; False if one is missing."""
    if left is None or right is None:
        return False
    return abs(left - right) <= tolerance * max(abs(left), abs(right))


def newest_valid(rows: Iterable[Declaration], at: datetime) -> Declaration | None:
    """Return the row with the latest ``valid_from`` before ``at``, the last one of equal rows."""
    best: Declaration | None = None
    for row in rows:
        # rows come oldest import first: of equal dates the newest import wins
        if row.valid_from < at and (best is None or row.valid_from >= best.valid_from):
            best = row
    return best


def site_named(rows: Iterable[Declaration], at: datetime) -> str | None:
    """The site in the newest valid row that names one: a later table of values alone takes none away."""
    row = newest_valid((row for row in rows if row.site), at)
    return row.site if row else None


def country_named(rows: Iterable[Declaration], at: datetime) -> str | None:
    """The country in the newest valid row that names one."""
    row = newest_valid((row for row in rows if row.country), at)
    return row.country if row else None


def declare(
    name: str,
    imported: Declaration | None,
    recorded: RecordedValue | None,
    *,
    site: Site,
    site_values: Mapping[str, float],
    records_benchmark: str = "HS06",
    before: Declaration | None = None,
) -> Declared:
    """Settle the value that one name declares, and its origin: none, default, changed, inherited or own.

    ``site_values``: the value of each site itself, to tell an inherited value from the queue's own.
    ``before``: the imported row in force when the window began.
    """
    # jobs that record a work of 0 had no declared value
    from_jobs = recorded.value if recorded and recorded.core_s > 0 and recorded.work > 0 else None
    parent = _first((imported.parent_corepower if imported else None, site_values.get(site.name)))
    if imported and imported.corepower is not None:
        value: float | None = imported.corepower
        benchmark, source = imported.benchmark, imported.source
        disagrees = from_jobs is not None and not same_value(from_jobs, value, DISAGREEMENT)
        from_records = from_jobs if disagrees else None
    else:
        value, benchmark, source, from_records = from_jobs, records_benchmark, RECORDS, None
    # not <= 0, so that NaN declares nothing either
    if value is None or not value > 0:
        return Declared(name, None, None, "none", *site, parent=parent)
    from_records_only = recorded if source == RECORDS else None
    origin = _origin(value, parent, from_records_only)
    values_ratio = None if from_records_only is None else from_records_only.values_ratio
    return Declared(
        *(name, value, benchmark, origin, *site, from_records, parent, source),
        values_ratio=values_ratio,
        before=_other_before(value, before) if source != RECORDS else None,
    )


def _other_before(value: float, before: Declaration | None) -> float | None:
    """Return the value that an imported one replaced, None where it declares the same or nothing."""
    if before is None or before.corepower is None or is_default(before.corepower):
        return None
    return None if same_value(before.corepower, value, DISAGREEMENT) else before.corepower


def declare_site(name: str, queues: Sequence[tuple[Declared, float]], *, guessed: bool) -> Declared:
    """Settle the value of a site: the mean of what its queues declare, weighted with their core time.

    ``queues``: each with its core seconds. Values of one benchmark count, that of most core time; defaults
    declare nothing. The origin is ``own`` if all declare one value, else ``mean``, or ``changed`` if one of
    them changed.
    """
    total = _core_s(queues)
    having = [part for part in queues if part[0].corepower is not None]
    # defaults declare nothing, unless hardly any queue of the site declares something
    parts = _of_one_benchmark([part for part in having if part[0].origin != "default"])
    if not parts or _core_s(parts) < LEAST_DECLARED * total:
        parts = _of_one_benchmark([part for part in having if part[0].origin == "default"])
    parent = _first(declared.parent for declared, _ in queues)
    country = _first(declared.country for declared, _ in queues)
    weight = _core_s(parts)
    if not weight or weight < LEAST_DECLARED * total:
        return Declared(name, None, None, "none", name, guessed, parent=parent, country=country)
    value = math.fsum((declared.corepower or 0.0) * core_s for declared, core_s in parts) / weight
    one = parts[0][0]
    origin = _origin_of_site([declared for declared, _ in parts])
    values_ratio = _first(declared.values_ratio for declared, _ in queues)
    settled = Declared(
        name, value, one.benchmark, origin, name, guessed, None, parent, QUEUES, country, values_ratio
    )
    return replace(settled, before=_mean_before(parts))


def _core_s(parts: Iterable[tuple[Declared, float]]) -> float:
    return math.fsum(core_s for _, core_s in parts)


def _first(values: Iterable[_Value | None]) -> _Value | None:
    return next((value for value in values if value is not None), None)


def _mean_before(parts: Sequence[tuple[Declared, float]]) -> float | None:
    """Return the mean of what queues declared when the window began; None if none of them changed."""
    if all(declared.before is None for declared, _ in parts):
        return None
    values = [(declared.before or declared.corepower or 0.0, core_s) for declared, core_s in parts]
    return math.fsum(value * core_s for value, core_s in values) / _core_s(parts)


def _origin_of_site(queues: Sequence[Declared]) -> Origin:
    origins = {declared.origin for declared in queues}
    # a site of nothing but defaults declares nothing itself
    if origins == {"default"} or "changed" in origins:
        return "changed" if "changed" in origins else "default"
    same = all(same_value(declared.corepower, queues[0].corepower) for declared in queues)
    return "own" if same else "mean"


def _of_one_benchmark(parts: Sequence[tuple[Declared, float]]) -> list[tuple[Declared, float]]:
    seconds: dict[str, float] = {}
    for declared, core_s in parts:
        seconds[declared.benchmark or ""] = seconds.get(declared.benchmark or "", 0.0) + core_s
    # sorted first: of equal sums the same benchmark wins every night
    most = max(sorted(seconds), key=lambda benchmark: seconds[benchmark], default="")
    return [part for part in parts if (part[0].benchmark or "") == most]


def _origin(value: float, parent: float | None, recorded: RecordedValue | None) -> Origin:
    # ``recorded``: of a value that follows from records
    per_job = None if recorded is None else recorded.core_s / recorded.n_jobs
    if is_default(value, per_job):
        return "default"
    if recorded is not None and recorded.changed:
        return "changed"
    return "inherited" if same_value(value, parent) else "own"


def is_core_ratio(ratio: float) -> bool:
    """True if two values differ as they do where jobs are recorded with wrong core counts.

    >>> is_core_ratio(1.99), is_core_ratio(0.25), is_core_ratio(1.5)
    (True, True, False)
    """
    return any(abs(max(ratio, 1 / ratio) / each - 1) <= RATIO_TOLERANCE for each in CORE_RATIOS)
