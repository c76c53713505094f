"""A rule on a quotient of several fields, without scripts: what is certain, and what has to be looked at.

cpu / (wall x cores) < 2 holds for certain where cpu < 2 x (least wall of a step) x (least cores of a class).
The documents that are not certain are few; they are read, and the rule is applied to them as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import DropRule, Range
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of

_STEP = 2.0
"""Ratio of the bounds of a step of the divisor: what lies below the limit by more than this is certain."""
_SAFE = 1e-9
"""Relative distance from a limit within which rounding could decide."""
_CLASSES = 8
_FIRST, _LAST = 1.0, 2.0**22


@dataclass(frozen=True)
class Judged:
    """``keep``: true for what the rule keeps, among the documents for which ``doubt`` is false."""

    keep: Clause
    doubt: Clause


def judged(rule: DropRule, earlier: Sequence[DropRule], clauses: Clauses) -> Judged | None:
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
    doubts: list[Clause] = []
    for step in _steps(steps, earlier):
        for group in _groups([int(count) for count in counts if count >= 1]):
            cell = [Range(steps, ge=step[0], lt=step[1]), Range(classes, ge=group[0], le=group[1])]
            for limit in _uncertain(over, (low, high), step, group):
                parts = clauses.filters([*cell, limit])
                if parts is None:
                    return None
                doubts.append(all_of(parts))
    return Judged(all_of(keep), any_of(doubts))


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
