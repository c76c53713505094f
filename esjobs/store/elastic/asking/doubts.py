"""A rule on a quotient of several fields, without scripts: what is certain, and what has to be looked at.

cpu / (wall x cores) < 2 holds for certain where cpu < 2 x (least wall of a step) x (least cores of a class).
The documents that are not certain are few; they are read, and the rule is applied to them as they are. Of
most steps and classes the greatest CPU time alone tells that there are none: these cost no clause.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import DropRule, Range
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.fields.live_fields import LiveField

_STEP = 2.0
"""Ratio of the bounds of a step of the divisor: what lies below the limit by more than this is certain."""
_SAFE = 1e-9
"""Relative distance from a limit within which rounding could decide."""
_CLASSES = 8
_FIRST, _LAST = 1.0, 2.0**22
_SLACK = 1e-6
"""By how much an end of the dividend is moved outwards, against the rounding of its units."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Answers aggregations over the documents in question: those that pass what comes before the rule."""


@dataclass(frozen=True)
class Judged:
    """``keep``: true for what the rule keeps, among the documents for which ``doubt`` is false."""

    keep: Clause
    doubt: Clause


def judged(rule: DropRule, earlier: Sequence[DropRule], clauses: Clauses, answer: Answer) -> Judged | None:
    """A rule on a quotient of one number over another times a whole number; None for any other.

    ``earlier``: rules that the documents in question have passed.
    """
    if not isinstance(rule.keep, Range) or rule.missing != "drop":
        return None
    derived = fields.field(rule.keep.field).derived
    if not isinstance(derived, Quotient) or len(derived.over) != 1 or len(derived.under) != 2:
        return None
    (over,), (steps, classes) = derived.over, derived.under
    kinds = [fields.field(name).type for name in (over, steps, classes)]
    counts = clauses.distinct(classes) if kinds == ["number", "number", "integer"] else None
    present = clauses.present(rule.keep.field)
    if counts is None or present is None:
        return None
    low, high = _bounds(rule.keep)
    keep = [present]
    if low is not None and low >= 0:
        positive = clauses.filter(Range(over, gt=0) if rule.keep.gt == 0 else Range(over, ge=0))
        if positive is None:
            return None
        keep.append(positive)
    grid = _Grid(list(_steps(steps, earlier)), list(_groups([int(count) for count in counts if count >= 1])))
    of_steps = clauses.filters([Range(steps, ge=step[0], lt=step[1]) for step in grid.steps])
    of_groups = clauses.filters([Range(classes, ge=group[0], le=group[1]) for group in grid.groups])
    if of_steps is None or of_groups is None:
        return None
    ends = _ends(clauses.live[over], of_steps, of_groups, answer)
    doubts: list[Clause] = []
    for number, step in enumerate(grid.steps):
        for place, group in enumerate(grid.groups):
            for limit in _uncertain(over, (low, high), step, group):
                if not _reached(limit, ends.get((number, place))):
                    continue
                beyond = clauses.filter(limit)
                if beyond is None:
                    return None
                doubts.append(all_of([of_steps[number], of_groups[place], beyond]))
    return Judged(all_of(keep), any_of(doubts))


@dataclass(frozen=True)
class _Grid:
    """The cells in which a quotient is judged: steps of one divisor, groups of values of the other."""

    steps: Sequence[tuple[float | None, float | None]]
    groups: Sequence[tuple[int, int]]


_Ends = tuple[float, float]


def _ends(
    live: LiveField, of_steps: Sequence[Clause], of_groups: Sequence[Clause], answer: Answer
) -> dict[tuple[int, int], _Ends]:
    """The least and the greatest value of the dividend in each cell that has one."""
    if not of_groups or live.state != "present":
        return {}
    of_paths = {
        f"{kind}{number}": {kind: {"field": path}}
        for number, path in enumerate(live.paths)
        for kind in ("min", "max")
    }
    cells = {"filters": {"filters": list(of_steps)}, "aggs": of_paths}
    asked = {"groups": {"filters": {"filters": list(of_groups)}, "aggs": {"steps": cells}}}
    ends: dict[tuple[int, int], _Ends] = {}
    for place, group in enumerate(answer(asked)["groups"]["buckets"]):
        for number, cell in enumerate(group["steps"]["buckets"]):
            values = [cell[name]["value"] for name in of_paths if cell[name]["value"] is not None]
            if values:
                scaled = [value * live.source.factor for value in values]
                ends[number, place] = min(scaled), max(scaled)
    return ends


def _reached(limit: Range, ends: _Ends | None) -> bool:
    """Whether values between two ends may lie beyond a limit; without ends there are no values."""
    if ends is None:
        return False
    least, greatest = (end + side * abs(end) * _SLACK for end, side in zip(ends, (-1, 1), strict=True))
    return (limit.ge is None or greatest >= limit.ge) and (limit.le is None or least <= limit.le)


def _bounds(item: Range) -> tuple[float | None, float | None]:
    lows = [bound for bound in (item.gt, item.ge) if bound is not None]
    highs = [bound for bound in (item.lt, item.le) if bound is not None]
    return max(lows, default=None), min(highs, default=None)


def _uncertain(
    over: str,
    bounds: tuple[float | None, float | None],
    step: tuple[float | None, float | None],
    group: tuple[int, int],
) -> Iterator[Range]:
    """Values of the dividend in a cell with which the quotient could lie outside the bounds."""
    low, high = bounds
    if high is not None:
        yield Range(over, ge=high * (step[0] or 0.0) * group[0] * (1 - _SAFE))
    if low is not None and low > 0:
        yield Range(over, le=None if step[1] is None else low * step[1] * group[1] * (1 + _SAFE))


def _steps(name: str, earlier: Sequence[DropRule]) -> Iterator[tuple[float | None, float | None]]:
    """Steps of the divisor that cover what earlier rules let pass."""
    lows, highs = [_FIRST], [_LAST]
    for rule in earlier:
        if isinstance(rule.keep, Range) and rule.keep.field == name and rule.missing == "drop":
            low, high = _bounds(rule.keep)
            lows += [] if low is None or low <= 0 else [low]
            highs += [] if high is None else [high]
    first, last = max(lows), min(highs)
    yield None, first
    while first < last:
        yield first, first * _STEP
        first *= _STEP
    yield first, None


def _groups(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Classes of a whole number that cover all its values, few of them."""
    if len(counts) <= _CLASSES:
        yield from ((count, count) for count in counts)
        return
    size = -(-len(counts) // _CLASSES)
    for start in range(0, len(counts), size):
        some = counts[start : start + size]
        yield some[0], some[-1]
