"""Rules on quotients of several fields, three-valued and without scripts.

cpu / (wall x cores) < 2 certainly holds where cpu < 2 x (least wall of a step) x (least cores of a class).
The few uncertain documents are read. The maximum of cpu excludes most cells without a clause.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import DropRule, Filter, Present, Range
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.quotients import FIRST, LAST, SAFE, Step, doubling, ends_of
from esjobs.store.elastic.fields.live_fields import LiveField

_CLASSES = 8
# By how much an end of the dividend is moved outwards, against the rounding of its units
_SLACK = 1e-6

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Answers aggregations over the documents in question: those that pass what comes before the rule."""


@dataclass(frozen=True)
class Judged:
    """``keep``: exact among documents for which ``doubt`` is false."""

    keep: Clause
    doubt: Clause


def judged(rule: DropRule, earlier: Sequence[DropRule], clauses: Clauses, answer: Answer) -> Judged | None:
    """Judge a rule on a number over a number times an integer; None for other rules.

    ``earlier``: rules that the documents have passed.
    """
    # of rules that drop what is missing: a kept document has the quotient
    if not isinstance(rule.keep, Range) or rule.missing != "drop":
        return None
    if (parts := _parts(rule.keep.field)) is None:
        return None
    over, steps, classes = parts
    counts, keep = clauses.distinct(classes), _possible(rule.keep, over, clauses)
    if counts is None or keep is None:
        return None
    grid = _Grid(list(_steps(steps, earlier)), list(_groups([int(count) for count in counts if count >= 1])))
    cells = grid.clauses(steps, classes, clauses)
    if cells is None:
        return None
    ends = _ends(clauses.live[over], *cells, answer)
    undecided = _undecided(grid.limits(over, ends_of(rule.keep)), ends, *cells, clauses)
    return None if undecided is None else Judged(all_of(keep), any_of(undecided))


def _undecided(
    limits: Iterable[tuple[tuple[int, int], Range]],
    ends: Mapping[tuple[int, int], "_Ends"],
    of_steps: Sequence[Clause],
    of_groups: Sequence[Clause],
    clauses: Clauses,
) -> list[Clause] | None:
    undecided: list[Clause] = []
    for (number, column), limit in limits:
        # no dividend of the cell is large enough: most cells end here, without a clause
        if not _reached(limit, ends.get((number, column))):
            continue
        beyond = clauses.filter(limit)
        if beyond is None:
            return None
        undecided.append(all_of([of_steps[number], of_groups[column], beyond]))
    return undecided


def _parts(name: str) -> tuple[str, str, str] | None:
    """Return dividend, number and integer of a quotient; None for other fields."""
    match fields.field(name).derived:
        case Quotient((over,), (steps, classes)):
            kinds = [fields.field(part).type for part in (over, steps, classes)]
            return (over, steps, classes) if kinds == ["number", "number", "integer"] else None
    return None


def _possible(bounds: Range, over: str, clauses: Clauses) -> list[Clause] | None:
    """Return what every kept document meets: it has the quotient, whose sign is that of the dividend."""
    low, _ = ends_of(bounds)
    needed: list[Filter] = [Present(bounds.field)]
    if low is not None and low >= 0:
        needed.append(Range(over, gt=0) if bounds.gt == 0 else Range(over, ge=0))
    return clauses.filters(needed)


@dataclass(frozen=True)
class _Grid:
    """Cells of judgement: steps of one divisor, groups of values of the other."""

    steps: Sequence[Step]
    groups: Sequence[tuple[int, int]]

    def clauses(self, steps: str, classes: str, clauses: Clauses) -> tuple[list[Clause], list[Clause]] | None:
        """Return the clause of each step and of each group; None if one cannot be expressed."""
        of_steps = clauses.filters([Range(steps, ge=step[0], lt=step[1]) for step in self.steps])
        of_groups = clauses.filters([Range(classes, ge=group[0], le=group[1]) for group in self.groups])
        return None if of_steps is None or of_groups is None else (of_steps, of_groups)

    def limits(self, over: str, bounds: Step) -> Iterator[tuple[tuple[int, int], Range]]:
        """Yield cells with dividends whose quotient could lie outside the bounds."""
        for number, step in enumerate(self.steps):
            for column, group in enumerate(self.groups):
                for limit in _uncertain(over, bounds, step, group):
                    yield (number, column), limit


_Ends = tuple[float, float]


def _ends(
    live: LiveField, of_steps: Sequence[Clause], of_groups: Sequence[Clause], answer: Answer
) -> dict[tuple[int, int], _Ends]:
    """Return the minimum and maximum dividend of each occupied cell."""
    if not of_groups or live.state != "present":
        return {}
    of_paths = {
        f"{kind}{number}": {kind: {"field": path}}
        for number, path in enumerate(live.paths)
        for kind in ("min", "max")
    }
    cells = {"filters": {"filters": list(of_steps)}, "aggs": of_paths}
    requested = {"groups": {"filters": {"filters": list(of_groups)}, "aggs": {"steps": cells}}}
    ends: dict[tuple[int, int], _Ends] = {}
    for column, group in enumerate(answer(requested)["groups"]["buckets"]):
        for number, cell in enumerate(group["steps"]["buckets"]):
            values = [cell[name]["value"] for name in of_paths if cell[name]["value"] is not None]
            if values:
                scaled = [value * live.source.factor for value in values]
                ends[number, column] = min(scaled), max(scaled)
    return ends


def _reached(limit: Range, ends: _Ends | None) -> bool:
    """True if values between two ends may lie beyond a limit."""
    if ends is None:
        return False
    least, greatest = (end + side * abs(end) * _SLACK for end, side in zip(ends, (-1, 1), strict=True))
    return (limit.ge is None or greatest >= limit.ge) and (limit.le is None or least <= limit.le)


def _uncertain(over: str, bounds: Step, step: Step, group: tuple[int, int]) -> Iterator[Range]:
    """Yield dividends of a cell whose quotient could lie outside the bounds."""
    low, high = bounds
    if high is not None:
        yield Range(over, ge=high * (step[0] or 0.0) * group[0] * (1 - SAFE))
    if low is not None and low > 0:
        yield Range(over, le=None if step[1] is None else low * step[1] * group[1] * (1 + SAFE))


def _steps(name: str, earlier: Sequence[DropRule]) -> Iterator[Step]:
    """Yield steps of the divisor that cover what earlier rules pass."""
    lows, highs = [FIRST], [LAST]
    for rule in earlier:
        if isinstance(rule.keep, Range) and rule.keep.field == name and rule.missing == "drop":
            low, high = ends_of(rule.keep)
            # steps double, and so cannot begin at 0
            lows += [] if low is None or low <= 0 else [low]
            highs += [] if high is None else [high]
    # what lies below the limit by more than the ratio of the ends of a step is certain
    yield from doubling(max(lows), min(highs))


def _groups(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield few classes that cover all values of an integer."""
    if len(counts) <= _CLASSES:
        yield from ((count, count) for count in counts)
        return
    size = -(-len(counts) // _CLASSES)
    for start in range(0, len(counts), size):
        some = counts[start : start + size]
        yield some[0], some[-1]
