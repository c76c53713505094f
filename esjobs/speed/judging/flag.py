"""Verdicts from deviations, with their significance and stability."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa

from esjobs.core.report import RunReport
from esjobs.core.verdict_order import verdict_order
from esjobs.core.window import Window
from esjobs.core.words import (
    ALL_TYPES,
    CONFIRMED,
    HALF_WIDTH_90,
    INTERVAL_LEVEL,
    JUDGED,
    NAMED_LEVELS,
    Verdict,
    noun,
    status_shown,
)
from esjobs.publish.publication import Outcome, finite, rows_table
from esjobs.records.declared.origin import Declared
from esjobs.schema.speed import FIT_SUMMARIES, FLAGS
from esjobs.speed.factors import MIXED_TASK, Factors
from esjobs.speed.judging.checks import SEPARATOR, checks_of, refuted_by
from esjobs.speed.judging.conclusions import conclude
from esjobs.speed.judging.proposals import propose, share_among_siblings
from esjobs.speed.judging.sentences import describe_verdict
from esjobs.speed.judging.stability import Change, changes_of, unstable_names
from esjobs.speed.judging.verdicts import SURVIVING, Estimate, Evidence, compare, decide, is_confirmed
from esjobs.speed.line import Comparison, Declarations, no_comparison
from esjobs.speed.ranking import likely_factor
from esjobs.speed.settings import FitSettings


@dataclass(frozen=True)
class Judged:
    """One name with its verdict, before the test of stability."""

    evidence: Evidence
    verdict: Verdict
    why: str
    k_err: float | None
    expected_k: float | None
    doubt: str  # Why no verdict of its line is cleared to send, or empty
    component: int
    benchmark: str | None
    events_per_job: float | None
    err_parts: Mapping[str, float]  # The error of the deviation by what it comes from: stat, int, line

    @property
    def p_off(self) -> float | None:
        """Probability that the declared value is off by more than the limit; None without a comparison."""
        return self.evidence.p_off if self.verdict in JUDGED else None


def judge(
    factors: Factors,
    comparisons: Sequence[Comparison],
    declared: Mapping[str, Declared],
    settings: FitSettings,
) -> list[Judged]:
    """Return the verdict of every name of one fit, in the order of the factors."""
    points = {
        int(index): (_point(item, position), item.benchmark)
        for item in comparisons
        for position, index in enumerate(item.places)
    }
    in_lines = {
        item.benchmark: {declared[name].site for name in factors.name[item.places[item.line.points.in_line]]}
        for item in comparisons
    }
    main_k = factors.k[factors.main]
    median = float(np.median(main_k)) if len(main_k) else None
    via, k, k_err = factors.via, factors.on_scale("k"), factors.on_scale("k_err")
    judged = []
    for index, name in enumerate(factors.name):
        own = declared[name]
        point, benchmark = points.get(index, (_NO_POINT, ""))
        # a queue on the scale through its CPU models alone is not compared with a default
        if via[index] and own.origin in ("default", "none"):
            point = replace(point, deviation=None, deviation_err=None, deviation_raw=None)
        evidence = Evidence(
            name=name,
            status=factors.status[index],
            reason=factors.reason[index],
            k=finite(k[index]),
            n_jobs=int(factors.n_jobs[index]),
            n_units=int(factors.n_units[index]),
            n_tasks=int(factors.n_tasks[index]),
            in_main_component=bool(factors.main[index]),
            declared=own,
            deviation=point.deviation,
            deviation_err=point.deviation_err,
            p_off=point.p_off,
            median_k=median,
            n_line_sites=len(in_lines.get(benchmark, set()) - {own.site}),
            line_reason=point.line_reason,
            only_type=factors.only_type,
            records_doubt=factors.records_doubt[index],
            mixed=factors.status[index] == MIXED_TASK,
            sole_link=factors.sole_link[index],
            estimate=point.estimate,
            deviation_raw=point.deviation_raw,
            n_buckets=int(factors.n_buckets[index]),
            n_rejected=int(factors.n_rejected[index]),
            n_cut=int(factors.n_cut[index]),
            core_use=finite(factors.efficiency[index]),
            via_models=bool(via[index]),
            model_doubt=factors.model_doubt,
        )
        compared = _comparison(point, settings.deviation_limit)
        verdict, why = decide(evidence, compared, settings.min_name_jobs)
        why += likely_factor(factors, name) if verdict == "too few" else ""
        judged.append(
            Judged(
                evidence,
                verdict,
                why,
                finite(k_err[index]),
                point.expected_k,
                point.doubt,
                int(factors.component[index]),
                own.benchmark,
                finite(factors.events_per_job[index]),
                _err_parts(factors, index, evidence),
            )
        )
    return judged


@dataclass(frozen=True)
class _Point:
    """A name on its line; None without one."""

    deviation: float | None = None
    deviation_err: float | None = None
    deviation_raw: float | None = None
    expected_k: float | None = None
    p_off: float | None = None
    line_reason: str | None = None
    doubt: str = ""
    estimate: Estimate | None = None


_NO_POINT = _Point()


def _comparison(point: _Point, limit: float) -> Verdict | None:
    if point.p_off is None or point.deviation is None or point.deviation_err is None:
        return None
    return compare(point.p_off, inside=abs(point.deviation) + HALF_WIDTH_90 * point.deviation_err < limit)


def _point(comparison: Comparison, position: int) -> _Point:
    points = comparison.line.points
    return _Point(
        deviation=finite(points.deviation[position]),
        deviation_err=finite(points.deviation_err[position]),
        deviation_raw=finite(comparison.raw.points.deviation[position]),
        expected_k=finite(points.expected_k[position]),
        p_off=finite(points.p_off[position]),
        line_reason=comparison.reason,
        doubt=comparison.doubt,
        estimate=_estimate(comparison, position),
    )


def _estimate(comparison: Comparison, position: int) -> Estimate | None:
    points = comparison.line.points
    columns = (points.equivalent_c, points.equivalent_c_err, points.equivalent_low, points.equivalent_high)
    value, error, low, high = (finite(column[position]) for column in columns)
    if comparison.reason is not None or value is None or error is None or low is None or high is None:
        return None
    return Estimate(value, error, low, high, comparison.benchmark)


def _err_parts(factors: Factors, index: int, evidence: Evidence) -> dict[str, float]:
    # The squares add up to that of the error; the rest beside the factor's parts is the line's.
    if evidence.deviation is None or evidence.deviation_err is None or evidence.k is None:
        return {}
    if evidence.via_models:  # its error is that of its CPU models, in one
        return {}
    scale = (1 + evidence.deviation) / evidence.k
    stat, interaction = (
        float(np.nan_to_num(column[index])) * scale for column in (factors.k_err_stat, factors.k_err_int)
    )
    # below 0 by round-off where the line adds nothing
    rest = evidence.deviation_err**2 - stat**2 - interaction**2
    return {"stat": stat, "int": interaction, "line": math.sqrt(max(rest, 0.0))}


def flag(
    compared: Sequence[tuple[Factors, list[Comparison]]],
    declarations: Declarations,
    variants: pa.Table,
    window: Window,
    run: str,
    settings: FitSettings,
    restriction: Sequence[str] = (),
) -> Outcome:
    """Return verdicts of all fits, and the conclusions.

    ``variants``: rows of that table; stability is tested for the headline method only, the verdicts of others
    are never cleared to send. ``restriction``: conditions of the run; conclusions name them.
    """
    began = time.perf_counter()
    verdicts = [judge(factors, found, declarations[factors.level], settings) for factors, found in compared]
    q_values = _q_values([factors for factors, _ in compared], verdicts, settings)
    flags: list[dict[str, object]] = []
    conclusions: list[dict[str, object]] = []
    changes = changes_of(variants)
    for (factors, found), judged, values in zip(compared, verdicts, q_values, strict=True):
        of_fit = changes.get((factors.level, factors.processing_type, factors.method), {})
        mine = list(_flag_rows(factors, judged, values, of_fit, settings))
        flags.extend(mine)
        conclusions.append(_summary(factors, found, mine, settings, restriction))
    for rank, row in enumerate(sorted(flags, key=_reading_order), 1):
        row["rank"] = rank
    counted = Counter(
        status_shown(str(row["verdict"]), row["confirmed"])
        for row in flags
        if (row["level"], row["processing_type"], row["method"]) == ("queue", ALL_TYPES, settings.methods[0])
    )
    counted[CONFIRMED] += 0  # said also when there is none
    report = RunReport(
        "flag",
        run,
        sum(len(judged) for judged in verdicts),
        len(flags),
        time.perf_counter() - began,
        rows_are="factor rows",
        rows_become="flags",
        counts={f"{noun('queue')}: {word}": count for word, count in sorted(counted.items())},
        window=str(window),
    )
    return Outcome(
        report, {FLAGS: rows_table(FLAGS, flags), FIT_SUMMARIES: rows_table(FIT_SUMMARIES, conclusions)}
    )


def _reading_order(row: Mapping[str, object]) -> tuple[object, ...]:
    # sites come after the queues and CPU models that they are made of
    site = row["level"] not in NAMED_LEVELS
    return (site, *verdict_order(row), row["level"], row["processing_type"], row["method"])


def _q_values(
    fits: Sequence[Factors], verdicts: Sequence[Sequence[Judged]], settings: FitSettings
) -> list[list[float | None]]:
    """Return the expected share of false ones among the names that are at least as sure as each.

    The mean of their 1 - p_off (Newton et al., Biostatistics 5 (2004) 155), over all types of queues and CPU
    models by one method.
    """
    found: list[list[float | None]] = [[None] * len(judged) for judged in verdicts]
    # sites count separately: they have the jobs of their queues once more
    for method, levels in product(settings.methods, (NAMED_LEVELS, ("site",))):
        tests = [
            (row, position, item.p_off)
            for factors, row, judged in zip(fits, found, verdicts, strict=True)
            for position, item in enumerate(judged)
            if factors.method == method and factors.level in levels and item.p_off is not None
        ]
        p_off = np.array([p for *_, p in tests])
        ordered = np.sort(1.0 - p_off)
        at_least_as_sure = np.searchsorted(ordered, 1.0 - p_off, side="right")
        total = np.append(0.0, np.cumsum(ordered))
        for (row, position, _), count in zip(tests, at_least_as_sure.tolist(), strict=True):
            row[position] = float(total[count] / count)
    return found


def _summary(
    factors: Factors,
    found: Sequence[Comparison],
    flags: Sequence[Mapping[str, object]],
    settings: FitSettings,
    restriction: Sequence[str],
) -> dict[str, object]:
    """Return the conclusion of one fit."""
    said = conclude(
        flags,
        factors.level,
        limit=settings.deviation_limit,
        no_line=_why_no_line(factors, found),
        doubt=" ".join(item.doubt for item in found if item.doubt),
        restriction=restriction,
        left_out=factors.left_out,
        model_doubt=factors.model_doubt,
    )
    return {**factors.fit, **said}


def _flag_rows(
    factors: Factors,
    judged: Sequence[Judged],
    q_values: Sequence[float | None],
    changes: Mapping[str, Sequence[Change]],
    settings: FitSettings,
) -> Iterator[dict[str, object]]:
    level, limit = factors.level, settings.deviation_limit
    unstable: dict[str, str] = {}
    # the verdicts of other methods are never cleared to send
    headline = factors.method == settings.methods[0]
    if headline:
        unstable = unstable_names([(item.evidence, item.verdict) for item in judged], changes, limit)
    tests = [_tested(item, unstable if headline else None) for item in judged]
    alone = [
        propose(item.evidence, item.verdict, settings.min_name_jobs, level=level, confirmed=confirmed)
        for item, (_, _, confirmed) in zip(judged, tests, strict=True)
    ]
    proposals = share_among_siblings([item.evidence for item in judged], alone)
    for item, q_value, tested, proposal in zip(judged, q_values, tests, proposals, strict=True):
        evidence, verdict, (significant, stable, confirmed) = item.evidence, item.verdict, tested
        under = unstable.get(evidence.name)
        words = describe_verdict(
            evidence,
            verdict,
            item.why,
            proposal,
            level=level,
            limit=limit,
            doubt=item.doubt,
            stable=stable,
            unstable_under=under,
        )
        yield {
            **factors.fit,
            "name": evidence.name,
            **_declared(item, level),
            **_measured(item),
            "verdict": verdict,
            "p_off": item.p_off,
            "significant": significant,
            "q_value": q_value,
            "stable": stable,
            "unstable_under": under,
            "confirmed": confirmed,
            "status_shown": status_shown(verdict, confirmed),
            "proposed_corepower": proposal.corepower,
            "proposed_corepower_err": proposal.corepower_err,
            "sentence": words.sentence,
            "finding": words.finding,
            "advice": words.advice or None,
            **_estimated(item),
            **factors.ranking.get(evidence.name, {}),
            **(_checked(item, changes) if headline else {}),
        }


def _tested(item: Judged, unstable: Mapping[str, str] | None) -> tuple[bool | None, bool | None, bool | None]:
    """Return whether a verdict is significant, stable and confirmed; None where it claims nothing.

    ``unstable``: None if the method was not tested.
    """
    significant = stable = None
    if item.verdict in JUDGED:
        significant = item.verdict == "deviates" and not item.doubt
    if unstable is not None and item.verdict in SURVIVING:
        stable = item.evidence.name not in unstable
    return significant, stable, is_confirmed(item.verdict, significant, stable)


def _checked(item: Judged, changes: Mapping[str, Sequence[Change]]) -> dict[str, object]:
    """Return the checks of a deviation, and what would refute it; nothing for other verdicts."""
    if item.verdict != "deviates":
        return {}
    checks = checks_of(item.evidence, changes.get(item.evidence.name, ()))
    text = SEPARATOR.join(check.text for check in checks)
    return {"checks": text, "refuted_by": refuted_by(item.evidence) or None}


def _declared(item: Judged, level: str) -> dict[str, object]:
    declared = item.evidence.declared
    return {
        "corepower": declared.corepower,
        "benchmark": declared.benchmark,
        "origin": declared.origin,
        "site": None if level == "cpu_model" else declared.site,
        "country": None if level == "cpu_model" else declared.country,
        "corepower_from_records": declared.from_records,
        "corepower_parent": declared.parent,
    }


def _measured(item: Judged) -> dict[str, object]:
    evidence = item.evidence
    deviations = {
        "deviation": evidence.deviation,
        "deviation_err": evidence.deviation_err,
        "deviation_raw": evidence.deviation_raw,
        **{f"deviation_err_{part}": item.err_parts.get(part) for part in ("stat", "int", "line")},
    }
    return {
        "k": evidence.k,
        "k_err": item.k_err,
        "expected_k": item.expected_k,
        **(dict.fromkeys(deviations) if item.verdict == "undeclared" else deviations),
        "n_units": evidence.n_units,
        "n_tasks": evidence.n_tasks,
        "n_jobs": evidence.n_jobs,
        "component": item.component,
        "events_per_job": item.events_per_job,
        "sole_link": evidence.sole_link or None,
    }


def _estimated(item: Judged) -> dict[str, object]:
    # For names with enough evidence, whatever they declare.
    estimate = item.evidence.estimate
    if estimate is None or item.verdict not in (*JUDGED, "undeclared", "via CPU models"):
        return {}
    return {
        "estimate": estimate.corepower,
        "estimate_low": estimate.low,
        "estimate_high": estimate.high,
        "estimate_level": INTERVAL_LEVEL,
        "estimate_benchmark": estimate.benchmark,
    }


def _why_no_line(factors: Factors, comparisons: Sequence[Comparison]) -> str:
    if any(comparison.reason is None for comparison in comparisons):
        return ""
    if comparisons:
        return "; ".join(comparison.reason or "" for comparison in comparisons)
    return no_comparison(factors)
