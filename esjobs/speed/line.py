"""Factors against declared corepower: a line through the origin per fit and benchmark."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import fitters
from esjobs.core.numbers import percent
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.core.words import noun
from esjobs.publish.publication import Outcome, finite, rows_table
from esjobs.records.declared.origin import Declared
from esjobs.schema.speed import LINES
from esjobs.speed.factors import Factors
from esjobs.speed.judging.verdicts import MIN_LINE_SITES
from fitters.layout.arrays import Floats, Ints

Declarations = Mapping[str, Mapping[str, Declared]]  # Level, then name, to what the name declares


@dataclass(frozen=True)
class Comparison:
    """Names of one fit with a common benchmark, and their line.

    ``places``: positions in the factors, aligned with the points of ``line`` and of ``raw``, the line without
    correction for start-up time. Only names with a factor in the largest component take part; names without a
    declaration are compared with the line of most names. ``reason``: why no verdict may rest on the line, or
    None. ``doubt``: why the line does not tell who is wrong, or empty; then no verdict is cleared to send.
    """

    benchmark: str
    places: np.ndarray
    line: fitters.LineResult
    raw: fitters.LineResult
    reason: str | None
    doubt: str = ""


def compare_with_declared(
    factors: Factors, declared: Mapping[str, Declared], limit: float
) -> list[Comparison]:
    """Fit one line per benchmark to the names of the largest component.

    Defaults, names that few jobs, or CPU models alone, link with most others, and those whose records are in
    doubt get a deviation and are not in the line; the line for a name leaves out its whole site.
    """
    of_benchmark: dict[str, list[int]] = {}
    without: list[int] = []
    for index in np.flatnonzero(factors.main | factors.via).tolist():
        item = declared[factors.name[index]]
        if item.corepower is None:
            without.append(index)
        else:
            of_benchmark.setdefault(item.benchmark or "", []).append(index)
    # names without a declaration tell their speed in the benchmark that most declare in
    most = max(of_benchmark, key=lambda benchmark: len(of_benchmark[benchmark]), default="")
    return [
        _compare(
            factors, declared, benchmark, sorted(places + without if benchmark == most else places), limit
        )
        for benchmark, places in sorted(of_benchmark.items())
    ]


def _compare(
    factors: Factors, declared: Mapping[str, Declared], benchmark: str, places: Sequence[int], limit: float
) -> Comparison:
    chosen = np.array(places, np.int64)
    those = [declared[factors.name[index]] for index in places]
    declares = np.array([item.usable for item in those], np.bool_)
    values = np.array([np.nan if item.corepower is None else item.corepower for item in those])
    measured = declares & factors.comparable[chosen] & ~factors.in_doubt[chosen]

    def line_of(k: Floats) -> fitters.LineResult:
        return fitters.fit_line(
            k[chosen],
            factors.on_scale("k_err")[chosen] * k[chosen] / factors.on_scale("k")[chosen],
            values,
            np.array([(item.corepower or 0.0) * item.error for item in those]),
            group=[item.site for item in those],
            in_line=measured,
            name=[item.name for item in those],
            limit=limit,
            min_groups=MIN_LINE_SITES,
        )

    line = line_of(factors.on_scale("k"))
    # the same line would be fitted again where nothing was corrected
    same = np.array_equal(factors.k_raw, factors.k, equal_nan=True)
    raw = line if same else line_of(factors.on_scale("k_raw"))
    reason = None
    if line.status != "ok" or line.n_groups < MIN_LINE_SITES:
        reason = _too_few(factors.level, benchmark, int(line.n_groups))
    doubt = "" if reason else _doubt(factors, chosen, those, line)
    return Comparison(benchmark, chosen, line, raw, reason, doubt)


_MOST_NAMED = 5


def _doubt(factors: Factors, chosen: Ints, those: Sequence[Declared], line: fitters.LineResult) -> str:
    whose = "CPU models" if factors.level == "cpu_model" else "sites"
    if line.doubt == "two groups" and line.others is not None:
        return _two_groups(factors, chosen, those, line.others)
    if line.doubt == "few honest":
        return (
            f"Declarations scatter so widely that fewer than {percent(fitters.LEAST_HONEST)} of the {whose} "
            "agree on a line, so no verdict is cleared to send."
        )
    if line.doubt == "wide line":
        return (
            f"The line is known to {percent(line.slope_err / line.slope)} only, so no verdict is cleared to "
            f"send: more {whose} that run common tasks would tell it."
        )
    return ""


def _two_groups(factors: Factors, chosen: Ints, those: Sequence[Declared], others: fitters.OtherGroup) -> str:
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for index, item in zip(chosen, those, strict=True):
        if item.corepower is not None and factors.comparable[index]:
            sides[others.holds(float(np.log(factors.k[index] / item.corepower)))].add(item.site)
    few, many = sides[True], sides[False]
    ratio = max(others.ratio, 1 / others.ratio)
    less, more = ("less", "more") if others.ratio > 1 else ("more", "less")
    named = ", ".join(sorted(few)[:_MOST_NAMED])
    named += f" and {len(few) - _MOST_NAMED} more" if len(few) > _MOST_NAMED else ""
    whose, declare = ("CPU models", "score") if factors.level == "cpu_model" else ("sites", "declare")
    return (
        f"Declarations fall into two groups: {len(few)} {whose} ({named}) {declare} {ratio:.2f} times {less} "
        f"than {len(many)} others for the same speed. Either they are right, and the {len(many)} others "
        f"{declare} {ratio:.2f} times {more}, or the others are: this cannot be known, so no verdict is "
        "cleared to send."
    )


def _too_few(level: str, benchmark: str, count: int) -> str:
    one, unit = count == 1, f" ({benchmark})" if benchmark else ""
    if level != "cpu_model":
        those = f"{count} site{'' if one else 's'} with a speed factor"
        have = "declares a value of its own" if one else "declare a value of their own"
    else:
        those = f"{count} {noun(level, count)} with a speed factor"
        have = "has a reference score" if one else "have a reference score"
    return f"{those} {have}{unit}; verdicts require a line of {MIN_LINE_SITES}"


def no_comparison(factors: Factors) -> str:
    """Return the reason why there is no line."""
    names = noun(factors.level, 1)
    if not factors.main.any():
        return f"no {names} has a speed factor"
    lacks = "has a reference score" if factors.level == "cpu_model" else "declares a corepower"
    return f"no {names} with a speed factor {lacks}"


def correlate(
    all_factors: Sequence[Factors], declarations: Declarations, window: Window, run: str, limit: float
) -> tuple[list[tuple[Factors, list[Comparison]]], Outcome]:
    """Compare every fit with the declared values; return the comparisons and the rows of ``lines``."""
    began = time.perf_counter()
    compared = [
        (factors, compare_with_declared(factors, declarations[factors.level], limit))
        for factors in all_factors
    ]
    rows = [row for factors, found in compared for row in _line_rows(factors, found)]
    table = rows_table(LINES, rows)
    n_factors = sum(len(factors.name) for factors in all_factors)
    report = RunReport(
        "correlate",
        run,
        n_factors,
        table.num_rows,
        time.perf_counter() - began,
        rows_are="factor rows",
        rows_become="lines",
        counts={"lines that support verdicts": sum(row["status"] == "ok" for row in rows)},
        window=str(window),
    )
    return compared, Outcome(report, {LINES: table})


def _line_rows(factors: Factors, found: Sequence[Comparison]) -> Iterator[dict[str, object]]:
    head: dict[str, object] = {**factors.fit, "component": 0}
    if not found:
        why = no_comparison(factors)
        yield {**head, "status": "too few", "reason": why, "n_names": 0, "n_entries": 0, "n_groups": 0}
    for item in found:
        line = item.line
        two_groups = item.doubt and line.doubt == "two groups"
        unusable = "too few sites" if line.status == "ok" else "too few"
        status = "ok" if item.reason is None else unusable
        yield {
            **head,
            "benchmark": item.benchmark,
            "status": status,
            "reason": item.reason,
            "slope": finite(line.slope),
            "slope_err": finite(line.slope_err),
            "slope_ols": finite(line.ols.value),
            "slope_wls": finite(line.wls.value),
            "tau": finite(line.tau),
            "n_names": int(line.n_points),
            "n_entries": int(line.n_entries),
            "n_groups": int(line.n_groups),
            "pearson": finite(line.correlation_points.pearson),
            "spearman": finite(line.correlation_points.spearman),
            "pearson_groups": finite(line.correlation_groups.pearson),
            "spearman_groups": finite(line.correlation_groups.spearman),
            "groups_ratio": line.others.ratio if two_groups and line.others else None,
        }
