"""Conclusion from the verdicts of one fit: counts and sentences.

Command line, report, dashboards and mails show the result of :func:`conclude`; none of them counts anew. The
headline rests on confirmed deviations only; candidates are counted separately.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from esjobs.core.numbers import exact_percent, signed_percent
from esjobs.core.verdict_order import verdict_order
from esjobs.core.words import CANDIDATE, CONFIRMED, JUDGED, SURE, VERDICTS, noun, status_shown

# A row of ``flags``: verdict, confirmed, p_off, significant, stable, name, deviation, k, n_tasks
Flag = Mapping[str, object]
# Candidates that are named, beside the headline; those that are confirmed are all named, in it
_MOST_CANDIDATES = 5


def conclude(
    flags: Sequence[Flag],
    level: str,
    *,
    limit: float,
    no_line: str = "",
    doubt: str = "",
    restriction: Sequence[str] = (),
    left_out: str = "",
    model_doubt: str = "",
) -> dict[str, object]:
    """Return the row of ``conclusions`` from the flags of one fit, without the columns that name the fit.

    ``limit``: accepted relative deviation. ``no_line``: reason why no line supports a verdict, or empty.
    ``doubt``: why the line does not tell who is wrong; then no verdict is cleared to send.
    ``restriction``: conditions of the run, as people write them. ``left_out``: reason why less than half of
    the jobs or tasks are in the fit. ``model_doubt``: tests of its model that failed. ``evidence`` is None if
    no name deviates.
    """
    judged = [flag for flag in flags if flag["verdict"] in JUDGED]
    by_standing: dict[str, list[Flag]] = {CONFIRMED: [], CANDIDATE: []}
    for flag in judged:
        by_standing.setdefault(status_shown(str(flag["verdict"]), flag["confirmed"]), []).append(flag)
    confirmed, candidates = by_standing[CONFIRMED], by_standing[CANDIDATE]
    counts = _counts(flags, judged, confirmed, candidates)
    if no_line:
        text = f"No conclusion: {no_line}."
    elif not judged:
        text = _nothing_comparable(flags, level)
    elif doubt:
        text = f"{doubt} {_none_confirmed(counts, level, limit)}"
    elif confirmed:
        text = _confirmed(confirmed, counts, level, limit) + _needed(counts, level)
    else:
        text = _none_confirmed(counts, level, limit) + _needed(counts, level)
    where = f"Restricted to {', '.join(restriction)}. " if restriction else ""
    text += f" {left_out[:1].upper()}{left_out[1:]}." if left_out else ""
    if model_doubt:
        text += f" The model does not hold, so errors are larger and nothing is proposed: {model_doubt}."
    return {**counts, "sentence": where + text, "evidence": _evidence(confirmed, candidates)}


def _counts(
    flags: Sequence[Flag], judged: Sequence[Flag], confirmed: Sequence[Flag], candidates: Sequence[Flag]
) -> dict[str, int]:
    verdicts = Counter(str(flag["verdict"]) for flag in flags)
    return {
        "n_names": len(flags),
        **{f"n_{verdict.replace(' ', '_').lower()}": verdicts[verdict] for verdict in VERDICTS},
        "n_stable": sum(flag["stable"] is True for flag in (*confirmed, *candidates)),
        "n_others": len(flags) - len(judged) - verdicts["undeclared"],
        "n_comparable": len(judged),
        "n_confirmed": len(confirmed),
        "n_candidates": len(candidates),
        "n_on_one_task": sum(flag["n_tasks"] == 1 for flag in judged),
        "n_with_factor": sum(flag["k"] is not None for flag in flags),
    }


def _confirmed(confirmed: Sequence[Flag], counts: Mapping[str, int], level: str, limit: float) -> str:
    comparable = counts["n_comparable"]
    have = "has a confirmed deviation" if len(confirmed) == 1 else "have a confirmed deviation"
    text = (
        f"{len(confirmed)} of {comparable} comparable {noun(level, comparable)} {have} of more than "
        f"{exact_percent(limit)}: {_named(confirmed)}."
    )
    rest = _parts(counts, "")
    if comparable - len(confirmed) == 1:
        return f"{text} The other one {rest[0][1]}."
    if len(rest) == 1:
        return f"{text} The other {rest[0][0]} {rest[0][2]}."
    return f"{text} Of the others, {_listed(rest)}." if rest else text


def _none_confirmed(counts: Mapping[str, int], level: str, limit: float) -> str:
    comparable = counts["n_comparable"]
    names = noun(level, comparable)
    parts = _parts(counts, f" of {exact_percent(limit)}")
    none = "No deviation" if counts["n_ok"] == comparable else "No confirmed deviation"
    if comparable == 1:
        return f"{none}. The only comparable {names} {parts[0][1]}."
    if len(parts) == 1:
        every = "Both" if comparable == 2 else f"All {comparable}"
        return f"{none}. {every} comparable {names} {parts[0][2]}."
    return f"{none}. Of {comparable} comparable {names}, {_listed(parts)}."


def _parts(counts: Mapping[str, int], limit: str) -> list[tuple[int, str, str]]:
    # Unconfirmed comparable names: count, and the phrase for one and for several.
    parts = [
        (counts["n_ok"], f"is within the limit{limit}", f"are within the limit{limit}"),
        (counts["n_undecided"], "is undecided", "are undecided"),
        (counts["n_candidates"], "is a candidate", "are candidates"),
    ]
    return [part for part in parts if part[0]]


def _listed(parts: Sequence[tuple[int, str, str]]) -> str:
    return ", ".join(f"{count} {one if count == 1 else several}" for count, one, several in parts)


def _named(flags: Sequence[Flag], most: int | None = None) -> str:
    ordered = sorted(flags, key=verdict_order)
    named = ", ".join(f"{flag['name']} ({signed_percent(_deviation(flag))})" for flag in ordered[:most])
    left = len(ordered[most:]) if most is not None else 0
    return f"{named} and {left} more" if left else named


def _deviation(flag: Flag) -> float:
    deviation = flag["deviation"]
    return deviation if isinstance(deviation, float) else 0.0


def _nothing_comparable(flags: Sequence[Flag], level: str) -> str:
    verdicts = Counter(str(flag["verdict"]) for flag in flags)
    why = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return f"No conclusion: no {noun(level, 1)} can be compared ({why})."


def _needed(counts: Mapping[str, int], level: str) -> str:
    # Single tasks in most comparisons come first, else the undecided names.
    alone, comparable = counts["n_on_one_task"], counts["n_comparable"]
    if 2 * alone > comparable:
        rests = "rests" if alone == 1 else "rest"
        return (
            f" {alone} of {comparable} {noun(level, comparable)} {rests} on a single task. More shared tasks "
            f"would separate the effects of {noun(level)} and tasks; more jobs of the same tasks would not."
        )
    if counts["n_undecided"] and not counts["n_confirmed"]:
        return f" More tasks at the undecided {noun(level, counts['n_undecided'])} would help."
    return ""


def _evidence(confirmed: Sequence[Flag], candidates: Sequence[Flag]) -> str | None:
    texts = []
    tested = f"is more than {exact_percent(SURE)} sure and survives every check"
    if len(confirmed) == 1:
        texts.append(f"The confirmed deviation {tested}.")
    elif confirmed:
        texts.append(f"Each of the {len(confirmed)} confirmed deviations {tested}.")
    if len(candidates) == 1:
        texts.append(
            f"The candidate {_named(candidates)} is not cleared to send: it is {missing(candidates[0])}."
        )
    elif candidates:
        lacking = Counter(missing(flag) for flag in candidates)
        why = ", ".join(f"{n} {what}" for what, n in sorted(lacking.items()))
        why = why if len(lacking) > 1 else next(iter(lacking))
        named = _named(candidates, _MOST_CANDIDATES)
        texts.append(f"{len(candidates)} candidates are not cleared to send ({why}): {named}.")
    return " ".join(texts) or None


def missing(flag: Flag) -> str:
    """Return the tests that a candidate has not passed.

    >>> missing({"significant": True, "stable": False}), missing({"significant": True, "stable": None})
    ('not stable', 'not tested for stability')
    """
    if flag["stable"] is None:
        return "not tested for stability"
    return "not stable" if flag["significant"] else "compared with a line that does not tell who is wrong"
