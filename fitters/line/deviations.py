"""Points, entries and leave-one-group-out deviations of a line through the origin."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from fitters.errors import InputError
from fitters.layout.arrays import Codes, Floats, Mask, Texts, texts
from fitters.layout.columns import factorise, read_numbers
from fitters.layout.table import Table
from fitters.line.declarations import DeclarationMixture

LEAST_ENTRIES = 3
SURE = 0.95  # Probability of a verdict: above it a declaration is off, below 1 - SURE it is not
_HALF_WIDTH_90 = 1.6448536269514722  # Of a normal, in standard errors
_ENTRY_SCATTER = 0.05  # Of the points of one entry, relative


@dataclass(frozen=True, eq=False)
class LinePoints(Table):
    """One row per input point, in the order of the input."""

    name: Texts  # As given, otherwise 0, 1, ...
    expected_k: Floats  # s_(-g) c: what the line through the other groups expects
    # deviation, deviation_err: d = k / expected_k - 1, and (1 + d) sqrt((k_err / k)^2 + (c_err / c)^2 +
    # sigma_line^2)
    deviation: Floats
    deviation_err: Floats
    # Probability that the declared value is off by more than the limit; NaN for points outside the line
    p_off: Floats
    # ``deviates``: p_off > 0.95; ``ok``: p_off < 0.05, and the 90 % interval of the deviation within the
    # limit; ``undecided``: all between, or a line of too few groups; empty without p_off.
    verdict: Texts
    significant: Mask  # Verdict ``deviates`` of a line that can be trusted
    # equivalent_c, equivalent_c_err: k / s_(-g): the value that the others would declare for such a k, and
    # its standard error: that of k and that of the line. Also for points without a declared value.
    equivalent_c: Floats
    equivalent_c_err: Floats
    # proposed_c, proposed_c_err: The same where the verdict is ``deviates``, otherwise NaN
    proposed_c: Floats
    proposed_c_err: Floats
    in_line: Mask  # True if the point is part of the line
    status: Texts  # ``ok``, ``no k``, ``no k error``, ``no declared value`` or ``no line``
    reason: Texts
    # equivalent_low, equivalent_high: The 90 % interval of `equivalent_c`, symmetric in its logarithm
    equivalent_low: Floats
    equivalent_high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LineEntries:
    """Points of one group with one declared value, averaged."""

    group: Codes
    y: Floats
    variance: Floats
    k: Floats
    c: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LineColumns:
    """Columns of a line: speed ``k``, declared ``c``, their errors, the group (site) and name of each point.

    ``measured``, ``declared``: points with usable values; ``used``: those that the line is fitted to.
    """

    k: Floats
    k_err: Floats
    c: Floats
    c_err: Floats
    group: Codes
    name: Texts
    measured: Mask
    declared: Mask
    used: Mask

    @classmethod
    def read(
        cls, k: object, k_err: object, c: object, c_err: object, group: object, name: Any, in_line: object
    ) -> "LineColumns":
        """Check and convert columns; raises :class:`InputError` for unequal lengths and no points."""
        n = len(k) if isinstance(k, Sized) else 1
        if n == 0:
            raise InputError("no points; at least one is required")
        speed, speed_err = read_numbers(k, "k", n), read_numbers(k_err, "k_err", n)
        declared = read_numbers(c, "c", n)
        declared_err = np.zeros(n) if c_err is None else read_numbers(c_err, "c_err", n)
        codes = np.full(n, -1, np.int32) if group is None else factorise(group, "group").codes.copy()
        # a point without a group is one of its own
        lone = codes < 0
        codes[lone] = codes.max(initial=-1) + 1 + np.arange(int(lone.sum()), dtype=np.int32)
        names = np.empty(n, object)
        labels = list(range(n)) if name is None else list(name)
        wanted = np.ones(n, bool) if in_line is None else read_numbers(in_line, "in_line", n) == 1
        for what, length in (("group", codes.size), ("name", len(labels))):
            if length != n:
                raise InputError(f"{what} has {length} rows, k has {n}; they must be equal")
        names[:] = labels
        # an error a million times the value says nothing, and its square would leave the range
        has_k = _sensible(speed) & np.isfinite(speed_err) & (speed_err >= 0) & (speed_err / 1e6 <= speed)
        has_c = _sensible(declared) & np.isfinite(declared_err) & (declared_err >= 0)
        has_c &= declared_err / 1e6 <= declared
        return cls(
            speed, speed_err, declared, declared_err, codes, names, has_k, has_c, has_k & has_c & wanted
        )

    def ln_variance(self, rows: Mask) -> Floats:
        """Return the error variance of ln(k / c)."""
        return (self.k_err[rows] / self.k[rows]) ** 2 + (self.c_err[rows] / self.c[rows]) ** 2


def _sensible(values: Floats) -> Mask:
    return (values >= 1e-100) & (values <= 1e100)


def line_entries(columns: LineColumns) -> LineEntries:
    """Return the points of a line as entries: those of a site with one declared value are one of them."""
    used = columns.used
    y = np.log(columns.k[used] / columns.c[used])
    variance = columns.ln_variance(used)
    weight = 1.0 / (variance + _ENTRY_SCATTER**2)
    # Values that follow from records agree to three digits only: as declarations they are one.
    digit = 10.0 ** (np.floor(np.log10(columns.c[used])) - 2)
    keys = np.stack(
        [columns.group[used].astype(np.float64), np.rint(columns.c[used] / digit) * digit], axis=1
    )
    distinct, index = np.unique(keys, axis=0, return_inverse=True)
    index, size = index.ravel(), distinct.shape[0]
    total = np.bincount(index, weight, size)
    mean = np.bincount(index, weight * y, size) / total
    return LineEntries(
        group=distinct[:, 0].astype(np.int32),
        y=mean,
        variance=np.bincount(index, weight**2 * variance, size) / total**2,
        k=np.exp(mean) * distinct[:, 1],
        c=distinct[:, 1],
    )


def line_points(
    columns: LineColumns,
    entries: LineEntries,
    mixture: DeclarationMixture | None,
    limit: float,
    *,
    n_groups: int,
    min_groups: int,
    trusted: bool,
) -> LinePoints:
    """Return one row per point, compared with the line through the other groups.

    ``mixture``: None if there are too few entries for a line. ``trusted``: the line tells who is wrong.
    """
    n = columns.k.size
    linked, (mean, error) = np.zeros(n, np.bool_), np.full((2, n), np.nan)
    if mixture is not None:
        n_codes = int(columns.group.max()) + 1
        in_group = np.bincount(entries.group, minlength=n_codes)
        # a line without its own group needs two entries, too
        linked = entries.y.size - in_group[columns.group] >= 2
        mean, error = (each[columns.group] for each in mixture.lines_without(entries.group, n_codes))
    has_line = columns.measured & linked
    rows = has_line & columns.declared
    expected, d, d_err, equivalent, equivalent_err = (np.full(n, np.nan) for _ in range(5))
    expected[linked & columns.declared] = (np.exp(mean) * columns.c)[linked & columns.declared]
    d[rows] = columns.k[rows] / expected[rows] - 1.0
    d_err[rows] = (1.0 + d[rows]) * np.sqrt(columns.ln_variance(rows) + error[rows] ** 2)
    equivalent[has_line] = columns.k[has_line] / np.exp(mean[has_line])
    relative = np.hypot(columns.k_err[has_line] / columns.k[has_line], error[has_line])
    equivalent_err[has_line] = equivalent[has_line] * relative
    p_off, judged = np.full(n, np.nan), rows & columns.used
    if mixture is not None and judged.any():
        y = np.log(columns.k[judged] / columns.c[judged])
        p_off[judged] = mixture.p_off(y, columns.ln_variance(judged), limit)
    status, reason = _states(columns, linked)
    verdict = texts(n)
    verdict[np.isfinite(p_off)] = "undecided"
    if n_groups >= min_groups:
        verdict[p_off > SURE] = "deviates"
        inside = np.abs(d) + _HALF_WIDTH_90 * d_err < limit
        verdict[(p_off < 1.0 - SURE) & inside] = "ok"
    else:
        reason[rows] = f"the line has {n_groups} groups; a verdict requires {min_groups}"
    deviating = verdict == "deviates"
    half_width = _HALF_WIDTH_90 * equivalent_err / equivalent
    return LinePoints(
        name=columns.name,
        expected_k=expected,
        deviation=d,
        deviation_err=d_err,
        p_off=p_off,
        verdict=verdict,
        significant=np.asarray(deviating & trusted, np.bool_),
        equivalent_c=equivalent,
        equivalent_c_err=equivalent_err,
        proposed_c=np.where(deviating, equivalent, np.nan),
        proposed_c_err=np.where(deviating, equivalent_err, np.nan),
        in_line=columns.used.copy(),
        status=status,
        reason=reason,
        equivalent_low=equivalent * np.exp(-half_width),
        equivalent_high=equivalent * np.exp(half_width),
    )


def _states(columns: LineColumns, linked: Mask) -> tuple[Texts, Texts]:
    status, reason = texts(linked.size, "ok"), texts(linked.size)
    # of several states the last one stays: the most basic
    for state, why, hit in (
        ("no line", "fewer than 3 entries, or fewer than 2 without its own group", ~linked),
        ("no declared value", "the declared value is missing or not positive", ~columns.declared),
        ("no k error", "no error of the speed factor", ~columns.measured),
        ("no k", "the speed factor is missing or not positive", ~_sensible(columns.k)),
    ):
        status[hit], reason[hit] = state, why
    return status, reason
