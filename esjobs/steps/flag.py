"""Deviations to verdicts: who deviates, how sure that is, and what may be sent."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import fitters
from esjobs import __version__
from esjobs.analysis.declarations import Declared
from esjobs.analysis.proposals import propose, share_among_siblings
from esjobs.analysis.sentences import sentence
from esjobs.analysis.verdicts import Evidence, Verdict, decide
from esjobs.core import tables
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.settings import FitSettings
from esjobs.steps.correlate import Comparison, Declarations
from esjobs.steps.factors import MIXED_TASK, Factors
from esjobs.steps.fit_input import ALL_TYPES
from esjobs.steps.publication import Outcome, finite, rows_table

FALSE_DISCOVERY_RATE = 0.05
JUDGED: tuple[Verdict, ...] = ("deviates", "ok", "undecided")
_COUNTED: tuple[str, ...] = (*JUDGED, "undeclared")


@dataclass(frozen=True)
class Judged:
    """One name with its verdict, before its stability is known."""

    evidence: Evidence
    verdict: Verdict
    why: str
    k_err: float | None
    expected_k: float | None
    p_value: float | None
    component: int
    benchmark: str | None
    events_per_job: float | None
    deviation_raw: float | None
    err_parts: Mapping[str, float]
    """The error of the deviation by what it comes from: stat, int, line."""


def judge(
    factors: Factors,
    comparisons: Sequence[Comparison],
    declared: Mapping[str, Declared],
    settings: FitSettings,
) -> list[Judged]:
    """The verdict of every name of one fit, in the order of the factors."""
    lines: dict[int, tuple[Comparison, int]] = {
        int(place): (item, position) for item in comparisons for position, place in enumerate(item.places)
    }
    main_k = factors.k[factors.main]
    median = float(np.median(main_k)) if len(main_k) else None
    judged = []
    for place, name in enumerate(factors.name):
        comparison, position = lines.get(place, (None, 0))
        line = None if comparison is None else comparison.line.points
        deviation = None if line is None else finite(line.deviation[position])
        evidence = Evidence(
            name=name,
            status=factors.status[place],
            reason=factors.reason[place],
            k=finite(factors.k[place]),
            n_jobs=int(factors.n_jobs[place]),
            n_tasks=int(factors.n_tasks[place]),
            n_distinct_tasks=int(factors.n_distinct_tasks[place]),
            in_main_component=bool(factors.main[place]),
            declared=declared[name],
            deviation=deviation,
            deviation_err=None if line is None else finite(line.deviation_err[position]),
            median_k=median,
            n_line_sites=_other_sites(comparison, declared[name]),
            line_reason=None if comparison is None else comparison.reason,
            mixed=factors.status[place] == MIXED_TASK,
            via=factors.via[place],
        )
        verdict, why = decide(
            evidence,
            None if line is None else line.verdict[position] or None,
            settings.min_name_jobs,
        )
        judged.append(
            Judged(
                evidence,
                verdict,
                why,
                finite(factors.k_err[place]),
                None if line is None else finite(line.expected_k[position]),
                None if line is None or verdict not in JUDGED else finite(line.p_value[position]),
                int(factors.component[place]),
                declared[name].benchmark,
                finite(factors.events_per_job[place]),
                None if comparison is None else finite(comparison.raw.points.deviation[position]),
                _err_parts(factors, place, evidence),
            )
        )
    return judged


def _err_parts(factors: Factors, place: int, evidence: Evidence) -> dict[str, float]:
    """Squares add up to that of the error; what the factor does not explain is the line's."""
    if evidence.deviation is None or evidence.deviation_err is None or evidence.k is None:
        return {}
    scale = (1 + evidence.deviation) / evidence.k
    stat, interaction = (
        float(np.nan_to_num(column[place])) * scale for column in (factors.k_err_stat, factors.k_err_int)
    )
    rest = evidence.deviation_err**2 - stat**2 - interaction**2
    return {"stat": stat, "int": interaction, "line": math.sqrt(max(rest, 0.0))}


def _other_sites(comparison: Comparison | None, declared: Declared) -> int:
    if comparison is None:
        return 0
    return comparison.line.n_groups - (declared.origin not in ("default", "none"))


def flag(
    compared: Sequence[tuple[Factors, list[Comparison]]],
    declarations: Declarations,
    unstable: Sequence[Mapping[str, str]],
    window: Window,
    run: str,
    settings: FitSettings,
) -> Outcome:
    """Verdicts of all fits with q-values, and what they say together.

    ``unstable``: per fit, names whose verdict changes, and under what.
    """
    began = time.perf_counter()
    verdicts = [judge(factors, found, declarations[factors.level], settings) for factors, found in compared]
    q_values = _q_values([factors for factors, _ in compared], verdicts, settings)
    stamp = {
        "run": run,
        "window_start": window.start,
        "window_end": window.end,
        "program_version": __version__,
    }
    flags: list[dict[str, object]] = []
    conclusions: list[dict[str, object]] = []
    for (factors, found), judged, values, changing in zip(
        compared, verdicts, q_values, unstable, strict=True
    ):
        mine = list(_flag_rows(factors, judged, values, changing, settings))
        flags.extend({**stamp, **row} for row in mine)
        conclusions.append({**stamp, **_conclusion_row(factors, found, mine)})
    counted = Counter(
        str(row["verdict"])
        for row in flags
        if (row["level"], row["processing_type"], row["method"]) == ("site", ALL_TYPES, settings.methods[0])
    )
    report = RunReport(
        "flag",
        run,
        sum(len(judged) for judged in verdicts),
        len(flags),
        time.perf_counter() - began,
        rows_are="factor rows",
        rows_become="flags",
        counts={f"sites: {verdict}": count for verdict, count in sorted(counted.items())},
        window=str(window),
    )
    return Outcome(
        report,
        {
            tables.FLAGS: rows_table(tables.FLAGS, flags),
            tables.CONCLUSIONS: rows_table(tables.CONCLUSIONS, conclusions),
        },
    )


def _q_values(
    fits: Sequence[Factors], verdicts: Sequence[Sequence[Judged]], settings: FitSettings
) -> list[list[float | None]]:
    """q-values per method: a run's tests are those of one method over all levels and types."""
    found: list[list[float | None]] = [[None] * len(judged) for judged in verdicts]
    for method in settings.methods:
        places = [
            (number, position)
            for number, factors in enumerate(fits)
            if factors.method == method
            for position, item in enumerate(verdicts[number])
            if item.p_value is not None
        ]
        if places:
            q = fitters.benjamini_hochberg([verdicts[n][p].p_value or 0.0 for n, p in places])
            for (number, position), value in zip(places, q, strict=True):
                found[number][position] = float(value)
    return found


def _flag_rows(
    factors: Factors,
    judged: Sequence[Judged],
    q_values: Sequence[float | None],
    unstable: Mapping[str, str],
    settings: FitSettings,
) -> Iterator[dict[str, object]]:
    proposals = share_among_siblings(
        [item.evidence for item in judged],
        [propose(item.evidence, item.verdict, settings.min_name_jobs) for item in judged],
    )
    for item, q_value, proposal in zip(judged, q_values, proposals, strict=True):
        evidence, declared = item.evidence, item.evidence.declared
        stable = evidence.name not in unstable if item.verdict in JUDGED else None
        compared = item.verdict in JUDGED
        yield {
            "level": factors.level,
            "name": evidence.name,
            "processing_type": factors.processing_type,
            "method": factors.method,
            "corepower": declared.corepower,
            "benchmark": declared.benchmark,
            "origin": declared.origin,
            "k": evidence.k,
            "k_err": item.k_err,
            "expected_k": item.expected_k,
            "deviation": None if item.verdict == "undeclared" else evidence.deviation,
            "deviation_err": None if item.verdict == "undeclared" else evidence.deviation_err,
            "verdict": item.verdict,
            "significant": q_value <= FALSE_DISCOVERY_RATE if q_value is not None else None,
            "q_value": q_value,
            "stable": stable,
            "proposed_corepower": proposal.corepower,
            "proposed_corepower_err": proposal.corepower_err,
            "sentence": sentence(evidence, item.verdict, item.why, proposal, unstable.get(evidence.name)),
            "n_tasks": evidence.n_tasks,
            "n_jobs": evidence.n_jobs,
            "component": item.component,
            "rc_site": declared.rc_site if factors.level == "site" else None,
            "corepower_records": declared.from_records,
            "corepower_parent": declared.parent,
            "unstable_under": unstable.get(evidence.name) if compared else None,
            "events_per_job": item.events_per_job,
            "deviation_raw": None if item.verdict == "undeclared" else item.deviation_raw,
            **{
                f"deviation_err_{part}": None if item.verdict == "undeclared" else item.err_parts.get(part)
                for part in ("stat", "int", "line")
            },
            "via": evidence.via or None,
            "n_distinct_tasks": evidence.n_distinct_tasks,
        }


def _conclusion_row(
    factors: Factors, comparisons: Sequence[Comparison], flags: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    counts = {verdict: sum(flag["verdict"] == verdict for flag in flags) for verdict in _COUNTED}
    return {
        "level": factors.level,
        "processing_type": factors.processing_type,
        "method": factors.method,
        "n_names": len(flags),
        "n_deviates": counts["deviates"],
        "n_stable": sum(flag["verdict"] == "deviates" and flag["stable"] is True for flag in flags),
        "n_ok": counts["ok"],
        "n_undecided": counts["undecided"],
        "n_undeclared": counts["undeclared"],
        "n_others": len(flags) - sum(counts.values()),
        "sentence": _conclusion(factors, comparisons, flags, counts),
    }


def _conclusion(
    factors: Factors,
    comparisons: Sequence[Comparison],
    flags: Sequence[Mapping[str, object]],
    counts: Mapping[str, int],
) -> str:
    what = "sites" if factors.level == "site" else "CPU models"
    if not any(comparison.reason is None for comparison in comparisons):
        return f"Nothing can be concluded: {_why_no_line(factors, comparisons)}."
    deviating = [flag for flag in flags if flag["verdict"] == "deviates"]
    stable = [flag for flag in deviating if flag["stable"]]
    comparable = sum(counts[verdict] for verdict in JUDGED)
    on_one_task = sum(flag["verdict"] in JUDGED and flag["n_distinct_tasks"] == 1 for flag in flags)
    needed = _needed(on_one_task, comparable, counts["undecided"])
    if not deviating:
        return (
            f"No deviation beyond the limit is certain: {counts['ok']} {what} are within it, "
            f"{counts['undecided']} are undecided. {needed}"
        ).strip()
    off_by = sorted(((flag["deviation"], flag["name"]) for flag in deviating), key=_largest_first)
    names = ", ".join(f"{name} {deviation:+.0%}" for deviation, name in off_by)
    sure = sum(flag["significant"] is True for flag in deviating)
    sent = f"{sure} of them significant, "
    sent += f"{len(stable)} stable" if stable else "none stable enough to be sent"
    return (
        f"{counts['deviates']} of {comparable} comparable {what} deviate beyond the limit "
        f"({names}), {sent}; {counts['ok']} are within it, {counts['undecided']} undecided."
        + (f" {needed}" if not stable and needed else "")
    )


def _largest_first(found: tuple[object, object]) -> tuple[float, str]:
    deviation, name = found
    return -abs(deviation) if isinstance(deviation, float) else 0.0, str(name)


def _why_no_line(factors: Factors, comparisons: Sequence[Comparison]) -> str:
    if comparisons:
        return comparisons[0].reason or ""
    if factors.main.any():
        return "no name with a factor declares a corepower"
    return "no name has a factor"


def _needed(on_one_task: int, comparable: int, undecided: int) -> str:
    if on_one_task > comparable / 2:
        return (
            f"{on_one_task} of {comparable} rest on a single task: more tasks common to the sites would tell "
            "site from task, more jobs of the same tasks would not."
        )
    return "More tasks at the undecided names would help." if undecided else ""
